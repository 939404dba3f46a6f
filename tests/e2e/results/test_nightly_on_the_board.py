"""Two nights on this machine, a virtual arm64 board and a board that is unplugged on the second one.

On the second night the deployed model is a worse one: a release engineer has to be told so, and of the
board that is away, too.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
from command import DEMO, Ran, edgeflare
from ssh_servers import start_sshd
from virtual_board import VirtualBoard

pytestmark = [pytest.mark.virtual, pytest.mark.sshd, pytest.mark.slow]

NIGHTLY = """
history = "history"
devices = ["local", "virtual", "shelf"]
inventory = "devices.toml"

[[models]]
name = "lenet"
original = { path = "original.onnx", input = { scale = "1/255" } }
deployed = { path = "deployed.onnx", input = { scale = "1/255" } }
seeds = { path = "seeds.npz", limit = 6 }
"""
SHELF = """
[devices.shelf]
host = "127.0.0.1"
port = {port}
user = "{user}"
key = "{key}"
known_hosts = "{known_hosts}"
ssh_config = "{ssh_config}"
python = "{python}"
"""
MNIST = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist"


def night(home: Path, board: VirtualBoard) -> tuple[Ran, dict[str, dict[str, Any]]]:
    ran = edgeflare("nightly", "nightly.toml", "--json", home=home, extra=board.environment)
    return ran, {one["device"]: one for one in ran.json["runs"]}


def test_a_planted_regression_is_caught_and_an_unplugged_board_is_reported(
    virtual_board: VirtualBoard, tmp_path: Path
) -> None:
    shutil.copy(MNIST / "lenet5.onnx", tmp_path / "original.onnx")
    shutil.copy(MNIST / "lenet5_quantized.onnx", tmp_path / "deployed.onnx")
    shutil.copy(DEMO / "seeds.npz", tmp_path)
    (tmp_path / "nightly.toml").write_text(NIGHTLY)
    with start_sshd() as shelf:
        shelf_device = shelf.device()
        (tmp_path / "devices.toml").write_text(
            SHELF.format_map(shelf_device.model_dump(include=set(type(shelf_device).model_fields)))
        )
        ran, first = night(tmp_path, virtual_board)
        assert ran.code == 0, ran.err
        assert {name: one["state"] for name, one in first.items()} == dict.fromkeys(
            ("local", "virtual", "shelf"), "first"
        )

        shutil.copy(MNIST / "lenet5_pruned.onnx", tmp_path / "deployed.onnx")
        shelf.kill()
        ran, second = night(tmp_path, virtual_board)
    assert ran.code == 1
    for name in ("local", "virtual"):
        assert second[name]["state"] == "regression"
        assert second[name]["words"]
        assert any("deployed" in line for line in second[name]["changed"])
    assert second["shelf"]["state"] == "away"
    page = (tmp_path / "history" / "index.html").read_text()
    for words in ("regression", "away", "shelf", "virtual", "local"):
        assert words in page

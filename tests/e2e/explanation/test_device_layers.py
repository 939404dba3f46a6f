"""What `explain` says that each layer contributes to findings that only the device shows."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from command import DEMO, edgeflare

from edgeflare import replay_base, replay_config, search
from edgeflare.explanation import Explanation, Remark, explain_campaign

MODEL = DEMO / "original.tflite"
DIGITS = {"path": DEMO / "seeds.npz", "limit": 8}
CONVOLUTION, DENSE = 3, 7
"""Two layers: numbers of operators in the file."""
Board = Callable[..., dict[str, Any]]


def planted(folder: Path, operator: int) -> tuple[Path, str]:
    """Write the model with one layer's weights rounded to five values; name what that layer makes."""
    run = Interpreter(str(MODEL))
    run.allocate_tensors()
    details = run._get_ops_details()[operator]
    weights = run.get_tensor(int(details["inputs"][1]))
    step = np.abs(weights).max() / 2
    rounded = (np.round(weights / step) * step).astype(np.float32)
    content = MODEL.read_bytes()
    assert content.count(weights.tobytes()) == 1
    path = folder / f"wrong_{operator}.tflite"
    path.write_bytes(content.replace(weights.tobytes(), rounded.tobytes()))
    made = int(details["outputs"][0])
    return path, next(one["name"] for one in run.get_tensor_details() if one["index"] == made)


def python_with(folder: Path, change: str) -> str:
    """Return a Python whose interpreter of models is changed: `library` in the text."""
    (folder / "site").mkdir()
    text = f"import ai_edge_litert.interpreter as library\nright = library.Interpreter\n{change}"
    (folder / "site" / "sitecustomize.py").write_text(text)
    return f"env PYTHONPATH={folder / 'site'} {sys.executable}"


def loads(path: Path, reading: Path | None = None) -> str:
    """Return a change by which another file is loaded, and `reading` where tensors are read."""
    return (
        "class Wrong(right):\n"
        "    def __init__(self, model_path, **more):\n"
        "        reading = more.get('experimental_preserve_all_tensors')\n"
        f"        path = {str(reading or path)!r} if reading else {str(path)!r}\n"
        "        super().__init__(model_path=path, **more)\n"
        "library.Interpreter = Wrong\n"
    )


def explained(folder: Path, device: dict[str, Any], **limits: Any) -> Explanation:
    """Search on a device, and explain what was found."""
    budget = {"options": {"device_budget": 20}, "max_queries": 2000}
    search(DEMO / "original.onnx", MODEL, DIGITS, folder=folder, **budget, **device)
    return explain_campaign(folder, replay_config(replay_base(folder)), **limits)


def check_main_layer(found: Explanation, tensor: str) -> None:
    """Check that one layer makes the change of nearly all findings, and all layers add up to it."""
    layers = found.device_layers
    assert (layers.original, layers.deployed, layers.disturbed) == (MODEL.name, MODEL.name, ())
    assert layers.changed <= 1e-6
    names = [one.name for one in layers.layers]
    largest = [names[int(np.argmax(one))] for one in layers.contributions.values()]
    assert len(largest) == len(found.findings) >= 6
    assert largest.count(tensor) >= 0.9 * len(largest)
    assert {one.layer for one in found.groups} == {tensor}
    for one in found.findings:
        steps = layers.contributions[one.id]
        assert sum(steps) == pytest.approx(one.contributions["device"], abs=1e-6)
    assert layers.device_queries == len(found.findings) + 8  # seeds


def test_the_layer_that_a_device_computes_wrongly_contributes_most(tmp_path: Path) -> None:
    """The device is this machine by another Python, so that its kernels are to blame."""
    wrong, tensor = planted(tmp_path, DENSE)
    found = explained(tmp_path / "out", {"python": python_with(tmp_path, loads(wrong))})
    assert set(found.counts) == {"kernels"}
    check_main_layer(found, tensor)
    again: list[object] = []
    config = replay_config(replay_base(tmp_path / "out"))
    assert explain_campaign(tmp_path / "out", config, progress=again.append) == found
    assert again == []
    told = edgeflare("explain", "out", "--node-data", "nodes.json", home=tmp_path)
    assert "each layer changes" in told.out
    nodes = json.loads((tmp_path / "nodes.json").read_text())["results"]
    assert max(nodes, key=lambda name: nodes[name]["value"]) == tensor


@pytest.mark.sshd
@pytest.mark.slow
@pytest.mark.parametrize("operator", [CONVOLUTION, DENSE])
def test_so_does_the_layer_that_a_board_computes_wrongly(tmp_path, board, operator) -> None:
    wrong, tensor = planted(tmp_path, operator)
    found = explained(tmp_path / "out", board(python=python_with(tmp_path, loads(wrong))))
    assert set(found.counts) == {"hardware"}
    check_main_layer(found, tensor)


@pytest.mark.extended
def test_an_answer_that_reading_changes_is_left_out(tmp_path: Path) -> None:
    first, second = (planted(tmp_path, one)[0] for one in (CONVOLUTION, DENSE))
    settings = {"python": python_with(tmp_path, loads(first, second))}
    found = explained(tmp_path / "out", settings)
    assert len(found.device_layers.disturbed) == len(found.findings) >= 6
    assert found.device_layers.layers == ()
    assert found.notices[-1] == Remark("disturbed", {"findings": len(found.findings)})


@pytest.mark.slow
def test_tensors_of_other_sizes_than_the_files_are_told(tmp_path: Path) -> None:
    change = (
        "told = right.get_tensor_details\n"
        "def odd(self):\n"
        "    return [{**one, 'shape': [2, *one['shape']]} for one in told(self)]\n"
        "right.get_tensor_details = odd\n"
    )
    wrong, _ = planted(tmp_path, CONVOLUTION)
    settings = {"python": python_with(tmp_path, loads(wrong) + change)}
    found = explained(tmp_path / "out", settings)
    assert found.device_layers is None
    assert set(found.counts) == {"kernels"}
    assert found.notices[-1].code == "device layers unknown"
    assert found.notices[-1].data["device"] == "local"
    assert found.device_queries == 3 * len(found.findings)
    again: list[object] = []
    config = replay_config(replay_base(tmp_path / "out"))
    assert explain_campaign(tmp_path / "out", config, progress=again.append) == found
    assert again == []


@pytest.mark.extended
def test_queries_for_tensors_keep_to_the_limit(tmp_path: Path) -> None:
    wrong, _ = planted(tmp_path, CONVOLUTION)
    settings = {"python": python_with(tmp_path, loads(wrong))}
    found = explained(tmp_path / "out", settings, device_queries=14)
    assert len(found.findings) == 3
    assert found.device_queries <= 14
    assert len(found.device_layers.contributions) == 3

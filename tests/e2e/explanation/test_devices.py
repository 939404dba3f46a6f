"""``edgeflare explain --device A --device B``: findings on several devices, compared."""

import json
import sys
from pathlib import Path

import pytest
from command import DEMO, edgeflare, must_run
from ssh_servers import SshServer

from edgeflare.analysis import agreements, clusters
from edgeflare.explanation import explained_devices
from edgeflare.store import Store

pytestmark = [pytest.mark.sshd, pytest.mark.extended]
KERNELS = {"first": "default", "second": "default", "plain": "reference"}


def inventory(folder: Path, server: SshServer) -> Path:
    """Write an inventory of three devices, one of which has other kernels."""
    lines = []
    for name, kernels in KERNELS.items():
        fields = {
            "host": server.host, "port": server.port, "user": server.user, "key": str(server.key),
            "known_hosts": str(server.known_hosts), "python": sys.executable,
            "cache": str(folder / name),
        }  # fmt: skip
        lines += [
            f"[devices.{name}]",
            *(f"{key} = {json.dumps(one)}" for key, one in fields.items()),
        ]
        lines.append(f'options = {{kernels = "{kernels}"}}')
    (folder / "devices.toml").write_text("\n".join(lines))
    return folder / "devices.toml"


def test_devices_that_answer_alike_are_told_with_what_they_share(tmp_path, openssh_server) -> None:
    must_run(
        "run", "--original", DEMO / "original.onnx", "--deployed", DEMO / "deployed.tflite",
        "--seeds", DEMO / "seeds.npz", "--limit", 10, "--no-survey", "--out", "out", home=tmp_path,
    )  # fmt: skip
    asked = [word for name in KERNELS for word in ("--device", name)]
    listed = ("--inventory", inventory(tmp_path, openssh_server))
    told = must_run("explain", "out", *asked, *listed, home=tmp_path)
    assert "second answer alike" in told.out
    assert "kernels reference" in told.out
    assert "two decide alike" in told.out
    found = json.loads(edgeflare("explain", "out", *asked, *listed, "--json", home=tmp_path).out)
    each = found["device_queries"] / len(found["findings"])
    assert 2 * 3 < each <= 3 * 3  # three devices, three times where it deviates
    assert {one["cause"] for one in found["findings"]} <= {"compression", "kernels"}
    with Store.open(tmp_path / "out") as store:
        replay = explained_devices(store)
    assert replay is not None
    with Store.open(replay) as store:
        pairs, _ = agreements(store)
    assert [one.devices for one in clusters(pairs)] == [("first", "second"), ("plain",)]
    assert "second answer alike" in edgeflare("show", "out", home=tmp_path).out
    own = must_run("explain", "out", home=tmp_path)  # the devices' answers stay beside it
    assert "answer alike" not in own.out
    kept = {one.name.split("-")[0] for one in (tmp_path / "out" / "explanation").iterdir()}
    assert kept == {"control", "compression", "kernels", "device"}

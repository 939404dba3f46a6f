"""`check` on this machine and on devices that lack something."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgeflare.devices import Device, check_device
from edgeflare.devices.check import check
from edgeflare.devices.transport import Transport
from edgeflare.errors import HostKeyError


def test_good_device_passes_everything(device: Device) -> None:
    lines = check_device(device)
    assert [line.name for line in lines if line.name != "temperature"] == [
        "connection",
        "python",
        "numpy",
        "runtimes",
        "cache folder",
        "disk",
        "agent",
        "lease",
        "round trip",
    ]
    assert all(line.ok and line.fix is None for line in lines), lines
    assert lines[-1].detail.endswith(" ms")


def test_connection_that_fails_is_the_only_line(device: Device) -> None:
    def refuse() -> Transport:
        raise HostKeyError("unknown key; run: edgeflare devices trust bench")

    (line,) = check(device, refuse)
    assert (line.name, line.ok) == ("connection", False)
    assert "edgeflare devices trust bench" in line.detail


def test_old_python_ends_the_check_there(old_python: str, device: Device) -> None:
    lines = check_device(device.model_copy(update={"python": old_python}))
    assert [(line.name, line.ok) for line in lines] == [("connection", True), ("python", False)]
    assert "needs 3.8" in lines[1].detail
    assert "`python`" in (lines[1].fix or "")


def test_missing_numpy_and_runtimes_are_told_with_commands(device: Device, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", f"{tmp_path}/bare"], check=True)
    lines = check_device(device.model_copy(update={"python": f"{tmp_path}/bare/bin/python"}))
    failed = {line.name: line.fix or "" for line in lines if not line.ok}
    assert failed.keys() == {"numpy", "runtimes"}
    assert "pip install numpy" in failed["numpy"]
    assert "pip install ai-edge-litert" in failed["runtimes"]
    assert "pip install onnxruntime" in failed["runtimes"]
    assert "agent" not in [line.name for line in lines]


def test_cache_that_cannot_be_used(device: Device, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lines = check_device(device.model_copy(update={"cache": f"{tmp_path}/file/cache"}))
    failed = {line.name: line.fix for line in lines if not line.ok}
    assert failed.keys() == {"cache folder"}
    assert "`cache`" in (failed["cache folder"] or "")


@pytest.mark.parametrize("command", ["env no-such-python", "echo hello"])
def test_no_python_at_all(device: Device, command: str) -> None:
    lines = check_device(device.model_copy(update={"python": command}))
    assert [(line.name, line.ok) for line in lines] == [("connection", True), ("python", False)]
    assert command in lines[1].detail

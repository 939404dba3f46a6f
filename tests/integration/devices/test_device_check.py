"""`check` on this machine, and on stand-ins that each lack one thing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import two_inputs_onnx
from stand_ins import bare_python, old_python_stand_in, python_at_start, python_with_old_tflite

from edgeflare.devices import (
    CheckLine,
    Completed,
    Device,
    Lease,
    check_device,
    connect,
    open_device,
)
from edgeflare.devices.doctor.check import check
from edgeflare.devices.transports.base import Transport
from edgeflare.errors import ModelError, UnreachableError, UsageError

ALL = [
    "connection", "python", "numpy", "runtimes", "cache folder", "disk", "memory", "clock", "cpu",
    "governor", "temperature", "delegate", "round trip", "bandwidth", "smoke inference",
    "smoke inference", "int8 products", "lease",
]  # fmt: skip
SHIFTED = """
import sys
import onnxruntime
plain = onnxruntime.InferenceSession.run
def run(self, *arguments, **more):
    return [value + 0.25 for value in plain(self, *arguments, **more)]
onnxruntime.InferenceSession.run = run
"""


def named(lines: list[CheckLine], name: str) -> CheckLine:
    (found,) = (line for line in lines if line.name == name)
    return found


def to_mend(lines: list[CheckLine]) -> dict[str, str]:
    return {line.name: line.fix or "" for line in lines if line.state == "fix"}


def smokes(lines: list[CheckLine]) -> list[CheckLine]:
    return [line for line in lines if line.name == "smoke inference"]


def test_good_device_passes_everything_in_order(device: Device) -> None:
    lines = check_device(device)
    assert [line.name for line in lines] == ALL
    assert to_mend(lines) == {}
    assert all(line.ok for line in lines), lines
    assert "14 of 14" in named(lines, "delegate").detail
    assert re.match(r"\d+\.\d\d ms \(\d+\.\d\d to \d", named(lines, "round trip").detail)
    tflite, onnx = smokes(lines)
    assert re.match(
        r"deployed\.tflite: .* ms by ai-edge-litert .*, XNNPACK, 14 of 14 operators, the same "
        r"answer \d+ times$",
        tflite.detail,
    )
    assert re.match(r"original\.onnx: .* ms by onnxruntime .*, CPU", onnx.detail)


@pytest.mark.extended
def test_each_line_is_reported_before_the_next_thing_is_tried(device: Device) -> None:
    told: list[CheckLine] = []
    before: list[list[str]] = []

    def reach() -> Transport:
        before.append([line.name for line in told])
        transport = connect(device)
        run = transport.run

        def noted(*arguments: Any, **more: Any) -> Completed:
            before.append([line.name for line in told])
            return run(*arguments, **more)

        transport.run = noted  # type: ignore[method-assign]
        return transport

    assert check(device, reach, on_line=told.append) == told
    assert before[0] == []
    assert before[1] == ["connection"]


def test_other_interpreter_is_compared_with_this_one(device: Device, tmp_path: Path) -> None:
    tmp_path.joinpath("alike").mkdir()
    alike = python_at_start(tmp_path / "alike", "")
    lines = check_device(device.model_copy(update={"python": alike}))
    assert [line.state for line in smokes(lines)] == ["ok", "ok"]
    for line in smokes(lines):
        assert "equals this machine's" in line.detail


def test_answer_that_is_not_this_machines_is_noted(device: Device, tmp_path: Path) -> None:
    shifted = python_at_start(tmp_path, SHIFTED)
    lines = check_device(device.model_copy(update={"python": shifted, "runtime": "onnx"}))
    (line,) = smokes(lines)
    assert line.state == "note"
    assert "machine's (onnxruntime" in line.detail
    assert "up to 0.25" in line.detail


CHANGES = {
    "inference 41": """
import onnxruntime
plain = onnxruntime.InferenceSession.run
runs = []
def run(self, *arguments, **more):
    runs.append(self)
    return [value + 0.25 * (len(runs) > 40) for value in plain(self, *arguments, **more)]
onnxruntime.InferenceSession.run = run
""",
    "load 2 of the model": """
import onnxruntime
plain = onnxruntime.InferenceSession.run
first = []
def run(self, *arguments, **more):
    first.append(self)
    return [value + 0.25 * (self is not first[0]) for value in plain(self, *arguments, **more)]
onnxruntime.InferenceSession.run = run
""",
}


@pytest.mark.parametrize("when", CHANGES)
def test_answers_that_change_by_themselves_are_noted(device, tmp_path, when) -> None:
    python = python_at_start(tmp_path, CHANGES[when])
    lines = check_device(device.model_copy(update={"python": python, "runtime": "onnx"}))
    (line,) = smokes(lines)
    assert line.state == "note"
    assert f"{when} gives another" in line.detail


CPUINFO = Path("/proc/cpuinfo").read_text(encoding="utf-8") if sys.platform == "linux" else ""


@pytest.mark.skipif(not re.search(r"\bavx2\b", CPUINFO), reason="no x86-64 processor with AVX2")
def test_saturating_int8_products_are_noted_where_the_processor_has_no_vnni(device: Device) -> None:
    has_vnni = re.search(r"\bavx(512)?_vnni\b", CPUINFO) is not None
    line = named(check_device(device), "int8 products")
    assert line.state == ("ok" if has_vnni else "note")
    assert ("without VNNI" in line.detail) == (not has_vnni)


def test_own_model_that_cannot_run_is_to_be_mended(device: Device, tmp_path: Path) -> None:
    model = two_inputs_onnx(tmp_path / "two.onnx")
    fixes = to_mend(check_device(device, model=model))
    assert fixes.keys() == {"smoke inference"}
    (tmp_path / "broken.tflite").write_bytes(b"none of it")
    lines = check_device(device, model=tmp_path / "broken.tflite")
    assert "TFLite model" in smokes(lines)[0].detail
    assert smokes(lines)[0].detail.count("broken.tflite") == 1
    assert "--model" in (smokes(lines)[0].fix or "")


def test_calibration_that_is_not_there_is_reported(device: Device, tmp_path: Path) -> None:
    options = {"precision": "int8", "calibration": str(tmp_path / "absent.npy")}
    lines = check_device(device.model_copy(update={"runtime": "tensorrt", "options": options}))
    assert "absent.npy" in named(lines, "calibration").detail
    assert not named(lines, "calibration").ok


def test_python_that_fails_shows_the_end_of_its_traceback(device: Device, tmp_path: Path) -> None:
    code = "import sys\nclass Odd:\n    def __getattr__(self, name):\n        raise RuntimeError('why')\n"
    python = python_at_start(tmp_path, code + "sys.modules['platform'] = Odd()\n")
    line = named(check_device(device.model_copy(update={"python": python})), "python")
    assert "RuntimeError: why" in line.detail + str(line.fix)


def test_model_that_is_not_there_is_the_users_mistake(device: Device, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="model file"):
        check_device(device, model=tmp_path / "none.onnx")
    with pytest.raises(UsageError, match="the runtime"):
        check_device(device, model=tmp_path / "none.txt")


def test_connection_that_fails_is_the_only_line(device: Device) -> None:
    def refuse() -> Transport:
        raise UnreachableError("10.0.0.7:22 refused the connection; start sshd on the device")

    (line,) = check(device, refuse)
    assert line == ("connection", False, "10.0.0.7:22 refused the connection", line.fix, False)
    assert "start sshd" in line.fix


def test_old_python_is_reported_and_the_machine_still_looked_at(old_python, device) -> None:
    lines = check_device(device.model_copy(update={"python": old_python}))
    assert to_mend(lines).keys() == {"python"}
    assert "needs 3.8" in named(lines, "python").detail
    assert [line.name for line in lines] == [
        *("connection", "python", "cache folder", "disk", "memory", "clock", "cpu"),
        *("governor", "temperature", "not tried"),
    ]
    left_out = named(lines, "not tried")
    assert left_out.state == "note"
    assert left_out.detail.startswith("numpy, runtimes, delegate")
    assert left_out.detail.endswith("mend python first")


def test_newer_python_beside_an_old_one_is_named(device: Device, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.12").symlink_to("/bin/true")
    old = old_python_stand_in(tmp_path / "old", PATH=f"{tmp_path}/bin")
    line = named(check_device(device.model_copy(update={"python": old})), "python")
    assert "is 3.7.16" in line.detail
    assert f"{tmp_path}/bin/python3.12" in (line.fix or "")
    assert "--python" in (line.fix or "")


def test_missing_numpy_and_runtimes_are_reported_with_commands(device, tmp_path) -> None:
    lines = check_device(device.model_copy(update={"python": bare_python(tmp_path)}))
    fixes = to_mend(lines)
    assert fixes.keys() == {"numpy", "runtimes"}
    assert "pip install numpy" in fixes["numpy"]
    assert "pip install ai-edge-litert" in fixes["runtimes"]
    assert "pip install onnxruntime" in fixes["runtimes"]
    assert lines[-1].detail.endswith("mend numpy first")


def test_numpy_2_with_tflite_runtime_is_reported(device: Device, tmp_path: Path) -> None:
    assert int(np.__version__.split(".")[0]) >= 2
    lines = check_device(device.model_copy(update={"python": python_with_old_tflite(tmp_path)}))
    assert to_mend(lines).keys() == {"numpy"}
    line = named(lines, "numpy")
    assert "tflite-runtime 2.14.0" in line.detail
    assert "pip install" in (line.fix or "")
    assert named(lines, "runtimes").detail == "tflite-runtime 2.14.0"
    assert not smokes(lines)  # it would abort the agent
    assert named(lines, "lease").ok


@pytest.mark.extended
def test_numpy_2_matters_not_to_a_device_for_onnx(device: Device, tmp_path: Path) -> None:
    changes = {"python": python_with_old_tflite(tmp_path), "runtime": "onnx"}
    lines = check_device(device.model_copy(update=changes))
    assert named(lines, "numpy").state == "note"
    assert to_mend(lines).keys() == {"runtimes"}


def test_cache_that_cannot_be_used(device: Device, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lines = check_device(device.model_copy(update={"cache": f"{tmp_path}/file/cache"}))
    fixes = to_mend(lines)
    assert fixes.keys() == {"cache folder"}
    assert "`cache`" in fixes["cache folder"]
    assert "cache folder first" in lines[-1].detail


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_full_disk_is_reported_with_what_prune_frees(device: Device, small_disk: Path) -> None:
    (small_disk / "models").mkdir()
    (small_disk / "models" / "old.onnx").write_bytes(bytes(600_000))
    with (small_disk / "filler").open("wb") as filler, pytest.raises(OSError, match="No space"):
        filler.write(bytes(1 << 20))
    lines = check_device(device.model_copy(update={"cache": str(small_disk)}))
    fixes = to_mend(lines)
    assert fixes.keys() == {"disk"}
    assert "0 MB free" in named(lines, "disk").detail
    assert "--all` frees 0.6" in fixes["disk"]
    assert lines[-1].detail.endswith("mend disk first")


def test_full_disk_before_the_cache_folder_is_there(device: Device, small_disk: Path) -> None:
    with (small_disk / "filler").open("wb") as filler, pytest.raises(OSError, match="No space"):
        filler.write(bytes(1 << 21))
    lines = check_device(device.model_copy(update={"cache": f"{small_disk}/cache"}))
    assert "disk" in to_mend(lines)
    assert "prune" not in to_mend(lines)["disk"]


@pytest.mark.parametrize("command", ["env no-such-python", "echo hello"])
def test_no_python_at_all(device: Device, command: str) -> None:
    lines = check_device(device.model_copy(update={"python": command}))
    assert [(line.name, line.ok) for line in lines] == [("connection", True), ("python", False)]
    assert command in lines[1].detail
    assert "`python`" in (lines[1].fix or "")


def test_python_that_never_answers_is_given_up(device, monkeypatch) -> None:
    monkeypatch.setattr("edgeflare.devices.doctor.facts._TIMEOUT_S", 0.5)
    slow = device.model_copy(update={"python": "sh -c 'exec sleep 600'"})
    _, line = check_device(slow)
    assert (line.name, line.state) == ("python", "fix")
    assert "end within" in line.detail
    assert "import numpy" in (line.fix or "")


@pytest.mark.extended
def test_words_around_the_answer_are_shown(device: Device, with_banner: str) -> None:
    lines = check_device(device.model_copy(update={"python": with_banner}))
    line = named(lines, "shell")
    assert line.state == "note"
    assert "2 updates" in line.detail
    assert to_mend(lines) == {}


@pytest.mark.extended
def test_raspberry_pis_tool_is_asked(device: Device, tmp_path: Path) -> None:
    tool = tmp_path / "vcgencmd"
    tool.write_text('#!/bin/sh\n[ "$1" = get_throttled ] && echo throttled=0x50005\n')
    tool.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    lines = check_device(
        device.model_copy(update={"python": python_at_start(tmp_path, "", PATH=path)})
    )
    line = named(lines, "temperature")
    assert line.state == "note"
    assert "under-voltage, throttled; since" in line.detail
    assert "power supply" in (line.fix or "")


def test_device_in_use_is_not_disturbed(device: Device, onnx_model: Path) -> None:
    session = open_device(device, onnx_model, lease=Lease("night", "1", "campaign night on desk"))
    try:
        lines = check_device(device)
    finally:
        session.close()
    assert "campaign night" in named(lines, "lease").detail
    assert named(lines, "lease").state == "note"
    assert [line.detail for line in smokes(lines)] == ["not tried: others use the device"]
    assert to_mend(lines) == {}

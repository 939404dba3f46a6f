"""What `devices check` says of an arm64 board with one thing wrong at a time."""

from collections.abc import Callable
from pathlib import Path

import pytest
from ssh_servers import make_key
from virtual_board import VirtualBoard

from edgeflare.devices import CheckLine, Device, check_device, connect

pytestmark = [pytest.mark.virtual, pytest.mark.extended]

Made = Callable[[str], None]
"""Runs code as the board's root user."""

OLD_TFLITE = """
import glob, os
os.makedirs("/srv/old/tflite_runtime", exist_ok=True)
open("/srv/old/tflite_runtime/__init__.py", "w").close()
about = "/srv/old/tflite_runtime-2.14.0.dist-info"
os.makedirs(about, exist_ok=True)
with open(about + "/METADATA", "w") as file:
    file.write("Metadata-Version: 2.1\\nName: tflite-runtime\\nVersion: 2.14.0\\n")
for found in glob.glob("/usr/lib/python3/dist-packages/numpy*"):
    link = "/srv/old/" + os.path.basename(found)
    if not os.path.exists(link):
        os.symlink(found, link)
"""
OLD_PYTHON = """
import os
os.makedirs("/srv/python3.7", exist_ok=True)
with open("/srv/python3.7/sitecustomize.py", "w") as file:
    file.write("import sys; sys.version_info = (3, 7, 16, 'final', 0)")
"""
FULL_DISK = """
import os, subprocess
os.makedirs("/srv/full", exist_ok=True)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,uid=1000,mode=700", "none", "/srv/full"], check=True)
try:
    with open("/srv/full/data", "wb", buffering=0) as file:
        while True:
            file.write(bytes(65536))
except OSError:
    os.chown("/srv/full/data", 1000, 1000)
"""
NOISY_USER = """
import os, shutil
with open("/etc/passwd", "a") as file:
    file.write("noisy:x:1001:1001::/home/noisy:/bin/bash\\n")
with open("/etc/shadow", "a") as file:
    file.write("noisy:*:19000:0:99999:7:::\\n")
os.makedirs("/home/noisy", exist_ok=True)
shutil.copytree("/home/pi/.ssh", "/home/noisy/.ssh", dirs_exist_ok=True)
with open("/home/noisy/.bashrc", "w") as file:
    file.write("echo Welcome to the board\\n")
for folder, _, files in os.walk("/home/noisy"):
    for path in (folder, *(os.path.join(folder, name) for name in files)):
        os.chown(path, 1001, 1001)
"""


@pytest.fixture
def made(virtual_board: VirtualBoard) -> Made:
    def run(code: str) -> None:
        transport = connect(virtual_board.root)
        try:
            done = transport.run(["-c", code], timeout=120)
        finally:
            transport.close()
        assert done.status == 0, done.stderr

    return run


def lines(device: Device, **changes: object) -> dict[str, CheckLine]:
    """The lines of a check by name; of those with one name the last."""
    return {line.name: line for line in check_device(device.model_copy(update=changes))}


def amiss(found: dict[str, CheckLine]) -> list[str]:
    return [name for name, line in found.items() if not line.ok]


def test_no_numpy(virtual_board: VirtualBoard) -> None:
    found = lines(virtual_board.device, python="python3 -S")
    assert "numpy" in amiss(found)
    assert "numpy is missing" in found["numpy"].detail
    assert "pip install" in (found["numpy"].fix or "")


def test_numpy_2_with_tflite_runtime(virtual_board: VirtualBoard, made: Made) -> None:
    """The stand-in has tflite-runtime's name and version; it is judged by these, never imported."""
    made(OLD_TFLITE)
    found = lines(virtual_board.device, python="env PYTHONPATH=/srv/old python3 -S")
    wrong = [found[name] for name in amiss(found)]
    assert any("tflite-runtime 2.14.0" in line.detail for line in wrong), wrong
    assert any(
        '"numpy<2"' in (line.fix or "") or "ai-edge-litert" in (line.fix or "") for line in wrong
    )


def test_a_full_disk(virtual_board: VirtualBoard, made: Made) -> None:
    made(FULL_DISK)
    found = lines(virtual_board.device, cache="/srv/full/cache")
    assert "disk" in amiss(found)
    assert "0 MB free" in found["disk"].detail or "0.0 MB free" in found["disk"].detail
    assert found["disk"].fix


def test_a_wrong_key(virtual_board: VirtualBoard, tmp_path: Path) -> None:
    wrong = make_key(tmp_path / "wrong")
    found = lines(virtual_board.device, key=wrong)
    assert (found["connection"].ok, amiss(found)) == (True, ["key"])
    assert str(wrong) in found["key"].detail
    assert "ssh-copy-id" in (found["key"].fix or "")


@pytest.mark.slow
def test_a_banner_in_bashrc(virtual_board: VirtualBoard, made: Made) -> None:
    made(NOISY_USER)
    found = lines(virtual_board.device, user="noisy")
    assert amiss(found) == []
    assert found["shell"].state == "note"
    assert "Welcome to the" in found["shell"].detail
    assert "case $- in" in (found["shell"].fix or "")
    # Nothing else is amiss: all that a check looks at is told of the board.
    assert "aarch64" in found["cpu"].detail
    assert "Cortex-A72" in found["cpu"].detail
    assert "equals this machine's" in found["smoke inference"].detail


def test_a_python_that_is_too_old(virtual_board: VirtualBoard, made: Made) -> None:
    """A stand-in: the board's own interpreter says that it is Python 3.7.16."""
    made(OLD_PYTHON)
    found = lines(virtual_board.device, python="env PYTHONPATH=/srv/python3.7 python3")
    assert "python" in amiss(found)
    assert "3.7.16" in found["python"].detail
    assert "3.8" in found["python"].detail

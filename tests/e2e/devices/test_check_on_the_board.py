"""What `devices check` says of an arm64 board with one thing wrong at a time."""

from collections.abc import Callable

import pytest
from virtual_board import VirtualBoard

from edgeflare.devices import CheckLine, Device, check_device, connect

pytestmark = [pytest.mark.virtual, pytest.mark.slow]

Made = Callable[[str], None]
"""Runs code as the board's root user."""

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


def test_a_full_disk(virtual_board: VirtualBoard, made: Made) -> None:
    made(FULL_DISK)
    found = lines(virtual_board.device, cache="/srv/full/cache")
    assert "disk" in amiss(found)
    assert "0 MB free" in found["disk"].detail or "0.0 MB free" in found["disk"].detail
    assert found["disk"].fix


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

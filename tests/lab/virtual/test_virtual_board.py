"""The virtual board itself, built and booted: what is on it, who may enter, how it comes back."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest
from virtual_board import VirtualBoard, within

from edgeflare.devices import Device, connect, device_status, load_inventory
from edgeflare.errors import UnreachableError
from edgeflare_lab.virtual import BoardSettings, BoardStatus, board_down, board_status, board_up
from edgeflare_lab.virtual.rootfs import LIBRARIES, host_versions

pytestmark = pytest.mark.virtual

FACTS = """
import importlib.metadata, json, os, platform, time
import numpy, onnxruntime
from ai_edge_litert import interpreter
print(json.dumps({
    "machine": platform.machine(),
    "release": platform.freedesktop_os_release()["VERSION_CODENAME"],
    "python": platform.python_version_tuple()[:2],
    "user": os.getuid(),
    "cores": os.cpu_count(),
    "time": time.time(),
    "writable": os.access("/usr/lib/python3/dist-packages", os.W_OK),
    "compiled": os.path.exists(numpy.__cached__),
    "owners": sorted({os.stat(p).st_uid for p in ("/", "/etc/passwd", "/usr/bin/su", "/usr/lib")}),
    "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
}))
"""

REACH = """
import socket
for address in ("10.0.2.2", "10.0.2.3"):
    for port in (22, 53, 80):
        try:
            socket.create_connection((address, port), timeout=3).close()
            print("reached", address, port)
        except OSError:
            pass
"""

DELAY = """
import subprocess
subprocess.run(["tc", "qdisc", "replace", "dev", "eth0", "root", "netem", "delay", "5ms"], check=True)
print(subprocess.run(["tc", "qdisc", "show", "dev", "eth0"], capture_output=True, text=True).stdout)
subprocess.run(["tc", "qdisc", "del", "dev", "eth0", "root"], check=True)
"""


def run(device: Device, code: str) -> str:
    transport = connect(device)
    try:
        done = transport.run(["-c", code], timeout=device.timeout_s)
    finally:
        transport.close()
    assert done.status == 0, done.stderr
    return done.stdout.decode()


@pytest.mark.extended
def test_it_is_an_arm64_debian_with_this_machine_s_libraries(virtual_board: VirtualBoard) -> None:
    before = time.time()
    facts = json.loads(run(virtual_board.device, f"LIBRARIES = {LIBRARIES!r}\n{FACTS}"))
    assert (facts["machine"], facts["release"]) == ("aarch64", "bookworm")
    assert facts["python"] == ["3", "11"]
    assert facts["cores"] == 2
    assert (facts["user"], facts["writable"], facts["owners"]) == (1000, False, [0])
    assert facts["compiled"]
    assert before - 30 < facts["time"] < time.time() + 30
    assert facts["versions"] == host_versions()


@pytest.mark.extended
def test_it_is_in_every_inventory_and_answers(virtual_board: VirtualBoard) -> None:
    with within(virtual_board.environment):
        assert load_inventory()["virtual"] == virtual_board.device
    report = device_status(virtual_board.device)
    assert report.runtimes == {name: host_versions()[name] for name in LIBRARIES if name != "numpy"}


@pytest.mark.slow
def test_root_may_enter_by_the_same_key_and_delay_the_link(virtual_board: VirtualBoard) -> None:
    assert run(virtual_board.root, "import os; print(os.getuid())").strip() == "0"
    assert "netem" in run(virtual_board.root, DELAY)


@pytest.mark.slow
def test_it_reaches_nothing_itself(virtual_board: VirtualBoard) -> None:
    assert run(virtual_board.device, REACH) == ""


@pytest.mark.extended
def test_up_on_a_board_that_is_up_leaves_it_alone(virtual_board: VirtualBoard) -> None:
    with within(virtual_board.environment):
        before = board_status()
        report = board_up(BoardSettings(cores=3))
        assert report.was_up
        assert report.built_s is None
        now = board_status()
        assert (now.pid, now.state) == (before.pid, before.state)
    assert "2 (asked: 3)" in report.notes[0]


@pytest.fixture
def second(virtual_board: VirtualBoard) -> Iterator[BoardStatus]:
    """A second board from the same build, for tests that harm it."""
    with within(virtual_board.environment):
        report = board_up(BoardSettings("second", cores=1, memory_mb=512, cpu="cortex-a76"))
        assert report.built_s is None
        yield report.status
        board_down("second", delete=True)
        assert not board_status("second").running
        assert board_status().running


@pytest.mark.slow
def test_a_killed_board_comes_back_fresh_on_its_port_with_its_keys(second: BoardStatus) -> None:
    device, pid = second.device, second.pid
    assert device is not None
    assert pid is not None
    run(device, "open('note', 'w').write('kept?')")
    os.kill(pid, signal.SIGKILL)
    while board_status("second").running:
        time.sleep(0.05)
    with pytest.raises(UnreachableError, match="--name second"):
        connect(device)
    again = board_up(BoardSettings("second", cores=1, memory_mb=512)).status
    assert again.device == device
    assert again.pid != pid
    assert run(device, "import os; print(os.path.exists('note'))") == "False\n"
    assert board_down("second").ran
    assert not board_down("second").ran

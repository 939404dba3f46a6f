"""A phone's own shell as the way to it; what every transport does alike is in tests/contract."""

import contextlib
import os
import shlex
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from adb_server import FakeAdbServer, Phone

from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.adb.transport import AdbShellTransport, ShellProgram
from edgeflare.errors import DeviceError, DevicePythonError, UnreachableError

WAIT = "import sys; sys.stdin.read()"


@pytest.fixture
def device(attach: Callable[..., Phone], tmp_path: Path) -> Device:
    attach("R58M", home=tmp_path)
    return Device(
        name="phone",
        transport="adb",
        serial="R58M",
        adb_shell=True,
        python=shlex.quote(sys.executable),
    )


@pytest.fixture
def transport(device: Device) -> Iterator[AdbShellTransport]:
    transport = AdbShellTransport.connect(device)
    yield transport
    transport.close()


def test_a_shell_that_mixes_stdout_and_stderr_is_refused(device, adb_server) -> None:
    adb_server.phone("R58M").features = "cmd"
    with pytest.raises(DeviceError, match=r"7.*Termux"):
        AdbShellTransport.connect(device)


def test_a_shell_without_python_points_to_termux(device: Device) -> None:
    transport = AdbShellTransport.connect(device.model_copy(update={"python": "python9.99"}))
    with pytest.raises(DevicePythonError, match=r"'python9\.99'"):
        transport.run(["-c", "print(1)"], timeout=30)
    transport.close()


def test_a_lost_phone_ends_reads_and_fails_writes(transport, adb_server) -> None:
    stream = transport.open(["-c", WAIT])
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(stream.read(10)))
    reader.start()
    adb_server.cut("R58M")
    reader.join(20)
    assert read == [b""]
    assert stream.exit_status(5) is None
    with pytest.raises(UnreachableError, match="takes no"):
        stream.write([b"x"])
    with pytest.raises(UnreachableError, match="phone R58M"):
        transport.run(["-c", "print(1)"], timeout=10)
    stream.close()


def test_a_phone_lost_while_a_command_runs(transport, adb_server, tmp_path) -> None:
    runs = tmp_path / "runs"

    def cut() -> None:
        until = time.monotonic() + 60
        while not runs.exists() and time.monotonic() < until:
            time.sleep(0.02)
        adb_server.cut("R58M")

    cutter = threading.Thread(target=cut)
    cutter.start()
    code = f"import time; open({str(runs)!r}, 'w').close(); time.sleep(600)"
    with pytest.raises(UnreachableError, match="phone R58M"):
        transport.run(["-c", code], timeout=60)
    cutter.join()


def test_closing_the_transport_ends_what_was_opened(transport: AdbShellTransport) -> None:
    stubborn = transport.open(["-c", "import os, time; os.write(1, b'u'); time.sleep(600)"])
    assert stubborn.read(10) == b"u"
    transport.close()
    assert stubborn.read(1) == b""
    with pytest.raises(UnreachableError):
        stubborn.write([b"x"])


def test_close_unblocks_a_reader_in_another_thread(transport: AdbShellTransport) -> None:
    stream = transport.open(["-c", WAIT])
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(stream.read(10)))
    reader.start()
    stream.close()
    reader.join(10)
    assert read == [b""]


def test_a_program_that_reads_nothing_can_be_closed() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        program = ShellProgram(ours, "the phone")
        with contextlib.suppress(BlockingIOError):
            while True:
                ours.send(bytes(1 << 12), socket.MSG_DONTWAIT)
        closer = threading.Thread(target=program.close, daemon=True)
        closer.start()
        closer.join(60)
        assert not closer.is_alive()


def test_output_that_nobody_reads_does_not_keep_it_open(transport: AdbShellTransport) -> None:
    endless = "import sys\nwhile True: sys.stdout.buffer.write(bytes(1 << 16))"
    stream = transport.open(["-c", endless])
    assert stream.read(1) == b"\0"
    stream.close()


def test_the_stand_in_server_ends_a_program_that_ignores_a_hangup(
    device: Device, adb_server: FakeAdbServer, tmp_path: Path
) -> None:
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    code = f"import os, signal, time; held = os.open({str(fifo)!r}, os.O_WRONLY)"
    code += "; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.write(1, b'u'); time.sleep(600)"
    with contextlib.closing(AdbShellTransport.connect(device).open(["-c", code])) as stream:
        alive = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        assert stream.read(10) == b"u"
        adb_server.close()
        assert os.read(alive, 1) == b""  # BlockingIOError while the program holds the other end
        os.close(alive)


def test_7_mb_may_wait_unread(transport: AdbShellTransport) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(7_000_000)); sys.stdout.flush()"
    stream = transport.open(["-c", f"{code}; print('written', file=sys.stderr)"])
    for _ in range(600):
        if stream.stderr_tail() == "written":
            break
        time.sleep(0.05)
    assert stream.stderr_tail() == "written"
    left = 7_000_000
    while chunk := stream.read(1 << 20):
        left -= len(chunk)
    assert left == 0
    stream.close()


def test_the_cache_is_where_the_shell_user_may_write() -> None:
    fields = {"name": "p", "transport": "adb", "adb_shell": True}
    assert Device.model_validate(fields).cache == "/data/local/tmp/edgeflare"
    assert Device.model_validate({**fields, "cache": "/x"}).cache == "/x"

"""The qemu process: found again for certain, ended for certain, nobody else's harmed."""

import errno
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from edgeflare.errors import DeviceError, DeviceTimeoutError
from edgeflare_lab.virtual import BoardSettings
from edgeflare_lab.virtual import machine as machine_module
from edgeflare_lab.virtual.machine import Machine, free_port, is_free, speaks_ssh

SLEEP = "import time; print('ready', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP


def started(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not a machine of ours."""
    with started(SLEEP) as process:
        yield process
        process.kill()


def test_a_pid_file_that_another_process_fits_by_chance_deceives_nobody(tmp_path, other) -> None:
    (tmp_path / "qemu.pid").write_text(f"{other.pid}\n")
    machine = Machine(tmp_path)
    assert machine.pid() is None
    machine.stop()
    assert other.poll() is None
    assert not (tmp_path / "qemu.pid").exists()


@pytest.mark.parametrize("text", ["", "no number", "999999999"])
def test_a_stale_pid_file_is_no_machine(text: str, tmp_path: Path) -> None:
    (tmp_path / "qemu.pid").write_text(text)
    assert Machine(tmp_path).pid() is None


@pytest.mark.parametrize("code", [SLEEP, STUBBORN])
def test_a_machine_is_found_and_ended(code, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(machine_module, "_STOP_S", 0.5 if code == STUBBORN else 30)
    pid_file = tmp_path / "qemu.pid"
    with started(code, "-pidfile", str(pid_file)) as process:
        pid_file.write_text(f"{process.pid}\n")
        machine = Machine(tmp_path)
        assert machine.pid() == process.pid
        assert (machine.memory_mb() or 0) > 0
        machine.stop()
        assert process.wait(120) < 0
    assert machine.pid() is None
    assert machine.memory_mb() is None


def test_a_machine_that_ends_while_it_boots_is_reported_with_its_last_words(tmp_path: Path) -> None:
    (tmp_path / "console.log").write_text("starting\nKernel panic - not syncing\n\n")
    with pytest.raises(DeviceError, match=r"booted.*Kernel panic.*console\.log"):
        Machine(tmp_path).wait_for_ssh(free_port())


def test_a_boot_has_a_deadline(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "console.log").write_text("")
    pid_file = tmp_path / "qemu.pid"
    with started(SLEEP, str(pid_file)) as process:
        pid_file.write_text(str(process.pid))
        with pytest.raises(DeviceTimeoutError, match=r"0 s.*said"):
            machine.wait_for_ssh(free_port(), limit_s=0.3)
        process.kill()


@pytest.mark.parametrize(
    ("greeting", "ssh"), [(b"SSH-2.0-OpenSSH_9.2p1\r\n", True), (b"", False), (b"220 hi", False)]
)
def test_only_a_greeting_counts_as_ssh(greeting: bytes, ssh: bool) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def greet() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(greeting)

        thread = threading.Thread(target=greet)
        thread.start()
        assert speaks_ssh(server.getsockname()[1]) is ssh
        thread.join()


def test_nothing_speaks_on_a_free_port() -> None:
    port = free_port()
    assert is_free(port)
    assert not speaks_ssh(port)
    with closing(socket.create_server(("127.0.0.1", port))):
        assert not is_free(port)


def test_no_free_port_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))

    monkeypatch.setattr("socket.socket.bind", full)
    with pytest.raises(DeviceError, match=r"board.*--port"):
        free_port()


def test_qemu_s_own_words_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "qemu-system-aarch64"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\necho 'could not set up host forwarding rule' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "initrd").write_bytes(b"base")
    board = tmp_path / "board"
    board.mkdir()
    with pytest.raises(DeviceError, match="host forwarding"):
        Machine(board).start(tmp_path, b"own", BoardSettings(), 2222)
    assert (board / "initrd").read_bytes() == b"baseown"


def test_the_board_is_reached_from_this_machine_alone_and_reaches_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "bin" / "qemu-system-aarch64"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{tmp_path}/arguments\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "initrd").write_bytes(b"base")
    (tmp_path / "board").mkdir()
    Machine(tmp_path / "board").start(tmp_path, b"own", BoardSettings(), 2222)
    arguments = (tmp_path / "arguments").read_text().splitlines()
    links = [value for flag, value in pairwise(arguments) if flag in ("-netdev", "-nic", "-net")]
    assert links == ["user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:2222-:22"]

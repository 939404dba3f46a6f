"""The local transport against real processes."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from edgeflare.devices.transports.local import LocalTransport
from edgeflare.errors import UnreachableError


@pytest.fixture
def transport() -> LocalTransport:
    return LocalTransport("here")


def test_python_prefix_is_split_like_a_shell_does(tmp_path: Path) -> None:
    wrapper = tmp_path / "a wrapper.sh"
    wrapper.write_text(f'exec {sys.executable} "$@"\n')
    transport = LocalTransport("here", f"sh '{wrapper}' -X utf8")
    done = transport.run(["-c", "import sys; print(sys.flags.utf8_mode)"], timeout=60)
    assert done.stdout.strip() == b"1"


def test_python_below_home_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "py").symlink_to(sys.executable)
    assert LocalTransport("here", "~/py").run(["-c", "print(1)"], timeout=60).stdout == b"1\n"


def test_reading_and_writing_after_the_end(transport: LocalTransport) -> None:
    stream = transport.open(["-c", "pass"])
    assert stream.read(10) == b""
    assert stream.exit_status(60) == 0
    with pytest.raises(UnreachableError):
        stream.write([b"x" * 10])
    stream.close()
    stream.close()
    assert stream.read(10) == b""
    with pytest.raises(UnreachableError):
        stream.write([b"x"])


def test_close_ends_a_program_that_ignores_its_stdin_and_sigterm(transport: LocalTransport) -> None:
    script = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "sys.stdout.write('x'); sys.stdout.flush(); time.sleep(600)"
    )
    stream = transport.open(["-c", script])
    assert stream.read(1) == b"x"
    stream.close()
    assert stream.exit_status(0) == -signal.SIGKILL


def test_close_frees_a_writer_whose_program_does_not_read(transport: LocalTransport) -> None:
    stream = transport.open(["-c", "import time; time.sleep(600)"])
    failures: list[BaseException] = []

    def write() -> None:
        try:
            stream.write([bytes(10_000_000)])
        except UnreachableError as error:
            failures.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    stream.close()
    writer.join(60)
    assert len(failures) == 1


def test_ctrl_c_in_the_terminal_does_not_reach_the_program() -> None:
    script = """
import os, signal, sys
from edgeflare.devices.transports.local import LocalTransport
stream = LocalTransport("here").open(["-c", "import sys; sys.stdout.write(sys.stdin.read())"])
try:
    os.killpg(0, signal.SIGINT)
    signal.pause()
except KeyboardInterrupt:
    stream.write([b"still here"])
    stream._in.close()
    print(stream.read(100).decode())
    stream.close()
"""
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": paths},
        capture_output=True, text=True, start_new_session=True, timeout=60,
    )  # fmt: skip
    assert done.stdout.strip() == "still here", done.stderr

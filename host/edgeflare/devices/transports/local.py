"""The machine that the host runs on, as a device: a process of its own behind pipes."""

import math
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any, cast

from edgeflare._internal.files import home_folder, is_disk_full
from edgeflare.devices.transports.base import Completed, Deadline, read_output, start_feeder
from edgeflare.errors import (
    DeviceDiskFullError,
    DeviceError,
    DevicePythonError,
    DeviceTimeoutError,
    UnreachableError,
)

_TAIL_LINES = 20
_LONGEST_LINE = 4096
_GRACE_S = 2.0


class LocalTransport:
    """Runs Python on this machine; see `Transport`.

    `python` is a command prefix, split as a POSIX shell would, without a shell; None: the
    interpreter that runs the host. Programs get a session of their own, so that Ctrl-C in the
    terminal reaches the host alone.
    """

    def __init__(self, name: str, python: str | None = None) -> None:
        self.name = name
        words = [sys.executable] if python is None else shlex.split(python)
        self._python = [
            str(home_folder() / word[2:]) if word.startswith("~/") else word for word in words
        ]

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the Python command with these arguments and wait for it."""
        deadline = Deadline(timeout)
        process = self._start(arguments)
        stream = LocalStream(process)
        feeder = start_feeder(stream.write, stream.end_stdin, (stdin,))
        try:
            stdout = read_output(partial(stream.read_within, 1 << 16), deadline, self.name)
            status = process.wait(deadline.remaining())
        except (TimeoutError, subprocess.TimeoutExpired) as error:
            _send(process, "SIGKILL")
            raise DeviceTimeoutError(
                f"{shlex.join(self._python)} did not end within {timeout:g} s on {self.name}"
            ) from error
        finally:
            if process.poll() is None:
                _send(process, "SIGKILL")
            stream.close()
            feeder.join(_GRACE_S)  # a program of the program may hold the other end
        return Completed(status, stdout, stream.stderr_tail())

    def open(self, arguments: Sequence[str]) -> "LocalStream":
        """Start the Python command with these arguments, stderr separate."""
        return LocalStream(self._start(arguments))

    def put(self, local: Path, remote: str) -> None:
        """Copy a file. Raises DeviceDiskFullError, DeviceError."""
        try:
            shutil.copyfile(local, remote)
        except OSError as error:
            if is_disk_full(error):
                raise DeviceDiskFullError(f"no space left for {remote} on {self.name}") from error
            raise DeviceError(f"can't write {remote} on {self.name}: {error.strerror}") from error

    def close(self) -> None:
        """There is no connection to end."""

    def _start(self, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
        try:
            return subprocess.Popen(
                [*self._python, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise DevicePythonError(
                f"the Python command {shlex.join(self._python)!r} can't be run on {self.name}: "
                f"{error.strerror}; give one of Python 3.8 or later as `python` in the inventory"
            ) from error


class LocalStream:
    """A running process's stdin and stdout; see `Stream`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._in, self._out, self._err = (
            cast("FileIO", pipe) for pipe in (process.stdin, process.stdout, process.stderr)
        )
        self._reading, self._writing, self._closing = (threading.Lock() for _ in range(3))
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._collector = threading.Thread(
            target=self._collect, name="edgeflare-stderr", daemon=True
        )
        self._collector.start()

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes; ``b""`` at the end."""
        with self._reading:
            return b"" if self._out.closed else self._out.read(n) or b""

    def read_within(self, n: int, seconds: float) -> bytes:
        """Read as `read` does, but raise TimeoutError where nothing comes for so many seconds."""
        ready = select.poll()
        ready.register(self._out, select.POLLIN)
        if not ready.poll(math.ceil(seconds * 1000)):
            raise TimeoutError
        return self.read(n)

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Write all blocks. Raises UnreachableError where the process reads no more."""
        try:
            with self._writing:
                for block in blocks:
                    view, sent = memoryview(block), 0
                    while sent < len(view):
                        sent += self._in.write(view[sent:]) or 0
        except (OSError, ValueError) as error:  # ValueError: closed on this side
            raise UnreachableError("the program takes no more input: it ended") from error

    def end_stdin(self) -> None:
        """Let the program see the end of its stdin."""
        with self._writing:
            self._in.close()

    def stderr_tail(self) -> str:
        """Return the last lines, at most 20, that the process wrote to stderr."""
        return "\n".join(tuple(self._tail))

    def exit_status(self, timeout: float) -> int | None:
        """Wait at most `timeout` seconds for the end; -n where signal n ended the process."""
        try:
            status = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self._collector.join(timeout)
        return status

    def close(self) -> None:
        """End the process: close its stdin, else send SIGTERM, else SIGKILL. Safe to repeat."""
        with self._closing:
            if self._writing.acquire(
                timeout=_GRACE_S
            ):  # a writer may wait for a process that hangs
                self._in.close()
                self._writing.release()
            for name in ("SIGTERM", "SIGKILL"):
                if self.exit_status(_GRACE_S) is not None:
                    break
                _send(self._process, name)
            self._process.wait()
            for lock, pipe in ((self._reading, self._out), (self._writing, self._in)):
                if lock.acquire(timeout=_GRACE_S):  # not got: a child of the process holds the pipe
                    pipe.close()
                    lock.release()

    def _collect(self) -> None:
        with self._err:
            pending = b""
            while chunk := self._err.read(_LONGEST_LINE):
                *lines, pending = (pending + chunk).split(b"\n")
                pending = pending[-_LONGEST_LINE:]
                self._tail.extend(line.decode(errors="replace").rstrip() for line in lines)
            if pending:
                self._tail.append(pending.decode(errors="replace").rstrip())


def _send(process: "subprocess.Popen[Any]", name: str) -> None:
    """Send a signal to the process and its children; Windows has only one signal."""
    if sys.platform == "win32":
        process.terminate()
        return
    try:
        os.killpg(process.pid, getattr(signal, name))
    except ProcessLookupError:
        return

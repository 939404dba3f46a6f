"""The shell of a phone as a transport: adb alone, where the shell user has a Python.

A program is a byte stream of adb's shell protocol, version 2, without a terminal. After the service
``shell,v2,raw:COMMAND`` both sides send packets: one byte of kind, four of length, little-endian,
and the bytes (AOSP, packages/modules/adb/shell_protocol.h). Closing the link ends the program: adbd
sends it SIGHUP.
"""

import contextlib
import shlex
import socket
import struct
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.adb.phones import choose
from edgeflare.devices.transports.adb.server import AdbRefusedError, AdbServer
from edgeflare.devices.transports.base import (
    STDERR_LIMIT,
    Completed,
    Deadline,
    check_ran,
    read_output,
    start_feeder,
)
from edgeflare.devices.transports.upload import put_by_python
from edgeflare.errors import DeviceError, DeviceTimeoutError, UnreachableError

STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)
_HEADER = struct.Struct("<BI")
PACKET = 64 << 10
_WINDOW = 8 << 20
"""Limit of unread bytes of stdout; beyond it the program waits."""
_TAIL_LINES = 20
_GRACE_S = 2.0


class ShellProgram:
    """A running program's stdin and stdout; see `Stream`. Owns the link to the phone's shell.

    `keep`: how many of stderr's last bytes are stored.
    """

    def __init__(self, link: socket.socket, where: str, keep: int = 64 << 10) -> None:
        self._link = link
        self._where = where
        self._stderr_limit = keep
        self._changed = threading.Condition()
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._stderr = bytearray()
        self._ended = False
        self._status: int | None = None
        self._sending = threading.Lock()
        self._closing = threading.Lock()
        self._reader = threading.Thread(
            target=self._read_packets, name="edgeflare-adb", daemon=True
        )
        self._reader.start()

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes; ``b""`` at the end or when the link is lost."""
        return self.read_within(n, None)

    def read_within(self, n: int, timeout: float | None) -> bytes:
        """Read as `read` does, but raise TimeoutError where nothing comes for so many seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._unread or self._ended, timeout):
                raise TimeoutError
            if not self._unread:
                return b""
            block = self._unread.popleft()
            if len(block) > n:
                self._unread.appendleft(block[n:])
                block = block[:n]
            self._unread_bytes -= len(block)
            self._changed.notify_all()
            return block

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Write all blocks; raises UnreachableError where program or link have ended."""
        try:
            for block in blocks:
                view = memoryview(block)
                for start in range(0, len(view), PACKET):
                    self._send(STDIN, view[start : start + PACKET])
        except OSError as error:
            raise UnreachableError(
                f"the program on {self._where} takes no more input: it ended or the link is lost"
            ) from error

    def end_stdin(self) -> None:
        """Close the program's stdin. Raises OSError where program or link have ended."""
        self._send(CLOSE_STDIN, memoryview(b""))

    def stderr_text(self) -> str:
        """Return the last bytes of stderr that arrived so far, as text."""
        with self._changed:
            return self._stderr.decode(errors="replace")

    def stderr_tail(self) -> str:
        """Return the last lines, at most 20, that the program wrote to stderr."""
        return "\n".join(self.stderr_text().splitlines()[-_TAIL_LINES:])

    def exit_status(self, timeout: float) -> int | None:
        """Wait at most `timeout` seconds for the end; None if it runs on or the link is lost.

        128 + n where signal n ended the program.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._status is not None or self._ended, timeout)
            return self._status

    def close(self) -> None:
        """End the program: by the end of its stdin, else by closing the link. Safe to repeat."""
        with self._closing:
            if self._sending.acquire(timeout=_GRACE_S):  # a writer may wait for a hung program
                try:
                    with contextlib.suppress(OSError):  # full: a program that reads nothing
                        self._link.send(_HEADER.pack(CLOSE_STDIN, 0), socket.MSG_DONTWAIT)
                finally:
                    self._sending.release()
                self._discard_output()
                self.exit_status(_GRACE_S)
            self._close_link()

    def kill(self) -> None:
        """End the program at once, as far as adbd does that. Safe to repeat."""
        with self._closing:
            self._close_link()

    def _close_link(self) -> None:
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)
        self._discard_output()
        self._reader.join()
        with self._sending:
            self._link.close()

    def _discard_output(self) -> None:
        """Discard unread output, so that the exit packet behind it can be read."""
        with self._changed:
            self._unread_bytes = -(1 << 62)
            self._changed.notify_all()

    def _send(self, kind: int, data: memoryview) -> None:
        with self._sending:
            if self._ended:
                raise BrokenPipeError
            self._link.sendall(_HEADER.pack(kind, len(data)) + data)

    def _read_packets(self) -> None:
        """Read packets until the program ends or the link is lost."""
        try:
            while True:
                kind, length = _HEADER.unpack(self._receive_exactly(_HEADER.size))
                if kind == EXIT:
                    status = self._receive_exactly(length)
                    with self._changed:
                        self._status = status[0] if status else 0
                    return
                while length:
                    chunk = self._receive(length)
                    length -= len(chunk)
                    self._handle(kind, chunk)
        except (OSError, EOFError):
            return
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _handle(self, kind: int, chunk: bytes) -> None:
        with self._changed:
            if kind == STDOUT:
                self._changed.wait_for(lambda: self._unread_bytes < _WINDOW)
                self._unread.append(chunk)
                self._unread_bytes += len(chunk)
            elif kind == STDERR:
                self._stderr += chunk
                del self._stderr[: -self._stderr_limit]
            self._changed.notify_all()

    def _receive_exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += self._receive(count - len(data))
        return data

    def _receive(self, count: int) -> bytes:
        chunk = self._link.recv(min(count, PACKET))
        if not chunk:
            raise EOFError
        return chunk


_START_S = 60.0
_NO_PYTHON = (
    "; a phone has none for adb's shell by itself, so rather use the SSH server of an app such as "
    "Termux: without ?shell or `adb_shell`"
)


class AdbShellTransport:
    """The shell user of one phone, see `Transport`; each program has its own link."""

    def __init__(self, device: Device, server: AdbServer, serial: str) -> None:
        self.name = device.name
        self._python = device.python
        self._server = server
        self._serial = serial
        self._lock = threading.Lock()
        self._programs: list[ShellProgram] = []

    @classmethod
    def connect(cls, device: Device) -> "AdbShellTransport":
        """Find the phone and see that its shell keeps stdout, stderr and exit status apart.

        Raises UnreachableError, AuthenticationError, DeviceTimeoutError, DeviceProtocolError,
        DeviceError.
        """
        server = AdbServer.from_environment()
        serial = choose(server, device.serial, device.connect_timeout_s).serial
        deadline = Deadline(device.connect_timeout_s)
        features = server.ask(f"host-serial:{serial}:features", deadline).split(",")
        if "shell_v2" not in features:
            raise DeviceError(
                f"the shell of the phone {serial} does not tell stdout from stderr (its Android is "
                "older than 7); use an SSH server on it, such as Termux's"
            )
        return cls(device, server, serial)

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the phone's Python command with these arguments and wait for it."""
        return self._run(arguments, (stdin,), timeout)

    def open(self, arguments: Sequence[str]) -> ShellProgram:
        """Start the phone's Python command with these arguments; no terminal, stderr separate.

        A Python command that doesn't exist shows as exit status 127, and in `stderr_tail`.
        """
        program = self._start(arguments, Deadline(_START_S))
        with self._lock:
            self._programs.append(program)
        return program

    def put(self, local: Path, remote: str) -> None:
        """Copy a file's bytes to this path, whose folder exists, through the phone's Python.

        Raises DeviceDiskFullError, UnreachableError, DeviceTimeoutError, DeviceError.
        """
        put_by_python(self._run, f"the phone {self._serial}", local, remote)

    def close(self) -> None:
        """End the programs that were opened. Safe to repeat."""
        with self._lock:
            programs, self._programs = self._programs, []
        for program in programs:
            program.close()

    def _run(self, arguments: Sequence[str], stdin: Iterable[bytes], timeout: float) -> Completed:
        deadline = Deadline(timeout)
        program = self._start(arguments, deadline, keep=STDERR_LIMIT)
        feeder = start_feeder(program.write, program.end_stdin, stdin)
        try:
            stdout = read_output(partial(program.read_within, PACKET), deadline, self.name)
            status = program.exit_status(deadline.remaining())
        except TimeoutError as error:
            raise DeviceTimeoutError(
                f"a command on {self.name} did not end within {timeout:.0f} s: "
                f"{self._command(arguments)[:120]}"
            ) from error
        finally:
            program.kill()
            feeder.join()
        if status is None:
            raise UnreachableError(
                f"adb lost the phone {self._serial} while a command ran there; check the cable"
            )
        done = Completed(status, stdout, program.stderr_text())
        check_ran(done, self._python, self.name, _NO_PYTHON)
        return done

    def _start(
        self, arguments: Sequence[str], deadline: Deadline, keep: int = 64 << 10
    ) -> ShellProgram:
        service = f"shell,v2,raw:{self._command(arguments)}"
        try:
            link = self._server.open(self._serial, service, deadline)
        except AdbRefusedError as error:
            raise UnreachableError(
                f"no shell on the phone {self._serial}: {error.reason}; check the cable"
            ) from error
        return ShellProgram(link, self.name, keep)

    def _command(self, arguments: Sequence[str]) -> str:
        return " ".join([self._python, *map(shlex.quote, arguments)])

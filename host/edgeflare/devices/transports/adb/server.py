"""A program of a phone's shell as a byte stream: adb's shell protocol, version 2, without a terminal.

After the service ``shell,v2,raw:COMMAND`` both sides send packets: one byte of kind, four of
length, little-endian, and the bytes (AOSP, packages/modules/adb/shell_protocol.h). Closing the link
ends the program: adbd sends it SIGHUP.
"""

import contextlib
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from edgeflare.devices.transports.base import Deadline
from edgeflare.errors import DeviceTimeoutError, UnreachableError

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
        """Write all blocks; raises UnreachableError where program or link are gone."""
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
        """Close the program's stdin. Raises OSError where program or link are gone."""
        self._send(CLOSE_STDIN, memoryview(b""))

    def stderr_text(self) -> str:
        """Return the last bytes of stderr that arrived so far, as text."""
        with self._changed:
            return self._stderr.decode(errors="replace")

    def stderr_tail(self) -> str:
        """Return the last lines, at most 20, that the program wrote to stderr."""
        return "\n".join(self.stderr_text().splitlines()[-_TAIL_LINES:])

    def exit_status(self, timeout: float) -> int | None:
        """Wait at most `timeout` seconds for the end; None if the program runs on or the link is lost.

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


_START_S = 20.0
_HOW_TO_INSTALL = (
    "install Android's platform tools (Debian: apt install adb), or put their folder on the PATH"
)


def start_server(address: str, deadline: Deadline) -> None:
    """Have the `adb` command start a server, which lives on. Raises UnreachableError, DeviceTimeoutError."""
    adb = _find_adb()
    if adb is None:
        raise UnreachableError(
            f"no adb server runs at {address}, and there is no `adb` command to start one; {_HOW_TO_INSTALL}"
        )
    # A file, not a pipe: the server that stays behind would hold a pipe's other end open.
    with tempfile.TemporaryFile() as output:
        try:
            done = subprocess.run(
                [adb, "start-server"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                timeout=min(_START_S, max(deadline.remaining(), 0.1)),
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise DeviceTimeoutError(f"`{adb} start-server` did not end; try it by hand") from error
        except OSError as error:
            raise UnreachableError(
                f"{adb} can't be run: {error.strerror}; {_HOW_TO_INSTALL}"
            ) from error
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    if done.returncode:
        raise UnreachableError(
            f"`{adb} start-server` failed: {lines[-1] if lines else done.returncode}; try it by hand"
        )


def _find_adb() -> str | None:
    """Return the path of the `adb` command: on the PATH, or below ANDROID_HOME or ANDROID_SDK_ROOT."""
    roots = (os.environ.get(name) for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT"))
    folders = [str(Path(root) / "platform-tools") for root in roots if root]
    return shutil.which("adb") or shutil.which("adb", path=os.pathsep.join(folders) or os.devnull)

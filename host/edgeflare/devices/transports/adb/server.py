"""The adb server's protocol: a query, or a stream to a service of an attached device.

A request is four hexadecimal digits of length and the service's name; the server says OKAY, or FAIL
and why (AOSP, packages/modules/adb: OVERVIEW.TXT, SERVICES.TXT). Where no server runs, the `adb`
command starts one; for nothing else is it needed.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edgeflare._internal.text import clean_text
from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.transports.base import Deadline, enable_keepalive
from edgeflare.errors import DeviceProtocolError, DeviceTimeoutError, UnreachableError

_PORT = 5037
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_LONGEST_ANSWER = 1 << 20


class AdbRefusedError(UnreachableError):
    """The adb server answered FAIL; `reason` is its text."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the adb server refused: {reason}")


@dataclass(frozen=True)
class AdbServer:
    """Where an adb server listens: TCP host and port, or a socket in the file system."""

    host: str = "127.0.0.1"
    port: int = _PORT
    path: str | None = None

    @classmethod
    def from_environment(cls) -> "AdbServer":
        """Return the server that adb itself would use.

        ADB_SERVER_SOCKET (``tcp:[host:]port``, ``localfilesystem:path``), else
        ANDROID_ADB_SERVER_ADDRESS and ANDROID_ADB_SERVER_PORT. Raises UnreachableError where they
        make no sense.
        """
        named = os.environ.get("ADB_SERVER_SOCKET", "")
        if named.startswith("localfilesystem:"):
            return cls(path=named.partition(":")[2])
        if named:
            match = re.fullmatch(r"tcp:(?:\[?(?P<host>[^\]]+?)\]?:)?(?P<port>\d+)", named)
            if match is None:
                raise UnreachableError(
                    f"ADB_SERVER_SOCKET is {named!r}; write tcp:host:port or localfilesystem:path"
                )
            return cls(match["host"] or "127.0.0.1", _port(match["port"], "ADB_SERVER_SOCKET"))
        port = os.environ.get("ANDROID_ADB_SERVER_PORT") or str(_PORT)
        host = os.environ.get("ANDROID_ADB_SERVER_ADDRESS") or "127.0.0.1"
        return cls(host, _port(port, "ANDROID_ADB_SERVER_PORT"))

    @property
    def address(self) -> str:
        """``host:port``, or the socket's path, for messages."""
        return self.path or (f"[{self.host}]" if ":" in self.host else self.host) + f":{self.port}"

    def ask(self, service: str, deadline: Deadline) -> str:
        """Return the server's answer to a query such as ``host:devices-l``.

        Raises AdbRefusedError, UnreachableError, DeviceTimeoutError, DeviceProtocolError.
        """
        with contextlib.closing(self._connect(deadline)) as link, self._translated_errors(deadline):
            _request(link, service, deadline)
            return _receive_text(link, deadline)

    def open(self, serial: str, service: str, deadline: Deadline) -> socket.socket:
        """Return a stream to a service of a device (``tcp:8022``); it blocks without a timeout.

        Raises AdbRefusedError (of the device or of the service), UnreachableError,
        DeviceTimeoutError, DeviceProtocolError.
        """
        link = self._connect(deadline)
        try:
            with self._translated_errors(deadline):
                _request(link, f"host:transport:{serial}", deadline)
                _request(link, service, deadline)
            link.settimeout(None)
        except BaseException:
            link.close()
            raise
        return link

    def _connect(self, deadline: Deadline) -> socket.socket:
        """Connect to the server; start one where none listens on this machine."""
        try:
            return self._dial(deadline)
        except (ConnectionRefusedError, FileNotFoundError) as error:
            if self.path is None and self.host not in _LOCAL_HOSTS:
                raise UnreachableError(
                    f"no adb server answers at {self.address}; start one there "
                    "(adb -a nodaemon server start), or unset ADB_SERVER_SOCKET and "
                    "ANDROID_ADB_SERVER_ADDRESS to use this machine's own"
                ) from error
            _start_server(self.address, deadline)
        except OSError as error:
            raise self._connection_error(error, deadline) from error
        with self._translated_errors(deadline):
            return self._dial(deadline)

    def _dial(self, deadline: Deadline) -> socket.socket:
        if self.path is None:
            address = (self.host, self.port)
            link = socket.create_connection(address, timeout=_socket_timeout(deadline))
            enable_keepalive(link)
            return link
        link = socket.socket(socket.AF_UNIX)
        try:
            link.settimeout(_socket_timeout(deadline))
            link.connect(self.path)
        except BaseException:
            link.close()
            raise
        return link

    @contextlib.contextmanager
    def _translated_errors(self, deadline: Deadline) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError) as error:
            raise self._connection_error(error, deadline) from error

    def _connection_error(self, error: Exception, deadline: Deadline) -> Exception:
        if isinstance(error, TimeoutError):
            return DeviceTimeoutError(
                f"the adb server at {self.address} gave no answer within {deadline.seconds:g} s; "
                "`adb kill-server` ends one that hangs"
            )
        why = getattr(error, "strerror", None) or "it closed the connection"
        return UnreachableError(f"no answer from the adb server at {self.address}: {why}")


def _request(link: socket.socket, service: str, deadline: Deadline) -> None:
    """Send a request and read the server's OKAY."""
    name = service.encode()
    link.settimeout(_socket_timeout(deadline))
    link.sendall(b"%04x%s" % (len(name), name))
    status = _receive_exactly(link, 4, deadline)
    if status == b"FAIL":
        raise AdbRefusedError(clean_text(_receive_text(link, deadline).strip(), LONGEST_LINE))
    if status != b"OKAY":
        raise DeviceProtocolError(
            f"something else than an adb server answers: it began with {status!r}; check "
            "ADB_SERVER_SOCKET and ANDROID_ADB_SERVER_PORT"
        )


def _receive_text(link: socket.socket, deadline: Deadline) -> str:
    digits = _receive_exactly(link, 4, deadline)
    if re.fullmatch(rb"[0-9a-fA-F]{4}", digits) is None:  # int() would take a sign, too
        raise DeviceProtocolError(
            f"the adb server gave an answer of length {digits!r}, expected four hexadecimal digits; "
            "`adb kill-server` ends it, and the next use starts another one"
        )
    length = int(digits, 16)
    return _receive_exactly(link, min(length, _LONGEST_ANSWER), deadline).decode(errors="replace")


def _receive_exactly(link: socket.socket, count: int, deadline: Deadline) -> bytes:
    data = b""
    while len(data) < count:
        link.settimeout(_socket_timeout(deadline))
        chunk = link.recv(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


def _socket_timeout(deadline: Deadline) -> float:
    """Return the seconds left for a socket, for which 0 would mean no waiting at all."""
    return max(deadline.remaining(), 0.001)


def _port(text: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise UnreachableError(f"{where} has the port {text!r}; a port is a number from 1 to 65535")
    return int(text)


_START_S = 20.0
_HOW_TO_INSTALL = (
    "install Android's platform tools (Debian: apt install adb), or put their folder on the PATH"
)


def _start_server(address: str, deadline: Deadline) -> None:
    """Have the `adb` command start a server. Raises UnreachableError, DeviceTimeoutError."""
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
    """Return the `adb` command: on the PATH, or below ANDROID_HOME or ANDROID_SDK_ROOT."""
    roots = (os.environ.get(name) for name in ("ANDROID_HOME", "ANDROID_SDK_ROOT"))
    folders = [str(Path(root) / "platform-tools") for root in roots if root]
    return shutil.which("adb") or shutil.which("adb", path=os.pathsep.join(folders) or os.devnull)

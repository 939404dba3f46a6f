"""An adb server in a thread, the daemon on a phone, and what the phones offer: TCP ports and a shell.

`FakeAdbServer` speaks the real protocol, with phones that come and go. It differs from Android's own in
that it starts no scan of USB and has no state beyond its phones; its messages were compared with those of
version 1.0.41. `FakeAdbd` is for tests of the real adb server, which ``adb connect 127.0.0.1:PORT``
attaches to it; its protocol is that of AOSP, packages/modules/adb/protocol.txt, without authentication.
"""

import contextlib
import os
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

STDIN, STDOUT, STDERR, EXIT, CLOSE_STDIN = range(5)
_HEADER = struct.Struct("<BI")
_GRACE_S = 0.5


@dataclass
class Phone:
    """A phone that adb sees. `ports` are its listening ports, as the ports of this machine they stand for."""

    serial: str
    model: str = "Pixel_6"
    state: str = "device"
    ports: dict[int, int] = field(default_factory=dict)
    features: str = "shell_v2,cmd,stat_v2"
    home: Path = Path("/")
    comes_back: bool = False
    """From ``offline``, when the server is asked to reconnect."""
    offline_after: int | None = None
    """So many bytes on one link, and it falls offline."""
    opened: list[str] = field(default_factory=list)
    """The services that were asked for, in order."""


def open_service(phone: Phone, service: str) -> socket.socket | None:
    """Return a socket to a service of the phone; None where adbd would close at once."""
    phone.opened.append(service)
    kind, _, rest = service.partition(":")
    if kind == "tcp":
        try:
            return socket.create_connection(("127.0.0.1", phone.ports[int(rest)]), timeout=10)
        except (KeyError, OSError):
            return None
    if kind.split(",")[0] == "shell" and "v2" in kind.split(","):
        ours, theirs = socket.socketpair()
        threading.Thread(target=_run_shell, args=(phone, theirs, rest), daemon=True).start()
        return ours
    return None


def pump(
    one: socket.socket, other: socket.socket, passed: Callable[[int], None] = lambda _: None
) -> None:
    """Copy both ways until both sides have ended; then close both. `passed` is told of bytes on their way.

    What one side sends after the other has ended is taken and dropped, so that its last words arrive:
    a TCP socket that is closed with unread bytes is reset.
    """

    def copy(source: socket.socket, sink: socket.socket) -> None:
        taken = True
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                passed(len(data))
                try:
                    if taken:
                        sink.sendall(data)
                except OSError:
                    taken = False
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    for end in (one, other):
        end.settimeout(None)
    back = threading.Thread(target=copy, args=(other, one), daemon=True)
    back.start()
    copy(one, other)
    back.join()
    one.close()
    other.close()


def _run_shell(phone: Phone, link: socket.socket, command: str) -> None:
    """Run a command line as adbd does, in packets of the shell protocol; a lost link is a SIGHUP.

    Nothing outlives the link: a program that ignores the signal, as those under nohup do, is killed.
    """
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=phone.home, bufsize=0, start_new_session=True,
    )  # fmt: skip
    sending = threading.Lock()

    def send(kind: int, data: bytes) -> None:
        with sending:
            link.sendall(_HEADER.pack(kind, len(data)) + data)

    def forward(kind: int, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        with contextlib.suppress(OSError), pipe:
            while data := os.read(pipe.fileno(), 1 << 15):
                send(kind, data)

    outputs = [
        threading.Thread(target=forward, args=one, daemon=True)
        for one in ((STDOUT, process.stdout), (STDERR, process.stderr))
    ]
    feeding = threading.Thread(target=_feed, args=(process, link), daemon=True)
    for thread in (*outputs, feeding):
        thread.start()
    for thread in outputs:
        thread.join()
    status = process.wait()
    with contextlib.suppress(OSError):
        send(EXIT, bytes([status if status >= 0 else 128 - status]))
    with contextlib.suppress(OSError):
        link.shutdown(socket.SHUT_RDWR)
    feeding.join()
    link.close()


def _feed(process: "subprocess.Popen[bytes]", link: socket.socket) -> None:
    pipe = process.stdin
    assert pipe is not None
    try:
        while True:
            kind, length = _HEADER.unpack(_exactly(link.recv, _HEADER.size))
            data = _exactly(link.recv, length)
            if kind == CLOSE_STDIN:
                pipe.close()
            elif kind == STDIN:
                view = memoryview(data)
                with contextlib.suppress(BrokenPipeError, ValueError):
                    while view:
                        view = view[pipe.write(view) or 0 :]
    except (OSError, EOFError):
        with contextlib.suppress(OSError):
            pipe.close()
        if process.poll() is None:
            for number in (signal.SIGHUP, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_GRACE_S)


def _exactly(receive: Callable[[int], bytes], count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = receive(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


_VERSION = "0029"


class FakeAdbServer:
    """Listens on 127.0.0.1:`port`; `phones`, and those in its `network`, may change."""

    def __init__(self, phones: Iterable[Phone] = ()) -> None:
        self.phones = list(phones)
        self.network: dict[str, Phone] = {}
        self.asked: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._links: dict[socket.socket, Phone | None] = {}
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def phone(self, serial: str) -> Phone:
        return next(one for one in self.phones if one.serial == serial)

    @property
    def open_links(self) -> int:
        """How many clients are connected."""
        with self._lock:
            return len(self._links)

    def cut(self, serial: str, state: str | None = None) -> None:
        """Break all links to a phone; it is in `state` then, or gone where that is None."""
        phone = self.phone(serial)
        if state is None:
            self.phones.remove(phone)
        else:
            phone.state = state
        with self._lock:
            links = [link for link, to in self._links.items() if to is phone]
        for link in links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        with self._lock:
            links = list(self._links)
        for link in links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(20)

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._links[link] = None
            thread = threading.Thread(target=self._serve, args=(link,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, link: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, EOFError):
                self._answer(link)
        finally:
            link.close()
            with self._lock:
                del self._links[link]

    def _answer(self, link: socket.socket) -> None:
        request = _request(link)
        self.asked.append(request)
        for prefix in (
            "host:transport:",
            "host:tport:serial:",
            "host:transport-any",
            "host:tport:any",
        ):
            if request.startswith(prefix):
                self._to_phone(link, request.removeprefix(prefix), "tport" in prefix)
                return
        if request == "host:version":
            _okay(link, _VERSION)
        elif request == "host:host-features":
            _okay(link, "shell_v2,cmd")
        elif request in ("host:devices", "host:devices-l"):
            _okay(link, "".join(map(_long if request.endswith("-l") else _short, self.phones)))
        elif request == "host:reconnect-offline":
            _okay(link, self._reconnect())
        elif request.startswith("host:connect:"):
            _okay(link, self._connect(request.removeprefix("host:connect:")))
        elif request.startswith("host-serial:") and request.endswith(":features"):
            serial = request.removeprefix("host-serial:").removesuffix(":features")
            phone = self._ready(link, serial)
            if phone is not None:
                _okay(link, phone.features)
        else:
            _fail(link, f"unknown host service '{request}'")

    def _connect(self, address: str) -> str:
        if address not in self.network:
            return f"failed to connect to '{address}': Connection refused"
        self.phones.append(self.network[address])
        return f"connected to {address}"

    def _reconnect(self) -> str:
        told = ""
        for phone in self.phones:
            if phone.state == "offline":
                told += f"reconnecting {phone.serial} [offline]\n"
                if phone.comes_back:
                    phone.state = "device"
        return told

    def _ready(self, link: socket.socket, serial: str) -> Phone | None:
        fitting = [one for one in self.phones if serial in ("", one.serial)]
        if not fitting:
            _fail(link, f"device '{serial}' not found" if serial else "no devices/emulators found")
        elif len(fitting) > 1:
            _fail(link, "more than one device/emulator")
        elif fitting[0].state == "unauthorized":
            _fail(link, "device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set")
        elif fitting[0].state != "device":
            _fail(link, f"device {fitting[0].state}")
        else:
            return fitting[0]
        return None

    def _to_phone(self, link: socket.socket, serial: str, tell_id: bool) -> None:
        phone = self._ready(link, serial)
        if phone is None:
            return
        with self._lock:
            self._links[link] = phone
        link.sendall(b"OKAY" + (b"\1\0\0\0\0\0\0\0" if tell_id else b""))
        service = open_service(phone, _request(link))
        if service is None:
            _fail(link, "closed")
            return
        link.sendall(b"OKAY")
        seen = 0

        def passed(count: int) -> None:
            nonlocal seen
            seen += count
            limit = phone.offline_after
            if limit is not None and seen > limit and phone.state == "device":
                self.cut(phone.serial, "offline")

        pump(link, service, passed)


def _request(link: socket.socket) -> str:
    return _exactly(link.recv, int(_exactly(link.recv, 4), 16)).decode()


def _okay(link: socket.socket, text: str) -> None:
    link.sendall(b"OKAY%04x" % len(text.encode()) + text.encode())


def _fail(link: socket.socket, why: str) -> None:
    link.sendall(b"FAIL%04x" % len(why.encode()) + why.encode())


def _short(phone: Phone) -> str:
    return f"{phone.serial}\t{phone.state}\n"


def _long(phone: Phone) -> str:
    about = f" product:oriole model:{phone.model} device:oriole" if phone.state == "device" else ""
    return f"{phone.serial:<22} {phone.state} usb:1-2{about} transport_id:1\n"


@pytest.fixture
def adb_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAdbServer]:
    """An adb server without phones; the environment names it."""
    server = FakeAdbServer()
    for name in ("ADB_SERVER_SOCKET", "ANDROID_ADB_SERVER_ADDRESS", "ANDROID_SERIAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(server.port))
    yield server
    server.close()


_ADBD_HEADER = struct.Struct("<4sIIIII")
_ADBD_VERSION = 0x01000001
_ADBD_LONGEST = 1 << 18


class FakeAdbd:
    """Listens on 127.0.0.1:`port` for an adb server; every link to it is a phone plugged in."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._links: list[_Link] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        """Break the links to the server, as a pulled cable does."""
        for link in self._links:
            link.end()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join()
        self.cut()
        for link in self._links:
            link.join(20)

    def _accept(self) -> None:
        while True:
            try:
                channel, _ = self._listener.accept()
            except OSError:
                return
            link = _Link(channel, self.phone)
            self._links.append(link)
            link.start()


class _Link(threading.Thread):
    """One link to the adb server, with the streams that are open on it."""

    def __init__(self, channel: socket.socket, phone: Phone) -> None:
        super().__init__(daemon=True)
        self._channel = channel
        self._phone = phone
        self._sending = threading.Lock()
        self._streams: dict[int, _Stream] = {}
        self._last = 0

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)

    def send(self, command: bytes, one: int, two: int, data: bytes = b"") -> None:
        magic = int.from_bytes(command, "little") ^ 0xFFFFFFFF
        head = _ADBD_HEADER.pack(command, one, two, len(data), sum(data) & 0xFFFFFFFF, magic)
        with self._sending, contextlib.suppress(OSError):
            self._channel.sendall(head + data)

    def run(self) -> None:
        try:
            while True:
                command, one, two, length, _, _ = _ADBD_HEADER.unpack(
                    self._exactly(_ADBD_HEADER.size)
                )
                self._take(command, one, two, self._exactly(length))
        except (OSError, EOFError):
            pass
        for stream in list(self._streams.values()):
            stream.end()
        for stream in list(self._streams.values()):
            stream.join(20)
        self._channel.close()

    def _take(self, command: bytes, one: int, two: int, data: bytes) -> None:
        stream = self._streams.get(two)
        if command == b"CNXN":
            model = self._phone.model
            about = (
                f"device::ro.product.name=oriole;ro.product.model={model};ro.product.device=oriole;"
            )
            self.send(
                b"CNXN",
                _ADBD_VERSION,
                _ADBD_LONGEST,
                f"{about}features={self._phone.features}".encode(),
            )
        elif command == b"OPEN":
            service = open_service(self._phone, data.rstrip(b"\0").decode())
            if service is None:
                self.send(b"CLSE", 0, one)
                return
            self._last += 1
            self._streams[self._last] = _Stream(self, service, self._last, one)
            self.send(b"OKAY", self._last, one)
            self._streams[self._last].start()
        elif command == b"WRTE" and stream is not None:
            stream.take(data)
        elif command == b"OKAY" and stream is not None:
            stream.ready.set()
        elif command == b"CLSE" and stream is not None:
            stream.end()

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            chunk = self._channel.recv(count - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)


class _Stream(threading.Thread):
    """Carries what a service writes to the server, one message until its OKAY."""

    def __init__(self, link: _Link, service: socket.socket, ours: int, theirs: int) -> None:
        super().__init__(daemon=True)
        self._link = link
        self._service = service
        self._ids = (ours, theirs)
        self.ready = threading.Event()
        self.ready.set()
        self._waiting: list[bytes] = []
        self._change = threading.Condition()
        self._ended = False
        self._feeder = threading.Thread(target=self._feed, daemon=True)
        self._feeder.start()

    def take(self, data: bytes) -> None:
        with self._change:
            self._waiting.append(data)
            self._change.notify_all()

    def end(self) -> None:
        with self._change:
            self._ended = True
            self._change.notify_all()
        self.ready.set()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            self._service.settimeout(None)
            while not self._ended and (data := self._service.recv(1 << 16)):
                self.ready.wait()
                self.ready.clear()
                self._link.send(b"WRTE", *self._ids, data)
        self._link.send(b"CLSE", *self._ids)
        self.end()
        self._feeder.join()
        self._service.close()

    def _feed(self) -> None:
        """Write to the service what the server sent, and let it send more."""
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    break
                data = self._waiting.pop(0)
            try:
                self._service.sendall(data)
            except OSError:
                break
            self._link.send(b"OKAY", *self._ids)
        with contextlib.suppress(OSError):
            self._service.shutdown(socket.SHUT_RDWR)

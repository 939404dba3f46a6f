"""An adb server in a thread: the real protocol, phones that come and go, ports and shells that work.

It differs from Android's own in that it starts no scan of USB and has no state beyond its phones; what
it says was compared with version 1.0.41's words.
"""

import contextlib
import socket
import threading
from collections.abc import Iterable, Iterator

import pytest
from adb_services import Phone, open_service, pump

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
    return _exactly(link, int(_exactly(link, 4), 16)).decode()


def _exactly(link: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = link.recv(count - len(data))
        if not chunk:
            raise EOFError
        data += chunk
    return data


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

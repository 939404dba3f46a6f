"""The daemon on a phone, as far as an adb server's link to it goes: messages over TCP.

For tests of the real adb server: ``adb connect 127.0.0.1:PORT`` attaches it. The protocol is that of
AOSP, packages/modules/adb/protocol.txt, without authentication.
"""

import contextlib
import socket
import struct
import threading

from adb_services import Phone, open_service

_HEADER = struct.Struct("<4sIIIII")
_VERSION = 0x01000001
_LONGEST = 1 << 18


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
        head = _HEADER.pack(command, one, two, len(data), sum(data) & 0xFFFFFFFF, magic)
        with self._sending, contextlib.suppress(OSError):
            self._channel.sendall(head + data)

    def run(self) -> None:
        try:
            while True:
                command, one, two, length, _, _ = _HEADER.unpack(self._exactly(_HEADER.size))
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
                b"CNXN", _VERSION, _LONGEST, f"{about}features={self._phone.features}".encode()
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

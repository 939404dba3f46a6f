"""The process behind `Relay`: a script that needs nothing but the standard library.

Its argument is the settings as JSON. It prints the port it listens on, then reads commands from
stdin, one a line, and answers each with ``done``; the end of stdin ends it.
"""

import asyncio
import json
import selectors
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast

MAX_QUEUED_BYTES = 64 << 20
RESET_ON_CLOSE: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)


class Settings(NamedTuple):
    """The server's address, seconds of delay each way, bytes per second each way (None: any)."""

    server_host: str
    server_port: int
    to_server_s: float
    to_client_s: float
    bytes_per_s: float | None


class Pipe:
    """One direction of a connection: a queue that delays every packet."""

    def __init__(self, link: "RelayedLink", delay_s: float, bytes_per_s: float | None) -> None:
        self._link = link
        self._delay_s = delay_s
        self._rate = bytes_per_s
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[float, bytes | None]] = deque()
        """When bytes are due; b"" is the end of the direction, None a reset."""
        self._queued_bytes = 0
        self._free_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sink_full = False
        self.source: asyncio.Transport | None = None
        self.sink: asyncio.Transport | None = None
        self.ended = False

    def send(self, data: bytes | None) -> None:
        """Queue bytes, the end or a reset."""
        if self._link.relay.silent:
            self._link.has_lost_bytes = True
            return
        self._free_at = max(self._loop.time(), self._free_at)
        if self._rate is not None and data:
            self._free_at += len(data) / self._rate
        self._queue.append((self._free_at + self._delay_s, data))
        self._queued_bytes += len(data or b"")
        if self._queued_bytes > MAX_QUEUED_BYTES and self.source is not None:
            self.source.pause_reading()
        if self._timer is None:
            self._deliver()

    def drop_all(self) -> bool:
        """Drop all queued packets; return whether there were any."""
        lost = bool(self._queue)
        self._queue.clear()
        self._queued_bytes = 0
        return lost

    def set_sink_full(self, full: bool) -> None:
        """Pause or resume delivery."""
        self._sink_full = full
        if not full:
            self._deliver()

    def stop(self) -> None:
        """Deliver nothing more."""
        self.drop_all()
        if self._timer is not None:
            self._timer.cancel()

    def _deliver(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and not self._sink_full and self.sink is not None:
            due, data = self._queue[0]
            if due > self._loop.time():
                self._timer = self._loop.call_at(due, self._deliver)
                return
            self._queue.popleft()
            self._write(data)

    def _write(self, data: bytes | None) -> None:
        if data is None or self.sink is None:
            self._link.reset()
        elif data:
            self._queued_bytes -= len(data)
            if self._queued_bytes <= MAX_QUEUED_BYTES and self.source is not None:
                self.source.resume_reading()
            self.sink.write(data)
        else:
            self.ended = True
            if self.sink.can_write_eof():
                self.sink.write_eof()
            self._link.close_if_ended()


class EndProtocol(asyncio.Protocol):
    """The client's or the server's end of a connection; received bytes go to `out`."""

    def __init__(self, link: "RelayedLink", out: Pipe, back: Pipe) -> None:
        self._link, self._out, self._back = link, out, back

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect both pipes to the transport."""
        mine = cast("asyncio.Transport", transport)
        mine.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._out.source = self._back.sink = mine
        self._link.end_connected(mine)

    def data_received(self, data: bytes) -> None:
        """Forward bytes."""
        self._out.send(data)

    def eof_received(self) -> bool:
        """Forward the end of this direction; the other stays open."""
        self._out.send(b"")
        return True

    def pause_writing(self) -> None:
        """Pause the pipe to this end."""
        self._back.set_sink_full(True)

    def resume_writing(self) -> None:
        """Resume the pipe to this end."""
        self._back.set_sink_full(False)

    def connection_lost(self, _: Exception | None) -> None:
        """Report that this end is closed."""
        mine = self._out.source
        self._out.source = self._back.sink = None
        if mine is not None:
            self._link.end_closed(mine, self._out)


class RelayedLink:
    """One connection: a client's end, a server's end and two directions between them."""

    def __init__(self, relay: "RelayServer") -> None:
        settings = relay.settings
        self.relay = relay
        self.has_lost_bytes = relay.silent
        self._to_server = Pipe(self, settings.to_server_s, settings.bytes_per_s)
        self._to_client = Pipe(self, settings.to_client_s, settings.bytes_per_s)
        self._transports: set[asyncio.Transport] = set()
        self._closed = False
        self._connecting: asyncio.Task[None] | None = None
        relay.links.add(self)

    def accepted(self) -> EndProtocol:
        """Return the client's end and connect to the server."""
        self._connecting = asyncio.get_running_loop().create_task(self._connect())
        return EndProtocol(self, self._to_server, self._to_client)

    async def _connect(self) -> None:
        settings = self.relay.settings
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: EndProtocol(self, self._to_client, self._to_server),
                settings.server_host,
                settings.server_port,
            )
        except OSError:
            self.reset()
        else:
            self._to_server.set_sink_full(False)

    def end_connected(self, transport: asyncio.Transport) -> None:
        """Add an end; reset it where the connection is closed already."""
        self._transports.add(transport)
        if self._closed:
            _reset(transport)

    def end_closed(self, transport: asyncio.Transport, out: Pipe) -> None:
        """Remove an end; the other one is reset after the delay."""
        self._transports.discard(transport)
        if not self._transports:
            self._closed = True
            self.relay.links.discard(self)
        elif not self._closed:
            out.send(None)

    def close_if_ended(self) -> None:
        """Close both ends once both directions have ended."""
        if self._to_server.ended and self._to_client.ended:
            self._end(lambda transport: transport.close())

    def silence(self) -> None:
        """Drop all bytes in transit."""
        lost = [way.drop_all() for way in (self._to_server, self._to_client)]
        self.has_lost_bytes = self.has_lost_bytes or any(lost)

    def reset(self) -> None:
        """Reset both ends at once."""
        self._end(_reset)

    def _end(self, close: Callable[[asyncio.Transport], None]) -> None:
        self._closed = True
        self._to_server.stop()
        self._to_client.stop()
        if self._connecting is not None and not self._connecting.done():
            self._connecting.cancel()
        for transport in tuple(self._transports):
            close(transport)
        if not self._transports:
            self.relay.links.discard(self)


def _reset(transport: asyncio.Transport) -> None:
    with suppress(OSError):
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    transport.abort()


class RelayServer:
    """The listening side, and the commands."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.links: set[RelayedLink] = set()
        self.silent = False
        self._port = 0
        self._reserved = self._reserve_port()
        self._listening: asyncio.AbstractServer | None = None

    async def start(self) -> int:
        """Listen; return the port."""
        await self._listen()
        return self._port

    async def execute(self, command: str) -> None:
        """Carry out a command."""
        await {"cut": self._cut, "silence": self._silence, "mend": self._mend}[command]()

    async def _cut(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
            self._reserved = self._reserve_port()
        await self._reset(tuple(self.links))

    async def _silence(self) -> None:
        self.silent = True
        for link in self.links:
            link.silence()

    async def _mend(self) -> None:
        self.silent = False
        await self._reset([link for link in self.links if link.has_lost_bytes])
        if self._listening is None:
            await self._listen()

    async def _reset(self, links: "tuple[RelayedLink, ...] | list[RelayedLink]") -> None:
        for link in links:
            link.reset()
        while self.links.intersection(links):
            await asyncio.sleep(0)

    def _reserve_port(self) -> socket.socket:
        """Bind the port without listening: connections to it are refused."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", self._port))
        self._port = held.getsockname()[1]
        return held

    async def _listen(self) -> None:
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: RelayedLink(self).accepted(), sock=self._reserved, backlog=128
        )


async def relay(settings: Settings) -> None:
    """Relay until stdin ends."""
    loop = asyncio.get_running_loop()
    server = RelayServer(settings)
    print(await server.start(), flush=True)  # noqa: T201  the answer to who started this
    finished = asyncio.Event()

    def listen() -> None:
        for line in sys.stdin:
            asyncio.run_coroutine_threadsafe(server.execute(line.strip()), loop).result()
            print("done", flush=True)  # noqa: T201
        loop.call_soon_threadsafe(finished.set)

    threading.Thread(target=listen, daemon=True).start()
    await finished.wait()
    await server.execute("cut")


def main(arguments: list[str]) -> None:
    """Run the relay that the argument describes."""
    settings: dict[str, Any] = json.loads(arguments[0])
    # Only select() takes a timeout finer than a millisecond.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(relay(Settings(**settings)))


if __name__ == "__main__":
    main(sys.argv[1:])

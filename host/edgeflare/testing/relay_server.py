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

MOST_UNDER_WAY = 64 << 20
LINGER_NOT: Final = struct.pack("hh" if sys.platform == "win32" else "ii", 1, 0)


class Settings(NamedTuple):
    """Where the server is; seconds of delay each way; bytes per second of a direction, None: any."""

    server_host: str
    server_port: int
    to_server_s: float
    to_client_s: float
    bytes_per_s: float | None


class Item(NamedTuple):
    """Something under way: bytes; b"" is the end of the direction, None a reset."""

    due: float
    data: bytes | None


class Way:
    """One direction of a connection: a queue in which everything stays for the delay."""

    def __init__(self, link: "Link", delay_s: float, bytes_per_s: float | None) -> None:
        self._link = link
        self._delay_s = delay_s
        self._rate = bytes_per_s
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Item] = deque()
        self._under_way = 0
        self._free_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._sink_full = False
        self.source: asyncio.Transport | None = None
        self.sink: asyncio.Transport | None = None
        self.ended = False

    def push(self, data: bytes | None) -> None:
        """Send off bytes, the end or a reset."""
        if self._link.relay.silent:
            self._link.lost_bytes = True
            return
        self._free_at = max(self._loop.time(), self._free_at)
        if self._rate is not None and data:
            self._free_at += len(data) / self._rate
        self._queue.append(Item(self._free_at + self._delay_s, data))
        self._under_way += len(data or b"")
        if self._under_way > MOST_UNDER_WAY and self.source is not None:
            self.source.pause_reading()
        if self._timer is None:
            self._deliver()

    def lose(self) -> bool:
        """Lose all that is under way; return whether there was anything."""
        lost = bool(self._queue)
        self._queue.clear()
        self._under_way = 0
        return lost

    def sink_full(self, full: bool) -> None:
        """Wait with what is due, or no longer."""
        self._sink_full = full
        if not full:
            self._deliver()

    def stop(self) -> None:
        """Deliver nothing more."""
        self.lose()
        if self._timer is not None:
            self._timer.cancel()

    def _deliver(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and not self._sink_full and self.sink is not None:
            item = self._queue[0]
            if item.due > self._loop.time():
                self._timer = self._loop.call_at(item.due, self._deliver)
                return
            self._queue.popleft()
            self._hand_over(item.data)

    def _hand_over(self, data: bytes | None) -> None:
        if data is None or self.sink is None:
            self._link.reset()
        elif data:
            self._under_way -= len(data)
            if self._under_way <= MOST_UNDER_WAY and self.source is not None:
                self.source.resume_reading()
            self.sink.write(data)
        else:
            self.ended = True
            if self.sink.can_write_eof():
                self.sink.write_eof()
            self._link.close_if_ended()


class End(asyncio.Protocol):
    """The client's or the server's end of a connection; what it says goes `out`."""

    def __init__(self, link: "Link", out: Way, back: Way) -> None:
        self._link, self._out, self._back = link, out, back

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport: what goes out is read from it, what comes back is written to it."""
        mine = cast("asyncio.Transport", transport)
        mine.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._out.source = self._back.sink = mine
        self._link.joined(mine)

    def data_received(self, data: bytes) -> None:
        """Send off what this end says."""
        self._out.push(data)

    def eof_received(self) -> bool:
        """Send off that this end says no more; it may still listen."""
        self._out.push(b"")
        return True

    def pause_writing(self) -> None:
        """This end reads too slowly."""
        self._back.sink_full(True)

    def resume_writing(self) -> None:
        """This end reads again."""
        self._back.sink_full(False)

    def connection_lost(self, _: Exception | None) -> None:
        """Send off that this end is gone."""
        mine = self._out.source
        self._out.source = self._back.sink = None
        if mine is not None:
            self._link.left(mine, self._out)


class Link:
    """One connection: a client's end, a server's end and two ways between them."""

    def __init__(self, relay: "RelayServer") -> None:
        settings = relay.settings
        self.relay = relay
        self.lost_bytes = relay.silent
        self._to_server = Way(self, settings.to_server_s, settings.bytes_per_s)
        self._to_client = Way(self, settings.to_client_s, settings.bytes_per_s)
        self._transports: set[asyncio.Transport] = set()
        self._gone = False
        self._connecting: asyncio.Task[None] | None = None
        relay.links.add(self)

    def accepted(self) -> End:
        """Return the client's end and connect to the server."""
        self._connecting = asyncio.get_running_loop().create_task(self._connect())
        return End(self, self._to_server, self._to_client)

    async def _connect(self) -> None:
        settings = self.relay.settings
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: End(self, self._to_client, self._to_server),
                settings.server_host,
                settings.server_port,
            )
        except OSError:
            self.reset()
        else:
            self._to_server.sink_full(False)

    def joined(self, transport: asyncio.Transport) -> None:
        """Note an end; one that joins a connection which is gone is reset."""
        self._transports.add(transport)
        if self._gone:
            _reset(transport)

    def left(self, transport: asyncio.Transport, out: Way) -> None:
        """Note that an end is gone; the other one learns of it when the delay has passed."""
        self._transports.discard(transport)
        if not self._transports:
            self._gone = True
            self.relay.links.discard(self)
        elif not self._gone:
            out.push(None)

    def close_if_ended(self) -> None:
        """Close both ends once nothing goes either way."""
        if self._to_server.ended and self._to_client.ended:
            self._end(lambda transport: transport.close())

    def silence(self) -> None:
        """Lose what is under way."""
        lost = [way.lose() for way in (self._to_server, self._to_client)]
        self.lost_bytes = self.lost_bytes or any(lost)

    def reset(self) -> None:
        """Reset both ends at once."""
        self._end(_reset)

    def _end(self, close: Callable[[asyncio.Transport], None]) -> None:
        self._gone = True
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
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
    transport.abort()


class RelayServer:
    """The listening side, and the commands."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.links: set[Link] = set()
        self.silent = False
        self._port = 0
        self._held = self._hold()
        self._listening: asyncio.AbstractServer | None = None

    async def start(self) -> int:
        """Listen; return the port."""
        await self._listen()
        return self._port

    async def obey(self, command: str) -> None:
        """Carry out a command."""
        await {"cut": self._cut, "silence": self._silence, "mend": self._mend}[command]()

    async def _cut(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
            self._held = self._hold()
        await self._reset(tuple(self.links))

    async def _silence(self) -> None:
        self.silent = True
        for link in self.links:
            link.silence()

    async def _mend(self) -> None:
        self.silent = False
        await self._reset([link for link in self.links if link.lost_bytes])
        if self._listening is None:
            await self._listen()

    async def _reset(self, links: "tuple[Link, ...] | list[Link]") -> None:
        for link in links:
            link.reset()
        while self.links.intersection(links):
            await asyncio.sleep(0)

    def _hold(self) -> socket.socket:
        """Keep the port without listening: connections to it are refused."""
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", self._port))
        self._port = held.getsockname()[1]
        return held

    async def _listen(self) -> None:
        self._listening = await asyncio.get_running_loop().create_server(
            lambda: Link(self).accepted(), sock=self._held, backlog=128
        )


async def relay(settings: Settings) -> None:
    """Relay until stdin ends."""
    loop = asyncio.get_running_loop()
    server = RelayServer(settings)
    print(await server.start(), flush=True)  # noqa: T201  the answer to who started this
    over = asyncio.Event()

    def listen() -> None:
        for line in sys.stdin:
            asyncio.run_coroutine_threadsafe(server.obey(line.strip()), loop).result()
            print("done", flush=True)  # noqa: T201
        loop.call_soon_threadsafe(over.set)

    threading.Thread(target=listen, daemon=True).start()
    await over.wait()
    await server.obey("cut")


def main(arguments: list[str]) -> None:
    """Run the relay that the argument describes."""
    settings: dict[str, Any] = json.loads(arguments[0])
    # Only select() takes a timeout finer than a millisecond.
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    loop.run_until_complete(relay(Settings(**settings)))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Heartbeats without an answer, by number, so that an answer that comes twice counts once."""

import os
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np

from edgeflare.devices.health import steady
from edgeflare_agent.wire import Frame, Kind

_NUMBER = "ping"


class Ping:
    """One heartbeat with `size` bytes; the future, which can't be cancelled, has its round trip in seconds."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size
        self.sent = steady()
        self.future: Future[float] = Future()
        self.future.set_running_or_notify_cancel()

    def frame(self) -> Frame:
        """Return what goes on the wire, now; its bytes can't be compressed on their way."""
        ballast = (np.frombuffer(os.urandom(self.size), np.uint8),) if self.size else ()
        self.sent = steady()
        return Frame(Kind.PING, {_NUMBER: self.number}, ballast)


class PendingHeartbeats:
    """The heartbeats without an answer; no locks, no threads."""

    def __init__(self) -> None:
        self._next = 0
        self._pending: dict[int, Ping] = {}

    def new(self, size: int = 0) -> Ping:
        """Create the next heartbeat."""
        ping = Ping(self._next, size)
        self._pending[ping.number] = ping
        self._next += 1
        return ping

    def find(self, pong: Mapping[str, Any]) -> Ping | None:
        """Return the heartbeat of an answer; None where it was answered before. Raises LookupError."""
        number = pong[_NUMBER]
        if number not in range(self._next):
            raise LookupError(f"heartbeat {number!r} was never sent")
        return self._pending.get(number)

    def remove(self, ping: Ping) -> None:
        """Remove a heartbeat that was answered."""
        del self._pending[ping.number]

    def drain(self) -> "list[Future[float]]":
        """Remove all and return their futures."""
        left = [ping.future for ping in self._pending.values()]
        self._pending.clear()
        return left

"""The health of a device, from the agent's answers to heartbeats."""

import os
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import numpy as np

from edgeflare.devices.reported import WrongValueError, count, number, seconds, sensors, words
from edgeflare.devices.session.flow_control import AdaptiveWindow
from edgeflare.devices.telemetry import Health
from edgeflare_agent.wire import Frame, Kind

LEAST_JUMP_S = 5.0
_RECENT_PINGS = 64
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class HealthHistory:
    """Tracks the health of one session; no locks, no threads."""

    def __init__(self) -> None:
        self.health = Health()
        self._round_trips: deque[float] = deque(maxlen=_RECENT_PINGS)
        self._clock = ClockJumpDetector()

    def record(self, pong: Mapping[str, Any], sent: float, received: float, empty: bool) -> None:
        """Record an answer; times are of `boot_clock`; only `empty` pings measure the round trip.

        Raises WrongValueError for an invalid answer.
        """
        if empty:
            self._round_trips.append(received - sent)
        wall = number(pong, "wall")
        if wall is not None:
            self._clock.record(wall, sent, received)
        since_boot = pong.get("throttled_since_boot")
        self.health = Health(
            busy_s=seconds(pong, "busy_s") or 0.0,
            uptime_s=seconds(pong, "uptime_s") or 0.0,
            served=count(pong, "served") or 0,
            waiting=count(pong, "waiting") or 0,
            inferring_s=seconds(pong, "inferring_s"),
            rss_bytes=count(pong, "rss_bytes"),
            **sensors(pong),
            throttled_since_boot=None
            if since_boot is None
            else words(pong, "throttled_since_boot"),
            round_trip_s=min(self._round_trips, default=None),
            clock_jump_s=self._clock.jump_s,
        )


class ClockJumpDetector:
    """Detects jumps of a wall clock, as opposed to drift, between two readings."""

    def __init__(self) -> None:
        self.jump_s = 0.0
        self._before: tuple[float, float] | None = None

    def record(self, wall: float, sent: float, received: float) -> None:
        """Record that a clock showed `wall` between two times of `boot_clock`."""
        offset, doubt = wall - (sent + received) / 2, (received - sent) / 2
        before, self._before = self._before, (offset, doubt)
        if before is None:
            return
        step = offset - before[0]
        if abs(step) > LEAST_JUMP_S + before[1] + doubt:
            self.jump_s += step


def boot_clock() -> float:
    """Return seconds on a monotonic clock, which includes the host's sleep where possible."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)


_NUMBER = "ping"


class Ping:
    """One heartbeat with `size` bytes; the future, never cancelled, has its round trip in s."""

    def __init__(self, number: int, size: int) -> None:
        self.number = number
        self.size = size
        self.sent = boot_clock()
        self.future: Future[float] = Future()
        self.future.set_running_or_notify_cancel()

    def frame(self) -> Frame:
        """Return the frame to be sent now, with incompressible bytes."""
        ballast = (np.frombuffer(os.urandom(self.size), np.uint8),) if self.size else ()
        self.sent = boot_clock()
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
        """Return the heartbeat of an answer; None if it was answered before. Raises WrongValueError."""
        sent = count(pong, _NUMBER)
        if sent is None or sent >= self._next:
            raise WrongValueError(f"PONG {_NUMBER}", sent, "the number of a heartbeat")
        return self._pending.get(sent)

    def remove(self, ping: Ping) -> None:
        """Remove a heartbeat that was answered."""
        del self._pending[ping.number]

    def drain(self) -> "list[Future[float]]":
        """Remove all and return their futures."""
        left = [ping.future for ping in self._pending.values()]
        self._pending.clear()
        return left


class AgentMonitor:
    """The device's health and the window that keeps it busy; no locks, no threads.

    `pings` are the heartbeats without an answer. `fixed`: a window that never changes.
    """

    def __init__(self, fixed: int | None) -> None:
        self.pings = PendingHeartbeats()
        self.window = AdaptiveWindow(fixed)
        self._history = HealthHistory()

    @property
    def health(self) -> Health:
        """The values of the last heartbeat."""
        return self._history.health

    def record_pong(self, frame: Frame, received: float) -> Ping | None:
        """Record an answer to a heartbeat, received at `boot_clock` time; None for a second one.

        Raises WrongValueError for an invalid answer.
        """
        ping = self.pings.find(frame.header)
        if ping is None:
            return None
        self._history.record(frame.header, ping.sent, received, empty=ping.size == 0)
        self.pings.remove(ping)
        self.window.record_totals(self.health.busy_s, self.health.served)
        if self.health.round_trip_s is not None:
            self.window.set_round_trip(self.health.round_trip_s)
        return ping

"""The health of a device, from the agent's answers to heartbeats."""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from edgeflare.devices.reported import count, number, seconds, sensors, words

LEAST_JUMP_S = 5.0
_RECENT_PINGS = 64
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class Health(NamedTuple):
    """The values of the last heartbeat. None: not known yet, or not reported by the device.

    Since the agent began: `busy_s` at work, of `uptime_s`; `served` requests answered; `waiting` are in
    its queue. `inferring_s`: since when the inference of one sample is under way; None where none is.
    `throttle_reasons` are what slows the device down now, in words, `throttled_since_boot` what has since
    it was booted. `battery_percent` is 0 to 100, `gpu_load` 0 to 1. `round_trip_s` is the least of the
    recent ones. `clock_jump_s` is how far the device's wall clock has jumped against the host's monotonic
    clock since the session began, 0.0 if by less than 5 s at once.
    """

    busy_s: float = 0.0
    uptime_s: float = 0.0
    served: int = 0
    waiting: int = 0
    inferring_s: float | None = None
    rss_bytes: int | None = None
    temperature_c: float | None = None
    frequency_mhz: float | None = None
    throttled: bool | None = None
    throttle_reasons: tuple[str, ...] = ()
    throttled_since_boot: tuple[str, ...] | None = None
    battery_percent: float | None = None
    battery_charging: bool | None = None
    gpu_load: float | None = None
    gpu_mhz: float | None = None
    round_trip_s: float | None = None
    clock_jump_s: float = 0.0


class HealthHistory:
    """Tracks the health of one session; no locks, no threads."""

    def __init__(self) -> None:
        self.health = Health()
        self._round_trips: deque[float] = deque(maxlen=_RECENT_PINGS)
        self._clock = ClockJumpDetector()

    def note(self, pong: Mapping[str, Any], sent: float, received: float, empty: bool) -> None:
        """Record an answer; times are of `steady`, `empty` pings are those that tell the round trip.

        Raises ValueError for an answer that makes no sense.
        """
        if empty:
            self._round_trips.append(received - sent)
        wall = number(pong, "wall")
        if wall is not None:
            self._clock.note(wall, sent, received)
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

    def note(self, wall: float, sent: float, received: float) -> None:
        """Take in a clock that showed `wall` some time between two moments of `steady`."""
        offset, doubt = wall - (sent + received) / 2, (received - sent) / 2
        before, self._before = self._before, (offset, doubt)
        if before is None:
            return
        step = offset - before[0]
        if abs(step) > LEAST_JUMP_S + before[1] + doubt:
            self.jump_s += step


def steady() -> float:
    """Return seconds on a clock that nobody sets, and that runs on while the host sleeps if it can."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)

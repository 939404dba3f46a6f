"""How a device fares, from the agent's answers to heartbeats."""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

LEAST_JUMP_S = 5.0
_RECENT_PINGS = 64
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class Health(NamedTuple):
    """What the last heartbeat told. None: not known yet, or the device doesn't tell.

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


class HealthRecord:
    """Gathers the health of one session; no locks, no threads."""

    def __init__(self) -> None:
        self.health = Health()
        self._round_trips: deque[float] = deque(maxlen=_RECENT_PINGS)
        self._clock = ClockWatch()

    def note(self, pong: Mapping[str, Any], sent: float, received: float, empty: bool) -> None:
        """Take in an answer; times are of `steady`, `empty` pings are those that tell the round trip.

        Raises TypeError or ValueError for an answer that makes no sense.
        """
        if empty:
            self._round_trips.append(received - sent)
        if pong.get("wall") is not None:
            self._clock.note(float(pong["wall"]), sent, received)
        since_boot = pong.get("throttled_since_boot")
        self.health = Health(
            busy_s=float(pong.get("busy_s", 0.0)),
            uptime_s=float(pong.get("uptime_s", 0.0)),
            served=int(pong.get("served", 0)),
            waiting=int(pong.get("waiting", 0)),
            inferring_s=optional_number(pong.get("inferring_s")),
            rss_bytes=None if pong.get("rss_bytes") is None else int(pong["rss_bytes"]),
            temperature_c=optional_number(pong.get("temperature_c")),
            frequency_mhz=optional_number(pong.get("frequency_mhz")),
            throttled=optional_truth(pong.get("throttled")),
            throttle_reasons=words(pong.get("throttle_reasons")),
            throttled_since_boot=None if since_boot is None else words(since_boot),
            battery_percent=optional_number(pong.get("battery_percent")),
            battery_charging=optional_truth(pong.get("battery_charging")),
            gpu_load=optional_number(pong.get("gpu_load")),
            gpu_mhz=optional_number(pong.get("gpu_mhz")),
            round_trip_s=min(self._round_trips, default=None),
            clock_jump_s=self._clock.jump_s,
        )


class ClockWatch:
    """Tells jumps of a wall clock from its drift: each is the change from one look to the next."""

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


def optional_number(value: Any) -> float | None:
    """Return a number of a header, None for null. Raises TypeError or ValueError for anything else."""
    return None if value is None else float(value)


def optional_truth(value: Any) -> bool | None:
    """Return a truth value of a header, None for null."""
    return None if value is None else bool(value)


def words(value: Any) -> tuple[str, ...]:
    """Return a list of words of a header, none for null. Raises TypeError for what is no list."""
    return tuple(map(str, value or ()))

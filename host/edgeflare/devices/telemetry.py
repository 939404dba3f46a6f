"""Telemetry of a device by minute, from its replies and its answers to heartbeats."""

import math
import threading
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
from pydantic import BeforeValidator, Field

_STEP = math.log(1.02)
_LEAST_S = 1e-9
_Bucket: TypeAlias = Annotated[int, Field(gt=-10_000, lt=10_000)]
"""No time is in a bucket farther out: see `Latencies`."""
_Many: TypeAlias = Annotated[int, Field(gt=0, lt=1 << 63)]


def _of_pairs(buckets: Any) -> Any:
    return buckets if buckets is None else dict(buckets)  # a database has a list of pairs


class Latencies:
    """Counts times by size, in buckets 2 % wide; no locks.

    Quantiles are exact to 1 %. `buckets`: counts to start from, as `Latencies.buckets` gives them.
    """

    def __init__(self, buckets: Mapping[int, int] | None = None) -> None:
        self._counts = Counter(buckets or {})

    @property
    def count(self) -> int:
        """How many times there are."""
        return self._counts.total()

    @property
    def buckets(self) -> dict[int, int]:
        """How many times each bucket has, in order."""
        return dict(sorted(self._counts.items()))

    def add(self, seconds: Sequence[float]) -> None:
        """Count times in seconds, at least a nanosecond each; many at once are cheaper."""
        logarithms = np.log(np.maximum(np.asarray(seconds, np.float64), _LEAST_S))
        found, counts = np.unique(np.floor(logarithms / _STEP), return_counts=True)
        self._counts.update(dict(zip(map(int, found), map(int, counts), strict=True)))

    def merge(self, buckets: Mapping[int, int]) -> None:
        """Add the counts of another `Latencies`."""
        self._counts.update(buckets)

    def within(self, fraction: float, longest: float | None = None) -> float | None:
        """Return the time in seconds that this fraction stayed within, by nearest rank, else None.

        `longest`: the longest of all where it is known, an upper limit of the result.
        """
        rank = max(1, math.ceil(fraction * self.count))
        for bucket, count in sorted(self._counts.items()):
            rank -= count
            if rank <= 0:
                middle = math.exp((bucket + 0.5) * _STEP)
                return middle if longest is None else min(middle, longest)
        return None


class Health(NamedTuple):
    """The values of the last heartbeat. None: unknown.

    Since the agent started: seconds at work `busy_s` of `uptime_s`, requests answered `served`;
    `waiting` are in its queue. `inferring_s`: duration so far of the current inference of one
    sample. `throttle_reasons`: what slows the device down now, `throttled_since_boot`: what has
    since boot. `battery_percent` is 0 to 100, `gpu_load` 0 to 1. `round_trip_s` is the least of the
    recent ones. `clock_jump_s` is how far the device's wall clock has jumped against the host's
    monotonic clock since the link was opened, without jumps below 5 s.
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


MINUTE_S = 60
_COUNT_AFTER = 1 << 16


@dataclass(frozen=True)
class DeviceMinute:
    """One minute of a device, or a part of it; `minute` is its start, UTC. None: not known.

    `queries` were answered in it. `latency_*_s` are the device's own seconds for preprocessing and
    inference of one query, median and 99th percentile to within 1 %; `latencies` has all of them as
    `Latencies.buckets`. `rss_bytes` is the agent's largest resident memory, `temperature_*_c` is in
    Celsius, `frequency_least_mhz` the lowest clock of the slowest core. `gpu_load_mean` is 0 to 1.
    Of the `readings` that report throttling, `throttled_readings` report a throttled device, for
    these `throttle_reasons`. `battery_percent`, 0 to 100, is the last reading.
    """

    device: str
    minute: datetime
    queries: int = 0
    latency_median_s: float | None = None
    latency_p99_s: float | None = None
    latency_max_s: float | None = None
    latencies: Annotated[Mapping[_Bucket, _Many] | None, BeforeValidator(_of_pairs)] = None
    rss_bytes: int | None = None
    temperature_mean_c: float | None = None
    temperature_max_c: float | None = None
    frequency_least_mhz: float | None = None
    gpu_load_mean: float | None = None
    gpu_least_mhz: float | None = None
    readings: int = 0
    throttled_readings: int = 0
    throttle_reasons: tuple[str, ...] = ()
    battery_percent: float | None = None
    battery_charging: bool | None = None

    @property
    def throttled(self) -> bool:
        """Whether the device was slowed down while it answered."""
        return self.queries > 0 and self.throttled_readings > 0


class Minutes:
    """Collects a device's minutes over many sessions; safe in several threads, and fast.

    `wall` gives the time in seconds since 1970.
    """

    def __init__(self, name: str, wall: Callable[[], float] = time.time) -> None:
        self._name = name
        self._wall = wall
        self._lock = threading.Lock()
        self._minutes: defaultdict[int, _Minute] = defaultdict(_Minute)  # by number since 1970
        self._seen: Health | None = None
        self._reasons_since_boot: frozenset[str] | None = None

    def record_reply(self, seconds: Sequence[float]) -> None:
        """Record the device's own seconds for some queries."""
        with self._lock:
            minute = self._minutes[math.floor(self._wall() / MINUTE_S)]
            minute.uncounted.extend(seconds)
            if len(minute.uncounted) >= _COUNT_AFTER:
                minute.count()

    def record_health(self, health: Health) -> None:
        """Record a health reading; one that was recorded before, or the initial one, is ignored."""
        with self._lock:
            if health is self._seen or health.uptime_s <= 0:
                return
            self._seen = health
            reading = health, self._new_reasons(health.throttled_since_boot)
            self._minutes[math.floor(self._wall() / MINUTE_S)].readings.append(reading)

    def take(self, *, all_of_it: bool = False) -> list[DeviceMinute]:
        """Return the finished minutes that were not returned yet, the oldest first.

        `all_of_it`: also the current minute so far; the rest of it comes later as another record.
        """
        with self._lock:
            current = math.floor(self._wall() / MINUTE_S)
            numbers = [one for one in self._minutes if all_of_it or one != current]
            taken = [(number, self._minutes.pop(number)) for number in numbers]
        return [minute.summary(self._name, number) for number, minute in taken]

    def _new_reasons(self, since_boot: Sequence[str] | None) -> list[str]:
        """Return the reasons of throttling since boot that the last reading did not have."""
        if since_boot is None:
            return []
        before, self._reasons_since_boot = self._reasons_since_boot, frozenset(since_boot)
        return [] if before is None else sorted(self._reasons_since_boot - before)


class _Minute:
    """The readings of one minute; no locks."""

    def __init__(self) -> None:
        self._latencies = Latencies()
        self._slowest_s = 0.0
        self.uncounted = array("d")
        self.readings: list[tuple[Health, list[str]]] = []
        """Each with the reasons of throttling since the one before, perhaps over by now."""

    def summary(self, name: str, number: int) -> DeviceMinute:
        self.count()
        healths = [health for health, _ in self.readings]
        temperatures = _known(health.temperature_c for health in healths)
        loads = _known(health.gpu_load for health in healths)
        reporting = [(one, new) for one, new in self.readings if one.throttled is not None or new]
        slowed = [(one, new) for one, new in reporting if one.throttled or new]
        battery = [one for one in healths if one.battery_percent is not None]
        queries = self._latencies.count
        slowest = self._slowest_s if queries else None
        return DeviceMinute(
            device=name,
            minute=datetime.fromtimestamp(number * MINUTE_S, timezone.utc),
            queries=queries,
            latency_median_s=self._latencies.within(0.5, slowest),
            latency_p99_s=self._latencies.within(0.99, slowest),
            latency_max_s=slowest,
            latencies=self._latencies.buckets,
            rss_bytes=max((one.rss_bytes for one in healths if one.rss_bytes), default=None),
            temperature_mean_c=_mean(temperatures),
            temperature_max_c=max(temperatures, default=None),
            frequency_least_mhz=min(_known(one.frequency_mhz for one in healths), default=None),
            gpu_load_mean=_mean(loads),
            gpu_least_mhz=min(_known(one.gpu_mhz for one in healths), default=None),
            readings=len(reporting),
            throttled_readings=len(slowed),
            throttle_reasons=tuple(
                dict.fromkeys(w for one, new in slowed for w in (*one.throttle_reasons, *new))
            ),
            battery_percent=battery[-1].battery_percent if battery else None,
            battery_charging=battery[-1].battery_charging if battery else None,
        )

    def count(self) -> None:
        if self.uncounted:
            self._slowest_s = max(self._slowest_s, *self.uncounted)
            self._latencies.add(self.uncounted)
            self.uncounted = array("d")


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


@dataclass
class Slowed:
    """In how many minutes a device answered, in how many of them it was slowed down, and why."""

    device: str
    _minutes: set[datetime] = field(default_factory=set)
    _slowed: set[datetime] = field(default_factory=set)
    _reasons: dict[str, None] = field(default_factory=dict)

    def add(self, minute: DeviceMinute) -> None:
        """Add a minute, or a part of one."""
        if minute.queries:
            self._minutes.add(minute.minute)
        if minute.throttled:
            self._slowed.add(minute.minute)
            self._reasons.update(dict.fromkeys(minute.throttle_reasons))

    @property
    def minutes(self) -> int:
        """In how many minutes it answered."""
        return len(self._minutes)

    @property
    def slowed(self) -> int:
        """In how many of them it was slowed down."""
        return len(self._slowed)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What slowed it down while it answered."""
        return tuple(self._reasons)

    @property
    def words(self) -> str:
        """A notice for the report."""
        why = f" ({', '.join(self._reasons)})" if self._reasons else ""
        unit = "minute" if self.minutes == 1 else "minutes"
        return (
            f"{self.device} was slowed down in {self.slowed} of {self.minutes} {unit}{why}: times "
            "and rates of this campaign are not what the device can do; its answers are not "
            "affected as far as is known"
        )


def slowed_devices(minutes: Iterable[DeviceMinute]) -> Iterator[Slowed]:
    """Yield each device that was slowed down while it answered."""
    found: dict[str, Slowed] = {}
    for minute in minutes:
        found.setdefault(minute.device, Slowed(minute.device)).add(minute)
    yield from (one for one in found.values() if one.slowed)

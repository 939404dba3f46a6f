"""The current status of a device of a running campaign."""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from edgeflare._internal.records import JsonRecord
from edgeflare.devices.telemetry import Health, Minutes


class DeviceState(str, Enum):
    """Whether a device answers."""

    UP = "up"
    AWAY = "away"  # not reached at the moment; tried again and again
    RETIRED = "retired"  # takes no more part; `detail` says why


@dataclass(frozen=True)
class DeviceStatus(JsonRecord):
    """One device of a running campaign.

    `queries` were answered since the campaign's process began, in `requests`; `queries_per_s` over
    the last seconds. `in_flight` requests are on the wire or at the agent, `depth` of them keep the
    device busy. `busy` is the fraction of time that the agent worked, 0 to 1. Latencies are seconds
    from sending a request to its reply, with queueing at the device. `throttle_reasons`: what slows
    the device down now. None: unknown.
    """

    name: str
    state: DeviceState
    detail: str = ""
    queries: int = 0
    queries_per_s: float = 0.0
    in_flight: int = 0
    depth: int = 0
    busy: float | None = None
    latency_median_s: float | None = None
    latency_p99_s: float | None = None
    temperature_c: float | None = None
    throttled: bool | None = None
    reconnects: int = 0
    requests: int = 0
    throttle_reasons: tuple[str, ...] = ()


WINDOW_S = 10.0
_BUCKET_S = 0.1
_RECENT = 1024


class Throughput:
    """Queries and requests with a reply, queries per second, and latencies. No locks."""

    def __init__(self, began: float) -> None:
        self.queries = 0
        self.requests = 0
        self._began = began
        self._buckets: deque[tuple[float, int]] = deque(maxlen=round(WINDOW_S / _BUCKET_S) + 1)
        self._latencies: deque[float] = deque(maxlen=_RECENT)

    def record_reply(self, now: float, queries: int, latency_s: float) -> None:
        """Record a reply to a request of a number of queries."""
        self.queries += queries
        self.requests += 1
        self._latencies.append(latency_s)
        if self._buckets and now - self._buckets[-1][0] < _BUCKET_S:
            since, so_far = self._buckets[-1]
            self._buckets[-1] = since, so_far + queries
        else:
            self._buckets.append((now, queries))

    def per_s(self, now: float) -> float:
        """Return queries a second over the last 10 s, or since the beginning if that is less."""
        while self._buckets and now - self._buckets[0][0] >= WINDOW_S:
            self._buckets.popleft()
        span = min(WINDOW_S, now - self._began)
        return sum(count for _, count in self._buckets) / span if span > 0 else 0.0

    def latency_s(self, fraction: float) -> float | None:
        """Return the nearest-rank quantile, at this fraction, of the last 1024 latencies."""
        if not self._latencies:
            return None
        ordered = sorted(self._latencies)
        rank = -(-fraction * len(ordered) // 1)  # rounded up
        return ordered[max(1, int(rank)) - 1]


class BusyFraction:
    """The fraction of time the agent worked, from its two counters, in seconds."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, float]] = deque()

    def record(self, uptime_s: float, busy_s: float) -> None:
        """Record the counters; an uptime that decreased is another agent's."""
        if uptime_s <= 0:  # no heartbeat was answered yet
            return
        if self._points and uptime_s <= self._points[-1][0]:
            if uptime_s == self._points[-1][0]:
                return
            self._points.clear()
        self._points.append((uptime_s, busy_s))
        while len(self._points) > 2 and uptime_s - self._points[1][0] >= WINDOW_S:
            self._points.popleft()

    @property
    def value(self) -> float | None:
        """Over the last 10 s or somewhat more, or since the agent began; None: nothing is known."""
        if not self._points:
            return None
        began, worked = self._points[0] if len(self._points) > 1 else (0.0, 0.0)
        until, busy = self._points[-1]
        return min(1.0, max(0.0, (busy - worked) / (until - began)))


class HealthTracker:
    """Tracks the health of a device over many sessions; safe to use from several threads.

    `on_notice` is called once a session when the device's clock jumped; `clock_jump_s` is the last
    such jump, 0.0: none. `minutes` is the telemetry by minute.
    """

    def __init__(self, name: str, on_notice: Callable[[str], None]) -> None:
        self.clock_jump_s = 0.0
        self.minutes = Minutes(name)
        self._name = name
        self._on_notice = on_notice
        self._lock = threading.Lock()
        self._busy = BusyFraction()
        self._told = False

    @property
    def busy(self) -> float | None:
        """The fraction of time the agent worked, 0 to 1; None: nothing is known."""
        with self._lock:
            return self._busy.value

    def begin(self) -> None:
        """Start a new session."""
        with self._lock:
            self._busy = BusyFraction()
            self._told = False

    def record(self, health: Health) -> None:
        """Record a reading of the current session's health."""
        self.minutes.record_health(health)
        with self._lock:
            self._busy.record(health.uptime_s, health.busy_s)
            jumped = health.clock_jump_s != 0 and not self._told
            if jumped:
                self._told = True
                self.clock_jump_s = health.clock_jump_s
        if jumped:
            self._on_notice(
                f"the clock of {self._name} jumped by {health.clock_jump_s:+.0f} s; no result depends on "
                "it, but the times the device notes may be off"
            )

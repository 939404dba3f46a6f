"""What each device of a campaign did, its telemetry, and whose triggering inputs work on whom."""

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from edgeflare.devices import DeviceMinute
from edgeflare.devices.telemetry import Latencies, Slowed
from edgeflare.store import ReplayRecord
from edgeflare.types import Decision


@dataclass(frozen=True)
class DeviceFigures:
    """What one device did: the seeds it finished, those searched, those found, and search queries.

    `replica` is the device's own name where each device searches for itself, else "".
    `success_rate` is found / searched, None while nothing was searched.
    """

    name: str
    replica: str
    finished: int
    searched: int
    found: int
    failed: int
    queries: int
    success_rate: float | None


@dataclass(frozen=True)
class Transfer:
    """How many triggering inputs of `replica` were tried on another device, and trigger there, too.

    Those are the inputs of status "found" and "seed-deviates". `rate` is deviating / tried.
    """

    replica: str
    on_device: str
    tried: int
    deviating: int
    rate: float


def transfers(replays: Iterable[ReplayRecord]) -> tuple[Transfer, ...]:
    """Return a row for each pair of devices that shared triggering inputs, by name."""
    tried: Counter[tuple[str, str]] = Counter()
    deviating: Counter[tuple[str, str]] = Counter()
    for replay in replays:
        pair = (replay.replica, replay.on_device)
        tried[pair] += 1
        deviating[pair] += replay.decision is Decision.DEVIATION
    return tuple(
        Transfer(*pair, count, deviating[pair], deviating[pair] / count)
        for pair, count in sorted(tried.items())
    )


# Telemetry


@dataclass(frozen=True)
class TelemetryFigures:
    """Load, temperature, clocks and battery of one device during the campaign. None: not known.

    It answered `queries` in `minutes` of the clock. `latency_*_s` are the device's own seconds for
    preprocessing and inference of a query, over all of them, median and 99th percentile to within 1
    %. `rss_bytes` is the agent's largest resident memory, `temperature_max_c` in Celsius,
    `frequency_least_mhz` the lowest clock of the slowest core, `gpu_load` 0 to 1. In
    `throttled_minutes` of the minutes it was slowed down, for these `throttle_reasons`;
    `throttled_share`, 0 to 1, is of the readings in these minutes, about one each two seconds. The
    battery went from `battery_from` to `battery_to`, 0 to 100.
    """

    device: str
    minutes: int
    queries: int
    latency_median_s: float | None
    latency_p99_s: float | None
    latency_max_s: float | None
    rss_bytes: int | None
    temperature_max_c: float | None
    frequency_least_mhz: float | None
    gpu_load: float | None
    gpu_least_mhz: float | None
    throttled_minutes: int
    throttled_share: float | None
    throttle_reasons: tuple[str, ...]
    battery_from: float | None
    battery_to: float | None


class TelemetryCounts:
    """Figures of each device, from its minutes."""

    def __init__(self, minutes: Iterable[DeviceMinute] = ()) -> None:
        self._devices: dict[str, _DeviceMinutes] = {}
        for minute in minutes:
            self._devices.setdefault(minute.device, _DeviceMinutes(minute.device)).add(minute)

    def figures(self) -> tuple[TelemetryFigures, ...]:
        """Return those of each device, by name."""
        return tuple(self._devices[name].figures() for name in sorted(self._devices))

    def slowed(self) -> tuple[Slowed, ...]:
        """Return the devices that were slowed down while they answered, by name."""
        devices = (self._devices[name] for name in sorted(self._devices))
        return tuple(one.slowed for one in devices if one.slowed.slowed)


class _DeviceMinutes:
    """Running figures of one device's minutes."""

    def __init__(self, device: str) -> None:
        self.slowed = Slowed(device)
        self._latencies = Latencies()
        self._largest: dict[str, float] = {}
        self._least: dict[str, float] = {}
        self._loads: list[float] = []
        self._readings = 0
        self._throttled = 0
        self._battery: list[tuple[datetime, float]] = []

    def add(self, minute: DeviceMinute) -> None:
        self.slowed.add(minute)
        self._latencies.merge(minute.latencies or {})
        for name in ("latency_max_s", "rss_bytes", "temperature_max_c"):
            _update(self._largest, name, getattr(minute, name), max)
        for name in ("frequency_least_mhz", "gpu_least_mhz"):
            _update(self._least, name, getattr(minute, name), min)
        if minute.queries:
            self._readings += minute.readings
            self._throttled += minute.throttled_readings
        if minute.gpu_load_mean is not None:
            self._loads.append(minute.gpu_load_mean)
        if minute.battery_percent is not None:
            self._battery = [*self._battery[:1], (minute.minute, minute.battery_percent)]

    def figures(self) -> TelemetryFigures:
        rss = self._largest.get("rss_bytes")
        longest = self._largest.get("latency_max_s")
        return TelemetryFigures(
            device=self.slowed.device,
            minutes=self.slowed.minutes,
            queries=self._latencies.count,
            latency_median_s=self._latencies.within(0.5, longest),
            latency_p99_s=self._latencies.within(0.99, longest),
            latency_max_s=longest,
            rss_bytes=None if rss is None else int(rss),
            temperature_max_c=self._largest.get("temperature_max_c"),
            frequency_least_mhz=self._least.get("frequency_least_mhz"),
            gpu_load=math.fsum(self._loads) / len(self._loads) if self._loads else None,
            gpu_least_mhz=self._least.get("gpu_least_mhz"),
            throttled_minutes=self.slowed.slowed,
            throttled_share=self._throttled / self._readings if self._readings else None,
            throttle_reasons=self.slowed.reasons,
            battery_from=self._battery[0][1] if self._battery else None,
            battery_to=self._battery[-1][1] if self._battery else None,
        )


def _update(
    known: dict[str, float],
    name: str,
    value: float | None,
    better: Callable[[float, float], float],
) -> None:
    if value is not None:
        known[name] = better(value, known.get(name, value))

"""Telemetry of a campaign's devices as files: CSV, and OpenMetrics for Prometheus and others."""

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Literal, NamedTuple, TextIO

from edgeflare.analysis.findings import csv_cell
from edgeflare.devices import DeviceMinute
from edgeflare.devices.telemetry import Latencies

_MINUTE_COLUMNS = (
    "device",
    "minute",
    "queries",
    "latency_median_s",
    "latency_p99_s",
    "latency_max_s",
    "rss_bytes",
    "temperature_mean_c",
    "temperature_max_c",
    "frequency_least_mhz",
    "gpu_load_mean",
    "gpu_least_mhz",
    "readings",
    "throttled_readings",
    "throttle_reasons",
    "battery_percent",
    "battery_charging",
)


def write_minutes(file: TextIO, minutes: Iterable[DeviceMinute]) -> None:
    """Write the minutes as CSV, in UTC; an unknown figure is empty."""
    writer = csv.writer(file)
    writer.writerow(_MINUTE_COLUMNS)
    for minute in minutes:
        row = {name: getattr(minute, name) for name in _MINUTE_COLUMNS} | {
            "minute": minute.minute.isoformat(),
            "throttle_reasons": "; ".join(minute.throttle_reasons),
        }
        writer.writerow(map(csv_cell, row.values()))


# OpenMetrics


class MetricFamily(NamedTuple):
    """A metric of each device: its name with the unit, its type, and its value in a minute.

    The samples of a counter are sums since the campaign began; its name in them ends in ``_total``.
    """

    name: str
    kind: Literal["gauge", "counter"]
    unit: str
    text: str
    value: Callable[[DeviceMinute], float | None]

    @property
    def sample_name(self) -> str:
        """The name in the lines of samples, by which queries ask."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def _gauge(
    name: str,
    unit: str,
    text: str,
    field: str,
    factor: float = 1.0,
) -> MetricFamily:
    def value(minute: DeviceMinute) -> float | None:
        known = getattr(minute, field)
        return None if known is None else factor * known

    return MetricFamily(f"edgeflare_device_{name}_{unit}", "gauge", unit, text, value)


def _counter(name: str, text: str, field: str) -> MetricFamily:
    return MetricFamily(
        f"edgeflare_device_{name}", "counter", "", text, lambda minute: getattr(minute, field)
    )


METRIC_FAMILIES = (
    _counter("queries", "Queries answered.", "queries"),
    _gauge(
        *("latency_median", "seconds"),
        "The device's own time for one query, the median of the minute.",
        "latency_median_s",
    ),
    _gauge(
        *("latency_p99", "seconds"),
        "The device's own time for one query, the 99th percentile of the minute.",
        "latency_p99_s",
    ),
    _gauge(
        *("latency_max", "seconds"),
        "The device's own time for one query, the longest of the minute.",
        "latency_max_s",
    ),
    _gauge("agent_memory", "bytes", "Largest resident memory of the agent.", "rss_bytes"),
    _gauge("temperature", "celsius", "Mean temperature of the minute.", "temperature_mean_c"),
    _gauge("temperature_max", "celsius", "Highest temperature of the minute.", "temperature_max_c"),
    _gauge(
        *("cpu_frequency_min", "hertz"),
        "Lowest clock of the slowest core.",
        "frequency_least_mhz",
        1e6,
    ),
    _gauge("gpu_load", "ratio", "Mean load of the GPU, from 0 to 1.", "gpu_load_mean"),
    _gauge("gpu_frequency_min", "hertz", "Lowest clock of the GPU.", "gpu_least_mhz", 1e6),
    _counter("readings", "Health readings that tell whether the device is throttled.", "readings"),
    _counter("throttled_readings", "Health readings of a throttled device.", "throttled_readings"),
    MetricFamily(
        *("edgeflare_device_battery_ratio", "gauge", "ratio"),
        "Charge of the battery, from 0 to 1.",
        lambda minute: None if minute.battery_percent is None else minute.battery_percent / 100,
    ),
    MetricFamily(
        *("edgeflare_device_battery_charging", "gauge", ""),
        "Whether the battery is being charged, 1 or 0.",
        lambda minute: minute.battery_charging,
    ),
)
"""All metrics, in the order of the file; their names are read by programs and stay."""


def write_openmetrics(file: TextIO, minutes: Callable[[], Iterable[DeviceMinute]]) -> None:
    """Write the minutes as OpenMetrics text 1.0; what is not known has no sample.

    A sample has the label `device` and the minute's start as its timestamp. A minute that was
    recorded in parts is one sample. `minutes` is called twice, to keep little in memory.
    """
    devices = _merged_minutes(minutes)
    for family in METRIC_FAMILIES:
        lines = [line for name, one in devices.items() for line in _samples(family, name, one)]
        if lines:
            file.write(f"# TYPE {family.name} {family.kind}\n")
            if family.unit:
                file.write(f"# UNIT {family.name} {family.unit}\n")
            file.write(f"# HELP {family.name} {family.text}\n")
            file.writelines(lines)
    file.write("# EOF\n")


def _samples(family: MetricFamily, device: str, minutes: Sequence[DeviceMinute]) -> Iterator[str]:
    name = device.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    known = [
        (one, float(value))
        for one in minutes
        if (value := family.value(one)) is not None and math.isfinite(value)
    ]
    values: Iterable[float] = [value for _, value in known]
    if family.kind == "counter":
        values = accumulate(values)
    for (one, _), value in zip(known, values, strict=True):
        yield f'{family.sample_name}{{device="{name}"}} {value!r} {one.minute.timestamp():.0f}\n'


def _merged_minutes(
    minutes: Callable[[], Iterable[DeviceMinute]],
) -> dict[str, list[DeviceMinute]]:
    """Return the minutes of each device in the order of time, each once, without latencies."""
    parts = Counter((one.device, one.minute) for one in minutes())
    whole: dict[tuple[object, object], DeviceMinute] = {}
    for one in minutes():
        key = one.device, one.minute
        if parts[key] == 1:
            whole[key] = replace(one, latencies=None)
        else:
            whole[key] = _merge(whole[key], one) if key in whole else one
    devices: dict[str, list[DeviceMinute]] = {}
    for one in sorted(whole.values(), key=lambda one: (one.device, one.minute)):
        devices.setdefault(one.device, []).append(one)
    return devices


def _merge(first: DeviceMinute, second: DeviceMinute) -> DeviceMinute:
    """Return two parts of one minute as one."""
    latencies = Latencies(first.latencies)
    latencies.merge(second.latencies or {})

    def of(field: str, choose: Callable[[list[float]], float]) -> float | None:
        both = [getattr(first, field), getattr(second, field)]
        known = [value for value in both if value is not None]
        return choose(known) if known else None

    longest, rss = of("latency_max_s", max), of("rss_bytes", max)
    return replace(
        second,
        queries=first.queries + second.queries,
        latency_median_s=latencies.within(0.5, longest),
        latency_p99_s=latencies.within(0.99, longest),
        latency_max_s=longest,
        latencies=latencies.buckets,
        rss_bytes=None if rss is None else int(rss),
        temperature_mean_c=of("temperature_mean_c", _mean),
        temperature_max_c=of("temperature_max_c", max),
        frequency_least_mhz=of("frequency_least_mhz", min),
        gpu_load_mean=of("gpu_load_mean", _mean),
        gpu_least_mhz=of("gpu_least_mhz", min),
        readings=first.readings + second.readings,
        throttled_readings=first.throttled_readings + second.throttled_readings,
        battery_percent=of("battery_percent", lambda known: known[-1]),
        battery_charging=(
            first.battery_charging if second.battery_charging is None else second.battery_charging
        ),
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)

"""Telemetry as OpenMetrics, read back by Prometheus' own parser."""

import io
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from page_stores import DEVICES, many_triggers
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from edgeflare.devices import DeviceMinute
from edgeflare.devices.telemetry import Latencies
from edgeflare.reports import export_campaign
from edgeflare.reports.telemetry import METRIC_FAMILIES, write_openmetrics
from edgeflare.store import Store

BEGAN = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def minute(number: int = 0, device: str = "pi4", **figures: Any) -> DeviceMinute:
    return DeviceMinute(device, BEGAN + timedelta(minutes=number), **figures)


def text_of(*minutes: DeviceMinute) -> str:
    file = io.StringIO()
    write_openmetrics(file, lambda: iter(minutes))
    return file.getvalue()


def families(text: str) -> dict[str, Any]:
    return {one.name: one for one in text_string_to_metric_families(text)}


def values(text: str) -> dict[str, list[float]]:
    return {
        sample.name: [one.value for one in family.samples]
        for family in families(text).values()
        for sample in family.samples
    }


def test_an_export_has_each_figure_of_each_device_with_its_unit_and_time(tmp_path: Path) -> None:
    folder = many_triggers(tmp_path / "c", 4)
    report = export_campaign(folder, tmp_path / "out")
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert report.files == len(written)
    text = (tmp_path / "out" / "telemetry.openmetrics.txt").read_text(encoding="utf-8")
    assert text.endswith("\n# EOF\n")
    found = families(text)
    with Store.open(folder) as store:
        minutes = list(store.telemetry())
    warm = found["edgeflare_device_temperature_celsius"]
    assert (warm.type, warm.unit) == ("gauge", "celsius")
    read = {(one.labels["device"], float(one.timestamp)): one.value for one in warm.samples}
    assert read == {(m.device, m.minute.timestamp()): m.temperature_mean_c for m in minutes}
    queries = found["edgeflare_device_queries"]
    assert queries.type == "counter"
    for name in DEVICES:
        sums = [one.value for one in queries.samples if one.labels == {"device": name}]
        assert sums == [600 * (number + 1) for number in range(30)]
    assert "edgeflare_device_battery_ratio" not in found


METRICS: dict[str, tuple[str, Any, float]] = {
    "queries": ("queries_total", 600, 600),
    "latency_median_s": ("latency_median_seconds", 0.002, 0.002),
    "latency_p99_s": ("latency_p99_seconds", 0.004, 0.004),
    "latency_max_s": ("latency_max_seconds", 0.0041, 0.0041),
    "rss_bytes": ("agent_memory_bytes", 90_000_000, 90e6),
    "temperature_mean_c": ("temperature_celsius", 51.5, 51.5),
    "temperature_max_c": ("temperature_max_celsius", 60.0, 60),
    "frequency_least_mhz": ("cpu_frequency_min_hertz", 1500.0, 1.5e9),
    "gpu_load_mean": ("gpu_load_ratio", 0.25, 0.25),
    "gpu_least_mhz": ("gpu_frequency_min_hertz", 306.0, 306e6),
    "readings": ("readings_total", 12, 12),
    "throttled_readings": ("throttled_readings_total", 3, 3),
    "battery_percent": ("battery_ratio", 57.0, 0.57),
    "battery_charging": ("battery_charging", True, 1),
}
"""The metric of each figure, a figure, and what is written of it."""


def test_every_metric_is_in_base_units() -> None:
    text = text_of(minute(**{name: figure for name, (_, figure, _) in METRICS.items()}))
    assert {one.name for one in METRIC_FAMILIES} == set(families(text))
    read = values(text)
    assert {one.sample_name for one in METRIC_FAMILIES} == set(read)
    expected = {f"edgeflare_device_{name}": [told] for name, _, told in METRICS.values()}
    assert read == expected


def test_a_minute_in_parts_is_one_sample_whatever_lies_between() -> None:
    fast, slow = Latencies(), Latencies()
    fast.add([0.001] * 90)
    slow.add([0.1] * 10)
    text = text_of(
        minute(1, queries=90, latencies=fast.buckets, latency_max_s=0.001, battery_percent=40.0),
        minute(0, queries=5, temperature_mean_c=40.0),
        minute(0, "other", queries=7),
        minute(1, queries=10, latencies=slow.buckets, latency_max_s=0.1, temperature_mean_c=42.0),
    )
    read = values(text)
    assert read["edgeflare_device_queries_total"] == [7, 5, 105]
    assert read["edgeflare_device_latency_max_seconds"] == [0.1]
    assert read["edgeflare_device_latency_median_seconds"] == pytest.approx([0.001], rel=0.01)
    assert read["edgeflare_device_latency_p99_seconds"] == pytest.approx([0.1], rel=0.01)
    assert read["edgeflare_device_temperature_celsius"] == [40, 42]
    assert read["edgeflare_device_battery_ratio"] == [0.4]


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "Gerät 4", "a\\nb", "{} # EOF"])
def test_any_device_name_is_a_label(name: str) -> None:
    (family, *_) = families(text_of(minute(device=name, queries=1))).values()
    assert family.samples[0].labels == {"device": name}


def test_a_figure_that_is_no_number_is_left_out() -> None:
    read = values(text_of(minute(temperature_max_c=float("nan"), rss_bytes=5)))
    assert read["edgeflare_device_agent_memory_bytes"] == [5]
    assert "edgeflare_device_temperature_max_celsius" not in read

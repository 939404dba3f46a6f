"""A campaign's minutes in figures: weighed by queries, marked where a device was slowed down."""

import csv
import io
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from edgeflare import export_campaign, summarize
from edgeflare.devices import DeviceMinute
from edgeflare.devices.telemetry import Latencies
from edgeflare.reports.telemetry import write_minutes
from edgeflare.store import Store

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


def minute(number: int, times: list[float], device: str = "pi4", **more: Any) -> DeviceMinute:
    counted = Latencies()
    counted.add(times)
    about = {"latencies": counted.buckets, "latency_max_s": max(times, default=None)}
    return DeviceMinute(device, NOON + timedelta(minutes=number), len(times), **about, **more)


NIGHT = (
    minute(0, [0.01] * 990, readings=30, temperature_max_c=60.0, battery_percent=90.0),
    minute(1, [0.05] * 5, readings=10, throttled_readings=5, throttle_reasons=("under-voltage",)),
    minute(1, [0.05] * 5, readings=20, throttled_readings=1, throttle_reasons=("throttled",)),
    minute(2, [], readings=30, throttled_readings=30, throttle_reasons=("heat of the CPU",)),
    minute(3, [], frequency_least_mhz=600.0, temperature_max_c=81.0, battery_percent=40.0),
    minute(3, [0.02], "jetson", rss_bytes=5 << 20, gpu_load_mean=0.5, readings=3),
)


@pytest.fixture
def night(finished: Store) -> Store:
    finished.add_telemetry(NIGHT)
    finished.add_notice("something else")
    return finished


def test_a_device_of_many_minutes(night: Store) -> None:
    summary = summarize(night)
    jetson, pi = summary.telemetry
    assert (pi.device, pi.minutes, pi.queries) == ("pi4", 2, 1000)
    assert pi.latency_median_s == pytest.approx(0.01, rel=0.011)
    assert pi.latency_p99_s == pytest.approx(0.01, rel=0.011)  # 990 of 1000, whatever minute
    assert pi.latency_max_s == 0.05
    assert (pi.temperature_max_c, pi.frequency_least_mhz) == (81.0, 600.0)
    assert (pi.throttled_minutes, pi.throttled_share) == (1, 6 / 60)
    assert pi.throttle_reasons == ("under-voltage", "throttled")
    assert (pi.battery_from, pi.battery_to) == (90.0, 40.0)
    assert (jetson.rss_bytes, jetson.gpu_load, jetson.throttled_share) == (5 << 20, 0.5, 0.0)
    assert (jetson.battery_from, jetson.temperature_max_c) == (None, None)
    assert summary.throttled == ("pi4",)
    other, slowed = summary.notices
    assert (other, "1 of 2 minutes (under-voltage, throttled)" in slowed) == (
        "something else",
        True,
    )
    shown = json.loads(json.dumps(summary.to_json()))
    assert shown["throttled"] == ["pi4"]
    assert [one["device"] for one in shown["telemetry"]] == ["jetson", "pi4"]


def test_an_export_has_each_minute(night: Store, tmp_path: Path) -> None:
    plain = export_campaign(night, tmp_path / "out")
    with (tmp_path / "out" / "telemetry.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["device"] for row in rows] == [one.device for one in NIGHT]
    assert (rows[1]["minute"], rows[1]["queries"]) == ("2026-03-01T12:01:00+00:00", "5")
    assert (rows[1]["throttle_reasons"], rows[1]["battery_percent"]) == ("under-voltage", "")
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert plain.files == len(written)
    described = json.loads((tmp_path / "out" / "campaign.json").read_bytes())
    assert described["summary"]["throttled"] == ["pi4"]


def test_one_that_was_not_watched_has_none(finished: Store, tmp_path: Path) -> None:
    summary = summarize(finished)
    assert (summary.telemetry, summary.throttled, summary.notices) == ((), (), ())
    export_campaign(finished, tmp_path / "out")
    assert not (tmp_path / "out" / "telemetry.csv").exists()


def test_several_reasons_share_a_field() -> None:
    text = io.StringIO()
    write_minutes(text, [minute(0, [0.1], throttle_reasons=("a, b", "c"))])
    (row,) = csv.DictReader(io.StringIO(text.getvalue()))
    assert row["throttle_reasons"] == "a, b; c"

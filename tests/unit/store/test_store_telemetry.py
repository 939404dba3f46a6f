"""The devices' minutes in the store: whole, in order, several parts of one minute side by side."""

import dataclasses
from datetime import datetime, timezone

from edgeflare.devices import DeviceMinute
from edgeflare.store import Store

FULL = DeviceMinute(
    device="pi4",
    minute=datetime(2026, 3, 1, 23, 59, tzinfo=timezone.utc),
    queries=120,
    latency_median_s=0.0101,
    latency_p99_s=0.0312,
    latency_max_s=0.5,
    latencies={-233: 100, -170: 20},
    rss_bytes=5_000_000_000,
    temperature_mean_c=61.25,
    temperature_max_c=80.0,
    frequency_least_mhz=600.0,
    gpu_load_mean=0.5,
    gpu_least_mhz=306.0,
    readings=30,
    throttled_readings=4,
    throttle_reasons=("under-voltage", "throttled"),
    battery_percent=81.0,
    battery_charging=False,
)
BARE = DeviceMinute("phone", FULL.minute, latencies={})


def test_minutes_come_back_as_they_were_also_after_opening_again(store: Store) -> None:
    store.add_telemetry([FULL, BARE])
    store.add_telemetry([])
    again = dataclasses.replace(FULL, queries=3)
    with Store.open(store.folder) as reopened:
        reopened.add_telemetry([again])
        assert list(reopened.telemetry()) == [FULL, BARE, again]
    assert list(store.telemetry()) == [FULL, BARE, again]


def test_a_week_of_minutes_is_read_page_by_page(store: Store) -> None:
    store.add_telemetry([dataclasses.replace(BARE, queries=n) for n in range(1000)])
    assert [one.queries for one in store.telemetry()] == list(range(1000))

"""A device's minutes, gathered from replies and heartbeats, by a clock of the test's own."""

import threading
from datetime import datetime, timezone
from typing import Any

import pytest
from fake_sessions import Bench, sample

from edgeflare.devices.session.health import HealthHistory
from edgeflare.devices.telemetry import DeviceMinute, Health, Minutes

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


class Wall:
    def __init__(self) -> None:
        self.now = NOON.timestamp()

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def wall() -> Wall:
    return Wall()


@pytest.fixture
def minutes(wall: Wall) -> Minutes:
    return Minutes("pi4", wall)


def told(**values: Any) -> Health:
    return Health(uptime_s=1.0, **values)


def test_a_minute_is_taken_once_it_is_over(wall: Wall, minutes: Minutes) -> None:
    wall.now += 59.9
    minutes.record_reply([0.010, 0.011])
    assert minutes.take() == []
    wall.now += 0.2
    (first,) = minutes.take()
    assert (first.device, first.minute, first.queries) == ("pi4", NOON, 2)
    assert minutes.take() == []
    minutes.record_reply([0.5])
    wall.now += 3600
    (second,) = minutes.take()
    assert (second.minute.minute, second.queries) == (1, 1)  # and no rows for an hour of nothing


def test_what_there_is_of_the_present_minute_is_taken_at_the_end(wall, minutes) -> None:
    minutes.record_reply([0.1])
    (begun,) = minutes.take(all_of_it=True)
    minutes.record_reply([0.2])
    (rest,) = minutes.take(all_of_it=True)
    assert (begun.minute, begun.queries) == (rest.minute, rest.queries) == (NOON, 1)
    assert minutes.take(all_of_it=True) == []


def test_latencies_of_a_minute(minutes: Minutes) -> None:
    minutes.record_reply([])
    for _ in range(49):
        minutes.record_reply([0.010, 0.012])
    minutes.record_reply([0.4, 0.8])
    (minute,) = minutes.take(all_of_it=True)
    assert minute.queries == 100
    assert minute.latency_median_s == pytest.approx(0.010, rel=0.25)
    assert minute.latency_p99_s == pytest.approx(0.4, rel=0.011)
    assert minute.latency_max_s == 0.8
    assert sum((minute.latencies or {}).values()) == 100


def test_more_times_than_are_kept_singly_are_counted_all(minutes: Minutes) -> None:
    for _ in range(70):
        minutes.record_reply([0.001] * 1000)
    minutes.record_reply([0.002])
    (minute,) = minutes.take(all_of_it=True)
    assert (minute.queries, minute.latency_max_s) == (70_001, 0.002)


def test_what_a_minutes_readings_come_to(minutes: Minutes) -> None:
    minutes.record_health(
        told(temperature_c=50.0, frequency_mhz=1800.0, rss_bytes=900, throttled=False,
             gpu_load=0.5, gpu_mhz=600.0, battery_percent=81.0, battery_charging=True)
    )  # fmt: skip
    minutes.record_health(
        told(temperature_c=84.0, frequency_mhz=600.0, rss_bytes=700, throttled=True,
             throttle_reasons=("frequency capped", "throttled"), gpu_load=1.0)
    )  # fmt: skip
    minutes.record_health(told(battery_percent=80.0, battery_charging=False))
    minutes.record_reply([0.01])
    (minute,) = minutes.take(all_of_it=True)
    assert (minute.temperature_mean_c, minute.temperature_max_c) == (67.0, 84.0)
    assert (minute.frequency_least_mhz, minute.rss_bytes) == (600.0, 900)
    assert (minute.gpu_load_mean, minute.gpu_least_mhz) == (0.75, 600.0)
    assert (minute.readings, minute.throttled_readings) == (2, 1)
    assert minute.throttle_reasons == ("frequency capped", "throttled")
    assert (minute.battery_percent, minute.battery_charging) == (80.0, False)
    assert minute.throttled


def test_a_device_that_reports_nothing_and_answers_nothing_has_no_minutes(minutes: Minutes) -> None:
    minutes.record_health(Health())
    assert minutes.take(all_of_it=True) == []
    minutes.record_health(told())
    (minute,) = minutes.take(all_of_it=True)
    assert minute == DeviceMinute("pi4", NOON, latencies={})


def test_a_reading_counts_once_however_often_it_is_looked_at(minutes: Minutes) -> None:
    health = told(throttled=False)
    for _ in range(5):
        minutes.record_health(health)
    minutes.record_health(told(throttled=False))
    (minute,) = minutes.take(all_of_it=True)
    assert minute.readings == 2


def test_idle_and_slowed_down_is_not_answering_slowed_down(minutes: Minutes) -> None:
    minutes.record_health(told(throttled=True, throttle_reasons=("under-voltage",)))
    (minute,) = minutes.take(all_of_it=True)
    assert (minute.throttled_readings, minute.throttled) == (1, False)


def test_a_dip_between_two_readings_is_seen_by_what_happened_since_boot(minutes: Minutes) -> None:
    before = ("throttled",)  # long ago: none of this campaign's business
    minutes.record_health(told(throttled=False, throttled_since_boot=before))
    minutes.record_health(told(throttled=False, throttled_since_boot=before))
    minutes.record_reply([0.01])
    (quiet,) = minutes.take(all_of_it=True)
    minutes.record_reply([0.01])
    minutes.record_health(told(throttled=False, throttled_since_boot=("under-voltage", *before)))
    minutes.record_health(told(throttled=False, throttled_since_boot=("under-voltage", *before)))
    (dip,) = minutes.take(all_of_it=True)
    assert (quiet.throttled, quiet.throttle_reasons) == (False, ())
    assert (dip.throttled, dip.throttle_reasons) == (True, ("under-voltage",))
    assert (dip.readings, dip.throttled_readings) == (2, 1)


def test_no_time_is_lost_among_threads(wall: Wall, minutes: Minutes) -> None:
    taken: list[DeviceMinute] = []

    def answer() -> None:
        for _ in range(500):
            minutes.record_reply([0.001])
            minutes.record_health(told(throttled=False))

    threads = [threading.Thread(target=answer) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        wall.now += 60
        taken += minutes.take()
    taken += minutes.take(all_of_it=True)
    assert sum(one.queries for one in taken) == sum(one.readings for one in taken) == 2000


def test_what_slowed_it_down_before_the_campaign_is_no_news(minutes: Minutes) -> None:
    for since_boot in (None, ("throttled",), None, ("throttled",)):
        minutes.record_health(told(throttled=False, throttled_since_boot=since_boot))
    (before,) = minutes.take(all_of_it=True)
    assert (before.readings, before.throttled_readings) == (4, 0)
    minutes.record_health(
        told(throttled=False, throttled_since_boot=("throttled", "under-voltage"))
    )
    (after,) = minutes.take(all_of_it=True)
    assert after.throttle_reasons == ("under-voltage",)


def test_new_facts_of_a_heartbeat_become_health() -> None:
    history = HealthHistory()
    history.record(
        {
            "uptime_s": 3,
            "throttle_reasons": ["under-voltage"],
            "throttled_since_boot": ["under-voltage", "throttled"],
            "battery_percent": 81,
            "battery_charging": False,
            "gpu_load": 0.25,
            "gpu_mhz": 612,
        },
        0.0,
        0.1,
        True,
    )
    health = history.health
    assert health.throttle_reasons == ("under-voltage",)
    assert health.throttled_since_boot == ("under-voltage", "throttled")
    assert (health.battery_percent, health.battery_charging) == (81.0, False)
    assert (health.gpu_load, health.gpu_mhz) == (0.25, 612.0)
    history.record({"throttle_reasons": None}, 0.0, 0.1, True)
    assert (history.health.throttle_reasons, history.health.gpu_load) == ((), None)
    assert history.health.throttled_since_boot is None
    with pytest.raises(ValueError, match="throttle_reasons"):
        history.record({"throttle_reasons": 5}, 0.0, 0.1, True)


def test_a_reconnecting_session_keeps_minutes_over_its_sessions() -> None:
    bench = Bench()
    bench.first.health = told(throttled=True, throttle_reasons=("under-voltage",))
    futures = [bench.reconnecting.submit([sample(n)]) for n in range(3)]
    bench.first.answer()
    bench.now += 2.0
    bench.first.answer()
    bench.first.answer()
    assert all(future.done() for future in futures)
    assert bench.reconnecting.status().throttle_reasons == ("under-voltage",)
    parts = bench.reconnecting.minutes.take(all_of_it=True)
    assert sum(one.queries for one in parts) == 3
    assert {one.device for one in parts} == {"pi4"}
    assert sum(one.throttled_readings for one in parts) == 1

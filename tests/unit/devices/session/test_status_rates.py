"""Rates, latencies and the busy fraction over the last seconds; a status as JSON."""

import dataclasses
import json

import numpy as np
import pytest
from fake_sessions import HOT

from edgeflare.devices import DeviceStatus
from edgeflare.devices.session.status import BusyFraction, Throughput


def test_rate_at_the_beginning_is_over_the_time_so_far() -> None:
    throughput = Throughput(100.0)
    assert throughput.per_s(100.0) == 0.0
    throughput.record_reply(101.0, 8, 0.1)
    assert throughput.per_s(102.0) == 4.0


def test_rate_follows_the_last_ten_seconds() -> None:
    throughput = Throughput(0.0)
    for tenth in range(300):  # 100 a second for 30 s
        throughput.record_reply(tenth / 10, 10, 0.1)
    assert throughput.per_s(30.0) == pytest.approx(100.0, rel=0.02)
    assert throughput.per_s(35.0) == pytest.approx(50.0, rel=0.02)
    assert throughput.per_s(41.0) == 0.0
    assert throughput.queries == 3000


@pytest.mark.parametrize("fraction", [0.5, 0.99])
@pytest.mark.parametrize("count", [1, 2, 99, 100, 1000])
def test_latency_is_the_nearest_rank(fraction: float, count: int) -> None:
    rng = np.random.default_rng(count)
    latencies = rng.exponential(size=count)
    throughput = Throughput(0.0)
    for latency in latencies:
        throughput.record_reply(1.0, 1, float(latency))
    expected = np.quantile(latencies, fraction, method="inverted_cdf")
    assert throughput.latency_s(fraction) == expected


def test_latency_is_of_recent_requests_only() -> None:
    throughput = Throughput(0.0)
    assert throughput.latency_s(0.5) is None
    for n in range(3000):
        throughput.record_reply(n / 100, 1, 9.0 if n < 1500 else 0.1)
    assert throughput.latency_s(0.99) == 0.1


def test_busy_fraction_is_of_the_last_heartbeats() -> None:
    busy = BusyFraction()
    assert busy.value is None
    busy.record(0.0, 0.0)
    assert busy.value is None
    busy.record(5.0, 1.0)
    assert busy.value == 0.2  # since the agent began
    for uptime in range(10, 65, 5):  # idle, then fully busy
        busy.record(float(uptime), 1.0 if uptime <= 30 else 1.0 + uptime - 30)
    assert busy.value == 1.0


def test_busy_fraction_mixes_idle_and_busy() -> None:
    busy = BusyFraction()
    for uptime, worked in [(5.0, 5.0), (10.0, 5.0), (15.0, 7.5), (15.0, 7.5)]:
        busy.record(uptime, worked)
    assert busy.value == 0.25


def test_counters_of_another_agent_begin_again() -> None:
    busy = BusyFraction()
    busy.record(100.0, 90.0)
    busy.record(105.0, 95.0)
    busy.record(4.0, 1.0)
    assert busy.value == 0.25


def test_a_status_written_down_keeps_its_reasons() -> None:
    slow = dataclasses.replace(HOT, throttle_reasons=("under-voltage", "throttled"))
    stored = json.loads(json.dumps(slow.to_json()))
    assert DeviceStatus.from_json(stored) == slow
    del stored["throttle_reasons"]
    assert DeviceStatus.from_json(stored).throttle_reasons == ()

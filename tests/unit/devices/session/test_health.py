"""Heartbeats: each counts once, and a clock that is set is told from one that drifts."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.devices.reported import WrongValueError
from edgeflare.devices.session.health import ClockJumpDetector, HealthHistory, PendingHeartbeats
from edgeflare_agent.wire import Kind

PONG: dict[str, Any] = {"busy_s": 2, "uptime_s": 9.5, "served": 40, "waiting": 3, "wall": 1e9}


def test_answer_becomes_health() -> None:
    history = HealthHistory()
    history.record(
        {**PONG, "rss_bytes": 4096, "temperature_c": 61, "throttled": False}, 10.0, 10.5, True
    )
    health = history.health
    assert (health.busy_s, health.uptime_s, health.served, health.waiting) == (2.0, 9.5, 40, 3)
    assert (health.rss_bytes, health.temperature_c, health.throttled) == (4096, 61.0, False)
    assert (health.frequency_mhz, health.round_trip_s, health.clock_jump_s) == (None, 0.5, 0.0)


def test_round_trip_is_the_least_of_recent_empty_pings() -> None:
    history = HealthHistory()
    for seconds in (0.3, 0.1, 0.2):
        history.record(PONG, 0.0, seconds, True)
    history.record(PONG, 0.0, 0.01, False)
    assert history.health.round_trip_s == 0.1
    for _ in range(100):
        history.record(PONG, 0.0, 0.4, True)
    assert history.health.round_trip_s == 0.4


def test_nonsense_is_refused() -> None:
    with pytest.raises((TypeError, ValueError)):
        HealthHistory().record({**PONG, "busy_s": "much"}, 0.0, 0.1, True)


@pytest.mark.parametrize("step", [3600.0, -86400.0, 6.0])
def test_jump_of_the_devices_clock_is_kept(step: float) -> None:
    watch = ClockJumpDetector()
    for second in range(10):
        watch.record(1e9 + second + (step if second >= 5 else 0), second, second)
    assert watch.jump_s == pytest.approx(step)


def test_drift_and_small_steps_are_no_jump() -> None:
    watch = ClockJumpDetector()
    for second in range(10_000):
        watch.record(1e9 + second * 1.01, second, second)
    assert watch.jump_s == 0.0


@given(st.lists(st.floats(0, 60), min_size=2, max_size=10), st.randoms(use_true_random=False))
def test_slow_answers_are_no_jump(delays: list[float], random: Any) -> None:
    watch, now = ClockJumpDetector(), 0.0
    for delay in delays:
        read_at = now + random.random() * delay
        watch.record(1e9 + read_at, now, now + delay)
        now += delay
    assert watch.jump_s == 0.0


def test_each_heartbeat_counts_once() -> None:
    pings = PendingHeartbeats()
    first, second = pings.new(), pings.new(3)
    assert first.frame().kind is Kind.PING
    assert [array.nbytes for array in second.frame().arrays] == [3]
    assert pings.find(second.frame().header) is second
    pings.remove(second)
    assert pings.find(second.frame().header) is None
    for header in ({"ping": 2}, {"ping": -1}, {"ping": None}, {}):
        with pytest.raises(WrongValueError, match="ping"):
            pings.find(header)
    assert pings.drain() == [first.future]
    assert np.all(pings.drain() == [])

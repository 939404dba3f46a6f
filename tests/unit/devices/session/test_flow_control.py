"""The adaptive window: enough requests for the round trip, never more than memory has room for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.devices.session.flow_control import (
    HOST_JITTER_S,
    LARGEST,
    MOST_BYTES,
    SMALLEST,
    AdaptiveWindow,
)


def settled(
    service: float, *, round_trip: float = 0.0, size: int = 1000, bandwidth: float | None = None
) -> AdaptiveWindow:
    """Return a window that has seen many equal requests."""
    window = AdaptiveWindow()
    window.set_round_trip(round_trip)
    if bandwidth is not None:
        window.set_bandwidth(bandwidth)
    for _ in range(100):
        window.record_reply(service, size)
    return window


def test_begins_with_a_few_requests_until_the_first_reply() -> None:
    window = AdaptiveWindow()
    first = window.size
    window.set_round_trip(10.0)
    assert window.size == first
    window.record_reply(10.0, 100)
    assert window.size < first


def test_fixed_size_never_changes() -> None:
    window = AdaptiveWindow(7)
    window.set_round_trip(3.0)
    window.set_bandwidth(10.0)
    window.record_reply(0.001, 1 << 20)
    assert window.size == 7


@given(
    st.floats(0, 60),
    st.floats(0, 10),
    st.integers(0, 1 << 28),
    st.one_of(st.none(), st.floats(1, 1e9)),
)
def test_size_keeps_its_bounds(service, round_trip, size, bandwidth) -> None:
    window = settled(service, round_trip=round_trip, size=size, bandwidth=bandwidth)
    assert SMALLEST <= window.size <= LARGEST
    assert window.size * size <= MOST_BYTES or window.size == SMALLEST


@given(st.floats(0.005, 1), st.floats(0, 0.2))
def test_requests_under_way_cover_the_round_trip_and_the_hosts_jitter(service, round_trip) -> None:
    window = settled(service, round_trip=round_trip)
    waiting_at_the_device = window.size - 1
    assert waiting_at_the_device * service >= min(
        round_trip + HOST_JITTER_S, (LARGEST - 1) * service
    )


def test_slow_device_gets_few_requests_and_a_fast_one_behind_a_long_line_many() -> None:
    assert settled(0.5).size == 2
    assert settled(0.005, round_trip=0.020).size < 16
    assert settled(50e-6, round_trip=0.020).size == LARGEST


def test_link_slower_than_the_device_needs_no_more_than_fills_the_link() -> None:
    fast = settled(0.001, round_trip=0.02, size=100_000)
    slow = settled(0.001, round_trip=0.02, size=100_000, bandwidth=1e6)
    assert fast.size > 30
    assert slow.size == SMALLEST


def test_overhead_of_the_agent_counts_as_work() -> None:
    window = AdaptiveWindow()
    window.record_totals(5.0, 0)
    for _ in range(20):
        window.record_reply(0.001, 100)
    before = window.size
    window.record_totals(5.0 + 20 * 0.004, 20)
    assert window.service == pytest.approx(0.004)
    assert window.size < before


def test_loading_is_not_taken_for_overhead_of_requests_for_long() -> None:
    window = AdaptiveWindow()
    window.record_totals(0.0, 0)
    for beat in range(1, 3):
        for _ in range(20):
            window.record_reply(0.001, 100)
        window.record_totals(30.0 + 20 * 0.002 * beat, 20 * beat)
    assert window.service == pytest.approx(0.002)


def test_too_few_requests_tell_nothing_of_the_overhead() -> None:
    window = AdaptiveWindow()
    window.record_totals(0.0, 0)
    window.record_reply(0.001, 100)
    window.record_totals(1.0, 1)
    assert window.service == pytest.approx(0.001)


def test_one_slow_reply_changes_nothing() -> None:
    window = settled(0.001)
    before = window.size
    for _ in range(15):
        window.record_reply(0.001, 1000)
    window.record_reply(5.0, 1000)
    for _ in range(14):
        window.record_reply(0.001, 1000)
    assert window.size == before


def test_an_eighth_of_the_devices_memory_bounds_what_is_under_way() -> None:
    window = settled(50e-6, size=100_000)
    window.set_memory(8 << 20)
    assert window.most_bytes == 1 << 20
    assert window.size == (1 << 20) // 100_000
    window.set_memory(1 << 40)
    assert window.most_bytes == MOST_BYTES

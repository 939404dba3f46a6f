"""Times counted by size: any fraction of them is known to 1 %."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.devices.telemetry import Latencies

TIMES = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=50)


@given(TIMES, st.floats(0, 1))
def test_a_fraction_is_that_of_the_sorted_times(times: list[float], fraction: float) -> None:
    counted = Latencies()
    counted.add(times)
    exact = sorted(times)[max(1, math.ceil(fraction * len(times))) - 1]
    assert counted.within(fraction) == pytest.approx(exact, rel=0.0101)


@given(TIMES, TIMES)
def test_parts_put_together_are_the_whole(some: list[float], more: list[float]) -> None:
    whole, parts, other = Latencies(), Latencies(), Latencies()
    whole.add(some + more)
    parts.add(some)
    other.add(more)
    parts.merge(other.buckets)
    assert parts.buckets == whole.buckets == Latencies(whole.buckets).buckets
    assert parts.count == len(some) + len(more)


def test_no_times_have_no_median() -> None:
    assert (Latencies().within(0.5), Latencies().count) == (None, 0)


def test_a_time_of_zero_is_a_nanosecond() -> None:
    counted = Latencies()
    counted.add([0.0, 0.0])
    assert counted.within(0.5) == pytest.approx(1e-9, rel=0.02)


@given(TIMES, st.floats(0, 1))
def test_no_fraction_takes_longer_than_the_longest(times: list[float], fraction: float) -> None:
    counted = Latencies()
    counted.add(times)
    within = counted.within(fraction, max(times))
    assert within is not None
    assert within <= max(times)

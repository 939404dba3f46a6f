"""Delays between tries: bounded, jittered over the whole range, and the same for the same generator."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.devices.session.reconnect_policy import Backoff


def test_limit_doubles_from_one_second_to_a_minute() -> None:
    limits = [Backoff().limit_s(tries) for tries in range(9)]
    assert limits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]


@given(tries=st.integers(0, 10**9), seed=st.integers())
def test_delay_is_within_the_limit_however_many_tries_failed(tries: int, seed: int) -> None:
    backoff = Backoff()
    delay = backoff.delay_s(tries, random.Random(seed))
    assert 0.0 <= delay <= backoff.limit_s(tries)
    assert delay == backoff.delay_s(tries, random.Random(seed))


def test_jitter_is_full() -> None:
    rng = random.Random(1)
    drawn = [Backoff().delay_s(6, rng) for _ in range(1000)]
    assert min(drawn) < 1.0
    assert max(drawn) > 59.0
    assert sum(drawn) / len(drawn) == pytest.approx(30.0, abs=2.0)


@pytest.mark.parametrize(("first", "most"), [(0.0, 60.0), (-1.0, 60.0), (2.0, 1.0)])
def test_backoff_that_makes_no_sense_is_refused(first: float, most: float) -> None:
    with pytest.raises(ValueError, match="first_s"):
        Backoff(first, most)

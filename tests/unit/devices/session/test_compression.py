"""Compression is chosen where it clearly gains, and bandwidth is measured as far as needed."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from edgeflare.devices.session.flow_control import Compression, gains, measure_bandwidth

FLAT = [np.zeros((64, 64, 3), np.uint8)]
NOISE = [np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)]


def settled(mode: Any, bandwidth: float | None, arrays: Sequence[Any]) -> bool:
    """Return the decision after many equal frames, packing being free of cost."""
    compression = Compression(mode, bandwidth, clock=itertools.count(0, 0).__next__)
    for _ in range(20):
        compression.wanted(arrays)
    return compression.wanted(arrays)


@pytest.mark.parametrize(
    ("bandwidth", "arrays", "packed"),
    [(1e5, FLAT, True), (1e5, NOISE, False), (1e9, FLAT, False), (None, FLAT, False)],
)
def test_auto_packs_what_shrinks_on_a_slow_link(bandwidth, arrays, packed) -> None:
    assert settled("auto", bandwidth, arrays) is packed


def test_first_frames_travel_as_they_are_and_small_ones_are_no_trial() -> None:
    compression = Compression("auto", 1e5)
    assert not any(compression.wanted([np.zeros(10, np.uint8)]) for _ in range(50))
    assert [compression.wanted(FLAT) for _ in range(8)] == [False] * 7 + [True]
    assert compression.wanted([np.zeros(10, np.uint8)])


def test_on_and_off_are_the_users_word() -> None:
    assert settled("on", None, NOISE) is True
    assert settled("off", 1.0, FLAT) is False


def test_packing_that_takes_long_does_not_gain() -> None:
    assert gains(1_000_000, 500_000, 0.1, 1e6)
    assert not gains(1_000_000, 500_000, 0.4, 1e6)
    assert not gains(1_000_000, 1, 0.0, math.inf)


class SimulatedLink:
    """A link with a latency and a bandwidth; the first frames of each size are slower, as under TCP."""

    def __init__(self, latency: float, bandwidth: float, slow_start: float = 1.0) -> None:
        self.latency, self.bandwidth, self.slow_start = latency, bandwidth, slow_start
        self.sizes: list[int] = []

    def ping(self, size: int) -> float:
        factor = 1.0 if size in self.sizes else self.slow_start
        self.sizes.append(size)
        return self.latency + factor * size / self.bandwidth


@pytest.mark.parametrize("bandwidth", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("latency", [0.0001, 0.02, 0.3])
@pytest.mark.parametrize("slow_start", [1.0, 3.0])
def test_bandwidth_is_the_links(latency: float, bandwidth: float, slow_start: float) -> None:
    link = SimulatedLink(latency, bandwidth, slow_start)
    assert measure_bandwidth(link.ping, latency) == pytest.approx(bandwidth)


def test_slow_link_is_not_measured_with_much() -> None:
    link = SimulatedLink(0.01, 1e4)
    measure_bandwidth(link.ping, 0.01)
    assert max(link.sizes) == 16 << 10
    assert len(link.sizes) == 3


def test_link_that_takes_no_time_has_no_bandwidth() -> None:
    assert measure_bandwidth(lambda size: 0.001, 0.001) is None

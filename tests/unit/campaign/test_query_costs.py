"""What a device query is found to cost against a query of the original."""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

from edgeflare.campaign.resolution import cost_ratio
from edgeflare.errors import DeviceAwayError, InferenceFailedError, ModelError
from edgeflare.types import Sample, Scores

SAMPLES = [np.full((4, 4, 1), value, np.uint8) for value in range(8)]


class Clock:
    """Time passes only where somebody works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class FakeOriginal:
    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def answer(self, samples: Sequence[Sample]) -> tuple[Sequence[Scores], Sequence[float]]:
        self._clock.now += self._seconds * len(samples)
        return [np.array([1.0]) for _ in samples], []


class FakeDevice:
    """Takes `seconds` for a sample, on each of `odd` another time; fails with `errors`; counts."""

    def __init__(
        self,
        clock: Clock,
        seconds: float,
        odd: dict[int, float] | None = None,
        errors: dict[int, Exception] | None = None,
    ) -> None:
        self.name = "pi4"
        self.asked = 0
        self._clock = clock
        self._seconds = seconds
        self._odd = odd or {}
        self._errors = errors or {}

    def submit(self, samples: Sequence[Sample]) -> "Future[Any]":
        [sample] = samples
        value = int(sample.flat[0])
        self.asked += 1
        self._clock.now += self._odd.get(value, self._seconds)
        answered: Future[Any] = Future()
        if value in self._errors:
            answered.set_exception(self._errors[value])
        else:
            answered.set_result(None)
        return answered


class Away(FakeDevice):
    def submit(self, samples: Sequence[Sample]) -> "Future[Any]":
        return Future()


def ratio(clock: Clock, *devices: FakeDevice, samples: Sequence[Sample] = SAMPLES) -> float:
    original = FakeOriginal(clock, 0.002)
    return cost_ratio(original, devices, samples, patience_s=0.0, handover_s=0.0, clock=clock)


def test_the_slowest_device_counts_at_its_usual_speed() -> None:
    clock = Clock()
    fast = FakeDevice(clock, 0.004, odd={1: 9.0, 5: 9.0})
    slow = FakeDevice(clock, 0.018, odd={0: 5.0})
    assert ratio(clock, fast) == pytest.approx(2.0)
    assert ratio(clock, fast, slow) == pytest.approx(9.0)


def test_few_seeds_are_asked_about_more_than_once() -> None:
    clock = Clock()
    device = FakeDevice(clock, 0.01)
    assert ratio(clock, device, samples=SAMPLES[:1]) == pytest.approx(5.0)
    assert device.asked == 8


def test_a_very_slow_device_is_asked_a_few_times_only() -> None:
    clock = Clock()
    device = FakeDevice(clock, 60.0)
    assert ratio(clock, device) == pytest.approx(30_000.0)
    assert device.asked == 3


def test_seeds_on_which_the_device_cannot_answer_tell_nothing() -> None:
    clock = Clock()
    failing = dict.fromkeys(range(5), InferenceFailedError("no"))
    device = FakeDevice(clock, 0.01, odd=dict.fromkeys(range(5), 77.0), errors=failing)
    assert ratio(clock, device) == pytest.approx(5.0)


def test_a_device_that_is_away_reports_nothing_where_another_one_answers() -> None:
    clock = Clock()
    there = FakeDevice(clock, 0.01)
    assert ratio(clock, Away(clock, 0.5), there) == pytest.approx(5.0)
    lost = FakeDevice(clock, 0.5, errors={3: DeviceAwayError("gone in between")})
    assert ratio(clock, lost, there) == pytest.approx(5.0)


def test_a_device_that_stays_away_or_fails_ends_it() -> None:
    clock = Clock()
    with pytest.raises(DeviceAwayError, match="within 0"):
        ratio(clock, Away(clock, 0.01))
    with pytest.raises(DeviceAwayError, match="pi4, pi4"):
        ratio(clock, Away(clock, 0.01), Away(clock, 0.01))
    with pytest.raises(ModelError):
        ratio(clock, FakeDevice(clock, 0.01, errors={3: ModelError("broken")}))

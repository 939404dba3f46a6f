"""Where nearly no drift is: another method of crossing the boundary, and an end that says what was seen."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray
from search_models import Pair, Run, Shape, affine, agreed, images, search

from edgeflare.types import Sample, Scores

SHAPE: Shape = (16, 16, 1)
SEEDS = 12


@dataclass(frozen=True)
class Perceptron:
    """One hidden layer of rectified units, large random weights."""

    hidden: NDArray[np.float64]
    last: NDArray[np.float64]

    def __call__(self, sample: Sample) -> Scores:
        pixels = sample.ravel() / 255.0 - 0.5
        logits = np.maximum(pixels @ self.hidden, 0.0) @ self.last
        powers = np.exp(logits - logits.max())
        return np.asarray(powers / powers.sum())


def perceptron() -> Perceptron:
    rng = np.random.default_rng(0)
    shapes = ((int(np.prod(SHAPE)), 64), (64, 10))
    hidden, last = (5.0 * rng.standard_normal(one) * np.sqrt(2 / one[0]) for one in shapes)
    return Perceptron(hidden, last)


def rounded(model: Perceptron, bits: int) -> Perceptron:
    """The model with weights of so many significant bits."""

    def stored(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        fraction, exponent = np.frexp(weights)
        return np.asarray(np.ldexp(np.round(fraction * 2.0**bits) / 2.0**bits, exponent))

    return Perceptron(stored(model.hidden), stored(model.last))


def runs(pair: Pair, count: int = SEEDS, **options: object) -> list[Run]:
    others = images(SHAPE, 30, 3)
    options = {"effort": 64, **options}
    return [
        search(pair, pair.seed(sample, others), number, **options)
        for number, sample in enumerate(agreed(pair, SHAPE, count))
    ]


def test_crossings_without_drift_lead_to_others_that_have_it() -> None:
    original = perceptron()
    found = runs(Pair(original, rounded(original, 10)))
    assert not any(run.gave_up for run in found)
    assert np.mean([len(run.queries) for run in found]) < 15


@pytest.mark.parametrize("crossing", ["least-l2", "line", "mutants"])
@pytest.mark.parametrize("tied", [2, 3])
def test_the_same_model_is_asked_little_and_the_reason_says_so(crossing: str, tied: int) -> None:
    original = affine(SHAPE, 5)
    for run in runs(Pair(original, original), 3, crossing=crossing, tied_classes=tied):
        assert run.gave_up
        assert len(run.queries) <= 20
        assert "alike at all" in run.outcome.reason


def test_the_reason_names_the_largest_severity_seen_and_the_floor() -> None:
    original = perceptron()
    pair = Pair(original, rounded(original, 20))
    for run in runs(pair, 3):
        assert run.gave_up
        assert len(run.queries) <= 20
        assert "floor is 0.001" in run.outcome.reason
        assert "by more than" in run.outcome.reason


def test_without_a_floor_any_drift_goes_on_to_a_trigger() -> None:
    original = perceptron()
    pair = replace(Pair(original, rounded(original, 11)), floor=0.0)
    assert not any(run.gave_up for run in runs(pair, 3))


def test_labels_alone_end_no_search_early() -> None:
    original = affine(SHAPE, 5)
    pair = replace(Pair(original, original), labels_only=True)
    (run,) = runs(pair, 1, effort=16, device_budget=60)
    assert len(run.queries) == 60

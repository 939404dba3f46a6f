"""What the boundary search expects of the deployed model before the device is asked."""

from dataclasses import replace

import numpy as np
import pytest
from search_models import Affine, Pair, Shape, affine, agreed, images, moved, search

from edgeflare.strategies.boundary.first_trigger import DriftModel
from edgeflare.types import Sample

SHAPE: Shape = (10, 10, 1)
ORIGINAL = affine(SHAPE, 5)
OTHERS = images(SHAPE, 60, 3)


def flattened(model: Affine, share: float = 0.75) -> Affine:
    """A deployed model that is less sure of everything: near the boundary the drift is not the seed's."""
    off = moved(model, 0.1)
    return replace(off, weights=share * off.weights)


def between(pair: Pair, sample: Sample) -> tuple[int, int]:
    scores = pair.original(sample)
    second, first = np.argsort(scores)[-2:]
    return int(first), int(second)


def true_drift(pair: Pair, sample: Sample, label: int, rival: int) -> float:
    drift = np.log(pair.deployed(sample)) - np.log(pair.original(sample))
    return float(drift[label] - drift[rival])


def test_a_drift_that_is_the_same_everywhere_is_expected_everywhere() -> None:
    pair = Pair(ORIGINAL, moved(ORIGINAL, 0.3))
    (seed,) = agreed(pair, SHAPE)
    alone, told = (DriftModel(pair.seed(seed, OTHERS, known)) for known in (0, 40))
    for sample in images(SHAPE, 20, 8):
        label, rival = between(pair, sample)
        true = true_drift(pair, sample, label, rival)
        logs = np.log(pair.original(sample))
        assert alone.predict(logs, label, rival) == pytest.approx(true)
        by_others = told.predict(logs, label, rival)
        assert by_others is not None
        assert by_others * true > 0  # the side that the device is asked about


@pytest.mark.rounding
def test_the_seeds_answers_tell_the_drift_at_the_boundary_better_than_the_seed_alone() -> None:
    pair = Pair(ORIGINAL, flattened(ORIGINAL))
    near = [one for one in images(SHAPE, 300, 8) if np.ptp(np.sort(pair.original(one))[-2:]) < 0.1]
    (sample,) = agreed(pair, SHAPE, surely=0.8)

    def error(known: int) -> float:
        expected = DriftModel(pair.seed(sample, OTHERS, known))
        missed = []
        for one in near:
            pairs = between(pair, one)
            drift = expected.predict(np.log(pair.original(one)), *pairs)
            assert drift is not None
            missed.append(abs(drift - true_drift(pair, one, *pairs)))
        return float(np.mean(missed))

    assert len(near) >= 10
    assert error(40) < 0.5 * error(0)


def test_as_few_seeds_as_classes_tell_no_more_than_the_seed_itself() -> None:
    pair = Pair(ORIGINAL, flattened(ORIGINAL))
    (sample,) = agreed(pair, SHAPE)
    logs = np.log(pair.original(OTHERS[50]))
    few, none = (
        DriftModel(pair.seed(sample, OTHERS, known)).predict(logs, 0, 1) for known in (5, 0)
    )
    assert few == none == pytest.approx(true_drift(pair, sample, 0, 1))


@pytest.mark.rounding
def test_the_usual_drift_is_the_median_between_the_two_likeliest_classes() -> None:
    pair = Pair(ORIGINAL, flattened(ORIGINAL))
    usual = DriftModel(pair.seed(agreed(pair, SHAPE)[0], OTHERS, 40)).typical()
    sizes = [abs(true_drift(pair, one, *between(pair, one))) for one in OTHERS[:40]]
    assert usual == pytest.approx(np.median(sizes))
    assert DriftModel(pair.seed(agreed(pair, SHAPE)[0])).typical() == 0.0


def test_labels_tell_no_drift() -> None:
    pair = Pair(ORIGINAL, flattened(ORIGINAL), labels_only=True)
    expected = DriftModel(pair.seed(agreed(pair, SHAPE)[0]))
    assert expected.predict(np.log(ORIGINAL(OTHERS[0])), 0, 1) is None
    assert expected.typical() == 0.0


def test_probabilities_of_0_give_a_finite_expectation() -> None:
    pair = Pair(ORIGINAL, lambda sample: np.round(ORIGINAL(sample) * 256) / 256)
    expected = DriftModel(pair.seed(agreed(pair, SHAPE, surely=0.9)[0], OTHERS, 40))
    drift = expected.predict(np.log(ORIGINAL(OTHERS[50])), 0, 1)
    assert drift is not None
    assert abs(drift) <= 12


@pytest.mark.rounding
def test_known_answers_save_queries() -> None:
    pair = Pair(ORIGINAL, flattened(ORIGINAL))

    def queries(known: int) -> int:
        return sum(
            len(search(pair, pair.seed(sample, OTHERS, known), number).queries)
            for number, sample in enumerate(agreed(pair, SHAPE, 20, surely=0.3))
        )

    with_known, without = queries(40), queries(0)
    assert 20 <= with_known < without

"""The simplest condition that separates, its words, and how well it does."""

import numpy as np
import pytest
from shown_numbers import numbers

from edgeflare.survey.description import Accuracy, accuracy, between, conditions, describe
from edgeflare.survey.features import Feature

FEATURES = (
    Feature("brightest pixel", " of 255"),
    Feature("contrast", " of 255"),
    Feature("mean of the top row", " of 255", 1),
    Feature("the original's answer is", rank=1, label=3),
)


def drawn(count: int = 300) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 256, (count, len(FEATURES))).astype(np.float64)
    values[:, 3] = values[:, 3] < 26
    return values


def words_of(values: np.ndarray, deviates: np.ndarray) -> str:
    found = describe(values, deviates, FEATURES)
    return found.words(FEATURES)


def test_one_threshold() -> None:
    values = drawn()
    assert numbers(words_of(values, values[:, 0] < 100)) == "100 255"
    assert numbers(words_of(values, values[:, 1] >= 200)) == "200 255"


def test_two_thresholds() -> None:
    values = drawn(1000)
    both = (values[:, 0] < 100) & (values[:, 1] >= 200)
    found = describe(values, both, FEATURES)
    assert set(found.kind) == {(0, True), (1, False)}
    assert accuracy(found, values, both).precision == 1
    assert accuracy(found, values, both).recall == 1


def test_a_class_of_the_original() -> None:
    values = drawn()
    assert "answer is 3" in words_of(values, values[:, 3] == 1)


def test_of_two_features_that_explain_the_same_the_simpler_one_is_named() -> None:
    values = drawn()
    values[:, 2] = values[:, 0]
    assert words_of(values, values[:, 0] < 100).startswith("brightest pixel")


def test_a_few_single_deviations_change_nothing() -> None:
    values = drawn()
    deviates = values[:, 0] < 100
    deviates[np.flatnonzero(~deviates)[:3]] = True
    deviates[np.flatnonzero(deviates)[5:8]] = False
    found = describe(values, deviates, FEATURES)
    assert found.kind == ((0, True),)
    assert 95 <= found.thresholds[0].at <= 105


def test_nothing_to_describe() -> None:
    values = drawn()
    assert describe(values, np.zeros(len(values), bool), FEATURES) is None
    assert conditions(np.ones((9, 4)), np.arange(9) < 3, FEATURES) == []


def test_accuracy_and_the_chance_of_it() -> None:
    perfect = Accuracy(12, 12, 12, 0)
    assert (perfect.precision, perfect.recall) == (1, 1)
    assert float(perfect.p) == pytest.approx(3.7e-7, rel=0.01)  # scipy.stats.fisher_exact
    assert float(Accuracy(12, 6, 12, 2).p) == pytest.approx(0.0966, rel=0.01)
    assert Accuracy(0, 0, 5, 0).precision is None
    assert Accuracy(5, 0, 5, 0).recall is None
    assert Accuracy(5, 0, 5, 0).p == 1


@pytest.mark.parametrize(
    ("low", "high", "found"),
    [(96, 104, 100), (97, 99, 98), (0, 0.1, 0.1), (99, 100, 100), (249, 255, 250), (-3, 5, 0)],
)
def test_a_threshold_is_the_roundest_number_between(low: float, high: float, found: float) -> None:
    assert between(low, high) == found

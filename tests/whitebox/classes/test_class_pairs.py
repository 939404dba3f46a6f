"""Confusion, leak and bias of pairs of classes against plain loops."""

import itertools

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare_whitebox import (
    avg_bias,
    avg_cd,
    both_directions,
    class_pairs,
    directional_leak,
    directional_type1_confusion,
    directional_type2_confusion,
    memberships,
    near_distance,
    pair_values,
)

CLASSES = 5


def several(seed: int, count: int = 120) -> tuple[np.ndarray, np.ndarray]:
    """Labels and predictions of a multi-label task, bool [inputs, classes]; class 4 is rare."""
    rng = np.random.default_rng(seed)
    truth = rng.random((count, CLASSES)) < [0.6, 0.4, 0.3, 0.5, 0.06]
    return truth, truth ^ (rng.random((count, CLASSES)) < 0.25)


def symmetric(seed: int, size: int = 6) -> np.ndarray:
    values = np.random.default_rng(seed).uniform(0.1, 2, (size, size))
    values = values + values.T
    np.fill_diagonal(values, 0)
    return values


@pytest.mark.parametrize("least", [1, 10])
def test_confusions_of_several_labels_are_those_of_plain_loops(least: int) -> None:
    truth, said = several(0)
    type1 = directional_type1_confusion(truth, said, CLASSES, least=least)
    type2 = directional_type2_confusion(truth, said, CLASSES, least=least)
    skipped = 0
    for a, b in itertools.product(range(CLASSES), repeat=2):
        inputs = ones = twos = 0
        for y, p in zip(truth.tolist(), said.tolist(), strict=True):
            if y[a] and not y[b]:
                inputs += 1
                ones += p[b] and not p[a]
                twos += p[a] and p[b]
        if inputs < least or not inputs:
            skipped += a != b
            assert np.isnan([type1[a, b], type2[a, b]]).all()
        else:
            assert (type1[a, b], type2[a, b]) == (ones / inputs, twos / inputs)
    assert (skipped > 0) == (least == 10)


def test_of_one_label_type_1_is_the_confusion_matrix_and_type_2_is_nothing() -> None:
    rng = np.random.default_rng(1)
    labels, said = rng.integers(CLASSES, size=(2, 400))
    type1 = directional_type1_confusion(labels, said, CLASSES)
    for a, b in itertools.permutations(range(CLASSES), 2):
        assert type1[a, b] == np.mean(said[labels == a] == b)
    assert np.nanmax(directional_type2_confusion(labels, said, CLASSES)) == 0


def test_both_directions_take_the_one_that_is_known() -> None:
    both = both_directions(np.array([[np.nan, 0.2, np.nan], [0.4, np.nan, 0.1], [np.nan] * 3]))
    np.testing.assert_allclose(both[0, 1], 0.3)
    assert (both[1, 2], both[2, 1]) == (0.1, 0.1)
    assert np.isnan(both[0, 2])


def test_the_leak_is_a_mean_of_probabilities() -> None:
    rng = np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(CLASSES), 90)
    scores[:, 4] = 0
    members = memberships(scores.argmax(axis=1), CLASSES)
    leak = directional_leak(scores, members)
    for a in range(4):
        np.testing.assert_allclose(leak[a], scores[scores.argmax(axis=1) == a].mean(axis=0))
    assert np.isnan(leak[4]).all()
    assert np.isnan(directional_leak(scores, members, least=1000)).all()


@pytest.mark.parametrize("seed", range(3))
def test_bias_and_disparity_are_those_of_plain_loops(seed: int) -> None:
    distances = symmetric(seed)
    near = near_distance(distances)
    known = [distances[a, b] for a, b in itertools.combinations(range(6), 2)]
    assert near == pytest.approx(np.mean(known) - np.std(known))
    plain, filtered = avg_bias(distances), avg_bias(distances, nearer_than=near)
    disparity = avg_cd(distances)
    for a, b in itertools.permutations(range(6), 2):
        thirds = [c for c in range(6) if c not in (a, b)]
        pairs = [(distances[c, a], distances[c, b]) for c in thirds]
        biases = [abs(x - y) / (x + y) for x, y in pairs]
        kept = [one if min(pair) < near else 0 for one, pair in zip(biases, pairs, strict=True)]
        assert plain[a, b] == pytest.approx(sum(biases) / 4)
        assert filtered[a, b] == pytest.approx(sum(kept) / 4)
        assert disparity[a, b] == pytest.approx(sum(abs(x - y) for x, y in pairs) / 4)
    assert np.isnan(np.diag(plain)).all()
    assert (filtered < plain).any()


def test_unknown_third_classes_are_left_out() -> None:
    distances = symmetric(5)
    distances[3] = distances[:, 3] = np.nan
    kept = [0, 1, 2, 4, 5]
    some = np.ix_(kept, kept)
    for measure in (avg_bias, avg_cd):
        np.testing.assert_allclose(measure(distances)[some], measure(distances[some]))
        assert np.isnan(measure(distances)[3]).all()


def test_equal_classes_have_no_bias() -> None:
    assert np.nanmax(avg_bias(np.zeros((4, 4)))) == 0


def test_pairs_are_in_one_order() -> None:
    values = np.arange(16.0).reshape(4, 4)
    assert [values[pair] for pair in class_pairs(4)] == pair_values(values).tolist()
    assert class_pairs(4) == list(itertools.combinations(range(4), 2))


@pytest.mark.parametrize(
    "labels", [[0.5], [5], [-2], np.zeros((2, 3), bool), np.zeros((2, 5), int)]
)
def test_bad_labels_are_told(labels: object) -> None:
    with pytest.raises(UsageError, match="labels are"):
        memberships(labels, CLASSES)  # type: ignore[arg-type]


def test_labels_of_other_inputs_are_told() -> None:
    with pytest.raises(UsageError, match="2 inputs"):
        directional_type1_confusion([0, 1], [0, 1, 2], 3)

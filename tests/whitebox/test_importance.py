"""Importance-driven coverage: clusters, combinations, and what holds of all criteria."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.models.tensors import UnitActivations
from edgeflare_whitebox import IDC, Activations, cluster_centroids, important_units, silhouette

pytestmark = pytest.mark.skipif(
    find_spec("sklearn") is None, reason="scikit-learn is in the extra inspection"
)

MODEL = "0123456789abcdef" * 4


def one(units: Sequence[float]) -> Activations:
    values = np.array(units, np.float32)
    return Activations({"layer": UnitActivations(values, -1.0, 1.0)}, 0)


def drawn(number: int, seed: int, units: int = 6) -> list[Activations]:
    """Activations in two, three and four groups; the last unit is constant."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(number):
        values = rng.normal(0, 0.2, units)
        values += [10 * rng.integers(2 + place % 3) for place in range(units)]
        values[-1] = 0.5
        found.append(one(values))
    return found


PROFILING, TEST, MORE = drawn(90, 0), drawn(25, 1), drawn(25, 2)
UNITS = (4, 0, 2)


def fitted(units: Sequence[int] = UNITS, **settings: Any) -> IDC:
    made = IDC(MODEL, "layer", units, **settings)
    made.fit(PROFILING)
    return made


def state(criterion: IDC) -> Any:
    return criterion.score, criterion.inputs, criterion._covered, criterion.combinations


@pytest.mark.parametrize("clusters", [2, 3, 5])
@pytest.mark.parametrize("kind", ["spread", "ties", "alone"])
def test_the_silhouette_is_that_of_scikit_learn(clusters: int, kind: str) -> None:
    from sklearn.metrics import silhouette_score

    rng = np.random.default_rng(clusters)
    values = rng.normal(size=80)
    if kind == "ties":
        values = values.round(0)
    labels = rng.integers(clusters, size=80)
    labels[:clusters] = np.arange(clusters)
    if kind == "alone":
        labels[:] = np.maximum(labels, 1) - (clusters == 2)
        labels[0], labels[1] = 0, 1
    expected = silhouette_score(values[:, np.newaxis], labels)
    assert silhouette(values, labels) == pytest.approx(expected, abs=1e-12)


def test_a_silhouette_needs_two_clusters() -> None:
    with pytest.raises(ValueError, match="two clusters"):
        silhouette(np.arange(3.0), np.zeros(3, int))


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_as_many_clusters_as_suit_the_values(groups: int) -> None:
    rng = np.random.default_rng(groups)
    values = np.concatenate([rng.normal(10 * place, 0.1, 30) for place in range(groups)])
    found = cluster_centroids(rng.permutation(values))
    np.testing.assert_allclose(found, 10 * np.arange(groups), atol=0.1)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([0.5] * 5, [0.5]), ([2.0], [2.0]), ([1.0, 3.0], [2.0]), ([1.0, 1.0, 3.0], [1.0, 3.0])],
)
def test_few_values_have_few_clusters(values: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(cluster_centroids(np.array(values)), expected)


def test_an_input_reaches_the_combination_of_its_nearest_centroids() -> None:
    made = fitted()
    assert [len(centroids) for centroids in made.centroids] == [3, 2, 4]
    assert made.combinations == 24
    units = [10.0, 99.0, 31.0, 99.0, 4.0, 99.0]  # units 4, 0 and 2 count
    assert made.combination(one(units)) == (0, 1, 3)
    made.update([one(units), one(units)])
    assert (made.score, made.inputs) == (1 / 24, 2)
    naive = {made.combination(given) for given in (*TEST, one(units))}
    made.update(TEST)
    assert made.score == len(naive) / 24


def test_the_product_is_exact_and_never_enumerated() -> None:
    """45 units of 2 to 4 clusters have over 2**64 combinations."""
    profiling = drawn(60, 3, units=46)
    made = IDC(MODEL, "layer", range(45))
    made.fit(profiling)
    assert made.combinations == 24**15 > 2**64
    made.update(drawn(10, 4, units=46))
    assert made.score == pytest.approx(10 / made.combinations)


def test_of_a_constant_unit_there_is_one_cluster() -> None:
    made = fitted((0, 5))
    assert made.combinations == 2
    made.update(TEST)
    assert made.score == 1.0


@pytest.mark.parametrize("split", [0, 7, 25])
def test_merging_is_one_pass(split: int) -> None:
    left, right, both = fitted(), fitted(), fitted()
    left.update(TEST[:split])
    right.update(TEST[split:])
    both.update(TEST)
    left.merge(right)
    assert state(left) == state(both)
    with pytest.raises(UsageError, match="be merged"):
        left.merge(fitted((0, 2, 4)))


def test_what_is_not_finite_reaches_nothing() -> None:
    made = fitted()
    made.update([one([np.nan] * 6), one([np.inf] * 6)])
    assert (made.score, made.inputs) == (0.0, 2)
    made = IDC(MODEL, "layer", UNITS)
    made.fit([one([np.nan] * 6), *PROFILING])
    assert made.combinations == 24


def test_bad_calls_are_told() -> None:
    with pytest.raises(UsageError, match="it before"):
        IDC(MODEL, "layer", UNITS).update(TEST)
    with pytest.raises(UsageError, match="each once"):
        IDC(MODEL, "layer", (1, 1))
    with pytest.raises(UsageError, match="important unit"):
        IDC(MODEL, "layer", ())
    with pytest.raises(UsageError, match="or more"):
        IDC(MODEL, "layer", (1,), clusters=(1, 2))
    with pytest.raises(UsageError, match="6 units"):
        IDC(MODEL, "layer", (6,)).fit(PROFILING)
    made = fitted()
    made.update(TEST)
    with pytest.raises(UsageError, match="is updated"):
        made.fit(PROFILING)


def test_important_units_are_those_of_the_largest_relevance() -> None:
    relevance = np.array([0.5, -9.0, 3.0, 0.5, 2.0])
    assert important_units(relevance, 3) == (2, 4, 0)
    for number in (0, 6):
        with pytest.raises(UsageError, match="5 units"):
            important_units(relevance, number)

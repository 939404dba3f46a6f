"""Flagged pairs and cost-effectiveness against other libraries, and the paper's table 3 from its released data."""

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
import scipy

from edgeflare.errors import UsageError
from edgeflare_whitebox import (
    avg_bias,
    avg_cd,
    both_directions,
    cost_effectiveness,
    detected,
    evaluate_measure,
    near_distance,
    outlying,
    pair_values,
    spearman,
    top_share_of,
)

TABLE_3 = {
    "coco": (138, 256, 31, 0, -0.548),
    "coco_gender": (139, 286, 32, 0, -0.529),
    "cifar100": (206, 584, 39, 10, -0.447),
    "robust_cifar10_small": (4, 6, 0, 0, -0.864),
    "robust_cifar10_large": (3, 4, 0, 0, -0.831),
    "robust_cifar10_resnet": (5, 3, 0, 0, -0.714),
    "imsitu": (48, 58, 31, 19, -0.430),
}
"""True and false positives below a standard deviation and in the first hundredth, and Spearman's correlation."""


TABLE_4 = {
    "coco": ((83, 270, 3, 28), (232, 303, 18, 13)),
    "coco_gender": ((55, 289, 3, 29), (184, 363, 14, 18)),
    "cifar100": ((181, 594, 10, 39), (268, 594, 21, 28)),
    "robust_cifar10_small": ((7, 3, 0, 0), (7, 3, 0, 0)),
    "robust_cifar10_large": ((8, 3, 0, 0), (5, 3, 0, 0)),
    "robust_cifar10_resnet": ((2, 8, 0, 0), (3, 5, 0, 0)),
    "imsitu": ((46, 402, 9, 41), (293, 403, 19, 31)),
}
"""The same of avg_bias by equations 3 and 4, and with the threshold (docs/research/inspection-classes.md)."""


def matrix(path: Path, names: dict[str, int]) -> np.ndarray:
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    for name in (name for row in rows for name in row[:2]):
        names.setdefault(name, len(names))
    found = np.full((len(names), len(names)), np.nan)
    for a, b, value in rows:
        found[names[a], names[b]] = float(value)
    return found


def released(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """The distances and confusions of a setting, of both directions."""
    names = dict[str, int]()
    (path,) = folder.glob("directional_*_confusion.csv")
    distances = both_directions(matrix(folder / "neuron_distance.csv", names))
    return distances, both_directions(matrix(path, names))


@pytest.mark.shared_data
@pytest.mark.parametrize("setting", TABLE_4)
def test_bias_errors_are_found_from_the_papers_data(setting: str, shared_data: Path) -> None:
    distances, confusion = released(shared_data / "deepinspect" / setting)
    near = near_distance(distances)
    for biases, expected in zip(
        (avg_bias(distances), avg_bias(distances, nearer_than=near)), TABLE_4[setting], strict=True
    ):
        found = evaluate_measure("avg_bias", pair_values(biases), pair_values(avg_cd(confusion)))
        assert expected == (
            *(found.by_deviation.true_positives, found.by_deviation.false_positives),
            *(found.top.true_positives, found.top.false_positives),
        )


@pytest.mark.shared_data
@pytest.mark.parametrize("setting", TABLE_3)
def test_the_papers_confusion_errors_are_found_from_its_data(setting, shared_data) -> None:
    distances, confusion = released(shared_data / "deepinspect" / setting)
    found = evaluate_measure("NAPVD", -pair_values(distances), pair_values(confusion))
    *counts, correlation = TABLE_3[setting]
    assert found.pairs == len(distances) * (len(distances) - 1) // 2
    assert [
        *(found.by_deviation.true_positives, found.by_deviation.false_positives),
        *(found.top.true_positives, found.top.false_positives),
    ] == counts
    assert spearman(pair_values(distances), pair_values(confusion)) == pytest.approx(
        correlation, abs=5e-4
    )
    assert 0.8 < found.cost.area < found.cost.optimal


def test_outliers_are_above_a_standard_deviation_of_those_that_are_known() -> None:
    values = np.array([1.0, np.nan, 2, 3, 10, np.nan])
    known = [1, 2, 3, 10]
    limit = np.mean(known) + np.std(known)
    assert outlying(values).tolist() == [False, False, False, False, limit < 10, False]
    assert not outlying([2.0, 2.0]).any()
    assert not outlying([np.nan]).any()


def test_the_first_hundredth_is_rounded_down_and_the_first_of_equal_ones_count() -> None:
    values = np.zeros(250)
    values[[7, 200]] = 1
    assert np.flatnonzero(top_share_of(values)).tolist() == [7, 200]
    values[7] = np.nan
    assert np.flatnonzero(top_share_of(values)).tolist() == [0, 200]
    assert not top_share_of(values[:99]).any()
    with pytest.raises(UsageError, match="from 0"):
        top_share_of(values, 2)


def test_precision_and_recall() -> None:
    found = detected([True, True, True, False], [True, False, False, True])
    assert (found.true_positives, found.false_positives, found.true) == (1, 2, 2)
    assert (found.precision, found.recall) == (1 / 3, 1 / 2)
    nothing = detected([False] * 2, [False] * 2)
    assert (nothing.precision, nothing.recall) == (None, None)


def curve_area(order: list[int], true: list[bool]) -> float:
    """The area under the curve of one order, by scipy's trapezoids."""
    found = np.concatenate([[0], np.cumsum([true[one] for one in order])]) / sum(true)
    return float(scipy.integrate.trapezoid(found, np.linspace(0, 1, len(order) + 1)))


def test_the_area_is_that_of_the_whole_curve() -> None:
    rng = np.random.default_rng(0)
    values, true = rng.random(40), rng.random(40) < 0.3
    found = cost_effectiveness(values, true)
    assert found.area == pytest.approx(curve_area(np.argsort(-values).tolist(), true.tolist()))
    best = cost_effectiveness(true, true)
    first = np.argsort(~true, kind="stable").tolist()
    assert best.area == pytest.approx(found.optimal) == pytest.approx(best.optimal)
    assert found.optimal == pytest.approx(curve_area(first, true.tolist()))


def test_equal_values_count_as_the_mean_of_their_orders() -> None:
    values, true = [3, 2, 2, 2, 1], [False, True, False, False, True]
    areas = [curve_area([0, *middle, 4], true) for middle in itertools.permutations([1, 2, 3])]
    found = cost_effectiveness(values, true)
    assert found.area == pytest.approx(np.mean(areas))
    same = cost_effectiveness([1] * 5, true)
    assert same.area == pytest.approx(same.random)
    assert cost_effectiveness(values, [False] * 5) is None


def test_spearman_is_scipys_without_what_isnt_known() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(6, size=(2, 50)).astype(float)
    y += x
    expected = scipy.stats.spearmanr(x[2:], y[2:]).statistic
    x[0], y[1] = np.nan, np.nan
    assert spearman(x, y) == pytest.approx(expected)
    assert spearman([1, 2], [3, 3]) is None
    assert spearman([np.nan, 2], [3, 4]) is None
    with pytest.raises(UsageError, match="same pairs"):
        spearman([1], [1, 2])

"""Distances of answers of real values: measures, bounds and what is not finite."""

import math

import numpy as np
import pytest

from edgeflare.answers.measures import distance, mean_iou
from edgeflare.types import ValueMeasure, ValueRules, Values


def apart(one: object, other: object, measure: ValueMeasure, *tolerances: float) -> float:
    rules = ValueRules(measure, tolerances=tolerances)
    first, second = (Values(np.array(array, np.float64), rules) for array in (one, other))
    return distance(first, second)


def test_the_largest_difference_counts_in_the_units_of_the_elements() -> None:
    assert apart([1, 2, 3], [1, 2.5, 2], "absolute") == 1
    assert apart([1, 2, 3], [1, 2.5, 2], "absolute", 1, 0.25, 2) == 2
    assert apart([1, -2, 4], [1, -3, 5], "relative") == 0.5
    assert apart([1, -2, 4], [1, -3, 5], "relative", 1, 1, 0.25) == 1


def test_an_element_near_zero_does_not_decide_a_relative_difference_alone() -> None:
    assert apart([100, 0], [100, 0.5], "relative") == pytest.approx(5)  # as if it were 0.1
    assert apart([100, 1e-9], [100, 0.5], "relative") == pytest.approx(5)
    assert apart([0, 0], [0, 0.5], "relative") == 0.5  # of zeros the difference itself


def test_the_cosine_goes_from_the_same_direction_to_the_opposite_one() -> None:
    assert apart([3, 4], [6, 8], "cosine") == 0
    assert apart([1, 0], [0, 1], "cosine") == 1
    assert apart([1, 0], [-2, 0], "cosine") == 2


def test_an_embedding_of_zeros_has_no_direction() -> None:
    assert apart([0, 0], [0, 0], "cosine") == 0
    assert apart([0, 0], [1, 0], "cosine") == 1
    assert apart([1, 0], [0, 0], "cosine") == 1


@pytest.mark.parametrize("measure", ["labels", "absolute", "relative", "cosine"])
@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_what_is_not_finite_has_no_distance(measure: ValueMeasure, broken: float) -> None:
    whole = np.ones((2, 2, 2))
    holed = whole.copy()
    holed[0, 0, 0] = broken
    assert math.isnan(apart(whole, holed, measure))
    assert math.isnan(apart(holed, whole, measure))


def test_labels_are_compared_pixel_by_pixel() -> None:
    rules = ValueRules("labels", axis=None)
    one = Values(np.array([[0.0, 0], [1, 1]]), rules)
    other = Values(np.array([[0.0, 1], [1, 1]]), rules)
    assert distance(one, other) == 0.25
    assert mean_iou(one, other) == pytest.approx((1 / 2 + 2 / 3) / 2)
    single = ValueRules("labels", threshold=0.25)
    below, level = (Values(np.full((1, 2, 2), value), single) for value in (0.2, 0.25))
    assert distance(below, level) == 1

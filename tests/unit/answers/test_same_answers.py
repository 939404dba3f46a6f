"""Whether a model's two answers to one input are the same but for rounding, at the bounds."""

import math
from typing import Any

import numpy as np
import pytest
from search_models import heard

from edgeflare.answers.metrics import (
    class_scores,
    decides_equally,
    difference_text,
    is_finite,
    is_same,
    is_same_answer,
    text_of,
    top_label,
)
from edgeflare.types import Detections, ValueRules, Values


def scores(*numbers: float) -> Any:
    return np.array(numbers, np.float64)


def boxes(*found: float) -> Detections:
    place = np.tile([0.0, 0.0, 0.5, 0.5], (len(found), 1))
    return Detections(place, np.arange(len(found)), scores(*found))


def values(*numbers: float, rules: ValueRules = ValueRules()) -> Values:  # noqa: B008 - immutable
    return Values(scores(*numbers), rules)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (scores(0.75, 0.25), scores(0.75, 0.25), True),
        (scores(1.0, 0.0), scores(0.9501, 0.0), True),  # by less than 5 %
        (scores(1.0, 0.0), scores(0.9499, 0.0), False),
        (scores(0.9, 1e-6), scores(0.9, 1.1e-5), True),  # negligible
        (scores(0.9, 1e-6), scores(0.9, 1.2e-5), False),
        (scores(0.51, 0.49), scores(0.49, 0.51), False),  # another class
        (scores(math.nan, 1.0), scores(math.inf, 0.0), True),
        (scores(math.nan, 1.0), scores(0.0, 1.0), False),
        (scores(1.0, 0.0), scores(1.0, math.nan), False),
        (boxes(0.9), boxes(0.9, 0.05), True),  # a candidate more
        (boxes(0.9), boxes(0.9, 0.06), False),
        (boxes(0.9), boxes(0.9, 0.6), False),  # an object more
        (values(1.0, 100.0), values(5.0, 100.0), True),  # a sum of large ones
        (values(1.0, 100.0), values(6.5, 100.0), False),
        (heard("go"), heard("Go"), True),
        (heard("go"), heard("no"), False),
    ],
)
def test_by_rounding_alone(one: Any, other: Any, same: bool) -> None:
    assert is_same_answer(one, other) is is_same_answer(other, one) is same


def test_near_a_boundary_the_decision_may_differ() -> None:
    pair = scores(0.51, 0.49), scores(0.49, 0.51)
    assert is_same_answer(*pair, is_clear=False)
    assert not is_same_answer(scores(0.6, 0.4), scores(0.4, 0.6), is_clear=False)
    assert is_same_answer(boxes(0.9), boxes(0.9, 0.6), is_clear=False)


@pytest.mark.parametrize(("differing", "same"), [(1, True), (2, False)])
def test_few_pixels_have_another_label_by_rounding(differing: int, same: bool) -> None:
    rules = ValueRules("labels", axis=None)
    other = np.zeros(100)
    other[:differing] = 1
    assert is_same_answer(Values(np.zeros(100), rules), Values(other, rules)) is same


def test_answers_of_two_kinds_are_neither_the_same_nor_equal_decisions() -> None:
    assert not is_same(scores(1, 0), values(1, 0))
    assert not decides_equally(scores(1, 0), values(1, 0))
    assert decides_equally(scores(0.9, 0.1), scores(0.6, 0.4))
    assert not decides_equally(scores(0.9, 0.1), scores(0.4, 0.6))


def test_no_answer_has_no_properties() -> None:
    assert (top_label(None), text_of(None)) == (None, None)
    assert (top_label(scores(0, 1)), text_of(heard(" Go "))) == (1, "Go")
    assert difference_text(None, boxes(0.9)) is difference_text(boxes(0.9), None) is None
    assert difference_text(scores(1, 0), scores(0, 1)) is None
    assert (difference_text(boxes(0.9), boxes()) or "").startswith("lost class 0")
    assert (difference_text(values(1, 2), values(1, 2.5)) or "").endswith("0.5 apart")
    assert is_finite(scores())
    with pytest.raises(TypeError):
        class_scores(boxes(0.9))

"""Margins, by hand."""

import numpy as np
import pytest

from edgeflare.answers.oracles import has_margin_below, is_sure_of_difference, margin
from edgeflare.types import Detections


def test_margin_is_top_one_minus_top_two() -> None:
    assert margin(np.array([0.125, 0.75, 0.0, 0.125])) == 0.625
    assert margin(np.array([0.5, 0.5])) == 0.0


@pytest.mark.parametrize("scores", [[1.0], [np.nan, 1.0], [np.inf, 0.0]])
def test_margin_that_means_nothing_is_none_and_below_no_floor(scores: list[float]) -> None:
    assert margin(np.array(scores)) is None
    assert not has_margin_below(np.array(scores), 0.5)


def test_a_margin_at_the_floor_is_not_below_it() -> None:
    assert not has_margin_below(np.array([0.625, 0.375]), 0.25)
    assert has_margin_below(np.array([0.5625, 0.4375]), 0.25)


@pytest.mark.parametrize(
    ("original", "deployed", "sure"),
    [
        ([0.8], [], True),  # lost: .3 of the .5 that are possible above the confidence
        ([0.6], [], False),
        ([], [0.9], True),  # a ghost where the original sees nothing
        ([0.45], [0.9], False),
    ],
)
def test_sureness_of_a_difference_is_a_share_of_the_largest_margin(
    original: list[float], deployed: list[float], sure: bool
) -> None:
    def answer(scores: list[float]) -> Detections:
        boxes = np.tile([0.1, 0.1, 0.5, 0.5], (len(scores), 1))
        return Detections(boxes, np.zeros(len(scores), np.int64), np.array(scores))

    assert is_sure_of_difference(answer(original), answer(deployed), 0.3) is sure


def test_answers_of_classes_are_sure_by_their_own_margin() -> None:
    assert is_sure_of_difference(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 0.9)

"""Margins, by hand."""

import numpy as np
import pytest

from edgeflare.oracles import has_margin_below, margin


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

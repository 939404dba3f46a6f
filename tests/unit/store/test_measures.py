"""Margins and distances, by hand."""

import math

import numpy as np
import pytest

from edgeflare.store import distances, margin


def test_margin_is_top_one_minus_top_two():
    assert margin(np.array([0.125, 0.75, 0.0, 0.125])) == 0.625
    assert margin(np.array([0.5, 0.5])) == 0.0


@pytest.mark.parametrize("scores", [[1.0], [np.nan, 1.0], [np.inf, 0.0]])
def test_margin_that_means_nothing_is_none(scores):
    assert margin(np.array(scores)) is None


def test_distances():
    seed = np.array([[[0], [255]], [[10], [10]]], np.uint8)
    sample = np.array([[[255], [0]], [[10], [13]]], np.uint8)
    l2, linf = distances(seed, sample)
    assert l2 == pytest.approx(math.sqrt(2 + (3 / 255) ** 2))
    assert linf == 255
    assert distances(seed, seed) == (0.0, 0)

from collections import Counter

import numpy as np
import pytest

from edgeflare.search.selection import OperatorSelection, acceptance

OPERATORS = ("a", "b", "c", "d")


def test_acceptance_probability_is_the_papers() -> None:
    base = 1 - 1 / 6
    assert acceptance(base, 3, 1) == pytest.approx(base**2)
    assert acceptance(base, 1, 3) == 1.0  # (1 - p) ** -2 is above 1: always accepted
    assert acceptance(base, 2, 2) == 1.0


def test_ranking_value_counts_selections_and_improvements() -> None:
    selection = OperatorSelection(OPERATORS, epsilon=1e-7)
    rng = np.random.default_rng(0)
    name = selection.first(rng)
    assert selection.ranking_value(name) == 0
    selection.reward(name)
    assert selection.ranking_value(name) == pytest.approx(1, abs=1e-6)


def test_operators_that_improve_are_drawn_as_algorithm_2_says() -> None:
    """With the last operator ranked first, rank k is accepted with (1 - p) ** k."""
    rng = np.random.default_rng(1)
    drawn: Counter[int] = Counter()
    for _ in range(4000):
        selection = OperatorSelection(OPERATORS, epsilon=1e-7)
        for rank, name in enumerate(OPERATORS):  # v = 1, 3/4, 2/4, 1/4
            selection._selected[name] = 4
            selection._improved[name] = 4 - rank
        drawn[OPERATORS.index(selection.next("a", rng))] += 1
    weights = np.array([0.75**k for k in range(4)])
    expected = 4000 * weights / weights.sum()
    assert np.abs([drawn[k] for k in range(4)] - expected).max() < 4 * np.sqrt(expected.max())


def test_a_single_operator_is_always_accepted() -> None:
    selection = OperatorSelection(("only",), epsilon=1e-7)
    rng = np.random.default_rng(0)
    assert selection.next(selection.first(rng), rng) == "only"


def test_equal_ranks_favour_no_operator() -> None:
    rng = np.random.default_rng(2)
    drawn = Counter(OperatorSelection(OPERATORS, 1e-7).next("a", rng) for _ in range(4000))
    counts = [drawn[name] for name in OPERATORS]
    assert max(counts) - min(counts) < 400

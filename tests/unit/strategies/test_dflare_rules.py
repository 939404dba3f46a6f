"""Which operator is drawn next and which mutant becomes the next parent: the text's rules and those of the authors' code."""

from collections import Counter

import numpy as np
import pytest

from edgeflare.strategies.dflare import (
    Acceptance,
    AcceptanceName,
    MetropolisHastings,
    OperatorRanking,
    RankSelection,
    SelectionName,
    acceptance_probability,
    make_acceptance,
    make_selection,
)
from edgeflare.types import Scores

DELTA = 1e-3


def scores(original: float, deployed: float) -> tuple[Scores, Scores]:
    return np.array([original, 1 - original]), np.array([deployed, 1 - deployed])


def rule(name: AcceptanceName, seed: tuple[Scores, Scores], *, states: bool = True) -> Acceptance:
    return make_acceptance(name, seed, DELTA, 0.5, states=states)


def test_the_text_keeps_what_is_not_lower() -> None:
    text = rule("not-lower", scores(0.90, 0.85))
    assert not text.accepts(*scores(0.90, 0.86))
    assert text.accepts(*scores(0.90, 0.85))
    assert text.accepts(*scores(0.90, 0.80))
    assert not text.accepts(*scores(0.90, 0.85))


def test_a_new_state_makes_up_for_less_than_delta() -> None:
    text = rule("not-lower", scores(0.9, 0.8))
    assert text.accepts(*scores(0.2, 0.2995))  # D is .7 - .8 of the other class: far from the seed
    bare = rule("not-lower", scores(0.9, 0.8), states=False)
    assert not bare.accepts(*scores(0.2, 0.2995))


def test_the_code_takes_any_change_up_or_down() -> None:
    code = rule("change", scores(0.90, 0.80))
    assert code.accepts(*scores(0.90, 0.80))  # the first best is 0, not the seed's difference
    assert not code.accepts(*scores(0.90, 0.8005))
    assert code.accepts(*scores(0.90, 0.85))
    assert code.accepts(*scores(0.90, 0.80))


def test_the_code_takes_a_new_state_whatever_its_difference() -> None:
    code = rule("change", scores(0.9, 0.9))
    assert not code.accepts(*scores(0.9, 0.9))
    assert code.accepts(*scores(0.1, 0.1))
    assert not code.accepts(*scores(0.1, 0.1))


def test_without_states_only_the_difference_counts() -> None:
    code = rule("change", scores(0.9, 0.9), states=False)
    assert not code.accepts(*scores(0.1, 0.1))
    assert code.accepts(*scores(0.9, 0.8))
    assert not code.accepts(*scores(0.1, 0.2))
    assert code.accepts(*scores(0.9, 0.85))


@pytest.mark.parametrize("difference", [0.0, 0.1, 0.4])
def test_none_never_leaves_the_seed(difference: float) -> None:
    assert not rule("none", scores(0.9, 0.9)).accepts(*scores(0.9, 0.9 - difference))


@pytest.mark.parametrize(
    ("name", "other"),
    [("not-lower", (0.6, 0.6995)), ("change", (0.6, 0.6))],  # .2 and .36 from the seed's state
)
def test_how_near_a_state_counts_as_observed_can_be_chosen(name, other) -> None:
    seed = scores(0.9, 0.8) if name == "not-lower" else scores(0.9, 0.9)
    assert make_acceptance(name, seed, DELTA, 0.15, states=True).accepts(*scores(*other))
    assert not make_acceptance(name, seed, DELTA, 0.4, states=True).accepts(*scores(*other))


OPERATORS = ("a", "b", "c", "d")
DRAWS = 4000


def ranked(ranking: OperatorRanking) -> None:
    """Give the operators the ranking values 1, 3/4, 2/4, 1/4."""
    for rank, name in enumerate(OPERATORS):
        for place in range(4):
            ranking.select(name)
            if place >= rank:
                ranking.improve(name)


def check_counts(drawn: Counter[int], weights: np.ndarray) -> None:
    expected = DRAWS * weights / weights.sum()
    assert np.abs([drawn[k] for k in range(4)] - expected).max() < 4 * np.sqrt(expected.max())


def test_acceptance_probability_is_the_papers() -> None:
    base = 1 - 1 / 6
    assert acceptance_probability(base, 3, 1) == pytest.approx(base**2)
    assert acceptance_probability(base, 1, 3) == 1.0  # (1 - p) ** -2 is above 1: always accepted
    assert acceptance_probability(base, 2, 2) == 1.0


def test_ranking_value_counts_selections_and_improvements() -> None:
    selection = MetropolisHastings(OPERATORS, epsilon=1e-7)
    name = selection.draw(np.random.default_rng(0))
    assert selection.ranking.value(name) == 0
    selection.accepted(name)
    assert selection.ranking.value(name) == pytest.approx(1, abs=1e-6)


def test_operators_that_improve_are_drawn_as_algorithm_2_says() -> None:
    """With the last operator ranked first, rank k is accepted with (1 - p) ** k."""
    rng = np.random.default_rng(1)
    drawn: Counter[int] = Counter()
    for _ in range(DRAWS):
        selection = MetropolisHastings(OPERATORS, epsilon=1e-7)
        while selection.draw(rng) != "a":
            pass
        ranked(selection.ranking)
        drawn[OPERATORS.index(selection.draw(rng))] += 1
    check_counts(drawn, 0.75 ** np.arange(4))


def test_the_authors_code_ranks_whatever_the_last_operator_was() -> None:
    """Rank k is accepted with (1 - p) ** (k + 1) once an input was accepted; uniformly before."""
    rng = np.random.default_rng(2)
    before: Counter[int] = Counter()
    after: Counter[int] = Counter()
    for last in OPERATORS:
        for _ in range(DRAWS // 4):
            selection = RankSelection(OPERATORS, epsilon=1e-7)
            ranked(selection.ranking)
            before[OPERATORS.index(selection.draw(rng))] += 1
            ranked(selection.ranking)
            selection.accepted(last)
            ranked(selection.ranking)
            after[OPERATORS.index(selection.draw(rng))] += 1
    check_counts(before, np.ones(4))
    check_counts(after, 0.75 ** np.arange(4))


def test_uniform_selection_learns_nothing() -> None:
    rng = np.random.default_rng(3)
    selection = make_selection("uniform", OPERATORS, 1e-7)
    drawn: Counter[int] = Counter()
    for _ in range(DRAWS):
        drawn[OPERATORS.index(selection.draw(rng))] += 1
        selection.accepted("a")
    check_counts(drawn, np.ones(4))


@pytest.mark.parametrize("name", ["metropolis-hastings", "rank", "uniform"])
def test_a_single_operator_is_always_drawn(name: SelectionName) -> None:
    selection = make_selection(name, ("only",), epsilon=1e-7)
    rng = np.random.default_rng(0)
    for _ in range(3):
        assert selection.draw(rng) == "only"
        selection.accepted("only")


def test_equal_ranks_favour_no_operator() -> None:
    rng = np.random.default_rng(2)
    drawn: Counter[int] = Counter()
    for _ in range(DRAWS):
        selection = MetropolisHastings(OPERATORS, 1e-7)
        selection.draw(rng)
        drawn[OPERATORS.index(selection.draw(rng))] += 1
    assert max(drawn.values()) - min(drawn.values()) < 400

"""Which mutant becomes the next parent: the text's rule and that of the authors' code."""

import numpy as np
import pytest

from edgeflare.strategies.dflare import Acceptance, AcceptanceName, make_acceptance
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
def test_how_near_a_state_counts_as_observed_can_be_chosen(
    name: AcceptanceName, other: tuple[float, float]
) -> None:
    seed = scores(0.9, 0.8) if name == "not-lower" else scores(0.9, 0.9)
    assert make_acceptance(name, seed, DELTA, 0.15, states=True).accepts(*scores(*other))
    assert not make_acceptance(name, seed, DELTA, 0.4, states=True).accepts(*scores(*other))

"""D and O of DFLARE, and DiffChaser's fitness, on what a speech recogniser heard."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.strategies.dflare import make_acceptance
from edgeflare.strategies.dflare_fitness import Fitness, ObservedStates, top1_difference
from edgeflare.types import Decision, Outputs, Transcript
from edgeflare_bench.diffchaser import DiffchaserOptions, unfitness

PROBABILITY = st.floats(0.01, 1)


def heard(*words: tuple[str, float, float]) -> Transcript:
    """Return a transcript of one token a word: text, its probability and that of the best other one."""
    return Transcript(
        tuple(f" {text}" for text, _, _ in words),
        np.array([scores for _, *scores in words], np.float64).reshape(-1, 2),
    )


@given(ours=PROBABILITY, theirs=PROBABILITY, classes=st.integers(2, 12))
@settings(deadline=None, derandomize=True, database=None, max_examples=60)
def test_on_one_word_the_distance_is_the_papers(ours: float, theirs: float, classes: int) -> None:
    """As if the words were the classes: each model's top-1 probability is that of its word."""

    def scores(top: float) -> np.ndarray:
        return np.array([top] + [(1 - top) / (classes - 1)] * (classes - 1))

    paper = top1_difference(scores(ours), scores(theirs))
    tops = [scores(top).max() for top in (ours, theirs)]
    for other in ("yes", "no"):  # also where the labels differ
        words = [heard((text, top, 0)) for text, top in zip(("yes", other), tops, strict=True)]
        assert top1_difference(*words) == pytest.approx(paper, abs=1e-15)


def test_the_word_that_differs_most_decides() -> None:
    original = heard(("the", 0.9, 0.1), ("red", 0.8, 0.1), ("bird", 0.7, 0.2))
    deployed = heard(("the", 0.85, 0.1), ("red", 0.5, 0.4), ("bird", 0.8, 0.1))
    assert top1_difference(original, deployed) == pytest.approx(0.3)
    assert top1_difference(deployed, original) == pytest.approx(0.3)


def test_a_word_that_one_model_does_not_hear_has_the_probability_0() -> None:
    longer = heard(("the", 0.9, 0.1), ("red", 0.6, 0.1), ("bird", 0.7, 0.2))
    shorter = heard(("the", 0.9, 0.1), ("bird", 0.7, 0.2))
    assert top1_difference(longer, shorter) == pytest.approx(0.6)
    assert top1_difference(shorter, longer) == pytest.approx(0.6)
    assert top1_difference(heard(), longer) == pytest.approx(0.9)
    assert top1_difference(heard(), heard()) == 0


def test_a_word_of_several_tokens_is_as_probable_as_all_of_them() -> None:
    original = Transcript((" high", "ness"), np.array([[0.9, 0.0], [0.5, 0.2]]))
    assert top1_difference(original, heard(("highness", 0.85, 0.1))) == pytest.approx(0.4)


def test_states_of_transcripts_are_the_probabilities_of_their_words() -> None:
    states = ObservedStates(threshold=0.5)
    base = heard(("one", 1.0, 0.0), ("two", 1.0, 0.0))
    assert states.observe(base, base)
    assert not states.observe(base, heard(("one", 1.0, 0.0), ("two", 0.3, 0.2)))  # 0.49 away
    assert states.observe(base, heard(("one", 1.0, 0.0), ("two", 0.2, 0.2)))  # 0.64
    assert not states.observe(base, base)


def test_a_state_with_more_or_fewer_words_is_compared_as_padded_with_zeros() -> None:
    states = ObservedStates(threshold=0.5)
    one = heard(("one", 1.0, 0.0))
    assert states.observe(one, one)
    faint = heard(("one", 1.0, 0.0), ("two", 0.5, 0.3))
    assert not states.observe(faint, faint)  # twice 0.25 away
    clear = heard(("one", 1.0, 0.0), ("two", 0.9, 0.0))
    assert states.observe(clear, clear)
    assert not states.observe(one, one)
    assert states.observe(heard(), heard())
    assert not states.observe(heard(), heard())


def test_the_fitness_of_transcripts_is_distance_over_delta_plus_novelty() -> None:
    fitness = Fitness(delta=1e-3, threshold=0.5)
    answers = heard(("one", 0.9, 0.0)), heard(("one", 0.8, 0.1))
    assert fitness.of_new(*answers) == pytest.approx(0.1 / 1e-3 + 1)
    assert fitness.of_new(*answers) == pytest.approx(0.1 / 1e-3)


@pytest.mark.parametrize("name", ["not-lower", "change"])
def test_both_rules_of_acceptance_take_transcripts(name: str) -> None:
    seed = heard(("one", 0.9, 0.0)), heard(("one", 0.8, 0.1))
    rule = make_acceptance(name, seed, 1e-3, 0.5, states=True)  # type: ignore[arg-type]
    assert rule.accepts(seed[0], heard(("one", 0.7, 0.2)))
    assert rule.accepts(seed[0], heard(("one", 0.7, 0.2), ("more", 0.9, 0.1)))


def test_diffchasers_fitness_of_transcripts() -> None:
    outputs = Outputs(
        heard(("the", 0.9, 0.05), ("bird", 0.6, 0.3)),
        heard(("the", 0.5, 0.4), ("bird", 0.7, 0.1)),
        Decision.AGREE,
    )
    assert unfitness(DiffchaserOptions(), outputs) == pytest.approx(0.1)  # the deployed's "the"
    assert unfitness(DiffchaserOptions(fitness="basic"), outputs) == pytest.approx(-0.4)
    unasked = outputs._replace(deployed=None, decision=Decision.BELOW_FLOOR)
    assert unfitness(DiffchaserOptions(), unasked) == pytest.approx(0.3)
    assert unfitness(DiffchaserOptions(fitness="basic"), unasked) == 0


def test_an_input_without_words_is_the_least_fit() -> None:
    silent = Outputs(heard(), heard(), Decision.AGREE)
    certain = heard(("yes", 0.99, 0.001))
    assert unfitness(DiffchaserOptions(), silent) > unfitness(
        DiffchaserOptions(), Outputs(certain, certain, Decision.AGREE)
    )

"""The strategy is a plain generator: it is driven here by hand, without models or devices."""

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy, strategy_names
from edgeflare.types import Answer, Ask, Decision, Outcome, Outputs, Search, Seed
from edgeflare_mutators import Mutation, default_pool, replay

SAMPLE = np.random.default_rng(5).integers(0, 256, (12, 10, 1), dtype=np.uint8)


def outputs(
    top_original: float, top_deployed: float, decision: Decision = Decision.AGREE
) -> Outputs:
    return Outputs(
        np.array([top_original, 1 - top_original]),
        np.array([top_deployed, 1 - top_deployed]),
        decision,
    )


def start(number: int = 0) -> Search:
    seed = Seed("a", SAMPLE, outputs(0.9, 0.9))
    return build_strategy("dflare", {"variant": "text"})(seed, np.random.default_rng(number))


def finish(search: Search, answer: Answer) -> Outcome:
    with pytest.raises(StopIteration) as stopped:
        search.send(answer)
    outcome = stopped.value.value
    assert isinstance(outcome, Outcome)
    return outcome


def test_asks_both_models_about_one_mutant_of_the_seed_at_a_time() -> None:
    ask = next(start())
    assert ask.of == "both"
    assert len(ask.samples) == 1
    assert ask.samples[0].shape == SAMPLE.shape
    assert ask.samples[0].dtype == np.uint8


def test_returns_the_deviating_input_and_mutations_that_replay_to_it() -> None:
    search = start()
    ask = next(search)
    for step in range(1, 8):  # rising distance: each mutant becomes the next one's parent
        ask = search.send(Answer((outputs(0.9, 0.9 - 0.01 * step),)))
    outcome = finish(search, Answer((outputs(0.9, 0.4, Decision.DEVIATION),)))
    assert outcome.sample is not None
    assert np.array_equal(outcome.sample, ask.samples[0])
    assert len(outcome.mutations) == 8
    steps = [Mutation.from_json(step) for step in outcome.mutations]
    assert np.array_equal(replay(SAMPLE, steps), outcome.sample)


@pytest.mark.parametrize("variant", ["text", "reference"])
def test_a_mutant_that_the_device_was_not_given_is_drawn_anew_and_never_the_parent(variant) -> None:
    seed = Seed("a", SAMPLE, outputs(0.9, 0.9))
    search = build_strategy("dflare", {"variant": variant})(seed, np.random.default_rng(0))
    next(search)
    unasked = Answer((Outputs(np.array([0.5001, 0.4999]), None, Decision.BELOW_FLOOR),))
    for _ in range(20):
        assert search.send(unasked).of == "both"
    outcome = finish(search, Answer((outputs(0.9, 0.4, Decision.DEVIATION),)))
    assert len(outcome.mutations) == 1


def test_a_mutant_with_lower_fitness_is_dropped() -> None:
    search = start()
    next(search)
    search.send(Answer((outputs(0.9, 0.7),)))  # accepted: D rises
    search.send(Answer((outputs(0.9, 0.8),)))  # refused: D falls and the state is known
    outcome = finish(search, Answer((outputs(0.9, 0.4, Decision.DEVIATION),)))
    assert len(outcome.mutations) == 2


def test_a_sure_seed_is_left_as_the_text_says() -> None:
    """Equal fitness is accepted, though the seed's state was new when it was observed first."""
    search = start()
    next(search)
    for _ in range(5):
        search.send(Answer((outputs(0.9, 0.9),)))
    outcome = finish(search, Answer((outputs(0.9, 0.4, Decision.DEVIATION),)))
    assert len(outcome.mutations) == 6


def test_a_tie_is_not_taken_for_a_deviation() -> None:
    search = start()
    next(search)
    assert isinstance(search.send(Answer((outputs(0.5, 0.4, Decision.TIE),))), Ask)


def test_all_operators_of_table_3_come_up() -> None:
    search = start()
    next(search)
    for step in range(200):
        search.send(Answer((outputs(0.9, 0.9 - 0.001 * step),)))
    outcome = finish(search, Answer((outputs(0.9, 0.4, Decision.DEVIATION),)))
    assert {step["operator"] for step in outcome.mutations} == set(default_pool())


@pytest.mark.parametrize(
    ("name", "options", "operators", "words"),
    [
        ("nonsense", {}, (), "dflare"),
        ("dflare", {"delta": 0}, (), "delta"),
        ("dflare", {"gamma": 1}, (), "gamma"),
        ("dflare", {}, ("no-such-operator",), "no-such-operator"),
    ],
)
def test_bad_settings_are_named(name, options, operators, words) -> None:
    with pytest.raises(UsageError, match=words):
        build_strategy(name, options, operators)


def test_every_strategy_is_listed() -> None:
    assert "dflare" in strategy_names()

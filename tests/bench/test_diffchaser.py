"""The genetic baseline, driven by hand."""

from typing import Any

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy
from edgeflare.types import Answer, Ask, Decision, Outcome, Outputs, Sample, Search, Seed
from edgeflare_bench.diffchaser import DiffchaserOptions, unfitness
from edgeflare_mutators import Mutation, replay

SAMPLE = np.random.default_rng(6).integers(0, 256, (10, 12, 3), dtype=np.uint8)
SURE = Outputs(np.array([0.8, 0.2]), np.array([0.8, 0.2]), Decision.AGREE)


def start(number: int = 0, **options: Any) -> Search:
    options = {"population": 12, "batch": 5, **options}
    seed = Seed("a", SAMPLE, SURE)
    return build_strategy("diffchaser", options)(seed, np.random.default_rng(number))


def brightness(sample: Sample) -> Outputs:
    """Two models that are less certain the brighter an image is, and never deviate."""
    sure = 0.5 + 0.5 * (1 - float(sample.mean()) / 255)
    return Outputs(np.array([sure, 1 - sure]), np.array([sure, 1 - sure]), Decision.AGREE)


def drive(search: Search, asks: int) -> list[Ask]:
    seen = [next(search)]
    while len(seen) < asks:
        seen.append(search.send(Answer([brightness(sample) for sample in seen[-1].samples])))
    return seen


def finish(search: Search, answer: Answer) -> Outcome:
    with pytest.raises(StopIteration) as stopped:
        search.send(answer)
    outcome = stopped.value.value
    assert isinstance(outcome, Outcome)
    return outcome


def test_a_generation_is_asked_in_batches_and_the_best_is_asked_once() -> None:
    asks = drive(start(), 9)
    assert [len(ask.samples) for ask in asks] == [5, 5, 2, 5, 5, 1, 5, 5, 1]
    assert all(ask.of == "both" for ask in asks)
    assert all(s.shape == SAMPLE.shape and s.dtype == np.uint8 for a in asks for s in a.samples)


@pytest.mark.rounding
def test_generations_get_fitter() -> None:
    generations = 12
    asks = drive(start(population=40, batch=40, mutation_rate=0.3), generations)
    means = [np.mean([sample.mean() for sample in ask.samples]) for ask in asks]
    assert means[-1] > means[0] + 10
    best = [max(sample.mean() for sample in ask.samples) for ask in asks]
    assert best[-1] > best[0]


def test_a_disagreement_of_the_first_generation_ends_the_search_and_replays() -> None:
    search = start()
    ask = next(search)
    outputs = [SURE] * 5
    outputs[2] = SURE._replace(decision=Decision.DEVIATION)
    outcome = finish(search, Answer(outputs))
    assert outcome.sample is ask.samples[2]
    steps = [Mutation.from_json(step) for step in outcome.mutations]
    assert len(steps) == 1
    assert np.array_equal(replay(SAMPLE, steps), ask.samples[2])


def test_a_crossover_takes_every_pixel_whole_from_one_of_two_parents() -> None:
    asks = drive(start(mutation_rate=0, population=6, batch=6), 2)
    parents = np.stack(asks[0].samples)
    mixed = 0
    for child in asks[1].samples:
        per_pixel = (parents == child).all(axis=-1)  # [parent, row, column]
        assert per_pixel.any(axis=0).all()
        mixed += not per_pixel.all(axis=(1, 2)).any()
    assert mixed >= 2
    outcome = finish_of_second_generation()
    assert outcome.mutations == ()


def finish_of_second_generation() -> Outcome:
    search = start(mutation_rate=1, population=6, batch=6)
    asks = drive(search, 2)
    return finish(
        search, Answer([SURE._replace(decision=Decision.DEVIATION)] * len(asks[1].samples))
    )


def test_a_tie_is_not_taken_for_a_disagreement() -> None:
    search = start()
    next(search)
    assert search.send(Answer([SURE._replace(decision=Decision.TIE)] * 5))


def test_same_randomness_same_questions() -> None:
    def all_samples(number: int) -> bytes:
        return b"".join(s.tobytes() for ask in drive(start(number), 6) for s in ask.samples)

    assert all_samples(1) == all_samples(1)
    assert all_samples(1) != all_samples(2)


def test_an_input_that_the_device_was_not_given_is_as_fit_as_the_original_says() -> None:
    unasked = Outputs(np.array([0.5, 0.3, 0.2]), None, Decision.BELOW_FLOOR)
    assert unfitness(DiffchaserOptions(), unasked) == pytest.approx(0.2)
    targeted = DiffchaserOptions(fitness="targeted", target=2)
    assert unfitness(targeted, unasked) == pytest.approx(0.3)
    assert unfitness(DiffchaserOptions(fitness="basic"), unasked) == 0


def test_the_three_fitness_functions() -> None:
    outputs = Outputs(np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.15, 0.35]), Decision.AGREE)
    assert unfitness(DiffchaserOptions(), outputs) == pytest.approx(0.15)  # the deployed: .5 - .35
    assert unfitness(DiffchaserOptions(k=3), outputs) == pytest.approx(0.35)
    assert unfitness(DiffchaserOptions(k=9), outputs) == pytest.approx(
        0.35
    )  # no more classes than 3
    assert unfitness(DiffchaserOptions(fitness="basic"), outputs) == pytest.approx(-0.25)
    targeted = DiffchaserOptions(fitness="targeted", target=1)
    assert unfitness(targeted, outputs) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"population": 1}, "option 'population'"),
        ({"fitness": "targeted"}, "fitness=targeted"),
        ({"target": 1}, "fitness=targeted"),
        ({"mutation_rate": 2}, "option 'mutation_rate'"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_strategy("diffchaser", options)


def test_a_target_class_that_does_not_exist_is_refused_when_the_classes_are_known() -> None:
    with pytest.raises(UsageError, match="2 classes"):
        next(start(fitness="targeted", target=2))

"""The paper's variants by name and option: what each does to real images, driven by hand."""

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy
from edgeflare.strategies.dflare import DflareDOptions, DflareOptions, DflareROptions
from edgeflare.types import Answer, Decision, Outcome, Outputs, Sample, Seed
from edgeflare_mutators import Mutation, default_pool, reference_pool, replay

SAMPLE = np.random.default_rng(5).integers(0, 256, (12, 10, 1), dtype=np.uint8)
ALIKE = Outputs(np.array([0.9, 0.1]), np.array([0.9, 0.1]), Decision.AGREE)
TEXT = {
    "acceptance": "not-lower",
    "selection": "metropolis-hastings",
    "overflow": "clip",
    "pool": "table-3",
}
REFERENCE = {"acceptance": "change", "selection": "rank", "overflow": "wrap", "pool": "reference"}


def chosen(options: DflareOptions) -> dict[str, Any]:
    return options.model_dump(include=set(TEXT))


def asked(
    name: str, options: Mapping[str, Any], operators: tuple[str, ...] = (), steps: int = 60
) -> tuple[list[Sample], Outcome]:
    """What a search asks when the distance of the answers wanders, and how it ends."""
    seed = Seed("a", SAMPLE, ALIKE)
    search = build_strategy(name, options, operators)(seed, np.random.default_rng(3))
    answers = np.random.default_rng(4).uniform(0.6, 0.9, steps)
    samples = [next(search).samples[0]]
    for top in answers:
        other = Outputs(np.array([0.9, 0.1]), np.array([top, 1 - top]), Decision.AGREE)
        samples.append(search.send(Answer((other,))).samples[0])
    with pytest.raises(StopIteration) as stopped:
        search.send(Answer((ALIKE._replace(decision=Decision.DEVIATION),)))
    return samples, stopped.value.value


def test_a_variant_chooses_all_four_and_each_can_be_chosen_over_it() -> None:
    assert chosen(DflareOptions()) == REFERENCE
    assert chosen(DflareOptions(variant="text")) == TEXT
    assert chosen(DflareOptions(variant="reference")) == REFERENCE
    mixed = DflareOptions(variant="reference", overflow="clip")
    assert chosen(mixed) == {**REFERENCE, "overflow": "clip"}
    assert chosen(DflareDOptions()) == {**REFERENCE, "acceptance": "none"}
    assert chosen(DflareDOptions(variant="text")) == TEXT
    assert not DflareDOptions(variant="text").state_tracing
    assert chosen(DflareDOptions(variant="reference")) == {**REFERENCE, "acceptance": "none"}
    assert not DflareDOptions(variant="reference").state_tracing
    assert chosen(DflareROptions(variant="reference")) == {**REFERENCE, "selection": "uniform"}


@pytest.mark.parametrize("name", ["dflare", "dflare-d", "dflare-r"])
@pytest.mark.parametrize("variant", ["text", "reference"])
def test_what_a_variant_finds_replays_from_its_record(name: str, variant: str) -> None:
    samples, outcome = asked(name, {"variant": variant})
    assert outcome.sample is samples[-1]
    steps = [Mutation.from_json(step) for step in outcome.mutations]
    assert np.array_equal(replay(SAMPLE, steps), samples[-1])


@pytest.mark.parametrize("name", ["dflare", "dflare-r"])
@pytest.mark.parametrize(
    ("variant", "pool"), [("text", default_pool()), ("reference", reference_pool(wrap=True))]
)
def test_each_variant_uses_all_of_its_operators(name, variant, pool) -> None:
    strategy = build_strategy(name, {"variant": variant})
    names = set()
    for number in range(80):
        search = strategy(Seed("a", SAMPLE, ALIKE), np.random.default_rng(number))
        next(search)
        with pytest.raises(StopIteration) as stopped:
            search.send(Answer((ALIKE._replace(decision=Decision.DEVIATION),)))
        names.add(stopped.value.value.mutations[0]["operator"])
    assert names == set(pool)


@pytest.mark.parametrize("options", [{"variant": "text"}, {"acceptance": "change"}])
def test_without_states_the_search_still_climbs(options: dict[str, str]) -> None:
    seed = Seed("a", SAMPLE, ALIKE)
    search = build_strategy("dflare-d", options)(seed, np.random.default_rng(3))
    next(search)
    for step in range(1, 21):
        top = 0.9 - 0.01 * step
        rising = Outputs(np.array([0.9, 0.1]), np.array([top, 1 - top]), Decision.AGREE)
        search.send(Answer((rising,)))
    with pytest.raises(StopIteration) as stopped:
        search.send(Answer((ALIKE._replace(decision=Decision.DEVIATION),)))
    assert len(stopped.value.value.mutations) == 21


@pytest.mark.parametrize("selection", ["metropolis-hastings", "rank"])
def test_operators_whose_inputs_are_accepted_come_up_more_often(selection: str) -> None:
    """Here only what the median blur makes is ever accepted."""
    apart = Outputs(np.array([0.9, 0.1]), np.array([0.8, 0.2]), Decision.AGREE)
    seed = Seed("a", SAMPLE, apart)
    options = {"variant": "text", "selection": selection}
    chosen = ("median-blur", "gaussian-noise", "random-pixel-change")
    search = build_strategy("dflare", options, chosen)(seed, np.random.default_rng(3))
    sample, parent, blurs, distance = next(search).samples[0], SAMPLE, 0, 0.1
    for _ in range(600):
        blurred = any(
            np.array_equal(cv2.medianBlur(parent, k)[..., None], sample) for k in (3, 5, 7)
        )
        blurs += blurred
        if blurred:
            distance += 0.0002
            parent = sample
        top = 0.9 - (distance if blurred else 0.0)
        other = Outputs(np.array([0.9, 0.1]), np.array([top, 1 - top]), Decision.AGREE)
        sample = search.send(Answer((other,))).samples[0]
    assert blurs > 240  # a third would be 200; ranked first it is 3/7 or more, 257


@pytest.mark.parametrize("variant", ["text", "reference"])
def test_operators_that_the_user_names_replace_the_pool_as_they_are(variant: str) -> None:
    outcome = asked("dflare", {"variant": variant}, ("gaussian-noise",))[1]
    assert {step["operator"] for step in outcome.mutations} == {"gaussian-noise"}


def test_the_reference_without_states_asks_only_about_mutants_of_the_seed() -> None:
    outcome = asked("dflare-d", {"variant": "reference"})[1]
    assert len(outcome.mutations) == 1


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("dflare", {"variant": "code"}, "'variant': .*'reference'"),
        ("dflare", {"selection": "best"}, "option 'selection'"),
        ("dflare-d", {"state_traceing": "false"}, "option 'state_traceing'"),
        ("dflare-r", {"overflow": 1}, "option 'overflow'"),
        ("dflare-d", {"state_tracing": "true"}, "state_tracing=false; use"),
        ("dflare-r", {"selection": "rank"}, "selection=uniform; use"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_strategy(name, options)

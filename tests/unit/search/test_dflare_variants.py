"""The paper's variants by name and option: what each does to real images, driven by hand."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from edgeflare.errors import UsageError
from edgeflare.search import build_strategy
from edgeflare.search.dflare import DflareDOptions, DflareOptions, DflareROptions
from edgeflare.types import Answer, Decision, Outcome, Outputs, Sample, Seed
from edgeflare_mutators import Mutation, replay

SAMPLE = np.random.default_rng(5).integers(0, 256, (12, 10, 1), dtype=np.uint8)
ALIKE = Outputs(np.array([0.9, 0.1]), np.array([0.9, 0.1]), Decision.AGREE)
TEXT = {
    "acceptance": "not-lower",
    "selection": "metropolis-hastings",
    "overflow": "clip",
    "pool": "table-3",
}
COMBINED = {**TEXT, "acceptance": "change", "overflow": "wrap"}
REFERENCE = {
    "acceptance": "change",
    "selection": "rank",
    "overflow": "wrap",
    "pool": "reference",
}


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
    assert chosen(DflareOptions()) == chosen(DflareOptions(variant="combined")) == COMBINED
    assert chosen(DflareOptions(variant="text")) == TEXT
    assert chosen(DflareOptions(variant="reference")) == REFERENCE
    mixed = DflareOptions(variant="reference", overflow="clip")
    assert chosen(mixed) == {**REFERENCE, "overflow": "clip"}
    assert not DflareDOptions(variant="reference").state_tracing
    assert chosen(DflareDOptions(variant="reference")) == REFERENCE
    assert chosen(DflareROptions(variant="reference")) == {**REFERENCE, "selection": "uniform"}


@pytest.mark.parametrize("name", ["dflare", "dflare-d", "dflare-r"])
@pytest.mark.parametrize("variant", ["combined", "text", "reference"])
def test_what_a_variant_finds_replays_from_its_record(name: str, variant: str) -> None:
    samples, outcome = asked(name, {"variant": variant})
    assert outcome.sample is samples[-1]
    steps = [Mutation.from_json(step) for step in outcome.mutations]
    assert np.array_equal(replay(SAMPLE, steps), samples[-1])


def test_the_reference_uses_its_seven_operators_and_the_text_six() -> None:
    names: dict[str, set[str]] = {}
    for variant in ("text", "reference"):
        names[variant] = set()
        for _ in range(3):
            outcome = asked("dflare", {"variant": variant, "threshold": 0}, steps=150)[1]
            names[variant] |= {step["operator"] for step in outcome.mutations}
    assert names["text"] <= {
        "random-pixel-change",
        "gaussian-noise",
        "multiplicative-noise",
        "average-blur",
        "gaussian-blur",
        "median-blur",
    }
    assert {"salt-and-pepper", "gaussian-noise-wrapped"} <= names["reference"]


@pytest.mark.parametrize("variant", ["combined", "text", "reference"])
def test_operators_that_the_user_names_replace_the_pool_as_they_are(variant: str) -> None:
    outcome = asked("dflare", {"variant": variant}, ("gaussian-noise",))[1]
    assert {step["operator"] for step in outcome.mutations} == {"gaussian-noise"}


def test_the_reference_without_states_asks_only_about_mutants_of_the_seed() -> None:
    outcome = asked("dflare-d", {"variant": "reference"})[1]
    assert len(outcome.mutations) == 1


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("dflare", {"variant": "code"}, "strategy dflare: option 'variant': .*'combined', 'text' or 'reference'"),
        ("dflare", {"selection": "best"}, "option 'selection'"),
        ("dflare-d", {"state_traceing": "false"}, "options are variant, acceptance, selection"),
        ("dflare-r", {"overflow": 1}, "option 'overflow'"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_strategy(name, options)

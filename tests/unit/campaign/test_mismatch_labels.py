"""A wrong preprocessing told from labels alone, where the deployed model gives no more."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from search_models import WEIGHTS, softmax

from edgeflare.answers import LABELS, SCORES
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.oracles import LabelOracle
from edgeflare.campaign.pair.preflight import Alternative, try_alternatives
from edgeflare.models import InputSpec
from edgeflare.types import Outputs, Query, Sample, SampleWithRow, Scores, Seed

SPEC = InputSpec(shape=(1, 64), dtype="float32", size=(8, 8), channels=1)
BRIGHT = SPEC._replace(scale=(255.0, 1.0))

Model = Callable[[Sample, InputSpec], Scores]


def unsure(sample: Sample, spec: InputSpec) -> Scores:
    """A linear classifier: larger pixels make it surer, and no label changes."""
    return softmax(_scaled(sample, spec) @ WEIGHTS / 50)


def biased(sample: Sample, spec: InputSpec) -> Scores:
    """One whose labels depend on the scale of the pixels."""
    return softmax(_scaled(sample, spec) @ WEIGHTS / 20 + [0.0, 3.0, 0.0, 0.0])


def _scaled(sample: Sample, spec: InputSpec) -> Scores:
    return sample.reshape(-1).astype(np.float64) * (spec.scale[0] / spec.scale[1])


def seeds(model: Model, deployed_spec: InputSpec) -> list[Seed]:
    """Seeds on which the deployed model is the original under `deployed_spec`, its label alone known."""
    rng = np.random.default_rng(5)
    made = []
    for number in range(32):
        sample = rng.integers(0, 256, (8, 8, 1), dtype=np.uint8)
        label = np.eye(4)[model(sample, deployed_spec).argmax()]
        answers = model(sample, SPEC), label
        made.append(Seed(f"s{number}", sample, Outputs(*answers, LabelOracle().decide(*answers))))
    return made


def better(
    seeds: list[Seed],
    deployed: InputSpec,
    answer: Callable[[Any, InputSpec], Scores],
    kind: AnswerKind[Any] = LABELS,
) -> list[Alternative]:
    tried = try_alternatives(seeds, (SPEC, deployed), answer, kind)
    return [one for one in tried if one.is_better]


def test_a_change_that_only_makes_the_original_surer_explains_no_label() -> None:
    alike = seeds(unsure, SPEC)
    assert not better(alike, SPEC, unsure)
    assert better(alike, SPEC, unsure, SCORES), "not a pair on which scores mislead"


def test_the_original_is_asked_with_the_row_of_each_seed() -> None:
    asked: list[int] = []

    def answer(query: Query, spec: InputSpec) -> Scores:
        assert isinstance(query, SampleWithRow)
        asked.append(query.row)
        return biased(query.sample, spec)

    known = [replace(one, row=31 - place) for place, one in enumerate(seeds(biased, BRIGHT))]
    assert better(known, BRIGHT, answer)
    assert asked[:32] == [*range(31, -1, -1)]


def test_another_scale_is_distinguished_from_labels() -> None:
    explained = better(seeds(biased, BRIGHT), BRIGHT, biased)
    assert {one.mistake: one.distance for one in explained}["scaling"] == 0

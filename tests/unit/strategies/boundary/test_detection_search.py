"""The boundary search on detectors: an object lost, or seen by the deployed model alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from answering_models import Searched, agreed, detectors, of_detectors, photographs

from edgeflare.answers.detections.matching import differences, worst
from edgeflare.errors import UsageError
from edgeflare.metrics import l2
from edgeflare.strategies import build_strategy
from edgeflare.types import Decision, Detections, Sample


def searched(sample: Sample, number: int = 0, located: bool = True, **options: Any) -> Searched:
    models = of_detectors(*detectors(located=located))
    return models.search("boundary", sample, number, **options)


def margin(models: Searched, sample: Sample) -> float:
    outputs = models.outputs(sample)
    assert isinstance(outputs.original, Detections)
    assert isinstance(outputs.deployed, Detections)
    found = worst(differences(outputs.original, outputs.deployed))
    return 0.0 if found is None else found.margin


@pytest.mark.parametrize("located", [True, False])
def test_few_device_queries_find_an_object_that_one_model_alone_detects(located: bool) -> None:
    runs = []
    for number, sample in enumerate(agreed(of_detectors(*detectors(located=located)))):
        run = searched(sample, number, located, effort=16)
        assert run.outputs(run.found).decision is Decision.DEVIATION
        assert any(np.array_equal(asked, run.found) for asked, _ in run.queries)
        runs.append(run)
    assert np.mean([len(run.queries) for run in runs]) <= 3


def test_the_input_is_changed_around_one_object_alone() -> None:
    for number, sample in enumerate(agreed(of_detectors(*detectors()))):
        run = searched(sample, number)
        changed = np.argwhere((run.found != sample).any(axis=2))
        height, width = np.ptp(changed, axis=0) + 1
        assert max(height, width) <= 65  # a cell of 32, half of it on each side, and rounding
        assert l2(sample, run.found) < 10


def test_an_oracle_that_compares_scores_leaves_objects_their_own_search() -> None:
    models = of_detectors(*detectors())
    sample = agreed(models, 1)[0]
    seed = replace(models.seed(sample), compares_scores=True)
    models.answer(build_strategy("boundary", {})(seed, np.random.default_rng(0)))
    usual = searched(sample)
    assert len(models.asks) == len(usual.asks)
    assert np.array_equal(models.found, usual.found)


@pytest.mark.parametrize("crossing", ["line", "natural"])
def test_other_seeds_and_corruptions_lead_to_changes_of_the_objects_too(crossing: str) -> None:
    for number, sample in enumerate(agreed(of_detectors(*detectors()), 3)):
        run = searched(sample, number, crossing=crossing)
        assert run.outputs(run.found).decision is Decision.DEVIATION
        assert bool(run.outcome.mutations) == (crossing == "natural")


def test_a_device_budget_buys_a_larger_margin_of_both_models() -> None:
    models = of_detectors(*detectors())
    first, best = [], []
    for number, sample in enumerate(agreed(models)[:3]):
        first.append(margin(models, searched(sample, number, effort=16).found))
        run = searched(sample, number, effort=16, device_budget=16)
        assert len(run.queries) <= 16
        best.append(margin(models, run.found))
    assert all(more >= once for more, once in zip(best, first, strict=True))
    assert np.median(best) >= 1.5 * np.median(first)


def test_a_budget_smaller_than_the_inputs_sent_at_once_is_spent() -> None:
    run = searched(agreed(of_detectors(*detectors()))[0], device_budget=1, candidates=2)
    assert len(run.queries) == 1


@pytest.mark.parametrize(
    ("option", "value"), [("tied_classes", 3), ("crossing", "mutants"), ("gradients", True)]
)
def test_options_of_class_scores_are_refused(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"boundary: {option} "):
        searched(photographs(1)[0], **{option: value})

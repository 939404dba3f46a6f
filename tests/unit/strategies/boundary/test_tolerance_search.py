"""The boundary search by a tolerance: inputs on which the answers are far enough apart."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from answering_models import Regressor, Searched, agreed, of_regressors, photographs, regressors
from search_models import affine, quantised

from edgeflare.answers.metrics import disagreement
from edgeflare.answers.oracles import ToleranceOracle
from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy
from edgeflare.types import Decision, Sample, ValueRules, Values


def models(measure: Any = "absolute") -> Searched:
    tolerance = {"absolute": 0.15, "cosine": 0.004}[measure]
    return of_regressors(*regressors(rules=ValueRules(measure)), tolerance=tolerance)


def apart(run: Searched, sample: Sample) -> float:
    outputs = run.outputs(sample)
    assert outputs.original is not None
    assert outputs.deployed is not None
    return disagreement(outputs.original, outputs.deployed)


@pytest.mark.parametrize(("measure", "most"), [("absolute", 15), ("cosine", 2)])
def test_few_device_queries_find_answers_beyond_the_tolerance(measure: str, most: int) -> None:
    counts = []
    for number, sample in enumerate(agreed(models(measure))):
        run = models(measure).search("boundary", sample, number)
        assert run.outputs(run.found).decision is Decision.DEVIATION
        counts.append(len(run.queries))
    assert np.mean(counts) <= most


def test_what_is_left_of_a_device_budget_finds_answers_farther_apart() -> None:
    farther = []
    for number, sample in enumerate(agreed(models("cosine"), 3)):
        first = models("cosine").search("boundary", sample, number)
        run = models("cosine").search("boundary", sample, number, device_budget=16)
        assert len(run.queries) <= 16
        assert apart(run, run.found) == max(apart(run, asked) for asked, _ in run.queries)
        farther.append(apart(run, run.found) / apart(first, first.found))
        (earlier,) = run.outcome.earlier
        assert earlier.sample is not None
        assert run.outputs(earlier.sample).decision is Decision.DEVIATION
    assert np.median(farther) > 1.2


def test_a_device_is_not_asked_where_the_original_always_answers_alike() -> None:
    constant, deployed = (replace(one, weights=0 * one.weights) for one in regressors())
    run = of_regressors(constant, deployed).search("boundary", photographs(1)[0])
    assert run.outcome.sample is None
    assert "nothing was asked" in run.outcome.reason
    assert not run.queries


def test_an_answer_infinitely_far_from_that_to_the_seed_counts_as_very_far() -> None:
    def huge(model: Regressor) -> Callable[[Sample], Values]:
        return lambda sample: Values(1.7e308 * np.sign(model(sample).array), ValueRules())

    original, deployed = regressors()
    run = Searched(huge(original), huge(deployed), ToleranceOracle(1e308))
    with np.errstate(over="ignore"):
        sample = agreed(run, 1)[0]
        run.search("boundary", sample)
        assert apart(run, run.found) == np.inf


def test_scores_of_classes_are_compared_by_the_tolerance_where_the_oracle_does() -> None:
    original = affine((16, 16, 3), 4)
    pair = Searched(original, quantised(original), ToleranceOracle(0.02))
    sample = next(
        one
        for one in (photo[:16, :16] for photo in photographs(40))
        if pair.outputs(one).decision is Decision.AGREE
    )
    seed = replace(pair.seed(sample), others=(), compares_scores=True)
    run = pair.answer(build_strategy("boundary", {})(seed, np.random.default_rng(0)))
    assert apart(run, run.found) > 0.02


@pytest.mark.parametrize(
    ("option", "value"),
    [("tied_classes", 3), ("crossing", "mutants"), ("gradients", True), ("candidates", 2)],
)
def test_options_of_a_boundary_are_refused(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"boundary: {option} "):
        models().search("boundary", photographs(1)[0], **{option: value})

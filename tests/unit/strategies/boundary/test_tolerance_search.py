"""The boundary search by a tolerance: inputs on which the answers are far enough apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from answering_models import Searched, agreed, of_regressors, photographs, regressors
from search_models import affine, quantised

from edgeflare.errors import UsageError
from edgeflare.metrics import disagreement, l2
from edgeflare.oracles import ToleranceOracle
from edgeflare.strategies import build_strategy
from edgeflare.types import Decision, Sample, ValueRules


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


def test_what_is_left_of_a_device_budget_brings_the_finding_nearer() -> None:
    nearer = []
    for number, sample in enumerate(agreed(models())):
        first = models().search("boundary", sample, number)
        run = models().search("boundary", sample, number, device_budget=30)
        assert len(run.queries) <= 30
        assert run.outputs(run.found).decision is Decision.DEVIATION
        nearer.append(l2(sample, run.found) / l2(sample, first.found))
    assert max(nearer) <= 1.0
    assert np.median(nearer) < 0.95


def test_findings_keep_within_the_stated_bound() -> None:
    for sample in agreed(models(), 3):
        run = models().search("boundary", sample, max_l2=6.0)
        assert all(l2(sample, asked) <= 6.0 for asked, _ in run.queries)


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


def test_a_copy_of_the_original_gives_no_false_alarm() -> None:
    original, _ = regressors()
    run = of_regressors(original, original).search("boundary", photographs(1)[0])
    assert run.outcome is not None
    assert run.outcome.sample is None
    assert "further apart than the tolerance" in run.outcome.reason
    assert 0 < len(run.queries) <= 100


@pytest.mark.parametrize(
    "options", [{"tied_classes": 3}, {"crossing": "mutants"}, {"gradients": True}]
)
def test_options_of_a_boundary_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="means nothing by a tolerance"):
        models().search("boundary", photographs(1)[0], **options)

"""Every strategy on detectors and on models of values: it searches, or is refused in a sentence."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from answering_models import Searched, agreed, detectors, of_detectors, of_regressors, regressors

from edgeflare.answers import LABELS
from edgeflare.answers.detections.matching import differences, worst
from edgeflare.errors import UsageError
from edgeflare.metrics import l2
from edgeflare.strategies import build_strategy
from edgeflare.strategies.dflare_fitness import ObservedStates
from edgeflare.types import Decision, Detections, Outputs, Sample, Seed


def of_boxes() -> Searched:
    return of_detectors(*detectors(1.0))


def of_classes() -> Searched:
    return of_detectors(*detectors(1.0, located=False))


def of_values() -> Searched:
    return of_regressors(*regressors(0.2), tolerance=0.1)


MODELS = [of_boxes, of_classes, of_values]


@dataclass(frozen=True)
class Finds:
    name: str
    options: tuple[tuple[str, Any], ...] = ()


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize(
    "strategy",
    [
        Finds("dflare"),
        Finds("dflare-d"),
        Finds("dflare-r"),
        Finds("boundary"),
        Finds("diffchaser", (("fitness", "basic"), ("population", 20))),
    ],
    ids=lambda one: one.name,
)
def test_a_strategy_finds_an_input_on_which_the_models_deviate(models, strategy) -> None:
    sample = agreed(models(), 1)[0]
    run = models().search(strategy.name, sample, 1, **dict(strategy.options))
    assert run.outputs(run.found).decision is Decision.DEVIATION


@pytest.mark.parametrize("models", MODELS)
def test_the_strategy_none_asks_nothing(models: Any) -> None:
    run = models().search("none", agreed(models(), 1)[0])
    assert run.asks == []


@pytest.mark.parametrize("models", MODELS)
@pytest.mark.parametrize("name", ["gradient", "deepxplore"])
def test_strategies_of_class_scores_are_refused(models: Any, name: str) -> None:
    options = {"others": ["a.onnx"]} if name == "deepxplore" else {}
    with pytest.raises(UsageError, match=f"strategy {name}"):
        models().search(name, agreed(models(), 1)[0], **options)


@pytest.mark.parametrize(
    ("models", "options", "problem"),
    [
        (of_values, {}, "state fitness=basic"),
        (of_boxes, {"fitness": "targeted", "target": 1}, "class scores"),
        (of_boxes, {"k": 3}, "k is 2"),
    ],
)
def test_fitness_that_answers_have_no_meaning_for_is_refused(models, options, problem) -> None:
    with pytest.raises(UsageError, match=problem):
        models().search("diffchaser", agreed(models(), 1)[0], **options)


def kind(models: Searched, sample: Sample) -> str | None:
    outputs = models.outputs(sample)
    if not isinstance(outputs.original, Detections):
        return None
    assert isinstance(outputs.deployed, Detections)
    found = worst(differences(outputs.original, outputs.deployed))
    return None if found is None else found.kind


@pytest.mark.parametrize("models", [of_boxes, of_values])
def test_what_shrinks_stays_a_deviation_of_its_kind(models: Any, tmp_path: Path) -> None:
    sample = agreed(models(), 1)[0]
    far = models().search("dflare", sample, 2).found
    np.savez(tmp_path / "far.npz", a=far)
    steps = build_strategy("shrink", {"triggers": tmp_path / "far.npz", "device_budget": 30})
    run = models()
    run.answer(steps(run.seed(sample), np.random.default_rng(0)))
    assert len(run.queries) <= 30
    assert run.outputs(run.found).decision is Decision.DEVIATION
    assert kind(run, run.found) == kind(run, far)
    assert l2(sample, run.found) <= l2(sample, far)


@pytest.mark.parametrize("models", [of_boxes, of_values])
def test_natural_inputs_shrink_in_their_parameters(models: Any, tmp_path: Path) -> None:
    sample = agreed(models(), 1)[0]
    run = models().search("boundary", sample, 2, crossing="natural")
    steps = [[one["operator"], one["params"]] for one in run.outcome.mutations]
    change = {"steps": steps, "least_margin": 0.0, "of_survey": False}
    np.savez(tmp_path / "far.npz", a=run.found)
    (tmp_path / "changes.json").write_text(json.dumps({"a": change}))
    options = {
        "triggers": tmp_path / "far.npz",
        "changes": tmp_path / "changes.json",
        "device_budget": 10,
    }
    again = models()
    again.answer(build_strategy("shrink", options)(again.seed(sample), np.random.default_rng(0)))
    assert again.outputs(again.found).decision is Decision.DEVIATION
    assert l2(sample, again.found) <= l2(sample, run.found)


@pytest.mark.parametrize(
    ("models", "kind"), [(of_boxes, "detections"), (of_classes, "tags"), (of_values, "values")]
)
def test_a_seed_has_the_kind_of_its_answers_unless_it_is_stated(models: Any, kind: str) -> None:
    seed = models().seed(agreed(models(), 1)[0])
    assert (seed.kind.name, seed.labels_only) == (kind, False)


def test_a_seed_tells_labels_alone_by_its_kind_or_by_its_flag() -> None:
    scores = np.array([0.0, 1.0])
    seed = Seed("a", np.zeros((2, 2, 1), np.uint8), Outputs(scores, scores, Decision.AGREE))
    stated = replace(seed, kind=LABELS)
    assert (seed.kind.name, stated.labels_only) == ("scores", True)
    flagged = Seed("a", seed.sample, seed.outputs, labels_only=True)
    assert not flagged.kind.is_scored
    assert not replace(flagged, row=1).kind.is_scored


def test_states_of_detections_are_their_scores_whatever_their_number() -> None:
    def answer(*scores: float) -> Detections:
        count = len(scores)
        return Detections(np.zeros((count, 4)), np.zeros(count, np.int64), np.array(scores))

    states = ObservedStates(1e-4)
    assert states.observe(answer(0.9, 0.2), answer(0.8))
    assert not states.observe(answer(0.9, 0.2, 0.001), answer(0.8))
    assert states.observe(answer(0.9, 0.2, 0.4), answer(0.8))

"""A deployed model that tells a class index and no scores, searched and confirmed like any other."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import DEMO, Ran, edgeflare, must_run
from small_models import label_onnx, label_tflite

from edgeflare.store import Store
from edgeflare.types import Status
from edgeflare_agent.runtimes import load

pytestmark = pytest.mark.extended

ORIGINAL = DEMO / "original.onnx"
SEEDS = 4


def run(home: Path, deployed: Path, *flags: object, original: Path = ORIGINAL) -> Ran:
    pair = ("--original", original, "--deployed", deployed, "--seeds", DEMO / "seeds.npz")
    limits = (
        "--strategy", "dflare", "--limit", SEEDS, "--max-queries", 400, "--timeout", 0, "--out",
        "campaign", "--no-survey",
    )  # fmt: skip
    return edgeflare("run", *pair, *limits, *flags, home=home)


def label_of(path: Path, sample: np.ndarray) -> int:
    """The class index that a demo model's file gives by itself."""
    runtime = load(str(path), path.suffix[1:], {})
    try:
        wanted = runtime.inputs[0]
        pixels = sample.reshape([size or 1 for size in wanted.shape])
        if wanted.dtype == "float32":
            (raw,) = runtime.run(pixels.astype(np.float32) / np.float32(255))
        else:
            (raw,) = runtime.run((pixels.astype(np.int16) - 128).astype(wanted.dtype))
        return int(raw.argmax() if raw.size > 1 else raw.item())
    finally:
        runtime.close()


MODELS: dict[str, Any] = {
    "int64, open batch": lambda path: label_onnx(ORIGINAL, path, shape=("batch",)),
    "float32 [1, 1], stated": lambda path: label_onnx(
        ORIGINAL, path, dtype="float32", shape=(1, 1)
    ),
    "TFLite": lambda path: label_tflite(DEMO / "deployed.tflite", path.with_suffix(".tflite")),
}


ONE, *OTHERS = MODELS


@pytest.mark.parametrize(
    "kind", [ONE, *(pytest.param(k, marks=pytest.mark.extended) for k in OTHERS)]
)
def test_triggers_are_found_and_are_what_the_models_say(tmp_path: Path, kind: str) -> None:
    deployed = MODELS[kind](tmp_path / "label.onnx")
    stated = ("--deployed-output", "label") if "stated" in kind else ()
    ran = run(tmp_path, deployed, *stated, "--json")
    assert ran.code == 0, ran.err
    with Store.open(tmp_path / "campaign") as store:
        assert store.models["deployed"]["output"]["kind"] == "label"
        assert store.models["original"]["output"]["kind"] == "probabilities"
        found = [one for one in store.outcomes() if one.status is Status.FOUND]
        assert found, "nothing found: nothing is tested"
        for one in found:
            assert one.trigger is not None
            sample = store.get_sample(one.trigger)
            labels = label_of(ORIGINAL, sample), label_of(deployed, sample)
            assert (one.original_label, one.deployed_label) == labels
            assert labels[0] != labels[1]
            assert np.array_equal(one.deployed, np.eye(10)[labels[1]])
            assert one.original_margin is not None
            assert one.deployed_margin is None, "a label has no margin"


def test_an_original_without_scores_is_refused(tmp_path: Path) -> None:
    label = label_onnx(ORIGINAL, tmp_path / "label.onnx")
    ran = run(tmp_path, label, original=label)
    assert ran.code == 2
    assert "each class" in ran.sentence


def test_label_stated_for_both_is_refused(tmp_path: Path) -> None:
    ran = run(tmp_path, label_onnx(ORIGINAL, tmp_path / "label.onnx"), "--output", "label")
    assert ran.code == 2
    assert "`--output label` states" in ran.sentence
    assert "--deployed-output label" in ran.sentence


def test_a_float_is_taken_for_a_label_only_where_that_is_stated(tmp_path: Path) -> None:
    ran = run(tmp_path, label_onnx(ORIGINAL, tmp_path / "label.onnx", dtype="float32"))
    assert ran.code == 2
    assert "state `--deployed-output label`" in ran.sentence


def test_a_survey_gives_the_rate_and_no_total_variation(tmp_path: Path) -> None:
    deployed = label_onnx(ORIGINAL, tmp_path / "labels.onnx", bits=3)
    pair = ("--original", ORIGINAL, "--deployed", deployed, "--seeds", DEMO / "seeds.npz")
    ran = must_run("survey", *pair, "--limit", 20, "--out", "surveyed", "--json", home=tmp_path)
    survey = ran.json["survey"]
    assert survey["overall"]["inputs"] == 60
    assert survey["mean_total_variation"] is None
    with Store.open(tmp_path / "surveyed") as store:
        records = list(store.survey(phase="survey"))
    assert survey["overall"]["deviations"] == sum(one.confident_deviation for one in records) > 0
    assert all(one.deployed_margin is None for one in records)
    assert all(one.total_variation is None for one in records)

"""``edgeflare repair`` of detectors: a head under one scale is mended by splitting it."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import edgeflare, must_run
from demo_detectors import DETECTION_DEMO, answers, with_one_scale
from numpy.typing import NDArray

from edgeflare.repair import PRESENT

LOSING = (11, 13, 16, 48, 57, 58)
"""Seeds of the demo with digits that are lost by one scale for boxes and scores."""
SEEDS = len(LOSING)


def images() -> NDArray[np.uint8]:
    with np.load(DETECTION_DEMO / "seeds.npz") as stored:
        chosen: NDArray[np.uint8] = stored["images"][list(LOSING)]
    return chosen


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    deployed = with_one_scale(folder / "one_scale.onnx")
    pair = ("--original", DETECTION_DEMO / "original.onnx", "--deployed", deployed)
    np.savez(folder / "seeds.npz", images=images())
    flags = ("--seeds", folder / "seeds.npz", "--no-survey")
    must_run("run", *pair, *flags, "--strategy", "none", "--out", "out", home=folder)
    return folder / "out"


@pytest.fixture(scope="module")
def found(campaign: Path) -> dict[str, Any]:
    names = ("int8-per-channel", "int8-head-split")
    wanted = (word for name in names for word in ("--recipe", name))
    ran = must_run("repair", "recipes", campaign, *wanted, "--json", home=campaign.parent)
    report: dict[str, Any] = ran.json
    return report


@pytest.mark.slow
def test_the_split_head_is_shipped_for_its_objects_and_its_new_search(found) -> None:
    one = {each["name"]: each for each in found["candidates"]}
    assert set(one) == {PRESENT, "int8-per-channel", "int8-head-split"}
    assert found["winner"] == "int8-head-split"
    split, present = one["int8-head-split"], one[PRESENT]
    assert split["disagreement"]["value"] < present["disagreement"]["value"] / 1.3
    assert sum(split["objects"]["kinds"].values()) < present["objects"]["kinds"]["lost"]
    assert split["objects"]["original"] == present["objects"]["original"] >= SEEDS
    assert split["searched"] + split["natural"] == SEEDS


@pytest.mark.slow
def test_scores_have_their_levels_back(found: dict[str, Any]) -> None:
    """Under one scale with boxes of 96 pixels and more, scores from 0 to 1 have two or three."""
    levels = {}
    for one in found["candidates"]:
        path = Path(one["file"])
        (output,) = onnx.load(path).graph.output
        assert output.name == "output0"
        levels[one["name"]] = len(np.unique(answers(path, images())[:, 4:]))
    assert levels[PRESENT] <= 4
    assert levels["int8-per-channel"] <= 4
    assert levels["int8-head-split"] > 50


@pytest.mark.slow
def test_it_is_told_in_objects(campaign: Path, found: dict[str, Any]) -> None:
    wanted = ("--recipe", "int8-head-split")
    ran = must_run("repair", "recipes", campaign, *wanted, home=campaign.parent)
    told = " ".join(ran.out.split())
    present = next(one for one in found["candidates"] if one["name"] == PRESENT)
    lost, of = present["objects"]["kinds"]["lost"], present["objects"]["original"]
    assert re.search(rf"[01] of {of} \([\d.]+ %\) objects that differ in place of {lost} of", told)
    assert f"seeds: {lost} lost" in told
    assert "scores are quantised" in told


@pytest.mark.parametrize("command", ["train", "abstain", "examples"])
def test_repairs_of_one_decision_are_refused(campaign: Path, command: str) -> None:
    more = ("set",) if command == "examples" else ()
    ran = edgeflare("repair", command, campaign, *more, home=campaign.parent)
    assert ran.code == 2
    assert "answer with detections" in ran.sentence
    assert not (campaign.parent / "set").exists()

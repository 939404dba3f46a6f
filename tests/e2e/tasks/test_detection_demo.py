"""The demo of detection: what it finds, and what a fault in the head is called."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from command import edgeflare, must_run
from demo_detectors import DETECTION_DEMO, answers, decoded, with_one_scale


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def campaign(home: Path) -> Path:
    must_run("demo", "--task", "detection", "--seeds", 6, "--out", "found", home=home)
    return home / "found"


def test_from_each_seed_an_input_is_found_on_which_other_digits_are_detected(
    home: Path, campaign: Path
) -> None:
    summary = edgeflare("show", campaign, "--json", home=home).json
    assert summary["seeds"] == 6
    assert summary["by_status"]["found"] + summary["by_status"]["seed-deviates"] >= 5
    kinds = summary["detection"]["triggers"]["kinds"]
    assert kinds["lost"] + kinds["ghost"] >= 4


def test_onnx_runtime_alone_detects_what_the_pictures_are_said_to_show(home, campaign) -> None:
    assert edgeflare("export", campaign, "pictures", home=home).code == 0
    lines = (home / "pictures" / "triggers.jsonl").read_text().splitlines()
    assert len(lines) >= 5
    for line in lines:
        finding = json.loads(line)
        image = cv2.imread(str(home / "pictures" / finding["files"]["trigger"]))[:, :, ::-1]
        found = {}
        for model in ("original", "deployed"):
            (output,) = answers(DETECTION_DEMO / f"{model}.onnx", image[np.newaxis])
            found[model] = sorted(digit for _, digit in decoded(output))
            assert found[model] == sorted(one["label"] for one in finding[f"{model}_scores"])
        more = len(found["deployed"]) - len(found["original"])
        kinds = [one["kind"] for one in finding["differences"]]
        assert kinds
        assert more == kinds.count("ghost") - kinds.count("lost")


def test_a_head_under_one_scale_is_told_by_objects_that_are_lost(home, tmp_path) -> None:
    models = ("--original", DETECTION_DEMO / "original.onnx")
    models += ("--deployed", with_one_scale(tmp_path / "one_scale.onnx"))
    seeds = ("--seeds", DETECTION_DEMO / "seeds.npz")
    ran = must_run(
        "run", *models, *seeds, "--strategy", "none", "--no-survey", "--out", "lost", "--json",
        home=home,
    )  # fmt: skip
    kinds = ran.json["detection"]["seeds"]["kinds"]
    assert kinds["lost"] >= 6
    assert kinds["lost"] > 3 * (kinds["ghost"] + kinds["class"] + kinds["shift"])


def test_options_of_class_scores_are_refused_before_any_seed_is_asked(home, tmp_path) -> None:
    pair = [str(DETECTION_DEMO / f"{model}.onnx") for model in ("original", "deployed")]
    ran = edgeflare(
        "run",
        *("--original", pair[0], "--deployed", pair[1]),
        *("--seeds", DETECTION_DEMO / "seeds.npz", "--crossing", "mutants"),
        *("--out", tmp_path / "refused"),
        home=home,
    )
    assert ran.code != 0
    assert "crossing mutants" in ran.err
    assert not (tmp_path / "refused").exists()

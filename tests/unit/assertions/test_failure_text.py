"""What a failed `assert_agrees` says, of campaigns written by hand."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from stores import ended, store_of

from edgeflare.assertions.failure import PICTURE_NAME, failure_text
from edgeflare.campaign.status import first_status, write_status
from edgeflare.types import Output, Sample, Status, Transcript

SURE = np.array([0.75, 0.25])
BOTH_WAYS = (np.array([0.625, 0.375, 0.0]), np.array([0.25, 0.0, 0.75]))


def image(value: int) -> np.ndarray:
    return np.full((4, 4, 1), value, np.uint8)


def campaign(
    folder: Path,
    limits: Mapping[str, Any],
    outcomes: Mapping[str, Mapping[str, Any]],
    *,
    replica: str = "",
    kind: str = "probabilities",
    rate: int | None = None,
    sample: Sample | None = None,
    changed: Sample | None = None,
    finished: bool = True,
) -> Path:
    """Write a campaign with these limits, and an outcome of each seed."""
    with store_of(
        folder,
        seeds=list(outcomes),
        sample=image if sample is None else lambda number: sample,
        answers=(SURE, SURE),
        replicas=[replica],
        config={"limits": dict(limits)},
        models=({}, {"name": "int8.tflite", "output": {"kind": kind}}),
        rate=rate,
    ) as store:
        store.state.devices = [{"name": replica or "pi4"}]
        for number, (name, given) in enumerate(outcomes.items()):
            found = {"status": Status.FOUND, "search_queries": 2, "l2": 1.5, **given}
            if found["status"] is Status.FOUND:
                default = image(100 + number) if sample is None else sample / 2
                found["trigger"] = default if changed is None else changed
            original, deployed = found.get("original"), found.get("deployed")
            if isinstance(original, np.ndarray) and isinstance(deployed, np.ndarray):
                found["original_label"] = int(original.argmax())
                found["deployed_label"] = int(deployed.argmax())
            ended(store, name, chain_seed=number, replica=replica, **found)
        store.state.finished = finished
    return folder


def trigger(disagreement: float, **more: Any) -> dict[str, Any]:
    """A trigger whose answers are that far apart, as the models' margins are."""
    half = disagreement / 2
    answers: tuple[Output, Output] = (
        np.array([0.5 + half, 0.5 - half]),
        np.array([0.5 - half, 0.5 + half]),
    )
    margins = {"original_margin": disagreement, "deployed_margin": disagreement}
    return {"original": answers[0], "deployed": answers[1], **margins, **more}


def lines_of(folder: Path) -> list[str]:
    text = failure_text(folder)
    return text.splitlines()


def test_a_campaign_within_its_limits_is_no_failure(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "a", {"max_disagreement": 0.5}, {"a.png": trigger(0.25)})
    assert failure_text(folder) is None
    assert not (folder / PICTURE_NAME).exists()


def test_it_names_limit_seed_answers_picture_and_command(tmp_path: Path) -> None:
    folder = campaign(
        tmp_path / "a",
        {"max_disagreement": 0.5, "max_deviation_rate": 1.0},
        {
            "near.png": trigger(0.25),
            "far.png": {"original": BOTH_WAYS[0], "deployed": BOTH_WAYS[1]},
        },
    )
    assert lines_of(folder) == [
        "int8.tflite on pi4 does not agree with original.onnx: max_disagreement is crossed",
        "crossed:    max_disagreement: of 2 triggering inputs the models' answers to the worst one put",
        "            75 % of the probability on different classes, at most 50 % may be; 1 is above it:",
        "            far.png (0.75)",
        "seed:       far.png, changed by an L2 of 1.50",
        "original:   0 (62.5 %), 1 (37.5 %)",
        "deployed:   2 (75.0 %), 0 (25.0 %)",
        f"picture:    {folder / PICTURE_NAME}",
        f"replay:     edgeflare replay {folder} --trigger far.png",
    ]
    picture = cv2.imread(str(folder / PICTURE_NAME), cv2.IMREAD_GRAYSCALE)
    assert picture.shape == (256, 3 * 256 + 2 * 8)
    assert [picture[0, x] for x in (0, 256 + 8)] == [1, 101]


@pytest.mark.parametrize(
    ("limits", "worst"),
    [
        ({"max_deviation_rate": 0.0}, "severe.png"),
        ({"max_severity": 0.05}, "severe.png"),
        ({"min_l2": 9.0}, "near.png"),
        ({"min_median_queries": 9}, "quick.png"),
        ({"max_seed_deviation_rate": 0.0}, "seed.png"),
        ({"max_new_triggers": 0, "min_l2": 9.0}, "near.png"),
    ],
)
def test_the_worst_input_is_that_of_the_crossed_limit(tmp_path, limits, worst) -> None:
    folder = campaign(
        tmp_path / "a",
        limits,
        {
            "severe.png": trigger(0.5, search_queries=3),
            "near.png": trigger(0.25, l2=0.5, search_queries=3),
            "quick.png": trigger(0.125, search_queries=1),
            "seed.png": trigger(0.25, status=Status.SEED_DEVIATES, search_queries=0, l2=None),
        },
    )
    about = [line.split()[1] for line in lines_of(folder) if line.startswith("seed:")]
    assert [one.rstrip(",") for one in about] == [worst]


def test_of_class_pairs_it_is_a_new_one(tmp_path: Path) -> None:
    before = campaign(tmp_path / "before", {}, {"a.png": trigger(0.5)})
    folder = campaign(
        tmp_path / "a",
        {"new_pairs": False, "baseline": str(before)},
        {"a.png": trigger(0.75), "b.png": {"original": BOTH_WAYS[0], "deployed": BOTH_WAYS[1]}},
    )
    assert "L2 of 1.50" in "\n".join(lines_of(folder))


def test_a_seed_that_deviates_is_shown_alone(tmp_path: Path) -> None:
    folder = campaign(
        tmp_path / "a",
        {"max_seed_deviation_rate": 0.0},
        {"a b.png": trigger(0.5, status=Status.SEED_DEVIATES, l2=None)},
    )
    lines = lines_of(folder)
    assert "b.png" in "\n".join(lines)
    assert lines[-1].endswith("--trigger 'a b.png'")
    assert cv2.imread(str(folder / PICTURE_NAME)).shape == (256, 256, 3)


def test_several_limits_stand_below_each_other(tmp_path: Path) -> None:
    limits = {"max_deviation_rate": 0.0, "min_l2": 9.0}
    lines = lines_of(campaign(tmp_path / "a", limits, {"a.png": trigger(0.5)}, replica="jetson"))
    assert "int8.tflite on jetson" in lines[0]
    assert "max_deviation_rate, min_l2" in lines[0]
    assert sum(line.startswith("crossed:") for line in lines) == 2
    assert "L2 of 1.50" in "\n".join(lines)
    assert "--trigger a.png --device" in lines[-1]


def test_an_input_without_an_answer_fails_whatever_the_limits(tmp_path: Path) -> None:
    infinite = {"status": Status.NONFINITE, "original": SURE, "deployed": np.array([np.nan, 1.0])}
    folder = campaign(
        tmp_path / "a",
        {"max_deviation_rate": 1.0},
        {
            "a.png": trigger(0.5),
            "b.png": {"status": Status.FAILED, "detail": "no answer"},
            "c.png": infinite,
        },
    )
    assert lines_of(folder) == [
        "int8.tflite on pi4 does not agree with original.onnx: not every input was answered",
        "unanswered: a model could not answer on 1 input, an output had NaN or infinity on 1 input:",
        "            b.png, c.png",
        "seed:       c.png, as it is",
        "original:   0 (75.0 %), 1 (25.0 %)",
        "deployed:   NaN or infinity among its scores",
        f"picture:    {folder / PICTURE_NAME}",
        f"campaign:   {folder}",
    ]


def test_a_campaign_that_is_not_finished_shows_no_agreement(tmp_path: Path) -> None:
    limits = {"max_disagreement": 0.5}
    folder = campaign(tmp_path / "a", limits, {}, finished=False)
    status = first_status(folder)
    write_status(replace(status, state="paused", message="the query limit is reached"))
    assert lines_of(folder) == [
        "int8.tflite on pi4 is not shown to agree with original.onnx: not finished",
        "unfinished: the campaign is paused (the query limit is reached): 0 of 0 searches done",
        f"resume:     edgeflare resume {folder}",
    ]
    folder = campaign(tmp_path / "b", limits, {"a.png": trigger(0.75)}, finished=False)
    lines = lines_of(folder)
    assert "original.onnx: max_disagreement" in lines[0]
    assert "1 of 1" in "\n".join(lines)
    assert lines[-2].startswith("replay: ")
    assert lines[-1] == f"resume:     edgeflare resume {folder}"


def test_of_labels_alone_there_is_no_probability(tmp_path: Path) -> None:
    labels = {"original": BOTH_WAYS[0], "deployed": np.array([0.0, 0.0, 1.0])}
    folder = campaign(tmp_path / "a", {"min_l2": 9.0}, {"a.png": labels}, kind="label")
    assert "deployed:   2" in "\n".join(lines_of(folder))


def test_transcripts_are_quoted_and_the_picture_has_spectrograms(tmp_path: Path) -> None:
    def heard(text: str) -> Transcript:
        return Transcript((text,), np.array([[0.75, 0.25]]))

    folder = campaign(
        tmp_path / "a",
        {"min_l2": 9.0},
        {"a.wav": {"original": heard("mend the coat"), "deployed": heard("men the coat")}},
        kind="transcript",
        rate=8000,
        sample=np.sin(np.arange(4000) / 3, dtype=np.float32),
    )
    lines = lines_of(folder)
    assert '"mend the coat"' in "\n".join(lines)
    assert '"men the coat"' in "\n".join(lines)
    assert cv2.imread(str(folder / PICTURE_NAME)).shape[1] > 600


def test_a_trigger_of_another_shape_is_shown_alone(tmp_path: Path) -> None:
    folder = campaign(
        tmp_path / "a", {"min_l2": 9.0}, {"a.png": trigger(0.5)}, changed=image(9)[1:]
    )
    assert f"picture:    {folder / PICTURE_NAME}" in lines_of(folder)
    assert cv2.imread(str(folder / PICTURE_NAME)).shape == (192, 256, 3)


def test_a_picture_that_can_not_be_written_hides_nothing(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "a", {"min_l2": 9.0}, {"a.png": trigger(0.5)})
    (folder / PICTURE_NAME).mkdir()
    lines = lines_of(folder)
    assert lines[-2].startswith(f"picture:    none: {folder / PICTURE_NAME} can't be written: ")
    assert lines[-1].startswith("replay: ")

"""Reports of campaigns whose models answer with detections, with several labels, or with values."""

import json
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from example_answers import NAMES, PERSON, depth_maps, detections, label_maps, of_kind, values
from shown_numbers import numbers
from stores import detection_campaign, value_campaign

from edgeflare.analysis.data_frames import to_frames
from edgeflare.answers import DETECTIONS
from edgeflare.answers.metrics import difference_text
from edgeflare.reports import export_campaign, report_text, write_html_report, write_text_report
from edgeflare.reports.media import finding_panel
from edgeflare.types import Detections


def said(folder: Path) -> Any:
    return json.loads(report_text(folder, "json"))


def page_of(folder: Path, **options: Any) -> tuple[str, Any]:
    """Return the page of a campaign and the data that its script reads."""
    write_html_report(folder, folder / "r.html", **options)
    page = (folder / "r.html").read_text()
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return page, json.loads(found[1])


def of_row(data: Any, number: int) -> dict[str, Any]:
    return {name: values[number] for name, values in data["findings"].items()}


def test_what_is_detected_is_exported_with_label_score_and_box(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", ["lost"])
    (finding,) = said(folder)["findings"]
    assert [one["label"] for one in finding["original_scores"]] == [1, 2, 0]
    assert [one["label"] for one in finding["deployed_scores"]] == [1, 2], "a candidate is none"
    assert finding["original_scores"][2] == {"label": 0, "score": 0.62, "box": [0.1, 0.2, 0.4, 0.8]}
    (difference,) = finding["differences"]
    assert difference["scores"] == [0.62, 0.47]
    assert difference["margins"] == pytest.approx([0.12, 0.03])


def test_differences_are_counted_by_class_and_kind_on_triggers_and_on_seeds(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", ["lost", "lost", "class"], natural={3: "ghost"})
    figures = said(folder)["detection"]
    assert figures["seeds"]["kinds"] == {"lost": 0, "ghost": 1, "class": 0, "shift": 0}
    assert (figures["seeds"]["differing"], figures["seeds"]["inputs"]) == (1, 4)
    assert figures["triggers"]["kinds"] == {"lost": 2, "ghost": 1, "class": 1, "shift": 0}
    person = figures["triggers"]["classes"][0]
    assert (person["label"], person["kinds"]["lost"], person["original"]) == (0, 2, 4)
    text = report_text(folder, "markdown", class_names=NAMES)
    assert "4 | 50.0" in text
    assert "4 (1 ghost" in text


def test_a_difference_below_the_margin_floor_does_not_count(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", ["class"], natural={1: "lost"}, margin_floor=0.05)
    figures = said(folder)["detection"]
    assert figures["seeds"]["differing"] == 0, "its smaller margin is 0.03"
    assert figures["triggers"]["kinds"]["class"] == 1


def test_answers_of_nan_have_no_differences(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", ["broken", "lost"])
    findings = said(folder)["findings"]
    (broken,) = (one for one in findings if one["status"] == "nonfinite")
    assert "NaN or infinity" in broken["difference"]
    assert broken["differences"] == []
    page, _ = page_of(folder, class_names=NAMES)
    assert 'value="lost:0">lost person (1)</option>' in page
    assert '<option value="none">NaN, infinity' in page
    both = of_kind("broken")[1]
    assert "NaN or infinity" in difference_text(both, both)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ((0.4999, 0.53), "0.4999 against 0.5300"),
        ((0.497, 0.53), "0.497 against 0.530"),
        ((0.62, 0.47), "0.62 against 0.47"),
        ((0.50004, 0.49996), "0.50004 against 0.49996"),
    ],
)
def test_no_score_is_rounded_across_the_confidence(scores: tuple[float, float], words: str) -> None:
    one, other = (detections((0, score, PERSON)) for score in scores)
    text = difference_text(one, other)
    assert text is not None
    assert words in text


def test_the_page_draws_each_model_s_boxes_over_seed_and_trigger(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", ["lost", "ghost"])
    page, data = page_of(folder, class_names=NAMES)
    lost = of_row(data, 0)["detections"]
    original, deployed = lost["trigger"]
    assert original[-1] == ["lost", 1, 0, 0.62, 1, 0.1, 0.2, 0.4, 0.8], "the last is drawn above"
    assert deployed[-1] == ["lost", 1, 0, 0.47, 0, 0.1, 0.2, 0.4, 0.8], (
        "its candidate, not detected"
    )
    assert [one[0] for marks in lost["seed"] for one in marks] == [""] * 6, "the seed has none"
    assert lost["differences"] == [["lost", 0, None, "0.62 against 0.47", 0.12, 0.03]]
    ghost = of_row(data, 1)["detections"]
    assert [marks[-1][4] for marks in ghost["trigger"]] == [0, 1]
    assert data["classes"] == {"0": "person", "1": "dog", "2": "cat"}
    assert 'data-pair="lost:0"' in page
    assert 'value="ghost:1">ghost dog (1)</option>' in page
    assert page.count("hatched is where") == 1, "the legend is worded once"


def test_a_lost_object_without_a_candidate_is_drawn_where_the_original_saw_it() -> None:
    original, deployed = of_kind("lost")
    two = deployed.boxes[:2], deployed.labels[:2], deployed.scores[:2]
    shown = DETECTIONS.card(original, Detections(*two, deployed.rules)).detections
    assert [*shown["trigger"][1][-1]] == ["lost", 1, 0, None, 0, 0.1, 0.2, 0.4, 0.8]
    assert shown["differences"][0][3] == "0.62 against none"


def test_a_crowd_of_boxes_keeps_those_that_differ() -> None:
    original, deployed = of_kind("lost")
    grid = np.array(
        [(x / 30, y / 10, x / 30 + 0.01, y / 10 + 0.05) for x in range(20) for y in range(10)]
    )
    crowd = [
        Detections(
            np.concatenate([grid, one.boxes]),
            np.concatenate([np.full(len(grid), 3), one.labels]),
            np.concatenate([np.full(len(grid), 0.99), one.scores]),
            one.rules,
        )
        for one in (original, deployed)
    ]
    for marks in DETECTIONS.card(*crowd).detections["trigger"]:
        assert (len(marks), marks[-1][0]) == (60, "lost")


@pytest.mark.parametrize("pair", [label_maps(40), depth_maps(0.3)], ids=["labels", "depth"])
def test_maps_have_three_pictures(tmp_path: Path, pair: Any) -> None:
    folder = value_campaign(tmp_path / "c", (pair[0], pair[0]), pair, task="dense")
    row = of_row(page_of(folder)[1], 0)
    assert (len(set(row["maps"])), row["values"]["elements"]) == (3, [])


def test_vectors_have_a_table_of_elements(tmp_path: Path) -> None:
    pair = values(1, 2, 3), values(1, 2.5, 3.1)
    row = of_row(page_of(value_campaign(tmp_path / "c", (pair[0], pair[0]), pair))[1], 0)
    assert row["maps"] is None
    assert row["values"]["elements"][:2] == [["1", "2", "2.5"], ["2", "3", "3.1"]]
    assert row["values"]["cosine"] == pytest.approx(0.9964, abs=1e-3)


def test_data_frames_have_what_differs_and_a_summary_of_large_arrays(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pair = label_maps(48)
    frames = to_frames(value_campaign(tmp_path / "v", (pair[0], pair[0]), pair, task="dense"))
    assert frames.triggers.original_scores[0]["shape"] == [3, 20, 24]
    frames = to_frames(detection_campaign(tmp_path / "d", ["ghost"]))
    assert numbers(frames.triggers.difference[0]) == "1 0.41 0.56"
    assert frames.triggers.deployed_scores[0][1]["label"] == 1


def test_a_picture_beside_a_text_has_both_models_boxes(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", ["lost"])
    written = write_text_report(folder, "markdown", tmp_path / "r.md")
    assert written.pictures == 1
    (path,) = (tmp_path / "r-pictures").iterdir()
    image = cv2.imread(str(path))[:, :, ::-1]
    assert image.shape == (240, 3 * 320 + 2 * 8, 3), "seed, and the trigger by both models"
    lost = (image == (255, 107, 96)).all(axis=2)
    counts = [lost[:, left : left + 320].sum() for left in (0, 328, 656)]
    assert counts[0] == 0
    assert counts[1] > counts[2] > 50, "dashed where the model does not detect it"
    assert "deployed model's boxes" in (tmp_path / "r.md").read_text()


def test_an_exported_panel_has_both_models_boxes(tmp_path: Path) -> None:
    folder = detection_campaign(tmp_path / "c", ["lost"])
    export_campaign(folder, tmp_path / "export")
    (row,) = map(json.loads, (tmp_path / "export" / "triggers.jsonl").read_text().splitlines())
    files = {kind: tmp_path / "export" / name for kind, name in row["files"].items()}
    seed, trigger = (
        np.asarray(cv2.imread(str(files[kind])))[:, :, ::-1] for kind in ("seed", "trigger")
    )
    assert files["panel"].read_bytes() == finding_panel(seed, trigger, of_kind("lost"), None)

"""Inputs of a replay whose models answer with detections or values, in words."""

from typing import Any

import pytest
from answer_stores import NAMES
from rich.console import Console
from shown_numbers import numbers

from edgeflare.analysis.replay import ReplaySummary
from edgeflare.campaign.replay.results import ReplayedInput
from edgeflare.reports.document import print_document
from edgeflare.reports.replay import replay_inputs, replayed_words


def replayed(**more: Any) -> ReplayedInput:
    known: dict[str, Any] = dict.fromkeys(
        (
            *("original_label_before", "deployed_label_before", "original_label"),
            *("deployed_label", "decision", "original_margin", "deployed_margin", "l2"),
        )
    )
    about = {"id": "trigger:s", "kind": "trigger", "seed_id": "s", "device": "pi", "sample": ""}
    return ReplayedInput(**{**known, **about, "deviated": True, **more})


def name(number: int | None) -> str:
    return "-" if number is None else NAMES[number]


def test_a_detector_s_trigger_says_what_differs_now_and_what_was_detected_before() -> None:
    one = replayed(
        state="fixed",
        original_text="class 0",
        deployed_text="class 0",
        original_text_before="class 0",
        deployed_text_before="nothing",
        difference="no difference",
    )
    assert "difference, was person" in replayed_words(one, name)
    still = replayed(
        state="still",
        original_text="class 0",
        deployed_text="nothing",
        original_text_before="class 0",
        deployed_text_before="nothing",
        difference="lost class 0 (0.62 against 0.47)",
    )
    assert numbers(replayed_words(still, name)) == "0.62 0.47"
    assert not still.elsewhere


def test_another_object_than_before_is_a_known_deviation_with_other_answers() -> None:
    one = replayed(
        state="still",
        original_text="class 0, class 1",
        deployed_text="class 0",
        original_text_before="class 0, class 1",
        deployed_text_before="class 1",
        difference="lost class 1 (0.60 against 0.47)",
    )
    assert one.elsewhere
    assert "person, dog" in replayed_words(one, name)


def test_values_say_their_distance_and_no_class() -> None:
    one = replayed(state="still", difference="an element is 0.5 apart")
    assert "element is 0.5" in replayed_words(one, name)


def test_on_80_columns_what_differs_stays_and_what_each_model_detects_goes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    one = replayed(
        state="new",
        seed_id="photos/crossing-at-night.jpg",
        original_text="class 0, class 1, class 0, class 2, class 0, class 1",
        deployed_text="class 0, class 1, class 0, class 2, class 0",
        difference="lost class 1 (0.60 against 0.47)",
        l2=0.25,
    )
    about = ("campaign", "c", "o.onnx", "d.onnx", True, False, ("pi",), 0)
    summary = ReplaySummary("folder", "source", *about, inputs=(one,))
    shown = {}
    for width in (80, 200):
        print_document(replay_inputs(summary, name), Console(width=width))
        shown[width] = capsys.readouterr().out
    assert "(0.60 against 0.47)" in shown[80]
    assert "original says" not in shown[80]
    assert "original says" in shown[200]

"""Inputs of a replay whose models answer with detections or values, in words."""

from typing import Any

from answer_stores import NAMES

from edgeflare.campaign.replay.results import ReplayedInput
from edgeflare.reports.replay import replayed_words


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
    assert replayed_words(one, name) == "fixed: no difference, was person -> nothing"
    still = replayed(
        state="still",
        original_text="class 0",
        deployed_text="nothing",
        original_text_before="class 0",
        deployed_text_before="nothing",
        difference="lost class 0 (0.62 against 0.47)",
    )
    assert replayed_words(still, name) == "still deviates: lost person (0.62 against 0.47)"
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
    assert replayed_words(one, name).endswith("was person, dog -> dog")


def test_values_say_their_distance_and_no_class() -> None:
    one = replayed(state="still", difference="an element is 0.5 apart")
    assert replayed_words(one, name) == "still deviates: an element is 0.5 apart"

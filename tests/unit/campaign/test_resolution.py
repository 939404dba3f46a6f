"""What a search is of, by the task of the models."""

import pytest

from edgeflare.campaign.resolution import answered_with
from edgeflare.campaign.settings.config import SearchConfig


@pytest.mark.parametrize(
    ("task", "oracle", "audio", "answered"),
    [
        ("classification", "auto", False, "image"),
        ("classification", "auto", True, "audio"),
        ("classification", "tolerance", False, "values"),
        ("detection", "auto", False, "detections"),
        ("multi-label", "auto", True, "detections"),
        ("transcript", "auto", False, "transcript"),
        ("detection", "tolerance", False, "detections"),
        ("transcript", "tolerance", True, "transcript"),
        ("dense", "auto", False, "values"),
        ("vector", "tolerance", True, "values"),
    ],
)
def test_the_task_and_the_oracle_decide(task, oracle, audio, answered) -> None:
    tolerance = 0.1 if oracle == "tolerance" else None
    search = SearchConfig(oracle=oracle, tolerance=tolerance)
    assert answered_with(search, task, audio=audio) == answered

"""Both models' answers to one sample are of one kind and size."""

import numpy as np
import pytest

from edgeflare.answers.columns import check_same_kind
from edgeflare.types import DetectionRules, Detections, Output, Transcript, Values

SCORES = np.full(3, 1 / 3)
NOTHING = Detections(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0), DetectionRules())
TEXT = Transcript(("a",), np.array([[0.9, 0.1]]))


@pytest.mark.parametrize("output", [SCORES, NOTHING, TEXT, Values(np.zeros((2, 3)))])
def test_one_kind_is_accepted(output: Output) -> None:
    check_same_kind(output, output)


@pytest.mark.parametrize(
    ("original", "deployed"),
    [
        (SCORES, Values(SCORES)),
        (Values(SCORES), NOTHING),
        (TEXT, NOTHING),
        (SCORES, np.full(4, 1 / 4)),
        (Values(np.zeros(3)), Values(np.zeros(4))),
        (Values(np.zeros((4, 4))), Values(np.zeros((1, 4)))),
    ],
)
def test_two_kinds_or_sizes_are_refused(original: Output, deployed: Output) -> None:
    with pytest.raises(ValueError, match="two kinds"):
        check_same_kind(original, deployed)

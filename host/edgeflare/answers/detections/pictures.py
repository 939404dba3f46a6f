"""Both models' boxes over a picture, and what a card of the gallery shows of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.detections.matching import Difference, differences
from edgeflare.answers.detections.words import kinds_words, pair_key, score_words
from edgeflare.answers.parts import Card
from edgeflare.types import Detections, Sample
from edgeflare.words.answers import BROKEN

_MOST_MARKS = 60
_DIGITS = 4
_MOST_LISTED = 30
_MOST_SCORES = 8
_WHITE, _BLACK = (255, 255, 255), (0, 0, 0)
_COLOURS = {
    "": _WHITE,
    "lost": (255, 107, 96),
    "ghost": (213, 155, 255),
    "class": (255, 176, 32),
    "shift": (90, 209, 255),
}
"""RGB; the same as in ``report.css``."""
_SIGNS = {"lost": "-", "ghost": "+", "class": "!", "shift": "~"}
_FONT, _SIZE = cv2.FONT_HERSHEY_SIMPLEX, 0.42
_DASH = 6


class Mark(NamedTuple):
    """A box to draw: the kind of its difference and its number, from 1; "" and 0 without one.

    Where the model does not detect the object `present` is 0, and the box is its candidate's, or
    else that of the other model. Sides are shares of the picture, 0 to 1.
    """

    kind: str
    number: int
    label: int
    score: float | None
    present: int
    left: float
    top: float
    right: float
    bottom: float


def box_marks(
    original: Detections, deployed: Detections, found: Sequence[Difference]
) -> list[list[Mark]]:
    """Return the boxes to draw for each model, those that differ last, over the others.

    `found` are the differences of both answers. Of very many boxes some that don't differ are left
    out, and those that are not finite.
    """
    drawn: list[list[Mark]] = []
    for place, (answer, other) in enumerate(((original, deployed), (deployed, original))):
        marks, own = [], set()
        for number, difference in enumerate(found, 1):
            mine, its = (difference.original, difference.deployed)[:: 1 if place == 0 else -1]
            detected = mine is not None and mine < answer.count
            if mine is not None:
                own.add(mine)
                box, score = answer.boxes[mine], float(answer.scores[mine])
            elif its is not None:
                box, score = other.boxes[its], None
            else:
                continue
            label = (
                difference.deployed_label
                if place and difference.deployed_label is not None
                else difference.label
            )
            marks.append(_mark(difference.kind, number, label, score, detected, box))
        same = [
            _mark("", 0, int(answer.labels[j]), float(answer.scores[j]), True, answer.boxes[j])
            for j in range(answer.count)
            if j not in own
        ]
        kept = [mark for mark in marks if mark is not None][:_MOST_MARKS]
        others = [mark for mark in same if mark is not None][: _MOST_MARKS - len(kept)]
        drawn.append([*others, *kept])
    return drawn


def _mark(
    kind: str,
    number: int,
    label: int,
    score: float | None,
    present: bool,
    box: NDArray[np.float64],
) -> Mark | None:
    if not np.isfinite(box).all():
        return None
    left, top, right, bottom = (round(float(side), _DIGITS) for side in np.clip(box, 0.0, 1.0))
    known = None if score is None or not np.isfinite(score) else float(f"{score:.5g}")
    return Mark(kind, number, label, known, int(present), left, top, right, bottom)


def drawn(image: Sample, marks: Sequence[Mark]) -> Sample:
    """Return a copy of a picture, uint8 [height, width, 3], with boxes drawn over it.

    Boxes that differ have the number of their difference behind a sign: - lost, + ghost, ! another
    class, ~ shifted. They are dashed where the model doesn't detect the object.
    """
    canvas: NDArray[np.uint8] = np.array(image, np.uint8)
    height, width = image.shape[:2]
    for mark in marks:
        corners = (
            (round(mark.left * (width - 1)), round(mark.top * (height - 1))),
            (round(mark.right * (width - 1)), round(mark.bottom * (height - 1))),
        )
        _rectangle(canvas, *corners, mark)
        if mark.kind:
            _tag(canvas, f"{_SIGNS[mark.kind]}{mark.number}", corners[0], _COLOURS[mark.kind])
    return canvas


def _rectangle(
    canvas: NDArray[np.uint8], first: tuple[int, int], last: tuple[int, int], mark: Mark
) -> None:
    thickness = 2 if mark.kind else 1
    cv2.rectangle(canvas, first, last, _BLACK, thickness + 2)
    if mark.present:
        cv2.rectangle(canvas, first, last, _COLOURS[mark.kind], thickness)
        return
    (left, top), (right, bottom) = first, last
    for x in range(left, right, 2 * _DASH):
        for y in (top, bottom):
            cv2.line(canvas, (x, y), (min(x + _DASH, right), y), _COLOURS[mark.kind], thickness)
    for y in range(top, bottom, 2 * _DASH):
        for x in (left, right):
            cv2.line(canvas, (x, y), (x, min(y + _DASH, bottom)), _COLOURS[mark.kind], thickness)


def _tag(
    canvas: NDArray[np.uint8], text: str, corner: tuple[int, int], colour: tuple[int, int, int]
) -> None:
    (width, height), base = cv2.getTextSize(text, _FONT, _SIZE, 1)
    left = min(max(0, corner[0]), canvas.shape[1] - width - 4)
    bottom = max(height + base + 2, corner[1])
    cv2.rectangle(
        canvas, (left, bottom - height - base - 2), (left + width + 3, bottom), colour, -1
    )
    cv2.putText(canvas, text, (left + 2, bottom - base), _FONT, _SIZE, _BLACK, 1, cv2.LINE_AA)


def card(
    original: Detections, deployed: Detections, seed: Sequence[Detections | None], *, finite: bool
) -> Card:
    """Return what a card shows of two answers; `finite`: neither has NaN or infinity."""
    found = differences(original, deployed) if finite else ()
    pairs = tuple(
        dict.fromkeys(pair_key(difference.kind, difference.label) for difference in found)
    )
    located = original.rules.located
    data = {
        "trigger": box_marks(original, deployed, found) if located else None,
        "seed": _seed_marks(*seed) if located and len(seed) == 2 else None,
        "differences": [
            _row(difference, original, deployed) for difference in found[:_MOST_LISTED]
        ],
        "more": max(0, len(found) - _MOST_LISTED),
        "pairs": list(pairs),
        "counts": [original.count, deployed.count],
    }
    scores = [] if located else _tag_scores(original, deployed)
    words = kinds_words(found) or "no difference" if finite else BROKEN
    return Card(words, data, scores=scores, pairs=pairs)


def _seed_marks(
    original: Detections | None, deployed: Detections | None
) -> list[list[Mark]] | None:
    if original is None or deployed is None:
        return None
    return box_marks(original, deployed, differences(original, deployed))


def _row(difference: Difference, original: Detections, deployed: Detections) -> list[Any]:
    """Return [kind, label, deployed label, figures in words, original's margin, deployed's]."""
    figures = score_words(difference, original, deployed)
    if difference.kind == "shift" and difference.iou is not None:
        figures = f"IoU {difference.iou:.2f}"
    return [
        difference.kind,
        difference.label,
        difference.deployed_label,
        figures,
        *map(_number, difference.margins),
    ]


def _tag_scores(original: Detections, deployed: Detections) -> list[list[Any]]:
    """Return the highest scores of labels without boxes, either model's."""
    both: list[dict[int, float]] = [
        dict(zip(answer.labels.tolist(), answer.scores.tolist(), strict=True))
        for answer in (original, deployed)
    ]
    ranked = sorted(
        {*both[0], *both[1]}, key=lambda label: -max(scores.get(label, 0.0) for scores in both)
    )
    return [
        [label, *(_number(scores[label]) if label in scores else None for scores in both)]
        for label in ranked[:_MOST_SCORES]
    ]


def _number(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None

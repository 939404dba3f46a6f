"""Both models' boxes over a picture: which to draw, and drawn into files."""

from collections.abc import Sequence
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.detections.matching import Difference, differences
from edgeflare.reports.media import panel, png, reduced, small_panel
from edgeflare.types import Detections, Output, Sample

_MOST_MARKS = 60
_DIGITS = 4
_SIDE = 320
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
        for number, one in enumerate(found, 1):
            mine, its = (one.original, one.deployed)[:: 1 if place == 0 else -1]
            detected = mine is not None and mine < answer.count
            if mine is not None:
                own.add(mine)
                box, score = answer.boxes[mine], float(answer.scores[mine])
            elif its is not None:
                box, score = other.boxes[its], None
            else:
                continue
            label = one.deployed_label if place and one.deployed_label is not None else one.label
            marks.append(_mark(one.kind, number, label, score, detected, box))
        same = [
            _mark("", 0, int(answer.labels[j]), float(answer.scores[j]), True, answer.boxes[j])
            for j in range(answer.count)
            if j not in own
        ]
        kept = [one for one in marks if one is not None][:_MOST_MARKS]
        others = [one for one in same if one is not None][: _MOST_MARKS - len(kept)]
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
    left, top, right, bottom = (round(float(one), _DIGITS) for one in np.clip(box, 0.0, 1.0))
    known = None if score is None or not np.isfinite(score) else float(f"{score:.5g}")
    return Mark(kind, number, label, known, int(present), left, top, right, bottom)


def finding_panel(
    seed: Sample,
    trigger: Sample,
    answers: tuple[Output | None, Output | None],
    rate: int | None,
) -> bytes:
    """Return a finding's picture: the `detection_panel` of detectors, else the `small_panel`.

    `answers` are the original's and the deployed model's to the trigger; `rate` is that of audio.
    """
    found = located(answers)
    if found is None:
        return small_panel(seed, trigger, rate)
    return detection_panel(seed, trigger, *found)


def located(answers: tuple[Output | None, Output | None]) -> tuple[Detections, Detections] | None:
    """Return both answers where they are detections with boxes, else None."""
    original, deployed = answers
    if (
        isinstance(original, Detections)
        and isinstance(deployed, Detections)
        and original.rules.located
    ):
        return original, deployed
    return None


def detection_panel(
    seed: Sample, trigger: Sample, original: Detections, deployed: Detections
) -> bytes:
    """Return the seed, and the trigger with the original's and with the deployed model's boxes, as
    one PNG.

    uint8 images [height, width, 1 or 3]; small ones are enlarged to 320 pixels. A trigger that is
    its seed, or has another shape, is shown without that. Boxes that differ have the number of
    their difference, in the order of `edgeflare.detections.differences`, behind a sign: - lost, +
    ghost, ! another class, ~ shifted. They are dashed where the model doesn't detect the object.
    """
    marks = box_marks(original, deployed, differences(original, deployed))
    drawn = [_drawn(trigger, one) for one in marks]
    if seed.shape == trigger.shape and not np.array_equal(seed, trigger):
        drawn.insert(0, _drawn(seed, ()))
    return png(panel(*drawn))


def _drawn(image: Sample, marks: Sequence[Mark]) -> Sample:
    small = reduced(image, _SIDE)
    scale = _SIDE / max(small.shape[:2])
    size = (round(small.shape[1] * scale), round(small.shape[0] * scale))
    large = cv2.resize(small, size, interpolation=cv2.INTER_NEAREST).reshape(size[1], size[0], -1)
    canvas: NDArray[np.uint8] = np.array(np.broadcast_to(large, (size[1], size[0], 3)), np.uint8)
    for one in marks:
        corners = (
            (round(one.left * (size[0] - 1)), round(one.top * (size[1] - 1))),
            (round(one.right * (size[0] - 1)), round(one.bottom * (size[1] - 1))),
        )
        _rectangle(canvas, *corners, one)
        if one.kind:
            _tag(canvas, f"{_SIGNS[one.kind]}{one.number}", corners[0], _COLOURS[one.kind])
    return canvas


def _rectangle(
    canvas: NDArray[np.uint8], first: tuple[int, int], last: tuple[int, int], one: Mark
) -> None:
    thickness = 2 if one.kind else 1
    cv2.rectangle(canvas, first, last, _BLACK, thickness + 2)
    if one.present:
        cv2.rectangle(canvas, first, last, _COLOURS[one.kind], thickness)
        return
    (left, top), (right, bottom) = first, last
    for x in range(left, right, 2 * _DASH):
        for y in (top, bottom):
            cv2.line(canvas, (x, y), (min(x + _DASH, right), y), _COLOURS[one.kind], thickness)
    for y in range(top, bottom, 2 * _DASH):
        for x in (left, right):
            cv2.line(canvas, (x, y), (x, min(y + _DASH, bottom)), _COLOURS[one.kind], thickness)


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

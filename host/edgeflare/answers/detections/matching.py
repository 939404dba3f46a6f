"""Differences of two detectors' answers to one sample, each with both models' margins.

Boxes are matched greedily, as detections to the truth in the Pascal VOC challenge (Everingham et al.,
2010, section 4.2): each of the original's, the best score first, takes the free one of the deployed
model's with the largest intersection over union (IoU), which is at least `DetectionRules.match_iou`.
All boxes of one class are matched first; what remains then is matched across classes.

Differences from it: a box looks for the best one that is free, not for the best one; a second pass
matches across classes, so that an object that got another class is one difference, not two.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.types import DetectionRules, Detections

DifferenceKind: TypeAlias = Literal["lost", "ghost", "class", "shift"]
DIFFERENCE_KINDS: tuple[DifferenceKind, ...] = ("lost", "ghost", "class", "shift")
"""All kinds: `Difference` tells what each is."""


class Difference(NamedTuple):
    """One object in which two detectors' answers differ.

    `kind`: "lost", detected by the original alone; "ghost", by the deployed model alone; "class",
    by both, with another class; "shift", by both with one class, at an IoU below
    `DetectionRules.shift_iou`.

    `original` and `deployed` are places in the answers. Of the answer that has not detected the
    object it is the best candidate of the same class, below the confidence, with an IoU of at least
    `DetectionRules.match_iou`; None where there is none. `iou`: of both boxes, None without one of
    them. `label`: the class in the original's answer, of a ghost in the deployed one's;
    `deployed_label`: the class in the deployed one's, None of a lost object.

    `margins`, the original's and the deployed model's, 0 to 1: how far a score, or the IoU, is from
    where there was no difference.

    - Of the answer that has detected a lost object or a ghost: its score less the confidence. Of the
      other: the confidence less the candidate's score, without one the confidence. Neither is above
      `match_iou` less the IoU with an unmatched box of the same class in the other answer.
    - Of another class, in each answer: the score less the confidence. A candidate of the other
      model's class is below the confidence, so that the lead over it is never smaller.
    - Of a shift, in each answer: the same, and not more than `shift_iou` less the IoU.
    """

    kind: DifferenceKind
    original: int | None
    deployed: int | None
    label: int
    deployed_label: int | None
    iou: float | None
    margins: tuple[float, float]

    @property
    def margin(self) -> float:
        """The smaller one of both models' margins."""
        return min(self.margins)


def differences(original: Detections, deployed: Detections) -> tuple[Difference, ...]:
    """Return where the answers of two detectors differ: the original's objects first, then ghosts.

    Both by falling score. The rules are the original's; both answers have the same. A score of NaN
    detects nothing, and a box that is not finite overlaps with none.
    """
    rules = original.rules
    ours, theirs = _detected(original, rules.confidence), _detected(deployed, rules.confidence)
    overlaps = dict(zip(ours, _overlaps(_taken(original, ours), deployed), strict=True))
    pairs = _matched(original, deployed, theirs, overlaps)
    taken = set(pairs.values())
    lost, ghosts = [one for one in ours if one not in pairs], [j for j in theirs if j not in taken]
    found = []
    for one in ours:
        if one not in pairs:
            found.append(_alone("lost", one, original, deployed, overlaps[one], ghosts))
            continue
        iou = float(overlaps[one][pairs[one]])
        if (changed := _paired(one, pairs[one], original, deployed, iou)) is not None:
            found.append(changed)
    mirrored_overlaps = _overlaps(_taken(deployed, ghosts), original)
    for other, row in zip(ghosts, mirrored_overlaps, strict=True):
        mirrored = _alone("ghost", other, deployed, original, row, lost)
        found.append(
            mirrored._replace(
                original=mirrored.deployed,
                deployed=other,
                deployed_label=mirrored.label,
                margins=mirrored.margins[::-1],
            )
        )
    return tuple(found)


def worst(found: Iterable[Difference]) -> Difference | None:
    """Return the difference with the largest margin, the first of equals; None of none."""
    return max(found, key=lambda one: one.margin, default=None)


def is_at(answer: Detections, box: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which objects of an answer are where a box [4] is: bool [n]; without places all are."""
    if not answer.rules.located:
        return np.ones(len(answer.labels), bool)
    near: NDArray[np.bool_] = box_iou(answer.boxes, box[None])[:, 0] >= answer.rules.match_iou
    return near


def place_of(box: NDArray[np.float64], rules: DetectionRules) -> NDArray[np.float64] | None:
    """Return where an object is, its box; None where objects have no places."""
    return box if rules.located else None


def kind_counts(found: Iterable[Difference]) -> dict[DifferenceKind, int]:
    """Return the number of differences of each kind, of those with none, too."""
    counts = dict.fromkeys(DIFFERENCE_KINDS, 0)
    for one in found:
        counts[one.kind] += 1
    return counts


def box_iou(ones: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the intersection over union of each pair of boxes, float64 [ones, others], 0 to 1.

    Boxes: float64 [n, 4], left, top, right, bottom. 0 with a box without an area and with one that
    is not finite.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        least = np.maximum(ones[:, None, :2], others[None, :, :2])
        most = np.minimum(ones[:, None, 2:], others[None, :, 2:])
        sides = np.maximum(most - least, 0.0)
        shared = sides[:, :, 0] * sides[:, :, 1]
        union = _areas(ones)[:, None] + _areas(others) - shared
        usable = np.isfinite(union) & (union > 0) & np.isfinite(shared)
    return np.asarray(np.divide(shared, union, out=np.zeros_like(union), where=usable))


def score_distance(original: Detections, deployed: Detections) -> float:
    """Return the largest difference of both models' scores of an object, 0 to 1; 0 of no boxes.

    NaN where a score is NaN.

    Of each box of either answer, a candidate's too, with the best-scored box of its class in the
    other answer that has an IoU of at least `DetectionRules.match_iou`, or 0 without any.
    """
    alike = (_overlaps(original, deployed) >= original.rules.match_iou) & (
        original.labels[:, None] == deployed.labels
    )
    theirs = np.where(alike, deployed.scores, 0.0).max(axis=1, initial=0.0)
    ours = np.where(alike.T, original.scores, 0.0).max(axis=1, initial=0.0)
    apart = [np.abs(original.scores - theirs), np.abs(deployed.scores - ours)]
    return min(float(np.concatenate(apart).max(initial=0.0)), 1.0)


def summary(answer: Detections) -> str:
    """Return the classes that are detected, with their numbers: "class 0 (2), class 16"."""
    counts = Counter(answer.labels[answer.scores >= answer.rules.confidence].tolist())
    named = [f"class {one}" + f" ({n})" * (n > 1) for one, n in sorted(counts.items())]
    return ", ".join(named) or "nothing"


def _overlaps(original: Detections, deployed: Detections) -> NDArray[np.float64]:
    """Return the IoU of each pair of boxes; without places 1 of one class, and 0 of two."""
    if original.rules.located:
        return box_iou(original.boxes, deployed.boxes)
    return np.asarray(original.labels[:, None] == deployed.labels, np.float64)


def _taken(answer: Detections, places: list[int]) -> Detections:
    """Return the objects at these places alone."""
    return Detections(
        answer.boxes[places], answer.labels[places], answer.scores[places], answer.rules
    )


def _areas(boxes: NDArray[np.float64]) -> NDArray[np.float64]:
    sides = np.maximum(boxes[:, 2:] - boxes[:, :2], 0.0)
    return np.asarray(sides[:, 0] * sides[:, 1])


def _detected(answer: Detections, confidence: float) -> list[int]:
    return [int(place) for place in np.flatnonzero(answer.scores >= confidence)]


def _matched(
    original: Detections,
    deployed: Detections,
    theirs: list[int],
    overlaps: Mapping[int, NDArray[np.float64]],
) -> dict[int, int]:
    """Return the place in the deployed answer of each matched place in the original's.

    `overlaps`: of each place that the original has detected, with all boxes of the deployed answer;
    `theirs`: the places that the deployed model has detected.
    """
    pairs: dict[int, int] = {}
    free = np.zeros(len(deployed.labels), bool)
    free[theirs] = True
    for across in (False, True):
        for one, row in overlaps.items():
            if one in pairs:
                continue
            fits = free & (row >= original.rules.match_iou)
            if not across:
                fits &= deployed.labels == original.labels[one]
            if fits.any():
                pairs[one] = int(np.where(fits, row, -1.0).argmax())
                free[pairs[one]] = False
    return pairs


def _alone(
    kind: Literal["lost", "ghost"],
    place: int,
    detecting: Detections,
    other: Detections,
    overlaps: NDArray[np.float64],
    unmatched: list[int],
) -> Difference:
    """Return the difference for an object that one answer has detected, in the words of a lost one.

    `overlaps`: of this object with the other answer's boxes; `unmatched`: the other's detections
    that have no partner.
    """
    confidence, match_iou = detecting.rules[:2]
    label = int(detecting.labels[place])
    alike = (other.labels == label) & (overlaps >= match_iou)
    candidates = np.flatnonzero(alike & (other.scores < confidence))
    score, best, iou = 0.0, None, None
    if len(candidates):
        best = int(candidates[other.scores[candidates].argmax()])
        score, iou = float(other.scores[best]), float(overlaps[best])
    nearest = [match_iou - overlaps[j] for j in unmatched if other.labels[j] == label]
    bound = float(max(0.0, min(nearest, default=1.0)))
    margins = (
        min(float(detecting.scores[place]) - confidence, bound),
        min(confidence - score, bound),
    )
    return Difference(kind, place, best, label, None, iou, margins)


def _paired(
    one: int, other: int, original: Detections, deployed: Detections, iou: float
) -> Difference | None:
    """Return the difference of two boxes that were matched, None where they are of one object."""
    confidence, shift_iou = original.rules.confidence, original.rules.shift_iou
    label, deployed_label = int(original.labels[one]), int(deployed.labels[other])
    margins = float(original.scores[one]) - confidence, float(deployed.scores[other]) - confidence
    if label != deployed_label:
        return Difference("class", one, other, label, deployed_label, iou, margins)
    if iou >= shift_iou:
        return None
    bounded = min(margins[0], shift_iou - iou), min(margins[1], shift_iou - iou)
    return Difference("shift", one, other, label, label, iou, bounded)

"""How the answers of two detectors differ over a campaign."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from edgeflare.answers.detections.matching import (
    DIFFERENCE_KINDS,
    Difference,
    DifferenceKind,
    differences,
)
from edgeflare.answers.metrics import is_finite
from edgeflare.types import Detections


@dataclass(frozen=True)
class ClassDifferences:
    """The differences of objects of one class, by `kinds`: lost, ghost, class, shift.

    `original` and `deployed` are the detections of this class. A difference counts for the class
    that the original saw, a ghost for that of the deployed model.
    """

    label: int
    original: int
    deployed: int
    kinds: dict[str, int]


@dataclass(frozen=True)
class DifferenceCounts:
    """The differences over `inputs` that both models answered.

    `differing` of the inputs have any; `inputs_by_kind` counts those with one of a kind. `original`
    and `deployed` are the numbers of detections, `kinds` counts the differences, `classes` has a
    row for each class with a difference, the most frequent first. `detected` has the detections of
    every class, the original's and the deployed model's.
    """

    inputs: int
    differing: int
    inputs_by_kind: dict[str, int]
    original: int
    deployed: int
    kinds: dict[str, int]
    classes: tuple[ClassDifferences, ...]
    detected: dict[int, tuple[int, int]]


@dataclass(frozen=True)
class DetectionFigures:
    """The differences on the seeds as they are, and on the triggering inputs.

    Those with a margin below the campaign's floor, or of 0, don't count. `settings` is the table
    "detection" of the campaign: what is detected, and when two boxes are of one object.
    """

    seeds: DifferenceCounts
    triggers: DifferenceCounts
    settings: dict[str, Any]


def counted_differences(
    original: Detections, deployed: Detections, floor: float
) -> tuple[Difference, ...]:
    """Return the differences that an oracle with this margin floor counts."""
    found = differences(original, deployed)
    return tuple(one for one in found if one.margin > 0 and one.margin >= floor)


def objects_by_kind(
    kind: DifferenceKind, original: Detections, deployed: Detections, floor: float
) -> tuple[list[int], list[int]]:
    """Return the classes of the objects that a limit counts, and of those that differ in this kind.

    The objects are those of the original, of ghosts those of the deployed model. Where that answers
    with NaN or infinity, all objects of the original are lost, and it detects none; of an original
    that does so nothing counts.
    """
    if not is_finite(original):
        return [], []
    counted = deployed if kind == "ghost" else original
    labels = counted.labels[: counted.count].tolist()
    if not is_finite(deployed):
        return ([], []) if kind == "ghost" else (labels, labels if kind == "lost" else [])
    found = counted_differences(original, deployed, floor)
    return labels, [difference.label for difference in found if difference.kind == kind]


def difference_counts(
    pairs: Iterable[tuple[Detections, Detections]], floor: float = 0.0
) -> DifferenceCounts:
    """Count the differences of pairs of answers, without those of which one is not finite."""
    inputs = differing = 0
    by_input: Counter[str] = Counter()
    found: Counter[tuple[int, str]] = Counter()
    detected: tuple[Counter[int], Counter[int]] = (Counter(), Counter())
    for answers in pairs:
        if not all(map(is_finite, answers)):
            continue
        inputs += 1
        for counts, answer in zip(detected, answers, strict=True):
            counts.update(answer.labels[: answer.count].tolist())
        differ = counted_differences(*answers, floor)
        differing += bool(differ)
        by_input.update({one.kind for one in differ})
        found.update((one.label, one.kind) for one in differ)
    rows = [
        ClassDifferences(
            label,
            detected[0][label],
            detected[1][label],
            {kind: found[label, kind] for kind in DIFFERENCE_KINDS},
        )
        for label in {label for label, _ in found}
    ]
    return DifferenceCounts(
        inputs,
        differing,
        {kind: by_input[kind] for kind in DIFFERENCE_KINDS},
        detected[0].total(),
        detected[1].total(),
        {kind: sum(row.kinds[kind] for row in rows) for kind in DIFFERENCE_KINDS},
        tuple(sorted(rows, key=lambda row: (-sum(row.kinds.values()), row.label))),
        {
            label: (detected[0][label], detected[1][label])
            for label in sorted(detected[0] | detected[1])
        },
    )

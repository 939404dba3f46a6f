"""The differences of detections by their documented names: `edgeflare.answers.detections`."""

from edgeflare.answers.detections.matching import (
    DIFFERENCE_KINDS,
    Difference,
    DifferenceKind,
    box_iou,
    differences,
    kind_counts,
    score_distance,
    summary,
    worst,
)

__all__ = [
    "DIFFERENCE_KINDS",
    "Difference",
    "DifferenceKind",
    "box_iou",
    "differences",
    "kind_counts",
    "score_distance",
    "summary",
    "worst",
]

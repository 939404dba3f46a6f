"""Numbers that describe an answer or a change."""

import numpy as np

from edgeflare.types import Sample, Scores


def margin(scores: Scores) -> float | None:
    """Return top-1 minus top-2 of float [classes]; None for less than two classes, NaN or infinity."""
    if scores.size < 2 or not np.isfinite(scores).all():
        return None
    second, first = np.partition(scores, -2)[-2:]
    return float(first - second)


def distances(seed: Sample, sample: Sample) -> tuple[float, int]:
    """Return (L2, Linf) between two uint8 images of one shape.

    L2 is the Euclidean length of the difference of the pixels on a scale from 0 to 1; Linf the
    largest difference of one value, in levels from 0 to 255.
    """
    difference = sample.astype(np.int64) - seed.astype(np.int64)
    largest = int(np.abs(difference).max(initial=0))
    return float(np.sqrt(np.square(difference).sum()) / 255.0), largest

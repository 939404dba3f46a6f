"""How sure a model is of its answer."""

import numpy as np

from edgeflare.types import Scores


def margin(scores: Scores) -> float | None:
    """Return top-1 minus top-2 of float [classes]; None for less than two classes, NaN or infinity."""
    if scores.size < 2 or not np.isfinite(scores).all():
        return None
    second, first = np.partition(scores, -2)[-2:]
    return float(first - second)


def is_below(floor: float, scores: Scores) -> bool:
    """Whether the margin of these scores, float [classes], is below the floor; one that has none isn't."""
    sure = margin(scores)
    return sure is not None and sure < floor

"""How sure of different answers both models were made, against the queries spent."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.bench.rows import SearchRow
from edgeflare.types import FrontPoint


class FrontStep(NamedTuple):
    """From so many search queries on, `margin` is the median over the searches of their best margin."""

    queries: int
    margin: float


def median_front(rows: Sequence[SearchRow]) -> tuple[FrontStep, ...]:
    """Return where the median of the best margin changes, by queries; nothing without a search.

    The margin of a triggering input is the smaller of both models' margins. At each number of queries
    a search has the best of what it had found by then, 0 where that is nothing. Starts at 0 queries,
    with 0.
    """
    searches = [row.front for row in rows if row.searched]
    if not searches:
        return ()
    at = sorted({point.queries for front in searches for point in front})
    best = np.array([_best(front, at) for front in searches], np.float64)
    steps = [FrontStep(0, 0.0)]
    for queries, margin in zip(at, np.median(best, axis=0), strict=True):
        if margin != steps[-1].margin:
            steps.append(FrontStep(queries, float(margin)))
    return tuple(steps)


def _best(front: Sequence[FrontPoint], at: Sequence[int]) -> NDArray[np.float64]:
    """Return a search's best margin at each of these numbers of queries."""
    values = np.zeros(len(at), np.float64)
    for point in front:
        start = int(np.searchsorted(at, point.queries))
        values[start:] = np.maximum(values[start:], point.margin)
    return values

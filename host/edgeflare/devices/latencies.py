"""Times of many queries in little room."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

_STEP = math.log(1.02)
_LEAST_S = 1e-9


class Latencies:
    """Counts times by size, in buckets 2 % wide; no locks.

    Any fraction of them is known to within 1 %, and a minute of a device that answers evenly takes some
    ten numbers. `buckets` is what another one's `buckets` gave.
    """

    def __init__(self, buckets: Mapping[int, int] | None = None) -> None:
        self._counts = Counter(buckets or {})

    @property
    def count(self) -> int:
        """How many times there are."""
        return self._counts.total()

    @property
    def buckets(self) -> dict[int, int]:
        """How many times each bucket has, in order."""
        return dict(sorted(self._counts.items()))

    def add(self, seconds: Sequence[float]) -> None:
        """Count some times, best many at once; none is below a nanosecond."""
        logarithms = np.log(np.maximum(np.asarray(seconds, np.float64), _LEAST_S))
        found, counts = np.unique(np.floor(logarithms / _STEP), return_counts=True)
        self._counts.update(dict(zip(map(int, found), map(int, counts), strict=True)))

    def merge(self, buckets: Mapping[int, int]) -> None:
        """Count what another one counted."""
        self._counts.update(buckets)

    def within(self, fraction: float, longest: float | None = None) -> float | None:
        """Return the time in seconds that this fraction stayed within, by nearest rank; None: there are none.

        `longest` is the longest of all, where it is known: no fraction is said to take longer.
        """
        rank = max(1, math.ceil(fraction * self.count))
        for bucket, count in sorted(self._counts.items()):
            rank -= count
            if rank <= 0:
                middle = math.exp((bucket + 0.5) * _STEP)
                return middle if longest is None else min(middle, longest)
        return None

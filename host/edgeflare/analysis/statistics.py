"""Means, intervals, tests and effect sizes, over plain numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

P_NEEDS_SCIPY = "the p values need scipy; install it with `pip install 'edgeflare[bench]'`"

_DRAWN_AT_ONCE = 1 << 22

_A12_SIZES = ((0.21, "large"), (0.14, "medium"), (0.06, "small"))
_CORRELATION_SIZES = ((0.5, "large"), (0.3, "medium"), (0.1, "small"))


@dataclass(frozen=True)
class PairedTest:
    """Two measurements of the same `n` things, a and b, compared.

    `p`: Wilcoxon signed rank test, two-sided, equal pairs left out; None without scipy. `rank_biserial`: matched-pairs
    rank-biserial correlation in [-1, 1], positive where a is larger. `a12`: Vargha and Delaney's
    measure, the probability that a value of a is larger than one of b, equal ones counted half.
    """

    p: float | None
    rank_biserial: float
    a12: float
    n: int


def mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of those that are known, None of none."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def median(values: Sequence[float | None]) -> float | None:
    """Return the median of those that are known, None of none."""
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None


def bootstrap_interval(
    groups: Sequence[Sequence[float]], *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Return the bootstrap interval (percentiles) of the mean of all values in `groups`.

    A group is what one seed input's repeats gave. Groups are drawn whole, with replacement: repeats of
    one seed input are alike, and to draw them singly would make the interval too narrow. Groups may
    differ in size; empty ones count for nothing. The same arguments give the same interval. Raises
    ValueError where there is no value at all.
    """
    filled = [group for group in groups if len(group)]
    if not filled:
        raise ValueError("there is no value to take the mean of")
    sums = np.array([np.sum(group) for group in filled], np.float64)
    sizes = np.array([len(group) for group in filled], np.float64)
    generator = np.random.default_rng(seed)
    rows = max(1, _DRAWN_AT_ONCE // len(filled))
    means: list[NDArray[np.float64]] = []
    for start in range(0, draws, rows):
        drawn = generator.integers(len(filled), size=(min(rows, draws - start), len(filled)))
        means.append(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    outside = (1 - level) / 2
    low, high = np.quantile(np.concatenate(means), (outside, 1 - outside))
    return float(low), float(high)


def paired_test(a: Sequence[float], b: Sequence[float]) -> PairedTest:
    """Compare two measurements of the same things, in the same order.

    Without scipy all is known but `p`. Raises ValueError where their numbers differ or are none.
    """
    if len(a) != len(b) or not len(a):
        raise ValueError("both sides need the same number of values, one at least")
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    differences = first - second
    differences = differences[differences != 0]
    rank_biserial = 0.0
    if differences.size:
        ranks = _ranks(np.abs(differences))
        rank_biserial = float((ranks * np.sign(differences)).sum() / ranks.sum())
    count = first.size
    rank_sum = _ranks(np.concatenate([first, second]))[:count].sum()
    a12 = float((rank_sum / count - (count + 1) / 2) / count)
    return PairedTest(_wilcoxon(differences), rank_biserial, a12, count)


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values, adjusted by Holm (1979) for being several, in the same order."""
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=lambda one: ps[one])):
        largest = max(largest, min(1.0, (len(ps) - place) * ps[index]))
        adjusted[index] = largest
    return adjusted


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return Pearson's correlation coefficient; None for less than two points, or where one side is constant."""
    if len(x) != len(y):
        raise ValueError("both sides need the same number of values")
    if len(x) < 2:
        return None
    first, second = (np.asarray(side, np.float64) - np.mean(side) for side in (x, y))
    spread = float(np.linalg.norm(first) * np.linalg.norm(second))
    if len(set(x)) < 2 or len(set(y)) < 2 or not spread:
        return None
    return float(np.clip(first @ second / spread, -1.0, 1.0))


def a12_size(a12: float) -> str:
    """Return how large an effect is, by Vargha and Delaney (2000): 0.56 small, 0.64 medium, 0.71 large."""
    return _size(a12 - 0.5, _A12_SIZES)


def rank_biserial_size(correlation: float) -> str:
    """Return how large an effect is, by Cohen (1988) for correlations: 0.1 small, 0.3 medium, 0.5 large."""
    return _size(correlation, _CORRELATION_SIZES)


def _size(effect: float, sizes: tuple[tuple[float, str], ...]) -> str:
    rounded = round(abs(effect), 9)  # 0.71 - 0.5 is a little less than 0.21
    return next((word for least, word in sizes if rounded >= least), "negligible")


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rank of each value, from 1; equal ones share the mean of theirs."""
    _, place, often = np.unique(values, return_inverse=True, return_counts=True)
    shared: NDArray[np.float64] = np.cumsum(often) - (often - 1) / 2
    return shared[place]


def _wilcoxon(differences: NDArray[np.float64]) -> float | None:
    """Return p of the differences that are not 0; None where scipy is missing."""
    try:
        from scipy import stats
    except ImportError:
        return None
    test: Any = stats.wilcoxon
    return float(test(differences).pvalue) if differences.size else 1.0

"""Means, intervals, tests and effect sizes, over plain numbers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_T = TypeVar("_T", int, str)
_P = TypeVar("_P", bound=int | str | None)

_DRAWN_AT_ONCE = 1 << 22
_DRAWS = 10_000
_MOST_DRAWS = 100_000
_ENUMERATED = 12
"""Up to this number of differences all combinations of signs are computed, else some drawn."""
_EQUAL = 1e-9
"""Relative distance within which two sums of the same numbers count as equal, so that p doesn't
follow the CPU's rounding."""

_LEAST_CORRELATION = 0.3

_A12_SIZES = ((0.21, "large"), (0.14, "medium"), (0.06, "small"))
_CORRELATION_SIZES = ((0.5, "large"), (0.3, "medium"), (0.1, "small"))


@dataclass(frozen=True)
class Spread:
    """Mean, median and 90th percentile (linear between ranks) of `count` numbers."""

    count: int
    mean: float
    median: float
    p90: float


@dataclass(frozen=True)
class CountedPair(Generic[_P]):
    """How often a triggering input made `original` into `deployed`."""

    original: _P
    deployed: _P
    count: int


@dataclass(frozen=True)
class PairedTest:
    """Two measurements of the same `n` things, a and b, compared.

    `difference` is the mean of a less b, what `p` is of; `p`: see `permutation_p`. `rank_biserial`:
    matched-pairs rank-biserial correlation in [-1, 1], positive where a is larger. `a12`: Vargha
    and Delaney's measure, the probability that a value of a is larger than one of b, equal ones
    counted half.
    """

    difference: float
    p: float
    rank_biserial: float
    a12: float
    n: int


def counted_pairs(counts: Iterable[tuple[tuple[_T, _T], int]]) -> tuple[CountedPair[_T], ...]:
    """Return pairs with their counts, the most frequent first."""
    pairs = [CountedPair(*pair, count) for pair, count in counts]
    return tuple(sorted(pairs, key=lambda pair: (-pair.count, pair.original, pair.deployed)))


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
    """Return the approximate bootstrap interval of the mean of all values in `groups`.

    It is too narrow for few or skewed values (docs/research/candidates.md has its measured
    coverage): a description of the mean, no test.

    A group is what one seed input's repeats gave. Groups are drawn whole, with replacement: repeats
    of one seed input are alike, and to draw them singly would make the interval too narrow. Groups
    may differ in size; empty ones count for nothing. The same arguments give the same interval.
    Raises ValueError where there is no value at all.
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

    Raises ValueError where their numbers differ or are none.
    """
    if len(a) != len(b) or not len(a):
        raise ValueError("both sides need the same number of values, one at least")
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    differences = first - second
    difference = float(differences.mean())
    differences = differences[differences != 0]
    rank_biserial = 0.0
    if differences.size:
        ranks = ranked(np.abs(differences))
        rank_biserial = float((ranks * np.sign(differences)).sum() / ranks.sum())
    count = first.size
    rank_sum = ranked(np.concatenate([first, second]))[:count].sum()
    a12 = float((rank_sum / count - (count + 1) / 2) / count)
    return PairedTest(difference, permutation_p(differences), rank_biserial, a12, count)


def permutation_p(differences: ArrayLike, *, alpha: float = 0.05) -> float:
    """Return p of the two-sided paired permutation test of the mean difference, (0, 1].

    Exact where both measurements have the same distribution, whatever that is: then the sign of
    each difference is a matter of chance. Differences of 0 say nothing. All combinations of signs
    are taken where there are few, or where all differences are of one size (then it is the sign
    test, of successes McNemar's exact one); else at least 10,000 are drawn, more for a small
    `alpha`, always the same, and the observed one is counted in.
    """
    values = np.asarray(differences, np.float64).ravel()
    values = values[values != 0]
    count = int(values.size)
    if not count:
        return 1.0
    sizes = np.abs(values)
    if np.ptp(sizes) <= _EQUAL * sizes[0]:
        fewer = min(int(np.count_nonzero(values > 0)), int(np.count_nonzero(values < 0)))
        return min(1.0, 2 * sum(math.comb(count, one) for one in range(fewer + 1)) / (1 << count))
    total = sizes.sum()
    least = abs(values.sum()) - _EQUAL * total
    if count <= _ENUMERATED:
        signs = np.arange(2**count)[:, None] >> np.arange(count) & 1
        return float(np.mean(np.abs(2 * (signs @ sizes) - total) >= least))
    generator = np.random.default_rng(0)
    draws = min(_MOST_DRAWS, max(_DRAWS, math.ceil(20 / alpha)))
    rows = max(1, _DRAWN_AT_ONCE // count)
    extreme = 1
    for start in range(0, draws, rows):
        signs = generator.integers(2, size=(min(rows, draws - start), count), dtype=np.int8)
        extreme += int(np.count_nonzero(np.abs(2 * (signs @ sizes) - total) >= least))
    return extreme / (draws + 1)


def ranked(values: ArrayLike) -> NDArray[np.float64]:
    """Return the rank of each value, from 1; equal ones share the mean of theirs."""
    _, place, often = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    shared: NDArray[np.float64] = np.cumsum(often) - (often - 1) / 2
    return shared[place]


def mean_ranks(sides: Sequence[Sequence[Sequence[float]]]) -> list[list[float]]:
    """Return the mean rank of each group among the values of all groups of all sides.

    A side is what was measured, a group of it what the repeats of one seed input gave. A search
    that found nothing is infinite: it ranks above all that found something, however early it ended.
    """
    ranks = iter(ranked([one for side in sides for group in side for one in group]).tolist())
    return [[float(np.mean([next(ranks) for _ in group])) for group in side] for side in sides]


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values, adjusted by Holm (1979) for being several, in the same order."""
    adjusted = [0.0] * len(ps)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=lambda one: ps[one])):
        largest = max(largest, min(1.0, (len(ps) - place) * ps[index]))
        adjusted[index] = largest
    return adjusted


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Return Pearson's correlation coefficient; None for less than two points, or where one side is
    constant."""
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
    """Return an effect's size by Vargha and Delaney (2000): 0.56 small, 0.64 medium, 0.71 large."""
    return _size(a12 - 0.5, _A12_SIZES)


def rank_biserial_size(correlation: float) -> str:
    """Return an effect's size by Cohen (1988): 0.1 small, 0.3 medium, 0.5 large."""
    return _size(correlation, _CORRELATION_SIZES)


def _size(effect: float, sizes: tuple[tuple[float, str], ...]) -> str:
    rounded = round(abs(effect), 9)  # 0.71 - 0.5 is a little less than 0.21
    return next((word for least, word in sizes if rounded >= least), "negligible")


_Z = 1.959963984540054  # two-sided 95 %


def wilson(successes: int, total: int) -> tuple[float, float]:
    """Return the two-sided 95 % Wilson score interval of a rate, within [0, 1]."""
    rate = successes / total
    square = _Z * _Z
    centre = rate + square / (2 * total)
    half = _Z * math.sqrt(rate * (1 - rate) / total + square / (4 * total * total))
    low, high = (centre - half) / (1 + square / total), (centre + half) / (1 + square / total)
    # The ends are exact where arithmetic would miss them by its last bit.
    return 0.0 if successes == 0 else low, 1.0 if successes == total else high


def upper_bound(successes: float, total: float, *, level: float = 0.95) -> float:
    """Return the one-sided exact upper bound of a rate (Clopper and Pearson, 1934).

    Effective numbers of trials that are alike needn't be whole.
    """
    if successes == total:
        return 1.0
    return _beta_quantile(successes + 1, total - successes, level)


def clustered_interval(
    successes: Sequence[int], totals: Sequence[int], *, level: float = 0.95
) -> tuple[float, float]:
    """Return a two-sided interval of a rate whose trials are alike within groups.

    `successes` and `totals` have the counts of each group, such as the inputs made from one seed.
    This is the interval of Clopper and Pearson for the effective number of trials of Korn and
    Graubard (1998, "Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data"): all trials divided by the design effect, which is estimated
    from the groups.

    Differences: the design effect is never taken below that of a correlation of .3 within groups,
    as few successes can't show it, and the quantile of t is left out: the floor makes up for it
    (`tests/benchmarks/survey/bounds.py` measures the coverage). Raises ValueError where there is no
    trial at all.
    """
    trials, found = sum(totals), sum(successes)
    if not trials:
        raise ValueError("there is no trial to take the rate of")
    size = math.fsum(total * total for total in totals) / trials
    effect = 1 + (size - 1) * _LEAST_CORRELATION
    rate, groups = found / trials, sum(total > 0 for total in totals)
    if size > 1 and 0 < found < trials and groups > 1:
        pairs = zip(successes, totals, strict=True)
        spread_ = math.fsum((count - rate * total) ** 2 for count, total in pairs)
        effect = max(effect, spread_ * groups / (groups - 1) / (trials * rate * (1 - rate)))
    effective = trials / effect
    positive, outside = rate * effective, (1 - level) / 2
    low = _beta_quantile(positive, effective - positive + 1, outside) if found else 0.0
    if found == trials:
        return low, 1.0
    return low, _beta_quantile(positive + 1, effective - positive, 1 - outside)


def binomial_tail(successes: int, total: int, share: float) -> float:
    """Return the probability of at least so many successes, each with probability `share`."""
    return 1.0 if successes <= 0 else _beta_below(successes, total - successes + 1, share)


def rounded_up(value: float) -> float:
    """Return a non-negative figure with two significant digits, never below what it was."""
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_CEILING))


def _beta_quantile(a: float, b: float, probability: float) -> float:
    """Return the value below which a beta variable lies with this probability."""
    low, high = 0.0, 1.0
    for _ in range(45):
        middle = (low + high) / 2
        if _beta_below(a, b, middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beta_below(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if not 0 < x < 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_below(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
        + a * math.log(x)
        + b * math.log1p(-x)
        - math.log(a)
    )
    fraction = 0.0
    for m in range(20 + int(2 * math.sqrt(a + b)), 0, -1):  # from where it has converged
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        fraction = odd / (1 + even / (1 + fraction))
    return front / (1 + fraction)


def spread(values: ArrayLike) -> Spread | None:
    """Return the figures of some numbers, None of none."""
    numbers = np.asarray(values, np.float64)
    if numbers.size == 0:
        return None
    return Spread(
        count=numbers.size,
        mean=float(numbers.mean()),
        median=float(np.median(numbers)),
        p90=float(np.percentile(numbers, 90)),
    )

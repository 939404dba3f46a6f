"""Every pair of candidates, compared seed by seed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np

from edgeflare.analysis.statistics import bootstrap_interval, paired_test

TIE = "tie"
_DRAWS = 10_000
_MOST_DRAWS = 100_000
_DRAWS_OUTSIDE = 10
"""So many of the draws, at least, lie beyond each end of an interval."""


@dataclass(frozen=True)
class Duel:
    """Two candidates, compared over the same `seeds`.

    `difference` is the mean of `first` less `second`, in the units of the measure, with its bootstrap
    `interval` (expanded percentiles) at `level`, which is adjusted by Bonferroni for the number of pairs.
    `verdict` is "tie" where 0 lies within it, where the seeds never differ, or where too few differ for
    any order of theirs to be sure at this level; else the name of the one that is harder to make deviate.
    `differing` seeds differ, `needed` must for a verdict. `p` is that of the Wilcoxon signed rank test, not adjusted, None without scipy.
    """

    first: str
    second: str
    seeds: int
    difference: float
    interval: tuple[float, float]
    level: float
    p: float | None
    verdict: str
    differing: int
    needed: int

    @property
    def too_few(self) -> bool:
        """Whether it is a tie only because too few seeds differ."""
        return self.verdict == TIE and not self.interval[0] <= 0 <= self.interval[1]


def duels_between(
    values: Mapping[str, Sequence[float]], *, level: float, more_is_better: bool
) -> tuple[Duel, ...]:
    """Compare every pair of these, whose values are in the same order of seeds.

    `level` is the confidence in all verdicts together.
    """
    pairs = list(combinations(values, 2))
    own = 1 - (1 - level) / len(pairs)
    return tuple(
        _duel(first, second, values[first], values[second], own, more_is_better)
        for first, second in pairs
    )


def fewest_seeds(level: float) -> int:
    """Return how many seeds are needed: with fewer even one order of all of them is no surprise at this level."""
    return 1 + math.ceil(-math.log2(1 - level))


def expanded(level: float, seeds: int) -> float:
    """Return the level of a bootstrap interval of percentiles that holds the mean of so many values at `level`.

    The percentiles alone are too narrow for few values (Hesterberg, 2015: the expanded percentile
    interval). Student's quantile is approximated as Abramowitz and Stegun (1964) do in 26.7.5.
    """
    if seeds < 2:
        return level
    z, freedom = NormalDist().inv_cdf((1 + level) / 2), seeds - 1
    student = (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )
    return 1 - 2 * NormalDist().cdf(-student * math.sqrt(seeds / freedom))


def _duel(
    first: str,
    second: str,
    a: Sequence[float],
    b: Sequence[float],
    level: float,
    more_is_better: bool,
) -> Duel:
    differences = np.asarray(a, np.float64) - np.asarray(b, np.float64)
    wider = expanded(level, differences.size)
    outside = max(1 - wider, 2 * _DRAWS_OUTSIDE / _MOST_DRAWS)  # of 2 seeds `wider` is 1
    draws = max(_DRAWS, math.ceil(2 * _DRAWS_OUTSIDE / outside))
    low, high = bootstrap_interval([[one] for one in differences], level=wider, draws=draws)
    differing, needed = int(np.count_nonzero(differences)), fewest_seeds(level)
    verdict = TIE
    if not low <= 0 <= high and differing >= needed:
        verdict = first if (low > 0) == more_is_better else second
    return Duel(
        first=first,
        second=second,
        seeds=differences.size,
        difference=float(differences.mean()),
        interval=(low, high),
        level=level,
        p=paired_test(a, b).p,
        verdict=verdict,
        differing=differing,
        needed=needed,
    )

"""Every pair of candidates, compared seed by seed."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from edgeflare.statistics import bootstrap_interval, permutation_p

TIE = "tie"
_DRAWS = 10_000
_MOST_DRAWS = 100_000
_DRAWS_OUTSIDE = 10
"""So many of the draws, at least, lie beyond each end of an interval."""


@dataclass(frozen=True)
class Duel:
    """Two candidates, compared over the same `seeds`.

    `difference` is the mean of `first` less `second`, in the units of the measure, with its
    approximate bootstrap `interval` (expanded percentiles) at `level`, which is adjusted by
    Bonferroni for the number of pairs. Both describe. What decides is `p`, of the paired
    permutation test, not adjusted: `verdict` is the name of the one that is harder to make deviate
    where p is at most 1 - `level`, else "tie": the seeds can't tell. `differing` seeds differ, on
    `higher` of them the measure is higher for `first`; `needed` must differ for any order of theirs
    to be sure at this level.
    """

    first: str
    second: str
    seeds: int
    difference: float
    interval: tuple[float, float]
    level: float
    p: float
    verdict: str
    differing: int
    higher: int
    needed: int

    @property
    def too_few(self) -> bool:
        """Whether it is a tie only because too few seeds differ: all in favour of the same one."""
        return self.verdict == TIE and self.differing > 0 and self.higher in (0, self.differing)


def duels_between(
    values: Mapping[str, Sequence[float]],
    *,
    level: float,
    more_is_better: bool,
    tested: Mapping[str, Sequence[float]] | None = None,
) -> tuple[Duel, ...]:
    """Compare every pair of these, whose values are in the same order of seeds.

    `level` is the confidence in all verdicts together. `tested` takes the place of the values in
    the test, as ranks do.
    """
    tested = values if tested is None else tested
    pairs = list(combinations(values, 2))
    own = 1 - (1 - level) / len(pairs)
    duels = []
    for first, second in pairs:
        of_means, of_test = (
            np.asarray(of[first], np.float64) - np.asarray(of[second], np.float64)
            for of in (values, tested)
        )
        duels.append(_duel(first, second, of_means, of_test, own, more_is_better))
    return tuple(duels)


def _fewest_seeds(level: float) -> int:
    """Return the smallest number of seeds that can give a verdict at this level."""
    return 1 + math.ceil(-math.log2(1 - level))


def expand_level(level: float, seeds: int) -> float:
    """Return the level of a percentile interval that holds the mean of so many values at `level`.

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
    differences: NDArray[np.float64],
    tested: NDArray[np.float64],
    level: float,
    more_is_better: bool,
) -> Duel:
    wider = expand_level(level, differences.size)
    outside = max(1 - wider, 2 * _DRAWS_OUTSIDE / _MOST_DRAWS)  # of 2 seeds `wider` is 1
    draws = max(_DRAWS, math.ceil(2 * _DRAWS_OUTSIDE / outside))
    p = permutation_p(tested, alpha=1 - level)
    verdict = TIE
    if p <= 1 - level:
        verdict = first if (tested.sum() > 0) == more_is_better else second
    return Duel(
        first=first,
        second=second,
        seeds=differences.size,
        difference=float(differences.mean()),
        interval=bootstrap_interval([[one] for one in differences], level=wider, draws=draws),
        level=level,
        p=p,
        verdict=verdict,
        differing=int(np.count_nonzero(tested)),
        higher=int(np.count_nonzero(tested > 0)),
        needed=_fewest_seeds(level),
    )

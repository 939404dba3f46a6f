"""How well a measure of pairs of classes finds those that are truly confused or treated unequally.

Measures are float64 [pairs], higher where a pair is more suspicious: distances count negated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from edgeflare.errors import UsageError
from edgeflare.statistics import pearson, ranked
from edgeflare_whitebox.stored import Count, Share

TOP_SHARE = 0.01
"""The share of all pairs that is flagged where the most suspicious ones are wanted."""


@dataclass(frozen=True)
class PairDetection:
    """Flagged pairs against true ones: those of the flagged that are true, and that aren't.

    `true` is the number of all true pairs. `precision` is None where none is flagged, `recall`
    where none is true; 0 to 1.
    """

    true_positives: Count
    false_positives: Count
    true: Count
    precision: Share | None
    recall: Share | None


@dataclass(frozen=True)
class CostEffectiveness:
    """Areas under the cost-effectiveness curve (AUCEC), 0 to 1.

    The curve has the share of the true pairs that are found in the first share of all pairs, from
    the most suspicious one on. `optimal` is that of an order with the true pairs first; random
    order has 0.5.
    """

    area: Share
    optimal: Share
    random: Share = 0.5


@dataclass(frozen=True)
class MeasureEvaluation:
    """How well a measure of the original's pairs finds the true ones, by labels.

    `measure` is NAPVD, leak, or avg_bias; the first two are compared with the original's confusion,
    the last with its confusion disparity. `correlation` is Spearman's, of the measure itself: NAPVD
    should be negative. `by_deviation` flags pairs beyond a standard deviation, `top` the most
    suspicious hundredth.
    """

    measure: str
    pairs: Count
    correlation: Annotated[float, Field(ge=-1, le=1)] | None
    by_deviation: PairDetection
    top: PairDetection
    cost: CostEffectiveness | None


def outlying(values: ArrayLike) -> NDArray[np.bool_]:
    """Return which values are above the mean by more than one standard deviation, bool [values].

    The standard deviation is that of the population. Values that aren't known (NaN) count for
    nothing. Source: Tian et al., ICSE 2020, sections IV-B and IV-C: so are both the flagged pairs
    and the true ones found.
    """
    given = np.asarray(values, np.float64)
    known = given[np.isfinite(given)]
    if not known.size:
        return np.zeros(given.shape, bool)
    with np.errstate(invalid="ignore"):
        found: NDArray[np.bool_] = given > known.mean() + known.std()
    return found


def top_share_of(values: ArrayLike, share: float = TOP_SHARE) -> NDArray[np.bool_]:
    """Return which values are among the highest ones, bool [values]: of n that are known n * share.

    That number is rounded down; of equal values the first ones count. Raises UsageError for a share
    outside 0..1.
    """
    if not 0 <= share <= 1:
        raise UsageError(f"the share of pairs to flag is from 0 to 1, not {share}")
    given = np.asarray(values, np.float64)
    known = np.flatnonzero(np.isfinite(given))
    order = known[np.argsort(-given[known], kind="stable")]
    found = np.zeros(given.shape, bool)
    found[order[: int(len(known) * share)]] = True
    return found


def detected(flagged: ArrayLike, true: ArrayLike) -> PairDetection:
    """Return how many of the flagged pairs are true ones; both are bool [pairs]."""
    said, real = np.asarray(flagged, bool), np.asarray(true, bool)
    _check_alike(said, real)
    hits, all_true = int((said & real).sum()), int(real.sum())
    misses = int(said.sum()) - hits
    return PairDetection(
        hits,
        misses,
        all_true,
        hits / (hits + misses) if hits + misses else None,
        hits / all_true if all_true else None,
    )


def cost_effectiveness(values: ArrayLike, true: ArrayLike) -> CostEffectiveness | None:
    """Return the areas under the curve of a measure, float [pairs]; None where no pair is true.

    The area is exact, by trapezoids; within equal values the curve is a straight line, which is the
    mean over their orders.

    Differences: the authors' release takes 40 points of the curve, in one order of equal values.
    """
    given, real = np.asarray(values, np.float64), np.asarray(true, bool)
    _check_alike(given, real)
    if not real.any():
        return None
    _, group = np.unique(-given, return_inverse=True)
    pairs, found = np.bincount(group), np.bincount(group, weights=real)
    cost = np.concatenate([[0.0], np.cumsum(pairs) / given.size])
    effect = np.concatenate([[0.0], np.cumsum(found) / real.sum()])
    area = float((np.diff(cost) * (effect[1:] + effect[:-1]) / 2).sum())
    return CostEffectiveness(min(area, 1.0), 1 - float(real.mean()) / 2)


def evaluate_measure(
    measure: str, values: NDArray[np.float64], truth: NDArray[np.float64]
) -> MeasureEvaluation:
    """Return how well a measure of pairs, float64 [pairs], finds those that are true outlying.

    `values` are higher where a pair is more suspicious, `truth` is what was measured of the same
    pairs; those for which either isn't known (NaN) are left out.
    """
    known = np.isfinite(values) & np.isfinite(truth)
    values, truth = values[known], truth[known]
    true = outlying(truth)
    return MeasureEvaluation(
        measure,
        len(values),
        spearman(values, truth),
        detected(outlying(values), true),
        detected(top_share_of(values), true),
        cost_effectiveness(values, true),
    )


def spearman(x: ArrayLike, y: ArrayLike) -> float | None:
    """Return Spearman's rank correlation of two measures, over the pairs for which both are known.

    None of less than two such pairs, and where one side is constant.
    """
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    _check_alike(first, second)
    known = np.isfinite(first) & np.isfinite(second)
    sides: Sequence[NDArray[np.float64]] = [ranked(one[known]) for one in (first, second)]
    return pearson(sides[0].tolist(), sides[1].tolist())


def _check_alike(one: NDArray[np.generic], other: NDArray[np.generic]) -> None:
    if one.shape != other.shape or one.ndim != 1:
        raise UsageError(
            f"figures of the same pairs are compared, [pairs] each, not {list(one.shape)} and "
            f"{list(other.shape)}"
        )

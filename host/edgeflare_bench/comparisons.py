"""Strategies compared with the baseline, and correlations over the pairs of a study."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from edgeflare.statistics import (
    PairedTest,
    a12_size,
    holm,
    mean_ranks,
    paired_test,
    pearson,
    rank_biserial_size,
)
from edgeflare_bench.cell_figures import CellFigures
from edgeflare_bench.searches import SearchRow

_LEAST_POINTS = 3
_SIGNIFICANT = 0.05
"""Largest adjusted p value of a verdict."""


@dataclass(frozen=True, kw_only=True)
class BaselineContrast(PairedTest):
    """One measure of a strategy and of the baseline, paired by seed input.

    `ratio` is mean / baseline mean, a description. The test (positive and above 0.5 where the
    strategy has more) is of ranks where a search can end without the figure; the sizes are its
    effect in words: negligible, small, medium or large (Cohen 1988; Vargha and Delaney 2000).
    `p_holm` is p, adjusted by Holm (1979) for all the comparisons of this measure in the report.
    """

    mean: float
    baseline_mean: float
    ratio: float | None
    p_holm: float
    rank_biserial_size: str
    a12_size: str

    @property
    def verdict(self) -> str:
        """Return "more" or "less" where `p_holm` is at most 5 %, else "can't tell"."""
        if self.p_holm > _SIGNIFICANT:
            return "can't tell"
        return "more" if self.difference > 0 else "less"


@dataclass(frozen=True)
class Comparison:
    """A strategy compared with the baseline on one pair.

    Over the `seeds` seed inputs that both searched from, with the mean of each one's repeats.
    Success is compared by itself, by an exact test. Queries and seconds until a triggering input
    was found are compared by their ranks, and a search that found nothing ranks above all others;
    in their means it counts what it spent.
    """

    pair: str
    strategy: str
    baseline: str
    seeds: int
    success: BaselineContrast
    queries: BaselineContrast
    seconds: BaselineContrast


@dataclass(frozen=True)
class ComparisonPoint:
    """A pair of a study: its x, and the means over the searches that found a trigger."""

    pair: str
    x: float
    queries: float | None
    seconds: float | None
    success_rate: float | None


@dataclass(frozen=True)
class Correlation:
    """Pearson's correlation of x with mean queries and seconds over a study (section 5.4.1).

    None for less than three points that have the figure, since two always lie on a line, or where
    all are equal. The means are over the searches that found a triggering input; `lowest_success`
    is the lowest success rate of the points: below 1 the means leave out searches that needed more.
    """

    study: str
    strategy: str
    queries: float | None
    seconds: float | None
    lowest_success: float | None
    points: tuple[ComparisonPoint, ...]

    @property
    def leaves_out(self) -> bool:
        """Whether the means leave out searches, which found nothing."""
        return self.lowest_success is not None and self.lowest_success < 1


def compare(rows: Sequence[SearchRow], baseline_rows: Sequence[SearchRow]) -> Comparison | None:
    """Compare one strategy's searches on a pair with the baseline's; None without common seeds."""
    mine, its = _by_seed(rows), _by_seed(baseline_rows)
    common = [seed_id for seed_id in mine if seed_id in its]
    if not common:
        return None

    sides = [[of[one] for one in common] for of in (mine, its)]

    def contrast(value: Callable[[SearchRow], float], *, censored: bool = True) -> BaselineContrast:
        means = [[fmean(map(value, rows)) for rows in side] for side in sides]
        if not censored:
            return _contrast(means, means)
        found = [
            [[value(row) if row.found else math.inf for row in rows] for rows in side]
            for side in sides
        ]
        return _contrast(means, mean_ranks(found))

    return Comparison(
        pair=rows[0].pair,
        strategy=rows[0].strategy,
        baseline=baseline_rows[0].strategy,
        seeds=len(common),
        success=contrast(lambda row: row.found, censored=False),
        queries=contrast(lambda row: row.queries),
        seconds=contrast(lambda row: row.seconds),
    )


def adjusted(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons with `p_holm` filled in."""
    measures = ("success", "queries", "seconds")
    ps = [holm([getattr(one, name).p for one in comparisons]) for name in measures]
    return tuple(
        replace(
            one,
            **{
                name: replace(getattr(one, name), p_holm=p)
                for name, p in zip(measures, adjusted_ps, strict=True)
            },
        )
        for one, *adjusted_ps in zip(comparisons, *ps, strict=True)
    )


def correlate(
    study: str, strategy: str, xs: dict[str, float], cells: Sequence[CellFigures]
) -> Correlation:
    """Return the correlation of one strategy's figures with x; `xs` gives it for each pair.

    Pairs of the same x are one point, the mean of their figures.
    """
    points = tuple(
        ComparisonPoint(cell.pair, xs[cell.pair], cell.queries, cell.seconds, cell.success_rate)
        for cell in cells
        if cell.strategy == strategy and cell.pair in xs
    )
    return Correlation(
        study=study,
        strategy=strategy,
        queries=_correlation([(point.x, point.queries) for point in points]),
        seconds=_correlation([(point.x, point.seconds) for point in points]),
        lowest_success=min(
            (point.success_rate for point in points if point.success_rate is not None), default=None
        ),
        points=points,
    )


def _correlation(points: Sequence[tuple[float, float | None]]) -> float | None:
    at: dict[float, list[float]] = {}
    for x, y in points:
        if y is not None:
            at.setdefault(x, []).append(y)
    if len(at) < _LEAST_POINTS:
        return None
    return pearson(list(at), [fmean(ys) for ys in at.values()])


def _by_seed(rows: Sequence[SearchRow]) -> dict[str, list[SearchRow]]:
    groups: dict[str, list[SearchRow]] = {}
    for row in rows:
        if row.searched:
            groups.setdefault(row.seed_id, []).append(row)
    return groups


def _contrast(
    values: Sequence[Sequence[float]], tested: Sequence[Sequence[float]]
) -> BaselineContrast:
    """Describe the values of a strategy and of the baseline, and test `tested` in place of them."""
    test = paired_test(*tested)
    mean, baseline_mean = map(fmean, values)
    return BaselineContrast(
        **vars(test),
        mean=mean,
        baseline_mean=baseline_mean,
        ratio=mean / baseline_mean if baseline_mean else None,
        p_holm=test.p,
        rank_biserial_size=rank_biserial_size(test.rank_biserial),
        a12_size=a12_size(test.a12),
    )

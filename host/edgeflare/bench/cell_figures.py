"""One strategy on one pair in figures, over all repeats."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.bench.costs import Costs, FrontStep, costs, median_front
from edgeflare.bench.searches import SearchRow
from edgeflare.statistics import bootstrap_interval, mean, median
from edgeflare.types import Status

WITHIN_SECONDS = (5, 10, 15)
"""The timeouts of section 6.2."""


@dataclass(frozen=True)
class RepeatFigures:
    """One repeat: searches, those with a triggering input, and over these the mean queries and seconds."""

    repeat: int
    searched: int
    found: int
    queries: float | None
    seconds: float | None


@dataclass(frozen=True)
class PublishedFigures:
    """What a source says of the same strategy on the same pair; `success` is a rate from 0 to 1."""

    source: str
    queries: float | None = None
    success: float | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class CellFigures:
    """What a strategy did on a pair, over all its repeats; every figure is None where nothing tells it.

    `searches` have ended, each one a seed input in a repeat; `searched` are those but for the seeds
    that were a finding themselves. `success_rate` is found / searched. `queries` and `seconds` are means
    over the searches that found a triggering input (section 4.3, average queries and average time),
    with median and 90th percentile; `queries_interval` is the approximate 95 % bootstrap interval of the mean, seed
    inputs drawn whole; None for less than two. `queries_spent` is the mean over all that were searched: one
    that found nothing counts what it spent. `within` has for "5", "10" and "15" seconds the share of
    those searched that found a triggering input in no more search time (section 6.2), None from the
    timeout on. One search was limited to `max_queries` queries and `timeout_s` seconds (0: no limit). `unique` is the
    share of triggering inputs that no other one of the same repeat equals value by value (section 6.3),
    `duplicates` the number of the others. `ties` counts seed inputs on which a model's top-1 was a tie.
    The medians of `l2`, `linf`, `ssim`, `snr_db` (in the units of `SearchRow`), of both models' margins (top-1 minus
    top-2) and of the smaller of the two are over the triggering inputs; `label_kept` is the share of
    these to which the original gives the seed's label or words. `costs` are over the searches that found a
    triggering input, `costs_spent` over all that were searched; `front` is that of the median search.
    """

    pair: str
    strategy: str
    max_queries: int
    timeout_s: float
    seeds: int
    searches: int
    searched: int
    found: int
    success_rate: float | None
    by_status: dict[str, int]
    queries: float | None
    queries_interval: tuple[float, float] | None
    queries_median: float | None
    queries_p90: float | None
    queries_spent: float | None
    seconds: float | None
    seconds_median: float | None
    within: dict[str, float | None]
    unique: float | None
    duplicates: int
    ties: int
    l2: float | None
    linf: float | None
    ssim: float | None
    snr_db: float | None
    original_margin: float | None
    deployed_margin: float | None
    smaller_margin: float | None
    label_kept: float | None
    costs: Costs
    costs_spent: Costs
    front: tuple[FrontStep, ...]
    repeats: tuple[RepeatFigures, ...]
    published: tuple[PublishedFigures, ...]

    @property
    def timeouts(self) -> int:
        """How many searches ran out of time."""
        return self.by_status[Status.TIMEOUT.value]

    @property
    def exhausted(self) -> int:
        """How many searches ran out of queries."""
        return self.by_status[Status.EXHAUSTED.value]


def cell_figures(
    pair: str,
    strategy: str,
    rows: Sequence[SearchRow],
    *,
    max_queries: int = 0,
    timeout_s: float = 0.0,
    ties: int = 0,
    published: Sequence[PublishedFigures] = (),
) -> CellFigures:
    """Return the figures of a strategy's searches on a pair, of all repeats together."""
    statuses = Counter(row.status for row in rows)
    searched = [row for row in rows if row.searched]
    found = [row for row in rows if row.found]
    queries = [row.queries for row in found]
    seconds = [row.seconds for row in found]
    unique = _unique(found)
    return CellFigures(
        pair=pair,
        strategy=strategy,
        max_queries=max_queries,
        timeout_s=timeout_s,
        seeds=len({row.seed_id for row in rows}),
        searches=len(rows),
        searched=len(searched),
        found=len(found),
        success_rate=_share(len(found), len(searched)),
        by_status={status.value: statuses[status.value] for status in Status},
        queries=mean(queries),
        queries_interval=_interval(found),
        queries_median=median(queries),
        queries_p90=float(np.percentile(queries, 90)) if queries else None,
        queries_spent=mean([row.queries for row in searched]),
        seconds=mean(seconds),
        seconds_median=median(seconds),
        within={
            str(limit): _share(sum(one <= limit for one in seconds), len(searched))
            if is_shorter(limit, timeout_s)
            else None
            for limit in WITHIN_SECONDS
        },
        unique=_share(unique, len(found)),
        duplicates=len(found) - unique,
        ties=ties,
        l2=median([row.l2 for row in found]),
        linf=median([row.linf for row in found]),
        ssim=median([row.ssim for row in found]),
        snr_db=median([row.snr_db for row in found]),
        original_margin=median([row.original_margin for row in found]),
        deployed_margin=median([row.deployed_margin for row in found]),
        smaller_margin=median([row.smaller_margin for row in found]),
        label_kept=mean([row.seed_label_kept for row in found]),
        costs=costs(found),
        costs_spent=costs(searched),
        front=median_front(rows),
        repeats=tuple(
            _repeat(repeat, [row for row in searched if row.repeat == repeat])
            for repeat in sorted({row.repeat for row in rows})
        ),
        published=tuple(published),
    )


def is_shorter(limit: float, timeout_s: float) -> bool:
    """Whether so many seconds are less than the timeout; 0 is none."""
    return not timeout_s or limit < timeout_s


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _interval(found: Sequence[SearchRow]) -> tuple[float, float] | None:
    groups: dict[str, list[float]] = {}
    for row in found:
        groups.setdefault(row.seed_id, []).append(row.queries)
    return bootstrap_interval(list(groups.values())) if len(groups) > 1 else None


def _unique(found: Sequence[SearchRow]) -> int:
    often = Counter((row.repeat, row.trigger) for row in found)
    return sum(count for count in often.values() if count == 1)


def _repeat(repeat: int, searched: Sequence[SearchRow]) -> RepeatFigures:
    found = [row for row in searched if row.found]
    return RepeatFigures(
        repeat=repeat,
        searched=len(searched),
        found=len(found),
        queries=mean([row.queries for row in found]),
        seconds=mean([row.seconds for row in found]),
    )

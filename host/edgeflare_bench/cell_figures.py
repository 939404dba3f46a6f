"""One strategy on one pair, over all repeats: results, costs, false alarms."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgeflare.analysis.outcome_stats import TriggerMedians
from edgeflare.statistics import bootstrap_interval, mean, median, upper_bound
from edgeflare.types import TRIGGERS, Status
from edgeflare_bench.searches import SearchRow
from edgeflare_bench.suite import Published

DELAYS_MS = (0, 5, 20, 100)
"""Delays of a round trip in milliseconds for which seconds are computed; 0: as measured."""


@dataclass(frozen=True)
class Costs:
    """Means over `searches` searches; every figure is None of none.

    `queries` are search queries, with their median; `device_queries` all inputs that the device was
    given for a search: the search's own, those that confirm, and the seed. `host_queries` are
    inputs given to the original alone, with their median. `round_trips` are requests to the device
    during the search. `seconds_at` has for "0" the search's seconds as measured, and for "5", "20"
    and "100" milliseconds those with so much more delay in each round trip, computed from their
    number.
    """

    searches: int
    queries: float | None
    queries_median: float | None
    device_queries: float | None
    host_queries: float | None
    host_queries_median: float | None
    round_trips: float | None
    seconds_at: dict[str, float | None]


def costs(rows: Sequence[SearchRow]) -> Costs:
    """Return what these searches cost on average."""
    means = ("queries", "device_queries", "host_queries", "round_trips")
    medians = ("queries", "host_queries")
    return Costs(
        searches=len(rows),
        **{name: mean([getattr(row, name) for row in rows]) for name in means},
        **{f"{name}_median": median([getattr(row, name) for row in rows]) for name in medians},
        seconds_at={
            str(delay): mean([row.seconds + row.round_trips * delay / 1000 for row in rows])
            for delay in DELAYS_MS
        },
    )


class FrontStep(NamedTuple):
    """From `queries` on, `margin` is the median over the searches of their best margin."""

    queries: int
    margin: float


WITHIN_SECONDS = (5, 10, 15)
"""The timeouts of section 6.2."""


@dataclass(frozen=True)
class RepeatFigures:
    """One repeat; mean queries and seconds are over the searches that found a trigger."""

    repeat: int
    searched: int
    found: int
    queries: float | None
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class CellFigures(TriggerMedians):
    """A strategy's results on a pair, over all its repeats; an unknown figure is None.

    `searches` have ended, each one a seed input in a repeat; `searched` are those but for the seeds
    that were a finding themselves. `success_rate` is found / searched. `queries` and `seconds` are
    means over the searches that found a triggering input (section 4.3, average queries and average
    time), with median and 90th percentile; `queries_interval` is the approximate 95 % bootstrap
    interval of the mean, seed inputs drawn whole; None for less than two. `queries_spent` is the
    mean over all that were searched: one that found nothing counts what it spent. `within` has for
    "5", "10" and "15" seconds the share of those searched that found a triggering input in no more
    search time (section 6.2), None from the timeout on. One search was limited to `max_queries`
    queries and `timeout_s` seconds (0: no limit). `unique` is the share of triggering inputs that
    no other one of the same repeat equals value by value (section 6.3), `duplicates` the number of
    the others. `ties` counts seed inputs on which a model's top-1 was a tie. The medians, of `ssim`
    and of the smaller margin of both models, too, are in the units of `SearchRow`; `label_kept` is
    the share of triggering inputs to which the original gives the seed's label or words. `costs`
    are over the searches that found a triggering input, `costs_spent` over all that were searched;
    `front` is that of the median search.
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
    ssim: float | None
    smaller_margin: float | None
    label_kept: float | None
    costs: Costs
    costs_spent: Costs
    front: tuple[FrontStep, ...]
    repeats: tuple[RepeatFigures, ...]
    published: tuple[Published, ...]

    @property
    def timeouts(self) -> int:
        """How many searches ran out of time."""
        return self.by_status[Status.TIMEOUT.value]

    @property
    def exhausted(self) -> int:
        """How many searches ran out of queries."""
        return self.by_status[Status.EXHAUSTED.value]


_MEDIANS = (
    *("l2", "linf", "ssim", "snr_db"),
    *("original_margin", "deployed_margin", "smaller_margin"),
)


def cell_figures(
    pair: str,
    strategy: str,
    rows: Sequence[SearchRow],
    *,
    max_queries: int = 0,
    timeout_s: float = 0.0,
    ties: int = 0,
    published: Sequence[Published] = (),
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
        by_status={status.value: statuses[status] for status in Status},
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
        **{name: median([getattr(row, name) for row in found]) for name in _MEDIANS},
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
    """Whether `limit` seconds are less than the timeout; 0: no timeout."""
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


def median_front(rows: Sequence[SearchRow]) -> tuple[FrontStep, ...]:
    """Return where the median of the best margin changes, by queries; nothing without a search.

    The margin of a triggering input is the smaller of both models' margins. At each number of
    queries a search has the best of what it had found by then, 0 where that is nothing. Starts at 0
    queries, with 0.
    """
    fronts = [row.front for row in rows if row.searched]
    at = sorted({point.queries for front in fronts for point in front})
    best = np.zeros((len(fronts), len(at)), np.float64)
    for values, front in zip(best, fronts, strict=True):
        for point in front:
            after = values[int(np.searchsorted(at, point.queries)) :]
            np.maximum(after, point.margin, out=after)
    steps = [FrontStep(0, 0.0)] if fronts else []
    for queries, margin in zip(at, np.median(best, axis=0) if fronts else (), strict=True):
        if margin != steps[-1].margin:
            steps.append(FrontStep(queries, float(margin)))
    return tuple(steps)


@dataclass(frozen=True)
class FalseAlarms:
    """False alarms of one strategy on one control pair.

    `seeds` seed inputs were tried by a search that asked the device, `unasked` by none; those on
    which every search failed are left out; from `seeds_with` of them a false alarm came in any
    repeat: a triggering input (`found`, over all repeats), or the seed itself (`seeds_deviating`,
    likewise); `endings` counts by status how the other searches ended. `upper_bound` is the
    one-sided 95 % upper confidence bound (Clopper and Pearson 1934) of the rate of seed inputs with
    one, 0 to 1; None without a seed input.
    """

    pair: str
    strategy: str
    margin_floor: float
    seeds: int
    unasked: int
    seeds_with: int
    found: int
    seeds_deviating: int
    endings: dict[str, int]
    upper_bound: float | None

    @property
    def rate(self) -> float | None:
        """The share of seed inputs with a false alarm, 0 to 1; None without a seed input."""
        return self.seeds_with / self.seeds if self.seeds else None


def false_alarms(
    pair: str, strategy: str, margin_floor: float, rows: Sequence[SearchRow]
) -> FalseAlarms:
    """Return the false alarms among a strategy's searches on a control pair."""
    alarms = [row for row in rows if row.status in TRIGGERS]
    found = sum(row.found for row in alarms)
    answered = [row for row in rows if row.status is not Status.FAILED]
    seeds = {row.seed_id for row in answered if row.queries or row.status in TRIGGERS}
    seeds_with = len({row.seed_id for row in alarms})
    return FalseAlarms(
        pair=pair,
        strategy=strategy,
        margin_floor=margin_floor,
        seeds=len(seeds),
        unasked=len({row.seed_id for row in answered} - seeds),
        seeds_with=seeds_with,
        found=found,
        seeds_deviating=len(alarms) - found,
        endings=dict(Counter(row.status.value for row in rows if row.status not in TRIGGERS)),
        upper_bound=upper_bound(seeds_with, len(seeds)) if seeds else None,
    )

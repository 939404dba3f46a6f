"""What the searches of one strategy on one pair cost: the device, the host, and time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.bench.searches import SearchRow
from edgeflare.statistics import mean, median, upper_bound
from edgeflare.types import TRIGGERS, FrontPoint, Status

DELAYS_MS = (0, 5, 20, 100)
"""Delays of a round trip to the device at which seconds are told, in milliseconds; 0 is as measured."""


@dataclass(frozen=True)
class Costs:
    """Means over `searches` searches; every figure is None of none.

    `queries` are search queries, with their median; `device_queries` all inputs that the device was given for a search: the search's own, those that
    confirm, and the seed. `host_queries` are inputs given to the original alone, with their median.
    `round_trips` are requests to the device during the search. `seconds_at` has for "0" the search's
    seconds as measured, and for "5", "20" and "100" milliseconds those with so much more delay in each
    round trip, computed from their number.
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
    return Costs(
        searches=len(rows),
        queries=mean([row.queries for row in rows]),
        queries_median=median([row.queries for row in rows]),
        device_queries=mean([row.device_queries for row in rows]),
        host_queries=mean([row.host_queries for row in rows]),
        host_queries_median=median([row.host_queries for row in rows]),
        round_trips=mean([row.round_trips for row in rows]),
        seconds_at={
            str(delay): mean([row.seconds + row.round_trips * delay / 1000 for row in rows])
            for delay in DELAYS_MS
        },
    )


_ALARMS = {status.value for status in TRIGGERS}


@dataclass(frozen=True)
class FalseAlarms:
    """What one strategy reported on one control pair.

    `seeds` seed inputs were tried by a search that asked the device, `unasked` by none; those on which every search
    failed are left out; from `seeds_with` of
    them a false alarm came in any repeat: a triggering input (`found`, over all repeats), or the seed itself (`seeds_deviating`, likewise);
    `endings` counts by status how the other searches ended. `upper_bound` is the one-sided 95 % upper confidence bound (Clopper and Pearson 1934) of the
    rate of seed inputs with one, 0 to 1; None without a seed input.
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
    deviating = [row for row in rows if row.status == Status.SEED_DEVIATES.value]
    found = [row for row in rows if row.found]
    answered = [row for row in rows if row.status != Status.FAILED.value]
    seeds = {row.seed_id for row in answered if row.queries or row.status in _ALARMS}
    seeds_with = {row.seed_id for row in (*found, *deviating)}
    return FalseAlarms(
        pair=pair,
        strategy=strategy,
        margin_floor=margin_floor,
        seeds=len(seeds),
        unasked=len({row.seed_id for row in answered} - seeds),
        seeds_with=len(seeds_with),
        found=len(found),
        seeds_deviating=len(deviating),
        endings=dict(Counter(row.status for row in rows if row.status not in _ALARMS)),
        upper_bound=upper_bound(len(seeds_with), len(seeds)) if seeds else None,
    )


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

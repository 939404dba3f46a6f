"""What the searches of one strategy on one pair cost: the device, the host, and time."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgeflare.analysis.statistics import mean, median
from edgeflare.bench.rows import SearchRow

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

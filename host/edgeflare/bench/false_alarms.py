"""Findings where there can be none: on pairs of a model and an equal copy of it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from edgeflare.bench.rows import SearchRow
from edgeflare.campaign.statistics import upper_bound
from edgeflare.types import TRIGGERS, Status

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

"""A campaign in figures."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.analysis.opening import opened
from edgeflare.store import OutcomeRecord, SeedRecord, Store
from edgeflare.types import Decision, Status


@dataclass(frozen=True)
class Spread:
    """Mean, median and 90th percentile (linear between ranks) of `count` numbers."""

    count: int
    mean: float
    median: float
    p90: float


@dataclass(frozen=True)
class LabelPair:
    """How often a triggering input made `original` into `deployed`, both class indices."""

    original: int
    deployed: int
    count: int


@dataclass(frozen=True)
class Summary:
    """What a campaign found so far.

    `finished` seeds have an outcome, `unfinished` ones not yet; `by_status` counts the outcomes by
    each `Status`. `searched` are the finished ones but for those that were a finding themselves;
    `success_rate` is found / searched, None while nothing was searched. `queries_*` are search
    queries and `seconds_*` search time without queueing: over the seeds with a triggering input, and
    over all that were searched; None for no seed at all. `total_queries` has the four counters over
    all outcomes. `label_pairs`, most frequent first, medians of the margins (top-1 minus top-2), of
    L2 (pixels from 0 to 1) and Linf (levels) are over the triggering inputs. `ties` counts seeds on
    which a model's top-1 was a tie; `*_right` counts the `labelled` seeds whose label a model gives. `devices` and `models` are as the store has them.
    """

    campaign: str
    folder: str
    created_at: str
    seeds: int
    skipped: int
    finished: int
    unfinished: int
    searched: int
    found: int
    ties: int
    labelled: int
    original_right: int
    deployed_right: int
    success_rate: float | None
    by_status: dict[str, int]
    queries_found: Spread | None
    queries_searched: Spread | None
    seconds_found: Spread | None
    seconds_searched: Spread | None
    total_queries: dict[str, int]
    label_pairs: tuple[LabelPair, ...]
    original_margin: float | None
    deployed_margin: float | None
    l2: float | None
    linf: float | None
    devices: tuple[dict[str, Any], ...]
    models: dict[str, Any]
    notices: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the same names."""
        return asdict(self)


def summarize(campaign: Store | Path) -> Summary:
    """Count what a campaign found. Raises StoreError where its folder can't be used."""
    with opened(campaign) as store:
        return _summary(store)


def _summary(store: Store) -> Summary:
    decisions: Counter[Decision | None] = Counter()
    right: Counter[str] = Counter()
    for seed in store.seeds():
        decisions[seed.outputs and seed.outputs.decision] += 1
        right.update(_right(seed))
    outcomes = [_figures_only(outcome) for outcome in store.outcomes()]
    seeds = decisions.total()
    statuses = Counter(outcome.status for outcome in outcomes)
    searched = [one for one in outcomes if one.searched]
    found = [one for one in outcomes if one.status is Status.FOUND]
    return Summary(
        campaign=store.id,
        folder=str(store.folder),
        created_at=store.created_at.isoformat(),
        seeds=seeds,
        skipped=len(store.skipped()),
        finished=len(outcomes),
        unfinished=seeds - len(outcomes),
        searched=len(searched),
        found=len(found),
        ties=decisions[Decision.TIE],
        labelled=right["labelled"],
        original_right=right["original"],
        deployed_right=right["deployed"],
        success_rate=len(found) / len(searched) if searched else None,
        by_status={status.value: statuses[status] for status in Status},
        queries_found=_spread(one.search_queries for one in found),
        queries_searched=_spread(one.search_queries for one in searched),
        seconds_found=_spread(one.seconds for one in found),
        seconds_searched=_spread(one.seconds for one in searched),
        total_queries={
            "seed": sum(one.seed_queries for one in outcomes),
            "search": sum(one.search_queries for one in outcomes),
            "confirmation": sum(one.confirmation_queries for one in outcomes),
            "host_only": sum(one.host_only_queries for one in outcomes),
        },
        label_pairs=_label_pairs(found),
        original_margin=_median(one.original_margin for one in found),
        deployed_margin=_median(one.deployed_margin for one in found),
        l2=_median(one.l2 for one in found),
        linf=_median(one.linf for one in found),
        devices=tuple(asdict(device) for device in store.devices()),
        models=store.models,
        notices=tuple(store.notices()),
    )


def _right(seed: SeedRecord) -> list[str]:
    """Return "labelled" for a seed with a label, and which models' top-1 label it is."""
    if seed.label is None or seed.outputs is None:
        return []
    scores = {"original": seed.outputs.original, "deployed": seed.outputs.deployed}
    answers = {name: one for name, one in scores.items() if one is not None}
    return ["labelled", *(name for name, one in answers.items() if one.argmax() == seed.label)]


def _figures_only(outcome: OutcomeRecord) -> OutcomeRecord:
    """Drop what is large, so that a summary of many outcomes stays small in memory."""
    return replace(outcome, original=None, deployed=None, mutations=())


def _label_pairs(found: list[OutcomeRecord]) -> tuple[LabelPair, ...]:
    counts = Counter(
        (one.original_label, one.deployed_label)
        for one in found
        if one.original_label is not None and one.deployed_label is not None
    )
    pairs = [LabelPair(*labels, count) for labels, count in counts.items()]
    return tuple(sorted(pairs, key=lambda pair: (-pair.count, pair.original, pair.deployed)))


def _spread(values: Iterable[float]) -> Spread | None:
    numbers = np.fromiter(values, np.float64)
    if numbers.size == 0:
        return None
    return Spread(
        count=numbers.size,
        mean=float(numbers.mean()),
        median=float(np.median(numbers)),
        p90=float(np.percentile(numbers, 90)),
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.median(known)) if known else None

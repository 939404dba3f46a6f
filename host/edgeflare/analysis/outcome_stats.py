"""Figures of many outcomes."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.files import natural_key
from edgeflare.analysis.devices import DeviceFigures
from edgeflare.answers.metrics import difference_text, text_of
from edgeflare.answers.parts import LimitRule
from edgeflare.campaign.status import replica_names
from edgeflare.statistics import CountedPair, clustered_interval, counted_pairs, median, spread
from edgeflare.statistics import Spread as Spread  # noqa: PLC0414 - public here, too
from edgeflare.store import Store
from edgeflare.store.columns import Arrays
from edgeflare.store.records import SEARCH_ENDS, LabelledInput
from edgeflare.strategies.operators import changing, corruption_names, describe_mutations, join_last
from edgeflare.types import TRIGGERS, Output, Status

_SHOWN = 10
_FAILURES_KEPT = 20


@dataclass(frozen=True)
class TriggerFigures(LabelledInput):
    """A triggering input: both models' labels or their texts, and the steps from the seed to it in
    words, without those that change nothing; none where it was not found by mutations.
    `disagreement` is how far both answers are apart, see `edgeflare.metrics`. `difference` has the
    differences of detections, or of values, in words."""

    words: tuple[str, ...]
    original_text: str | None = None
    deployed_text: str | None = None
    disagreement: float | None = None
    difference: str | None = None

    def steps(self, most: int) -> str:
        """Return the last `most` of the steps as one text, with the number of those before."""
        return join_last(self.words, most)


LabelPair: TypeAlias = CountedPair[int]
"""Of class indices."""

WordPair: TypeAlias = CountedPair[str]
"""Of words as `edgeflare.transcripts` compares them; "" where one of both transcripts has none."""


@dataclass(frozen=True)
class Failure:
    """A seed on which a device could not answer, and why."""

    seed_id: str
    device_name: str
    detail: str


@dataclass(frozen=True)
class Coverage:
    """What the `searches` without a trigger covered; `unasked` gave the device the seed alone.

    `device_queries` inputs were given to both models, `host_queries` to the original alone.
    """

    searches: int = 0
    unasked: int = 0
    device_queries: int = 0
    host_queries: int = 0


@dataclass(frozen=True, kw_only=True)
class TriggerMedians:
    """Medians over the triggering inputs: of both models' margins (top-1 minus top-2), and of the
    distances to the seeds, as `edgeflare.metrics` has them; None where none is known."""

    original_margin: float | None
    deployed_margin: float | None
    l2: float | None
    linf: float | None
    snr_db: float | None


@dataclass(frozen=True, kw_only=True)
class OutcomeFigures(TriggerMedians):
    """Figures of all outcomes; `edgeflare.Summary`, which has them too, explains them."""

    by_status: dict[str, int]
    searched: int
    replicas: tuple[str, ...]
    by_device: tuple[DeviceFigures, ...]
    total_queries: dict[str, int]
    round_trips: int
    coverage: Coverage
    queries_found: Spread | None
    queries_searched: Spread | None
    seconds_found: Spread | None
    seconds_searched: Spread | None
    label_pairs: tuple[LabelPair, ...]
    given_up: dict[str, int]
    failures: tuple[Failure, ...]
    triggers: tuple[TriggerFigures, ...]
    corruptions: dict[str, int]


def outcome_figures(store: Store) -> OutcomeFigures:
    """Return the figures of all outcomes of a campaign. Raises StoreError."""
    rows = store.columns.outcomes()
    found, searched = rows.status.among(Status.FOUND), rows.searched
    ended = searched & rows.status.among(*SEARCH_ENDS)
    failed = rows.position[rows.status.among(Status.FAILED)][:_FAILURES_KEPT]
    labelled = found & ~np.isnan(rows.original_label) & ~np.isnan(rows.deployed_label)
    labels = (rows.original_label[labelled], rows.deployed_label[labelled])
    details = rows.detail.codes[rows.status.among(Status.GAVE_UP)].tolist()
    given_up = Counter(rows.detail.names[code] for code in details)
    del given_up[""]
    return OutcomeFigures(
        by_status={one.value: int(rows.status.among(one).sum()) for one in Status},
        searched=int(searched.sum()),
        replicas=tuple(sorted(filter(None, rows.replica.names))),
        by_device=tuple(_by_device(rows)),
        total_queries=_queries(store, rows),
        round_trips=int(rows.round_trips.sum()),
        coverage=Coverage(
            int(ended.sum()),
            int((rows.search_queries[ended] == 0).sum()),
            int(rows.search_queries[ended].sum()),
            int(rows.host_only_queries[ended].sum()),
        ),
        queries_found=spread(rows.first_queries[found]),
        queries_searched=spread(rows.search_queries[searched]),
        seconds_found=spread(rows.seconds[found]),
        seconds_searched=spread(rows.seconds[searched]),
        original_margin=_median(rows.original_margin[found]),
        deployed_margin=_median(rows.deployed_margin[found]),
        l2=_median(rows.l2[found]),
        linf=_median(rows.linf[found]),
        snr_db=_median(rows.snr_db[found]),
        label_pairs=counted_pairs(
            Counter(zip(*(one.astype(np.int64).tolist() for one in labels), strict=True)).items()
        ),
        given_up=dict(given_up.most_common()),
        failures=tuple(
            Failure(one.seed_id, one.device_name, one.detail)
            for one in store.outcomes_at(failed.tolist())
        ),
        triggers=_first_triggers(store),
        corruptions=_corruptions(store),
    )


def _queries(store: Store, rows: Arrays) -> dict[str, int]:
    """Return the sums of all queries by what they were for, those of the survey among them."""
    surveyed = store.survey_counts()
    return {
        "seed": int(rows.seed_queries.sum()),
        "survey": surveyed.survey,
        "search": int(rows.search_queries.sum()),
        "confirmation": int(rows.confirmation_queries.sum()) + surveyed.confirmation,
        "measuring": sum(store.state.measuring_queries.values()),
        "host_only": int(rows.host_only_queries.sum()) + surveyed.host_only,
    }


def _by_device(rows: Arrays) -> Iterator[DeviceFigures]:
    for name, replica in product(
        sorted(filter(None, rows.device_name.names)), sorted(rows.replica.names)
    ):
        here = rows.device_name.among(name) & rows.replica.among(replica)
        if not here.any():
            continue
        searched = int((here & rows.searched).sum())
        found = int((here & rows.status.among(Status.FOUND)).sum())
        yield DeviceFigures(
            name=name,
            replica=replica,
            finished=int(here.sum()),
            searched=searched,
            found=found,
            failed=int((here & rows.status.among(Status.FAILED)).sum()),
            queries=int(rows.search_queries[here].sum()),
            success_rate=found / searched if searched else None,
        )


def _first_triggers(store: Store) -> tuple[TriggerFigures, ...]:
    """Return the first triggers by their seeds' names, the numbers in names in their order."""

    def order(seed_id: str, replica: str) -> tuple[Any, str]:
        return natural_key(seed_id), replica

    names = store.columns.outcome_names(Status.FOUND)
    first = nsmallest(_SHOWN, names, key=lambda one: order(*one[1:]))
    records = store.outcomes_at([position for position, *_ in first])
    return tuple(
        TriggerFigures(
            one.seed_id,
            tuple(describe_mutations(changing(one.mutations))),
            text_of(one.original),
            text_of(one.deployed),
            one.disagreement,
            difference_text(one.original, one.deployed),
            replica=one.replica,
            original_label=one.original_label,
            deployed_label=one.deployed_label,
        )
        for one in sorted(records, key=lambda one: order(*one.place))
    )


def _corruptions(store: Store) -> dict[str, int]:
    """Return the number of triggers for each natural corruption, the most frequent first."""
    counts: Counter[str] = Counter()
    for mutations in store.columns.trigger_mutations():
        counts.update(corruption_names(mutations))
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _median(values: NDArray[np.float64]) -> float | None:
    return median(values[~np.isnan(values)].tolist())


def answer_figures(store: Store) -> Any:
    """Return what the kind of a campaign's answers has as figures; None without. Raises StoreError."""
    seeds = (both for *_, both in _answered_seeds(store))
    return store.kind.figures(seeds, _triggers(store), store.campaign)


@dataclass(frozen=True)
class KindRate:
    """How many `objects` on the seeds differ as a limit's rule counts them.

    `low` and `high` bound the share with 95 % confidence, two-sided; that objects of one seed are
    alike is taken into account, see `edgeflare.statistics.clustered_interval`; those of one seed on
    several replicas are one group, too. `seeds` have such a difference, by name, those with most of
    them first.
    """

    differing: int
    objects: int
    low: float
    high: float
    seeds: tuple[str, ...]

    @property
    def rate(self) -> float:
        """The share of the objects."""
        return self.differing / self.objects


def kind_rate(store: Store, rule: LimitRule, label: int | None = None) -> KindRate | None:
    """Return the share of the objects on the seeds that a rule counts, of all classes or of one.

    None where there is no such object. Raises StoreError.
    """
    floor = float((store.campaign.get("search") or {}).get("margin_floor") or 0.0)
    differing: Counter[str] = Counter()
    objects: Counter[str] = Counter()
    worst: list[tuple[int, str]] = []
    for seed, replica, (original, deployed) in _answered_seeds(store):
        every, differ = (
            sum(label in (None, number) for number in labels)
            for labels in rule.compare(original, deployed, floor)
        )
        objects[seed] += every
        differing[seed] += differ
        if differ:
            worst.append((differ, f"{seed} on {replica}" if replica else seed))
    seeds = [seed for seed, number in objects.items() if number]
    if not seeds:
        return None
    low, high = clustered_interval(
        [differing[one] for one in seeds], [objects[one] for one in seeds]
    )
    names = tuple(name for _, name in sorted(worst, key=lambda seed: -seed[0]))
    return KindRate(differing.total(), objects.total(), low, high, names)


def _answered_seeds(store: Store) -> Iterator[tuple[str, str, tuple[Output, Output]]]:
    """Yield each seed's name, replica and answers, where both models have answered."""
    for replica in replica_names(store):
        for seed in store.seeds(replica):
            if seed.outputs is None:
                continue
            original, deployed, _ = seed.outputs
            if original is not None and deployed is not None:
                yield seed.id, replica, (original, deployed)


def _triggers(store: Store) -> Iterator[tuple[Output, Output]]:
    for one in store.outcomes():
        if one.status in TRIGGERS and one.original is not None and one.deployed is not None:
            yield one.original, one.deployed

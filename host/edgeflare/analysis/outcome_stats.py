"""Figures of many outcomes, computed in one pass over the store."""

from array import array
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from edgeflare._internal.files import natural_key
from edgeflare._internal.text import counted
from edgeflare.analysis.devices import DeviceCounts
from edgeflare.metrics import text_of
from edgeflare.store import OutcomeRecord, Store
from edgeflare.store.records import SEARCH_ENDS
from edgeflare.strategies.operators import (
    changing,
    corruption_names,
    describe_mutations,
    join_last,
)
from edgeflare.transcripts import WordChange, transcript_diff
from edgeflare.types import TRIGGERS, Status

_SHOWN = 10
_T = TypeVar("_T", int, str)


@dataclass(frozen=True)
class TriggerFigures:
    """A triggering input: its seed, the device that searched for itself ("": a pool), both models'
    labels (class indices) or, of speech recognisers, their texts, and the steps from the seed to it
    in words, without those that change nothing; none where it was not found by mutations.
    `disagreement` is how far both answers are apart, see `edgeflare.metrics`."""

    seed_id: str
    replica: str
    original_label: int | None
    deployed_label: int | None
    words: tuple[str, ...]
    original_text: str | None = None
    deployed_text: str | None = None
    disagreement: float | None = None

    def steps(self, most: int) -> str:
        """Return the last `most` of the steps as one text, with the number of those before."""
        return join_last(self.words, most)


class _FirstTriggers:
    """The first few triggers, and counts of their corruptions."""

    def __init__(self) -> None:
        self._first: list[tuple[Any, OutcomeRecord]] = []
        self._corruptions: Counter[str] = Counter()

    def add(self, outcome: OutcomeRecord) -> None:
        """Count an outcome."""
        self._corruptions.update(corruption_names(outcome.mutations))
        insort(
            self._first,
            ((natural_key(outcome.seed_id), outcome.replica), outcome),
            key=lambda one: one[0],
        )
        del self._first[_SHOWN:]

    def first(self) -> tuple[TriggerFigures, ...]:
        """Return the first of them by their seeds' names, the numbers in names in their order."""
        return tuple(
            TriggerFigures(
                one.seed_id,
                one.replica,
                one.original_label,
                one.deployed_label,
                tuple(describe_mutations(changing(one.mutations))),
                text_of(one.original),
                text_of(one.deployed),
                one.disagreement,
            )
            for _, one in self._first
        )

    def corruptions(self) -> dict[str, int]:
        """Return the number of triggers for each natural corruption, the most frequent first."""
        return dict(sorted(self._corruptions.items(), key=lambda one: (-one[1], one[0])))


_FAILURES_KEPT = 20


@dataclass(frozen=True)
class Spread:
    """Mean, median and 90th percentile (linear between ranks) of `count` numbers."""

    count: int
    mean: float
    median: float
    p90: float


@dataclass(frozen=True)
class CountedPair(Generic[_T]):
    """How often a triggering input made `original` into `deployed`."""

    original: _T
    deployed: _T
    count: int


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

    @property
    def words(self) -> str:
        """All of it in a phrase, "" where no search ended without a trigger."""
        if not self.searches:
            return ""
        count = "the one search" if self.searches == 1 else f"the {self.searches:,} searches"
        unasked = f" ({self.unasked:,} of them none)" if self.unasked else ""
        return (
            f"{count} without a trigger gave the device "
            f"{counted(self.device_queries, 'input')}{unasked}, and the original alone "
            f"{self.host_queries:,}"
        )


class OutcomeFigures:
    """Running figures of outcomes, see `Summary`."""

    def __init__(self) -> None:
        self.statuses: Counter[Status] = Counter()
        self.devices = DeviceCounts()
        self.failures: list[Failure] = []
        self.given_up: Counter[str] = Counter()
        self.replicas: set[str] = set()
        self.queries: Counter[str] = Counter()
        self.round_trips = 0
        self.coverage = Coverage()
        self.searched_queries, self.found_queries = array("q"), array("q")
        self.searched_seconds, self.found_seconds = array("d"), array("d")
        self.original_margins, self.deployed_margins = array("d"), array("d")
        self.l2, self.linf, self.snr_db = array("d"), array("d"), array("d")
        self.triggers = _FirstTriggers()
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._changes: Counter[WordChange] = Counter()

    def add(self, outcome: OutcomeRecord) -> None:
        """Count an outcome."""
        self.statuses[outcome.status] += 1
        self.replicas.add(outcome.replica)
        self.devices.add(outcome)
        self.queries["seed"] += outcome.seed_queries
        self.queries["search"] += outcome.search_queries
        self.queries["confirmation"] += outcome.confirmation_queries
        self.queries["host_only"] += outcome.host_only_queries
        self.round_trips += outcome.round_trips
        if outcome.searched:
            self.searched_queries.append(outcome.search_queries)
            self.searched_seconds.append(outcome.seconds)
        if outcome.status in SEARCH_ENDS and outcome.searched:
            self.coverage = Coverage(
                self.coverage.searches + 1,
                self.coverage.unasked + (outcome.search_queries == 0),
                self.coverage.device_queries + outcome.search_queries,
                self.coverage.host_queries + outcome.host_only_queries,
            )
        if outcome.status is Status.FOUND:
            self._add_found(outcome)
        if outcome.status in TRIGGERS and (
            both := transcript_diff(outcome.original, outcome.deployed)
        ):
            self._changes.update(set(both.changes))
        if outcome.status is Status.GAVE_UP and outcome.detail:
            self.given_up[outcome.detail] += 1
        if outcome.status is Status.FAILED and len(self.failures) < _FAILURES_KEPT:
            self.failures.append(Failure(outcome.seed_id, outcome.device_name, outcome.detail))

    def label_pairs(self) -> tuple[LabelPair, ...]:
        """Return the pairs of labels of the triggering inputs, the most frequent first."""
        return counted_pairs(self._pairs.items())

    def word_pairs(self) -> tuple[WordPair, ...]:
        """Return the words that differ on triggers, the most frequent first."""
        return counted_pairs(self._changes.items())

    def _add_found(self, outcome: OutcomeRecord) -> None:
        self.triggers.add(outcome)
        self.found_queries.append(outcome.first_queries)
        self.found_seconds.append(outcome.seconds)
        for numbers, value in (
            (self.original_margins, outcome.original_margin),
            (self.deployed_margins, outcome.deployed_margin),
            (self.l2, outcome.l2),
            (self.linf, outcome.linf),
            (self.snr_db, outcome.snr_db),
        ):
            if value is not None:
                numbers.append(value)
        if outcome.original_label is not None and outcome.deployed_label is not None:
            self._pairs[outcome.original_label, outcome.deployed_label] += 1


def counted_pairs(counts: Iterable[tuple[tuple[_T, _T], int]]) -> tuple[CountedPair[_T], ...]:
    """Return pairs with their counts, the most frequent first."""
    pairs = [CountedPair(*pair, count) for pair, count in counts]
    return tuple(sorted(pairs, key=lambda pair: (-pair.count, pair.original, pair.deployed)))


def spread(values: Sequence[float]) -> Spread | None:
    """Return the figures of some numbers, None of none."""
    numbers = np.asarray(values, np.float64)
    if numbers.size == 0:
        return None
    return Spread(
        count=numbers.size,
        mean=float(numbers.mean()),
        median=float(np.median(numbers)),
        p90=float(np.percentile(numbers, 90)),
    )


class Units(NamedTuple):
    """The units of distances: of L2, of Linf, and the largest possible Linf."""

    l2: str
    levels: str
    most_levels: int


_IMAGES = Units("pixels from 0 to 1", "levels", 255)
_AUDIO = Units("samples from -1 to 1", "levels of 16 bits", 65_534)


def units_of(sample_rate: int | None) -> Units:
    """Return the units of distances; `sample_rate` is that of audio in Hz, None for images."""
    return _IMAGES if sample_rate is None else _AUDIO


def transcribes(store: Store) -> bool:
    """Whether a campaign's models are speech recognisers, which answer with a text."""
    return output_kind(store.models) == "transcript"


def output_kind(models: Mapping[str, Any]) -> str:
    """Return what the deployed model returns, such as "label" or "transcript"; "" if unknown."""
    return str(((models.get("deployed") or {}).get("output") or {}).get("kind", ""))

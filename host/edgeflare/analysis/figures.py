"""Figures of many outcomes, gathered as they pass by; only numbers are kept."""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgeflare.analysis.devices import DeviceCounts
from edgeflare.analysis.heard import WordChange, WordPair, heard
from edgeflare.analysis.triggers import TriggersSeen
from edgeflare.store import OutcomeRecord
from edgeflare.store.records import SEARCH_ENDS
from edgeflare.text import counted
from edgeflare.types import TRIGGERS, Status

_FAILURES_KEPT = 20


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
class Failure:
    """A seed on which a device could not answer, and why."""

    seed_id: str
    device_name: str
    detail: str


@dataclass(frozen=True)
class Coverage:
    """What the `searches` without a trigger covered: `unasked` of them gave the device no input beyond the seed.

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
            f"{count} without a trigger gave the device {counted(self.device_queries, 'input')}{unasked}, "
            f"and the original alone {self.host_queries:,}"
        )


class OutcomeFigures:
    """Takes outcomes one by one and tells their figures; see `Summary` for what they mean."""

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
        self.triggers = TriggersSeen()
        self._pairs: Counter[tuple[int, int]] = Counter()
        self._changes: Counter[WordChange] = Counter()

    def add(self, outcome: OutcomeRecord) -> None:
        """Take an outcome."""
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
        if outcome.status in TRIGGERS and (both := heard(outcome.original, outcome.deployed)):
            self._changes.update(set(both.changes))
        if outcome.status is Status.GAVE_UP and outcome.detail:
            self.given_up[outcome.detail] += 1
        if outcome.status is Status.FAILED and len(self.failures) < _FAILURES_KEPT:
            self.failures.append(Failure(outcome.seed_id, outcome.device_name, outcome.detail))

    def label_pairs(self) -> tuple[LabelPair, ...]:
        """Return the pairs of labels of the triggering inputs, the most frequent first."""
        pairs = [LabelPair(*labels, count) for labels, count in self._pairs.items()]
        return tuple(sorted(pairs, key=lambda pair: (-pair.count, pair.original, pair.deployed)))

    def word_pairs(self) -> tuple[WordPair, ...]:
        """Return the words that are others on triggers, seeds that deviate among them, the most frequent first."""
        return ranked_words(self._changes)

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


def ranked_words(changes: Mapping[WordChange, int]) -> tuple[WordPair, ...]:
    """Return words and what was heard instead with their counts, the most frequent first."""
    pairs = [WordPair(*change, count) for change, count in changes.items()]
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

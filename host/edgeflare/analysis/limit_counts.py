"""What the limits of a campaign are held against, gathered as its outcomes pass by."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edgeflare.campaign.baseline import Pair
from edgeflare.campaign.counting import replicas_of
from edgeflare.campaign.limits import LimitsConfig
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import TRIGGERS, Status

NAMED = 3
"""So many of those that cross a limit are named."""


class Offender(NamedTuple):
    """One that crosses a limit: where it sorts among the others, the worst first, and its name."""

    rank: float
    by_name: tuple[str | int, ...]
    name: str


class Offenders:
    """Counts those that cross a limit, and keeps the worst few."""

    def __init__(self) -> None:
        self.count = 0
        self._worst: list[Offender] = []

    def add(self, name: str, rank: float = 0.0) -> None:
        """Take one; those of the same rank sort by name, numbers in it by their value."""
        self.count += 1
        parts = re.split(r"([0-9]+)", name)  # each second one is a number
        by_name = (int(part) if place % 2 else part for place, part in enumerate(parts))
        self._worst.append(Offender(rank, tuple(by_name), name))
        self._worst.sort()
        del self._worst[NAMED:]

    @property
    def words(self) -> str:
        """The worst few by name, and how many more there are."""
        return named([one.name for one in self._worst], self.count)


class LimitCounts:
    """Takes outcomes one by one; of those that cross a limit the worst few are kept by name."""

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        self.statuses: Counter[Status] = Counter()
        self.first_queries = array("d")
        self.found, self.seeds, self.quick = Offenders(), Offenders(), Offenders()
        self.near, self.severe, self.apart = Offenders(), Offenders(), Offenders()
        self.nearest, self.most_severe, self.furthest_apart = math.inf, 0.0, 0.0
        self.pairs: Counter[Pair] = Counter()

    def add(self, one: OutcomeRecord) -> None:
        """Take an outcome."""
        name = f"{one.seed_id} on {one.replica}" if one.replica else one.seed_id
        self.statuses[one.status] += 1
        if one.searched:
            self._add_searched(one, name)
        if one.status is Status.SEED_DEVIATES:
            self.seeds.add(name)
        if one.status in TRIGGERS:
            self._add_trigger(one, name)

    def _add_searched(self, one: OutcomeRecord, name: str) -> None:
        found = one.status is Status.FOUND
        first = one.first_queries
        self.first_queries.append(first if found else math.inf)
        if not found:
            return
        self.found.add(name)
        quickest, nearest = self._limits.min_median_queries, self._limits.min_l2
        if quickest is not None and first < quickest:
            self.quick.add(f"{name} ({first})", first)
        if one.l2 is not None:
            self.nearest = min(self.nearest, one.l2)
            if nearest is not None and one.l2 < nearest:
                self.near.add(f"{name} ({number(one.l2, nearest)})", one.l2)

    def _add_trigger(self, one: OutcomeRecord, name: str) -> None:
        if one.original_label is not None and one.deployed_label is not None:
            self.pairs[one.original_label, one.deployed_label] += 1
        if (severity := one.severity) is not None:
            self.most_severe = max(self.most_severe, severity)
            most = self._limits.max_severity
            if most is not None and severity > most:
                self.severe.add(f"{name} ({number(severity, most)})", -severity)
        if (disagreement := one.disagreement) is not None:
            self.furthest_apart = max(self.furthest_apart, disagreement)
            most = self._limits.max_disagreement
            if most is not None and disagreement > most:
                self.apart.add(f"{name} ({number(disagreement, most)})", -disagreement)

    @property
    def searched(self) -> int:
        """How many seeds were searched."""
        return len(self.first_queries)

    @property
    def median(self) -> float:
        """The median of the queries to the first triggering input; infinite where half have none."""
        return float(np.median(np.asarray(self.first_queries)))


def answered(store: Store) -> int:
    """Return how many seeds both models have answered, each device's counted where it searches for itself."""
    return sum(
        seed.outputs is not None for replica in replicas_of(store) for seed in store.seeds(replica)
    )


def named(names: Sequence[str], count: int) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return ", ".join(names) + more


def pair_words(pairs: Mapping[Pair, int]) -> str:
    """Return the first few pairs of labels with how many triggering inputs each has, the most frequent first."""
    ranked = sorted(pairs.items(), key=lambda one: (-one[1], one[0]))
    return named(
        [f"{original} -> {deployed} ({count})" for (original, deployed), count in ranked[:NAMED]],
        len(ranked),
    )


def number(value: float, beside: float) -> str:
    """Return a number in three digits, or in as many as tell it from another one beside it."""
    for digits in (3, 6):
        text = f"{value:.{digits}g}"
        if value == beside or text != f"{beside:.{digits}g}":
            return text
    return repr(value)


def percent(rate: float, beside: float | None = None) -> str:
    """Return a share in per cent, told apart from another one beside it."""
    return f"{100 * rate:g} %" if beside is None else f"{number(100 * rate, 100 * beside)} %"

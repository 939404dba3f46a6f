"""What the limits of a campaign are held against, gathered as its outcomes pass by."""

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from edgeflare.campaign.baseline import BASELINE_PAIRS, Pair, baseline_pairs
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


class Rule(NamedTuple):
    """A limit that a single outcome can cross: `figure` of it is below the limit, or above.

    A lower limit holds for triggers that were searched for, an upper one for seeds that deviate, too.
    """

    name: str
    figure: Callable[[OutcomeRecord], float | None]
    below: bool

    def crossed_by(self, value: float, limit: float) -> bool:
        """Whether a value crosses the limit."""
        return value < limit if self.below else value > limit


_RULES = (
    Rule("min_median_queries", lambda one: one.first_queries, below=True),
    Rule("min_l2", lambda one: one.l2, below=True),
    Rule("max_severity", lambda one: one.severity, below=False),
    Rule("max_disagreement", lambda one: one.disagreement, below=False),
)


def held_against(
    one: OutcomeRecord, limits: Mapping[str, float]
) -> Iterator[tuple[Rule, float, float]]:
    """Yield each rule for which `limits` has a limit and the outcome a value: the rule, the value, the limit."""
    for rule in _RULES:
        limit = limits.get(rule.name)
        concerned = one.status is Status.FOUND if rule.below else one.status in TRIGGERS
        if limit is not None and concerned and (value := rule.figure(one)) is not None:
            yield rule, value, limit


class LimitCounts:
    """Takes outcomes one by one; of those that cross a limit the worst few are kept by name.

    `worst` has for each rule the value that is nearest to crossing its limit, or farthest beyond it.
    """

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits.model_dump(exclude_defaults=True)
        self.statuses: Counter[Status] = Counter()
        self.first_queries = array("d")
        self.found, self.seeds = Offenders(), Offenders()
        self.crossing = {rule.name: Offenders() for rule in _RULES}
        self.worst = {rule.name: math.inf if rule.below else 0.0 for rule in _RULES}
        self.pairs: Counter[Pair] = Counter()

    def add(self, one: OutcomeRecord) -> None:
        """Take an outcome."""
        name = f"{one.seed_id} on {one.replica}" if one.replica else one.seed_id
        self.statuses[one.status] += 1
        found = one.status is Status.FOUND
        if one.searched:
            self.first_queries.append(one.first_queries if found else math.inf)
        if found:
            self.found.add(name)
        if one.status is Status.SEED_DEVIATES:
            self.seeds.add(name)
        if one.status not in TRIGGERS:
            return
        if one.original_label is not None and one.deployed_label is not None:
            self.pairs[one.original_label, one.deployed_label] += 1
        for rule, value, limit in held_against(one, self._limits):
            worse = min if rule.below else max
            self.worst[rule.name] = worse(self.worst[rule.name], value)
            if rule.crossed_by(value, limit):
                text = str(value) if isinstance(value, int) else number(value, limit)
                self.crossing[rule.name].add(f"{name} ({text})", value if rule.below else -value)

    @property
    def searched(self) -> int:
        """How many seeds were searched."""
        return len(self.first_queries)

    @property
    def median(self) -> float:
        """The median of the queries to the first triggering input; infinite where half have none."""
        return float(np.median(np.asarray(self.first_queries)))


def known_pairs(store: Store, limits: LimitsConfig, *, own: bool = True) -> set[Pair]:
    """Return the baseline's pairs; for a campaign's `own` limits as they were when it began.

    Raises UsageError if the baseline can't be read.
    """
    kept = store.fact(BASELINE_PAIRS) if own else None
    if kept is not None:
        return {(original, deployed) for original, deployed in kept}
    return baseline_pairs(limits) or set()


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

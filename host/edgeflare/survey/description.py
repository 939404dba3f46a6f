"""The simplest condition on readable features that separates deviating from agreeing inputs.

A condition is one threshold, or two that both hold. All thresholds between two answered inputs are
tried; the cost of a condition is a whole number, so that the choice is the same on every CPU.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgeflare.survey.features import Feature, Features

_FALSE = 2
"""Cost of an agreeing input inside a condition."""
_MISSED = 4
"""Cost of a deviating input outside: a faulty region may agree on half of its inputs."""
_SECOND = 4
"""Cost of a second threshold."""
_FIRST_TERMS = 12
"""Number of single thresholds that a second one is tried with."""
_STEPS = (1, 2, 5)
_UNUSABLE = 1 << 40

_Side = NDArray[np.bool_]


@dataclass(frozen=True)
class Threshold:
    """Holds where a feature is below `at`, or (`below` false) at least `at`.

    `feature`: its place among the features. `low`, `high`: the values of answered inputs next to
    the threshold, on its two sides: what is between them is not known.
    """

    feature: int
    below: bool
    at: float
    low: float
    high: float

    def holds(self, features: Features) -> _Side:
        """Return where it holds: bool [samples], of features [samples, features]."""
        values = features[..., self.feature]
        return values < self.at if self.below else values >= self.at

    def words(self, features: Sequence[Feature]) -> str:
        """Return it in words, such as "brightest pixel below 100 of 255"."""
        return features[self.feature].words(self.at, below=self.below)


@dataclass(frozen=True)
class Condition:
    """Holds where all of its thresholds do. `cost`: see `conditions`."""

    thresholds: tuple[Threshold, ...]
    cost: int = 0

    def holds(self, features: Features) -> _Side:
        """Return where it holds: bool [samples], of features [samples, features]."""
        inside = self.thresholds[0].holds(features)
        for threshold in self.thresholds[1:]:
            inside = inside & threshold.holds(features)
        return inside

    def words(self, features: Sequence[Feature]) -> str:
        """Return it in words: its thresholds, joined by "and"."""
        return " and ".join(one.words(features) for one in self.thresholds)

    @property
    def kind(self) -> tuple[tuple[int, bool], ...]:
        """Features and directions alone: conditions of one kind differ in their thresholds."""
        return tuple((one.feature, one.below) for one in self.thresholds)


@dataclass(frozen=True)
class Accuracy:
    """Counts of answered inputs: inside and outside a condition, and how many of them deviate."""

    inside: int
    inside_deviating: int
    outside: int
    outside_deviating: int

    @property
    def precision(self) -> float | None:
        """Share of the inputs inside that deviate; None without any."""
        return self.inside_deviating / self.inside if self.inside else None

    @property
    def recall(self) -> float | None:
        """Share of the deviating inputs that are inside; None without any."""
        deviating = self.inside_deviating + self.outside_deviating
        return self.inside_deviating / deviating if deviating else None

    @property
    def p(self) -> Fraction:
        """Probability of as many deviating inputs inside, or more, if both sides were alike.

        Fisher's exact test, one-sided.
        """
        deviating = self.inside_deviating + self.outside_deviating
        ways = sum(
            comb(self.inside, one) * comb(self.outside, deviating - one)
            for one in range(self.inside_deviating, min(self.inside, deviating) + 1)
        )
        return Fraction(ways, comb(self.inside + self.outside, deviating))


def accuracy(condition: Condition, features: Features, deviates: ArrayLike) -> Accuracy:
    """Return how well a condition separates inputs: features [n, features], deviates [n]."""
    wrong = np.asarray(deviates, bool)
    inside = condition.holds(features) if len(wrong) else np.zeros(0, bool)
    return Accuracy(
        int(inside.sum()),
        int((inside & wrong).sum()),
        int((~inside).sum()),
        int((~inside & wrong).sum()),
    )


def conditions(
    values: Features, deviates: ArrayLike, features: Sequence[Feature], most: int = 64
) -> list[Condition]:
    """Return the best conditions, at most `most`, the best first, one of each kind.

    `values` float64 [n, features], `deviates` [n]. The cost of a condition is 2 for each agreeing
    input inside, 4 for each deviating one outside and for a second threshold, and the features'
    ranks. Empty where none costs less
    than to call all of the inputs agreeing.
    """
    wrong = np.asarray(deviates, bool)
    limit = _MISSED * int(wrong.sum())
    if not limit:
        return []
    ranks = np.array([feature.rank for feature in features])
    everything = np.ones(len(wrong), bool)
    singles = sorted(_thresholds(values, wrong, everything, ranks), key=_order)
    found = [Condition((one,), cost) for cost, one in singles]
    for _, first in _widest(values, wrong, singles):
        inside = first.holds(values)
        missed = _MISSED * int((wrong & ~inside).sum())
        for cost, second in _thresholds(values, wrong, inside, ranks):
            total = cost + missed + int(ranks[first.feature]) + _SECOND
            if (second.feature, second.below) != (first.feature, first.below):
                found.append(Condition((first, second), total))
    better = sorted((one for one in found if one.cost < limit), key=_simplicity)
    unique = {frozenset(one.kind): one for one in reversed(better)}
    return sorted(unique.values(), key=_simplicity)[:most]


def describe(
    values: Features, deviates: ArrayLike, features: Sequence[Feature]
) -> Condition | None:
    """Return the condition of the lowest cost with round thresholds, or None; see `conditions`."""
    for best in conditions(values, deviates, features, 1):
        return replace(
            best,
            thresholds=tuple(
                replace(one, at=between(one.low, one.high)) for one in best.thresholds
            ),
        )
    return None


def _widest(
    values: Features, wrong: _Side, singles: Sequence[tuple[int, Threshold]]
) -> list[tuple[int, Threshold]]:
    """Return single thresholds that another may narrow: the best, and the best with all inside."""
    best = list(singles[: _FIRST_TERMS // 2])
    count = int(wrong.sum())
    keeping = [
        one for one in singles if int((one[1].holds(values) & wrong).sum()) * 10 >= 9 * count
    ]
    return best + [one for one in keeping if one not in best][: _FIRST_TERMS - len(best)]


def _order(one: tuple[int, Threshold]) -> tuple[int, int, bool]:
    return one[0], one[1].feature, one[1].below


def _simplicity(one: Condition) -> tuple[int, int, tuple[tuple[int, bool], ...]]:
    return one.cost, len(one.thresholds), one.kind


def _thresholds(
    values: Features, wrong: _Side, among: _Side, ranks: NDArray[Any]
) -> Iterator[tuple[int, Threshold]]:
    """Yield the best threshold of each feature and direction, with its cost, among these inputs.

    What is not `among` them counts for nothing.
    """
    kept, truth = values[among], wrong[among]
    count = len(truth)
    if not truth.any():
        return
    order = np.argsort(kept, axis=0, kind="stable")
    sorted_values = np.take_along_axis(kept, order, axis=0)
    deviating = truth[order]
    # ends[i]: errors where the first i are on the lower side, which is called deviating
    fewer = np.zeros((count + 1, kept.shape[1]), np.int64)
    fewer[1:] = np.cumsum(deviating, axis=0)
    total = fewer[-1]
    place = np.arange(count + 1)[:, np.newaxis]
    below = _FALSE * (place - fewer) + _MISSED * (total - fewer)
    above = _FALSE * (count - total - place + fewer) + _MISSED * fewer
    usable = np.zeros((count + 1, kept.shape[1]), bool)
    usable[1:-1] = sorted_values[1:] > sorted_values[:-1]
    for is_below, errors in ((True, below), (False, above)):
        costs = np.where(usable, errors, _UNUSABLE)
        best = costs.min(axis=0)
        for feature in np.flatnonzero(best < _UNUSABLE):
            ties = np.flatnonzero(costs[:, feature] == best[feature])
            at = int(_middle_of_widest(sorted_values[:, feature], ties))
            low, high = float(sorted_values[at - 1, feature]), float(sorted_values[at, feature])
            threshold = Threshold(int(feature), is_below, high, low, high)
            yield int(best[feature] + ranks[feature]), threshold


def _middle_of_widest(column: Features, ties: NDArray[np.intp]) -> np.intp:
    """Return the place whose neighbours differ most."""
    widest: np.intp = ties[int(np.argmax(column[ties] - column[ties - 1]))]
    return widest


def between(low: float, high: float) -> float:
    """Return the roundest number above `low` and at most `high`: of 1, 2 or 5 times a power of 10.

    Of several equally round ones, that next to the middle.
    """
    bottom, top = Fraction(low), Fraction(high)
    for power in range(4, -9, -1):
        for factor in reversed(_STEPS):
            step = Fraction(10) ** power * factor
            first, last = bottom // step + 1, top // step
            if first <= last:
                middle = round((bottom + top) / 2 / step)
                return float(min(max(middle, first), last) * step)
    return high

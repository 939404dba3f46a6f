"""Which classes and pairs of classes a deployed model treats otherwise than its original.

Both models' answers to the same inputs are compared: their probabilities, and the classes that they
decide for. Every test is of the hypothesis that the two models could change places on any input:
that deployment changed nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from edgeflare.errors import UsageError
from edgeflare.statistics import bootstrap_interval, holm, permutation_p
from edgeflare_whitebox.classes.pairs import LEAST_INPUTS, class_pairs, memberships
from edgeflare_whitebox.stored import ClassIndex, Count, Share

LEVEL = 0.05
"""Below this an adjusted p counts as significant."""
LEAST_LEAK = 0.01
"""A leak that changes by less than this is not tested: rounding alone changes all of them."""
MOST_BIAS_CLASSES = 50
"""With more classes than this the change of bias is not tested: each draw takes their cube."""
MOST_PAIRS = 50
"""Pairs that a comparison has at most."""
_DRAWS = 1_000
_ROUNDING = 1e-12
_Z = 1.959963984540054

_Change = Annotated[float, Field(ge=-1, le=1)]


class ChangeInterval(NamedTuple):
    """A 95 % interval of a difference of shares or of probabilities, within [-1, 1]."""

    low: _Change
    high: _Change


@dataclass(frozen=True)
class ClassChange:
    """How often each model decides for a class.

    `original` and `deployed` are numbers of inputs, `change` is that of the share of all inputs.
    `p` is McNemar's exact test of it, `adjusted_p` for all classes and pairs. `moved` answers move
    to or away from the class, and `shift` is the mean absolute change of its probability, None of a
    deployed model that returns labels alone. `in_pairs`: it is one of a pair that is significant.
    A class whose answers move both ways may be decided for as often as before. Of labelled inputs
    `inputs` is the number of those of the class, of which either model gets `original_recall` and
    `deployed_recall` right; else these are None.
    """

    label: ClassIndex
    original: Count
    deployed: Count
    change: ChangeInterval
    p: Share
    adjusted_p: Share
    moved: Count
    shift: Share | None
    in_pairs: bool
    inputs: Count | None
    original_recall: Share | None
    deployed_recall: Share | None

    @property
    def is_significant(self) -> bool:
        """Whether the adjusted p is below `LEVEL`."""
        return self.adjusted_p < LEVEL


@dataclass(frozen=True)
class PairChange:
    """How often each model says `said` for the `inputs` of class `label`.

    Inputs are those with this label; without labels, those for which either model decides for the
    class (to take those of the original alone would find every disagreement on one side), and of
    two classes the pair is told in whose direction answers move.
    `original` and `deployed` are numbers of inputs, `p` and `adjusted_p` as of `ClassChange`.
    `original_leak` and `deployed_leak` are mean probabilities of `said`, `leak_change` is the
    interval of their difference, `leak_p` is of the paired permutation test, adjusted for all
    pairs; None of a deployed model that returns labels alone, and `leak_p` where the difference is
    below `LEAST_LEAK`. `examples` are the places of inputs that moved to `said` or away from it, the
    first ones.
    """

    label: ClassIndex
    said: ClassIndex
    inputs: Count
    original: Count
    deployed: Count
    change: ChangeInterval
    p: Share
    adjusted_p: Share
    original_leak: Share | None
    deployed_leak: Share | None
    leak_change: ChangeInterval | None
    leak_p: Share | None
    examples: tuple[Count, ...] = ()

    @property
    def is_significant(self) -> bool:
        """Whether deployment changed how often `said` is said, or its probability."""
        return self.adjusted_p < LEVEL or (self.leak_p is not None and self.leak_p < LEVEL)


@dataclass(frozen=True)
class BiasChange:
    """By how much more one of two classes is confused with third ones than the other one is.

    `original` and `deployed` are `avg_cd` of both models by type 1 confusion, of labelled inputs.
    `change` is the bootstrap interval of the difference, over inputs of each class. `p` is adjusted
    for all pairs: of the largest difference of any pair, where the models change places at random.
    """

    first: ClassIndex
    second: ClassIndex
    original: Share
    deployed: Share
    change: ChangeInterval
    adjusted_p: Share

    @property
    def is_significant(self) -> bool:
        """Whether the adjusted p is below `LEVEL`."""
        return self.adjusted_p < LEVEL


class DeploymentComparison(NamedTuple):
    """What deployment changed; `inputs` were compared, of which `moved` got another answer.

    `classes` has those that a model decides for or that are labels: significant ones and those in
    significant pairs first, then by `ClassChange.moved` and `ClassChange.shift`. So a single class
    that deployment has damaged is the first one, as all moved answers are to or away from it, and
    not those that it takes inputs from.

    `pairs` and `biases` begin with the least p and have `MOST_PAIRS` at most. `pairs` has those with
    a change in decisions, or a leak that was tested; `tested_pairs` is the number of all that have
    inputs enough. `biases` is empty without labels, and of less than three or more than
    `MOST_BIAS_CLASSES` classes with inputs enough.
    """

    inputs: int
    moved: int
    classes: tuple[ClassChange, ...]
    pairs: tuple[PairChange, ...]
    biases: tuple[BiasChange, ...]
    tested_pairs: int


def compare_deployment(
    original: NDArray[np.float64],
    deployed: NDArray[np.float64],
    labels: NDArray[np.int64] | None = None,
    *,
    agree: NDArray[np.bool_] | None = None,
    has_probabilities: bool = True,
    examples: int = 3,
    random_seed: int = 0,
) -> DeploymentComparison:
    """Compare two models' answers to the same inputs, by classes and by pairs of classes.

    `original` and `deployed` are probabilities, float64 [inputs, classes], finite. `labels` are
    class indices [inputs], -1 of an input without one, or None where they aren't known. What the
    models decide is as of `decisions`, which takes `agree`. `has_probabilities` is False of a
    deployed model whose answers are labels alone. Classes of fewer than `LEAST_INPUTS` inputs are
    in no pair. `random_seed` draws the permutations of leaks and biases, and bootstrap samples.

    p of decisions are adjusted by Holm over all classes and pairs that could be significant at all
    by the number of inputs on which the models differ (Tarone, 1990); the others have 1. Leaks and
    biases are adjusted by themselves; all are multiplied by the number of these kinds that there
    are, so that where deployment changed nothing, anything at all is significant in at most 5 % of
    comparisons.

    Raises UsageError for answers that are not finite or not of the same shape, and for several
    labels an input.
    """
    if original.ndim != 2 or original.shape != deployed.shape:
        raise UsageError(
            "both models' answers are compared, [inputs, classes] each, not "
            f"{list(original.shape)} and {list(deployed.shape)}"
        )
    if not (np.isfinite(original).all() and np.isfinite(deployed).all()):
        raise UsageError("answers that are not finite can't be compared: leave them out")
    if not len(original):
        return DeploymentComparison(0, 0, (), (), (), 0)
    if labels is not None and np.ndim(labels) != 1:
        raise UsageError(f"labels are a class index for each input, not {list(np.shape(labels))}")
    sides = _Sides(original, deployed, labels, agree, has_probabilities)
    families = sides.families
    of_classes = {label: sides.moves(label) for label in sides.occurring}
    of_pairs = _pair_moves(sides)
    moves = [*of_classes.values(), *of_pairs.values()]
    adjusted = tarone_holm(
        [one.p for one in moves], [one.least_p for one in moves], level=LEVEL / families
    )
    whole = [min(1.0, families * one) for one in adjusted]
    leaks = _leaks(sides, random_seed) if has_probabilities else {}
    decided = dict(zip(of_pairs, whole[len(of_classes) :], strict=True))
    evidence = {
        pair: (
            min(decided.get(pair, 1.0), leaks.get(pair, 1.0)),
            of_pairs[pair].p if pair in of_pairs else 1.0,
        )
        for pair in {**decided, **leaks}
    }
    if labels is None:  # either model's inputs: what moves from a to b is seen in both groups
        evidence = {pair: one for pair, one in evidence.items() if _grows(sides, pair)}
    strongest = sorted(evidence, key=lambda pair: (*evidence[pair], *pair))[:MOST_PAIRS]
    pairs = tuple(
        _pair_change(sides, pair, decided.get(pair, 1.0), leaks.get(pair), examples)
        for pair in strongest
    )
    return DeploymentComparison(
        inputs=len(original),
        moved=int((sides.before != sides.after).sum()),
        classes=_class_changes(sides, of_classes, whole, pairs),
        pairs=pairs,
        biases=_biases(sides, random_seed),
        tested_pairs=len(sides.large) * max(0, len(sides.occurring) - 1),
    )


def decisions(
    original: NDArray[np.float64],
    deployed: NDArray[np.float64],
    agree: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the classes that both models decide for, int [inputs] each.

    `original` and `deployed` are probabilities, float64 [inputs, classes]. The deployed model
    decides as the original where that class is among its largest ones: a tie is no other decision.
    It also does where `agree`, bool [inputs], is True, such as by a campaign's margin floor.
    """
    before, after = original.argmax(axis=1), deployed.argmax(axis=1)
    every = np.arange(len(before))
    alike = deployed[every, before] == deployed[every, after]
    return before, np.where(alike if agree is None else alike | agree, before, after)


def tarone_holm(ps: Sequence[float], least: Sequence[float], *, level: float) -> list[float]:
    """Return p values of discrete tests, adjusted for being several, in the same order.

    `least` are the least p that each test could have given, such as by its number of discordant
    pairs. Tests that could not have been significant at this level, however they came out, are left
    out and have 1 (Tarone, 1990, "A modified Bonferroni method for discrete data"); the others are
    adjusted by Holm.
    """
    number, left = 0, len(ps)
    while left > number:  # the least number of tests for which not more could be significant
        number += 1
        left = sum(one <= level / number for one in least)
    chosen = [place for place, one in enumerate(least) if number and one <= level / number]
    adjusted = [1.0] * len(ps)
    for place, p in zip(chosen, holm([ps[place] for place in chosen]), strict=True):
        adjusted[place] = p
    return adjusted


def _within(low: float, high: float) -> ChangeInterval:
    """Return an interval within [-1, 1], which scores that are no probabilities may exceed."""
    return ChangeInterval(*(min(1.0, max(-1.0, one)) for one in (low, high)))


class _Moves(NamedTuple):
    """Of `inputs`, how many the original decides so, and how many move there and away."""

    inputs: int
    original: int
    gained: int
    lost: int

    @property
    def deployed(self) -> int:
        return self.original + self.gained - self.lost

    @property
    def p(self) -> float:
        """McNemar's exact p, two-sided."""
        return permutation_p(np.repeat([1.0, -1.0], [self.gained, self.lost]))

    @property
    def least_p(self) -> float:
        """The least p that so many moved inputs could have given."""
        return min(1.0, 2.0 ** (1 - self.gained - self.lost))

    @property
    def change(self) -> ChangeInterval:
        """Agresti and Min's interval (2005) of the difference of paired shares."""
        count, gained, lost = self.inputs + 2, self.gained + 0.5, self.lost + 0.5
        difference = (gained - lost) / count
        variance = (gained + lost - (gained - lost) ** 2 / count) / count**2
        half = _Z * math.sqrt(variance)
        return _within(difference - half, difference + half)


class _Sides:
    """Both models' probabilities, what they decide, int [inputs], and inputs by classes, bool.

    `occurring` are classes that are decided for or are labels, `large` those of inputs enough. Raises
    UsageError for labels of other inputs or classes.
    """

    def __init__(
        self,
        original: NDArray[np.float64],
        deployed: NDArray[np.float64],
        labels: NDArray[np.int64] | None,
        agree: NDArray[np.bool_] | None,
        has_probabilities: bool,
    ) -> None:
        count, classes = original.shape
        self.original, self.deployed, self.labels = original, deployed, labels
        self.has_probabilities = has_probabilities
        self.before, self.after = decisions(original, deployed, agree)
        decided = memberships(self.before, classes) | memberships(self.after, classes)
        self.members = decided if labels is None else memberships(labels, classes)
        if len(self.members) != count:
            raise UsageError(
                f"there are labels of {len(self.members)} inputs, and answers to {count}"
            )
        self.occurring: list[int] = np.flatnonzero((self.members | decided).any(axis=0)).tolist()
        sizes = self.members.sum(axis=0)
        self.large = [label for label in self.occurring if sizes[label] >= LEAST_INPUTS]

    @property
    def families(self) -> int:
        """The number of kinds of tests: of decisions, of leaks, of biases."""
        return 1 + self.has_probabilities + (self.labels is not None)

    def moves(self, said: int, label: int | None = None) -> _Moves:
        """Return how the answers move to and away from a class: to all inputs, or to those of one."""
        inputs = slice(None) if label is None else self.members[:, label]
        before, after = self.before[inputs] == said, self.after[inputs] == said
        gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
        return _Moves(len(before), int(before.sum()), gained, lost)

    def leak_changes(self, label: int, said: int) -> NDArray[np.float64]:
        """Return the change of the probability of `said` on each input of `label`."""
        inputs = self.members[:, label]
        return np.asarray(self.deployed[inputs, said] - self.original[inputs, said])


def _pair_moves(sides: _Sides) -> dict[tuple[int, int], _Moves]:
    """Return the moves of pairs (label, said) with inputs enough, where any input moves."""
    found = {}
    for label in sides.large:
        moved = sides.members[:, label] & (sides.before != sides.after)
        answers = {*sides.before[moved].tolist(), *sides.after[moved].tolist()} - {label}
        for said in sorted(answers):
            found[label, said] = sides.moves(said, label)
    return found


def _grows(sides: _Sides, pair: tuple[int, int]) -> bool:
    """Whether a class is said more often of the inputs of another, or has more probability there."""
    label, said = pair
    moves = sides.moves(said, label)
    if moves.gained != moves.lost:
        return moves.gained > moves.lost
    return bool(sides.leak_changes(label, said).sum() >= 0)


def _class_changes(
    sides: _Sides,
    moves: Mapping[int, _Moves],
    adjusted: Sequence[float],
    pairs: Sequence[PairChange],
) -> tuple[ClassChange, ...]:
    """Return the changes of classes in their order, see `DeploymentComparison`."""
    in_pairs = {label for one in pairs if one.is_significant for label in (one.label, one.said)}
    shifts = np.minimum(np.abs(sides.deployed - sides.original).mean(axis=0), 1.0)
    changes = []
    for (label, one), p in zip(moves.items(), adjusted, strict=False):
        kept = sides.moves(label, label)
        has_recall = sides.labels is not None and kept.inputs > 0
        changes.append(
            ClassChange(
                label=label,
                original=one.original,
                deployed=one.deployed,
                change=one.change,
                p=one.p,
                adjusted_p=p,
                moved=one.gained + one.lost,
                shift=float(shifts[label]) if sides.has_probabilities else None,
                in_pairs=label in in_pairs,
                inputs=None if sides.labels is None else kept.inputs,
                original_recall=kept.original / kept.inputs if has_recall else None,
                deployed_recall=kept.deployed / kept.inputs if has_recall else None,
            )
        )
    changes.sort(
        key=lambda one: (
            not (one.is_significant or one.in_pairs),
            -one.moved,
            -(one.shift or 0.0),
            one.label,
        )
    )
    return tuple(changes)


def _leaks(sides: _Sides, random_seed: int) -> dict[tuple[int, int], float]:
    """Return the adjusted p of the leaks that change by `LEAST_LEAK` or more.

    Of the largest change of any pair, in terms of its standard deviation, where the models change
    places at random on each input (Westfall and Young, 1993): pairs of the same inputs are tested
    together. Pairs whose probability changes by less than `LEAST_LEAK` on average of the inputs,
    whatever the sign, can't reach it and are left out.
    """
    signs = np.random.default_rng(random_seed).integers(
        2, size=(_DRAWS, len(sides.original)), dtype=np.int8
    )
    largest = np.zeros(_DRAWS)
    found: dict[tuple[int, int], float] = {}
    for label in sides.large:
        inputs = np.flatnonzero(sides.members[:, label])
        changes = sides.deployed[inputs] - sides.original[inputs]
        tested = np.flatnonzero(np.abs(changes).mean(axis=0) >= LEAST_LEAK)
        tested = tested[tested != label]
        changes = changes[:, tested]
        spread = np.sqrt(np.square(changes).sum(axis=0))
        drawn = (1.0 - 2.0 * signs[:, inputs]) @ changes / spread
        largest = np.maximum(largest, np.abs(drawn).max(axis=1, initial=0.0))
        for said, change, own in zip(tested.tolist(), changes.T, spread, strict=True):
            if abs(change.mean()) >= LEAST_LEAK:
                found[label, said] = abs(float(change.sum())) / float(own)
    return {pair: _adjusted(one, largest, sides.families) for pair, one in found.items()}


def _adjusted(value: float, largest: NDArray[np.float64], families: int) -> float:
    """Return the p of a value among the largest ones of each draw, for several kinds of tests."""
    count = int(np.count_nonzero(largest >= value * (1 - _ROUNDING)))
    return min(1.0, families * (count + 1) / (len(largest) + 1))


def _pair_change(
    sides: _Sides,
    pair: tuple[int, int],
    adjusted_p: float,
    leak_p: float | None,
    examples: int,
) -> PairChange:
    label, said = pair
    inputs = np.flatnonzero(sides.members[:, label])
    moves = sides.moves(said, label)
    is_said, was_said = sides.after[inputs] == said, sides.before[inputs] == said
    moved = np.concatenate([inputs[is_said & ~was_said], inputs[was_said & ~is_said]])
    leaks = [
        min(1.0, max(0.0, float(one[inputs, said].mean())))
        for one in (sides.original, sides.deployed)
    ]
    low, high = bootstrap_interval([[one] for one in sides.leak_changes(label, said).tolist()])
    return PairChange(
        label=label,
        said=said,
        inputs=moves.inputs,
        original=moves.original,
        deployed=moves.deployed,
        change=moves.change,
        p=moves.p,
        adjusted_p=adjusted_p,
        original_leak=leaks[0],
        deployed_leak=leaks[1] if sides.has_probabilities else None,
        leak_change=_within(low, high) if sides.has_probabilities else None,
        leak_p=leak_p,
        examples=tuple(moved[:examples].tolist()),
    )


def _biases(sides: _Sides, random_seed: int) -> tuple[BiasChange, ...]:
    """Return how `avg_cd` changes, of all pairs of classes with inputs enough."""
    large = sides.large
    if sides.labels is None or not 3 <= len(large) <= MOST_BIAS_CLASSES:
        return ()
    rng = np.random.default_rng(random_seed)
    classes, size = len(large), sides.original.shape[1]
    place = np.full(size, classes)  # the last column: any other class
    place[large] = np.arange(classes)
    swapped, drawn = (np.zeros((2, _DRAWS, classes, classes + 1)) for _ in range(2))
    real = np.zeros((2, 1, classes, classes + 1))
    inputs = np.zeros(classes)
    for row, label in enumerate(large):
        mine = np.flatnonzero(sides.labels == label)
        inputs[row] = len(mine)
        both = np.stack([place[sides.before[mine]], place[sides.after[mine]]], axis=1)
        kinds, counts = np.unique(both, axis=0, return_counts=True)
        again = rng.multinomial(len(mine), counts / len(mine), size=_DRAWS)
        turned = rng.binomial(counts, 0.5, size=(_DRAWS, len(counts)))
        for kind, count, of_again, of_turned in zip(
            kinds.tolist(), counts.tolist(), again.T, turned.T, strict=True
        ):
            for side in (0, 1):
                real[side, 0, row, kind[side]] += count
                drawn[side, :, row, kind[side]] += of_again
                swapped[side, :, row, kind[side]] += count - of_turned
                swapped[side, :, row, kind[1 - side]] += of_turned
    original, deployed = (_disparities(one, inputs)[0] for one in real)
    low, high = np.quantile(
        _disparities(drawn[1], inputs) - _disparities(drawn[0], inputs), (0.025, 0.975), axis=0
    )
    by_chance = _disparities(swapped[1], inputs) - _disparities(swapped[0], inputs)
    largest = np.abs(by_chance).max(axis=1)
    found = []
    for number, (first, second) in enumerate(class_pairs(classes)):
        change = abs(float(deployed[number] - original[number]))
        found.append(
            BiasChange(
                large[first],
                large[second],
                min(1.0, float(original[number])),
                min(1.0, float(deployed[number])),
                _within(float(low[number]), float(high[number])),
                _adjusted(change - _ROUNDING, largest, sides.families),
            )
        )
    found.sort(key=lambda one: (one.adjusted_p, -abs(one.deployed - one.original), one.first))
    return tuple(found[:MOST_PAIRS])


def _disparities(decided: NDArray[np.float64], inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `avg_cd` of type 1 confusion of all pairs, float64 [draws, pairs].

    `decided` is how many inputs of each class (row) are taken for which one, [draws, classes,
    classes + 1]; `inputs` is the number of each class.
    """
    classes = len(inputs)
    shares = decided[:, :, :classes] / inputs[:, None]
    confusion = (shares + shares.transpose(0, 2, 1)) / 2
    confusion[:, np.arange(classes), np.arange(classes)] = 0.0
    rows = []
    for first in range(classes - 1):
        others = confusion[:, first + 1 :]
        apart = np.abs(others - confusion[:, first, None]).sum(axis=2)
        rows.append((apart - 2 * confusion[:, first, first + 1 :]) / (classes - 2))
    return np.asarray(np.maximum(np.concatenate(rows, axis=1), 0.0))

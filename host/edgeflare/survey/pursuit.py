"""Going after deviations that a survey saw: rounds of inputs, chosen by all answers before them.

Each round asks where the conditions that still explain the answers contradict each other most
(query by committee: Seung, Opper and Sompolinsky 1992), and some inputs close to the most severe
deviations. What is left is checked on fresh inputs on both sides of the condition. What one
condition explains is one fault; what it leaves unexplained is pursued in the same way, within the
same budget. Where nothing deviates but the deployed model is less sure than the original, rounds go
where it is expected to be least sure, until one deviates. Such deviations get no condition: it
would say where the original is hardly sure.

A round waits for all of its answers, and what decides is whole numbers and powers of two, so the
same answers lead to the same questions, however many devices there are.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers import kind_of_answer
from edgeflare.answers.metrics import class_scores
from edgeflare.survey.description import Accuracy, Condition, accuracy, conditions, describe
from edgeflare.survey.features import Feature, Features, FeatureSet
from edgeflare.survey.leads import Leads
from edgeflare.survey.proposals import KINDS, Derivation, Inputs, Kind, propose
from edgeflare.types import Output, Sample

_POOL = 96
"""Number of inputs drawn before each round; those on which the original is sure stay for later."""
_EXTREMES = 16
"""Most device queries for inputs with extreme values of the features, a quarter of the budget."""
_EXTREMES_POOL, _EXTREMES_BYTES = 384, 512 << 20
"""Number of inputs that they are chosen from, and their bytes: fewer of photographs of 10 MB."""
_TWICE = 2
_AT_ONCE = 32
"""Number of inputs that the original is given at a time, and that are in memory."""
_BATCH = 8
"""Number of device queries of a round."""
_CLOSE = 2
"""Number of them that are close to the most severe deviations."""
_BASES = 6
"""Number of deviations that inputs are made from."""
_DRIFT, _UNLIKE = 0.3, 20
_LESS_SURE = 0.1
"""Drop of the deployed model's lead from which on deviations are looked for where none was seen."""
_CLIMB_POOL = 256
_PATIENCE = 4
"""Number of rounds that bring no smaller lead, after which the search for deviations ends."""
_SETTLED = 0.04
"""Share of the committee's weight that contradicts, below which nothing is left to ask."""
_CHECK = 24
"""Number of fresh inputs that a condition is checked on."""
_HOLDS = 0.9
"""Precision and recall on fresh inputs below which a condition is refined."""
_CHANCE = Fraction(1, 100)
"""Greatest probability by chance of the fresh answers' difference between both sides."""
_LEAST_CHECK = 8
_PLACES = (1 / 8, 1 / 2, 7 / 8)
"""Where a threshold may lie between the two answered values next to it."""
_REPEATING = 2
"""Number of the first round's inputs, all made like deviations, that must deviate, too."""
_MANY = 4
_FRUITFUL = 5
"""Number of two later rounds' inputs that must deviate for the pursuit to go on."""


class Screen(NamedTuple):
    """Asks the original about samples; the reply is a `Screened` of each, in order.

    `seeds`: the place of the seed that each was made from.
    """

    samples: Sequence[Sample]
    seeds: Sequence[int]


class Screened(NamedTuple):
    """The original's answer: its margin, 0..1, its class, or None of a transcript, and itself.

    The margin is below 0 where it can't answer.
    """

    margin: float
    label: int | None
    output: Output | None = None


class Round(NamedTuple):
    """Device queries that don't depend on each other; the reply is a `Reply` to each, in order."""

    phase: Literal["pursuit", "check"]
    inputs: Sequence[Derivation]
    samples: Sequence[Sample]
    originals: Sequence[Output | None]


class Reply(NamedTuple):
    """What came back: whether it is a confident deviation, the smaller of both margins, the drift.

    `severity`: 0..1. `drift`: the total variation of both answers, 0..1. None in a reply's place:
    the device can't answer on that input.
    """

    deviates: bool
    severity: float
    drift: float = 0.0


class Answered(NamedTuple):
    """One input with its answers; `features` float64 [features], `original` where it is known."""

    derivation: Derivation
    features: Features
    deviates: bool
    severity: float
    drift: float = 0.0
    original: Output | None = None


Request: TypeAlias = Screen | Round
Replies: TypeAlias = Sequence[Any]


@dataclass(frozen=True)
class PursuitResult:
    """Deviations that were pursued, and the condition that explains them.

    `condition` None: none does; `repeats` says whether inputs made like them deviated, too.
    `checked`: counts on the fresh inputs of the last check, all asked after the condition was
    chosen; None where the budget ended before. `members`: the deviating inputs, as places in what
    was answered, the surveyed inputs first. `seen`: counts on all answered inputs; with both, those
    of earlier conditions are left out.
    """

    condition: Condition | None
    checked: Accuracy | None = None
    repeats: bool = False
    members: tuple[int, ...] = ()
    seen: Accuracy | None = None


Pursuit: TypeAlias = Generator[Request, Replies, tuple[PursuitResult, ...]]


def pursue(
    surveyed: Sequence[Answered],
    inputs: Inputs,
    features: FeatureSet,
    queries: int,
    sure: float,
    rng: np.random.Generator,
) -> Pursuit:
    """Go after the deviations among surveyed inputs; return what conditions they have.

    `queries`: those of the device in all, checks included. `sure`: the original's least margin.

    First a few inputs with extreme values of all features are asked about, where a fault of a
    region shows that random inputs don't reach. Without a deviation by then, or a drift that is
    unlike the others, the pursuit ends; but where the deployed model is less sure than the original
    by a margin of .1 or more, a deviation is looked for first.
    """
    state = _PursuitState(list(surveyed), inputs, features, queries, sure, rng)
    yield from state.explore()
    found = yield from state.find_conditions()
    if not state.unexplained(()) and (yield from state.climb()):
        found = [PursuitResult(None)]
    return tuple(state.counted(one, found[:place]) for place, one in enumerate(found))


class _Candidate(NamedTuple):
    """An input to ask about. `features` are empty where they were not measured."""

    derivation: Derivation
    features: Features
    label: int | None
    original: Output | None
    close: bool


class _PursuitState:
    """State of a pursuit."""

    def __init__(
        self,
        answered: list[Answered],
        inputs: Inputs,
        features: FeatureSet,
        queries: int,
        sure: float,
        rng: np.random.Generator,
    ) -> None:
        self._answered = answered
        self._inputs = inputs
        self._features = features
        self._queries, self._sure = queries, sure
        self._rng = rng
        self._pool: list[_Candidate] = []
        self.left = queries

    def explore(self) -> Generator[Request, Replies, None]:
        """Ask about inputs that have the extreme values of all features between them."""
        largest = max(seed.nbytes for seed in self._inputs.seeds)
        count = max(_EXTREMES, min(_EXTREMES_POOL, _EXTREMES_BYTES // largest))
        drawn = yield from self._drawn((), count, ("drawn",))
        if not drawn:
            return
        known = np.array([one.features for one in self._answered])
        places = _extremes(np.array([one.features for one in drawn]), known)
        places = places[: min(_EXTREMES, self._queries // 4)]
        yield from self._ask("pursuit", [drawn[place] for place in places])
        self._pool = [one for place, one in enumerate(drawn) if place not in set(places)]

    def find_conditions(self) -> Generator[Request, Replies, list[PursuitResult]]:
        """Pursue deviations, or drift that is unlike the others, one condition after the other."""
        found: list[PursuitResult] = []
        while (self.unexplained(found) or self.drifting(found)) and self.left >= _BATCH:
            found.append((yield from self.find_condition(found)))
            if found[-1].condition is None:
                break
        return found

    def climb(self) -> Generator[Request, Replies, bool]:
        """Ask where the deployed model's lead is expected to be least; return whether it deviates.

        Ends after `_PATIENCE` rounds that brought no smaller lead.
        """
        idle, leads = 0, self._leads()[1]
        if leads.largest_drop < _LESS_SURE:
            return False
        while self.left >= _BATCH and idle < _PATIENCE:
            known, leads = self._leads()
            bases = [known[place].derivation for place in leads.bases()]
            drawn = yield from self._made(bases, _CLIMB_POOL, KINDS[1:], measured=False)
            expected = [leads.expected(one.original) for one in drawn]
            places = sorted(range(len(drawn)), key=expected.__getitem__)[:_BATCH]
            chosen = [self._measured(drawn[place]) for place in places]
            replies = yield from self._ask("pursuit", chosen)
            if any(reply.deviates for reply in replies):
                return True
            idle = 0 if self._leads()[1].least < leads.least else idle + 1
        return False

    def _leads(self) -> tuple[list[Answered], Leads]:
        """Return the answered inputs of which the original's scores are known, and all leads."""
        scored = [
            (one, class_scores(one.original))
            for one in self._answered
            if one.original is not None and kind_of_answer(one.original).class_count(one.original)
        ]
        known, originals = [one for one, _ in scored], [scores for _, scores in scored]
        return known, Leads(originals, [one.severity for one in known])

    def unexplained(self, found: Sequence[PursuitResult]) -> list[Answered]:
        """Return the deviations outside all conditions found so far."""
        return [one for one in self._outside(found) if one.deviates]

    def drifting(self, found: Sequence[PursuitResult]) -> list[Answered]:
        """Return the inputs whose drift is unlike the others', where nothing was found yet.

        That is a drift of .3 or more, and above the median by 20 times the median absolute
        deviation.
        """
        if found or not self._answered:
            return []
        drifts = np.array([one.drift for one in self._answered])
        middle = np.median(drifts)
        usual = middle + _UNLIKE * np.median(np.abs(drifts - middle))
        return [one for one in self._answered if one.drift >= max(_DRIFT, float(usual))]

    def counted(self, one: PursuitResult, found: Sequence[PursuitResult]) -> PursuitResult:
        """Return what was pursued with its members and counts, beside those found before."""
        places = [
            place
            for place, answered in enumerate(self._answered)
            if not _explained(answered.features, found)
        ]
        known = [self._answered[place] for place in places]
        deviates = [answered.deviates for answered in known]
        if one.condition is None:
            members = [place for place, wrong in zip(places, deviates, strict=True) if wrong]
            return replace(one, members=tuple(members))
        values = np.array([answered.features for answered in known])
        inside = one.condition.holds(values)
        members = [
            place
            for place, within, wrong in zip(places, inside, deviates, strict=True)
            if within and wrong
        ]
        return replace(one, members=tuple(members), seen=accuracy(one.condition, values, deviates))

    def find_condition(
        self, found: Sequence[PursuitResult]
    ) -> Generator[Request, Replies, PursuitResult]:
        """Pursue the deviations that are not explained; return their condition."""
        self._pool = [one for one in self._pool if not _explained(one.features, found)]
        result = PursuitResult(None)
        if not (yield from self._repeats(found)):
            return result
        while True:
            fruitful = yield from self._rounds(found)
            condition = self._best(found)
            if condition is None or not fruitful or self.left < _LEAST_CHECK:
                return result
            checked = yield from self._check(condition, found)
            if not checked.inside + checked.outside:  # no fresh input was usable
                return result
            if checked.p <= _CHANCE:
                result = PursuitResult(condition, checked, repeats=True)
            elif result.condition is None:
                result = PursuitResult(None, checked, repeats=True)
            holds = (checked.precision or 0) >= _HOLDS and (checked.recall or 0) >= _HOLDS
            if holds or self.left < _BATCH + _LEAST_CHECK:
                return result

    def _rounds(self, found: Sequence[PursuitResult]) -> Generator[Request, Replies, bool]:
        """Ask until the conditions agree; return whether there is something to describe."""
        hits: list[int] = []
        while self.left >= _BATCH + min(_CHECK, self._queries // 3):
            yield from self._fill(found)
            committee = self._committee(found)
            chosen = self._chosen(committee)
            if not chosen:
                return bool(committee.size)
            replies = yield from self._ask("pursuit", chosen)
            hits.append(sum(reply.deviates for reply in replies))
            if sum(hits[-2:]) < _FRUITFUL and len(hits) > 1:
                return False
        return True

    def _repeats(self, found: Sequence[PursuitResult]) -> Generator[Request, Replies, bool]:
        """Ask about inputs made like the most severe deviations; return whether they deviate.

        Where there are many deviations, as many inputs again get a chance to.
        """
        hits = 0
        for _ in range(2 if len(self.unexplained(found)) >= _MANY else 1):
            if self.left < _BATCH:
                break
            drawn = yield from self._drawn(found, _POOL // 4, ("moved", "varied"), 2)
            close = drawn[:_BATCH]
            self._pool += drawn[_BATCH:]
            replies = yield from self._ask("pursuit", close)
            hits += sum(reply.deviates for reply in replies)
            if hits >= min(_REPEATING, len(close)):
                return True
        return False

    def _outside(self, found: Sequence[PursuitResult]) -> list[Answered]:
        return [one for one in self._answered if not _explained(one.features, found)]

    def _best(self, found: Sequence[PursuitResult]) -> Condition | None:
        return describe(*self._known(found))

    def _known(
        self, found: Sequence[PursuitResult]
    ) -> tuple[Features, list[bool], tuple[Feature, ...]]:
        known = self._outside(found)
        values = np.array([one.features for one in known])
        return values, [one.deviates for one in known], self._features.features

    def _committee(self, found: Sequence[PursuitResult]) -> "_Committee":
        return _Committee(conditions(*self._known(found)))

    def _fill(self, found: Sequence[PursuitResult]) -> Generator[Request, Replies, None]:
        """Draw inputs and keep those on which the original is sure."""
        drawn = yield from self._drawn(found, _POOL)
        self._pool += drawn

    def _drawn(
        self,
        found: Sequence[PursuitResult],
        count: int,
        kinds: Sequence[Kind] = KINDS,
        bases: int = _BASES,
    ) -> Generator[Request, Replies, list[_Candidate]]:
        severe = sorted(self.unexplained(found), key=lambda one: -one.severity)[:bases]
        severe = severe or sorted(self.drifting(found), key=lambda one: -one.drift)[:bases]
        drawn = yield from self._made([one.derivation for one in severe], count, kinds)
        return [one for one in drawn if not _explained(one.features, found)]

    def _made(
        self,
        bases: Sequence[Derivation],
        count: int,
        kinds: Sequence[Kind],
        *,
        measured: bool = True,
    ) -> Generator[Request, Replies, list[_Candidate]]:
        made = propose(self._rng, self._inputs, bases, count, kinds)
        drawn: list[_Candidate] = []
        for at in range(0, len(made), _AT_ONCE):
            some = made[at : at + _AT_ONCE]
            samples = [self._inputs.sample(one) for one, _ in some]
            screened = yield Screen(samples, [one.seed for one, _ in some])
            for (one, close), sample, (margin, label, output) in zip(
                some, samples, screened, strict=True
            ):
                if margin >= self._sure:
                    values = self._features.of(sample, label) if measured else np.empty(0)
                    drawn.append(_Candidate(one, values, label, output, close))
        return drawn

    def _measured(self, one: _Candidate) -> _Candidate:
        sample = self._inputs.sample(one.derivation)
        return one._replace(features=self._features.of(sample, one.label))

    def _chosen(self, committee: "_Committee") -> list[_Candidate]:
        """Take the next round's inputs out of the pool; none where nothing is left to tell."""
        if not self._pool:
            return []
        inside = committee.inside(np.array([one.features for one in self._pool]))
        places = committee.most_telling(inside, _BATCH - _CLOSE)
        if not places and committee.size:
            return []
        votes = committee.votes(inside)
        close = sorted(
            (place for place, one in enumerate(self._pool) if one.close and place not in places),
            key=lambda place: (-votes[place], place),
        )
        places += close[: _BATCH - len(places)]
        chosen = [self._pool[place] for place in places]
        self._pool = [one for place, one in enumerate(self._pool) if place not in set(places)]
        return chosen

    def _check(
        self, condition: Condition, found: Sequence[PursuitResult]
    ) -> Generator[Request, Replies, Accuracy]:
        """Ask about fresh inputs on both sides of a condition, as many on each."""
        count = min(_CHECK, self.left) // 2
        sides: tuple[list[_Candidate], list[_Candidate]] = ([], [])
        for _ in range(4):
            fresh = yield from self._drawn(found, _POOL)
            for one in fresh:
                sides[bool(condition.holds(one.features))].append(one)
            if min(map(len, sides)) >= count:
                break
        chosen = [*sides[True][:count], *sides[False][:count]]
        before = len(self._answered)
        yield from self._ask("check", chosen)
        asked = self._answered[before:]
        values = np.array([one.features for one in asked])
        return accuracy(condition, values, [one.deviates for one in asked])

    def _ask(
        self, phase: Literal["pursuit", "check"], chosen: Sequence[_Candidate]
    ) -> Generator[Request, Replies, list[Reply]]:
        """Ask the device about inputs, and add their answers to what is known."""
        if not chosen:
            return []
        self.left -= len(chosen)
        replies = yield Round(
            phase,
            [one.derivation for one in chosen],
            [self._inputs.sample(one.derivation) for one in chosen],
            [one.original for one in chosen],
        )
        answered = [
            (one, reply) for one, reply in zip(chosen, replies, strict=True) if reply is not None
        ]
        self._answered += [
            Answered(
                one.derivation,
                one.features,
                reply.deviates,
                reply.severity,
                reply.drift,
                one.original,
            )
            for one, reply in answered
        ]
        return [reply for _, reply in answered]


def _explained(values: Features, found: Sequence[PursuitResult]) -> bool:
    return any(one.condition is not None and bool(one.condition.holds(values)) for one in found)


def _extremes(values: Features, known: Features) -> list[int]:
    """Return inputs that cover each extreme value twice, known ones counted; those of most first.

    `values` [inputs, features]. An extreme is the outermost hundredth of a feature's values.
    """
    if not len(values):
        return []
    deep = min(len(values), max(_TWICE, len(values) // 100))
    ordered = np.sort(values, axis=0)
    lowest, highest = ordered[deep - 1], ordered[-deep]
    covers = np.concatenate([values <= lowest, values >= highest], axis=1)
    wanted = np.full(covers.shape[1], _TWICE)
    if len(known):
        seen = np.concatenate([known <= lowest, known >= highest], axis=1)
        wanted = np.maximum(0, wanted - seen.sum(axis=0))
    chosen: list[int] = []
    while wanted.any():
        gains = (covers & (wanted > 0)).sum(axis=1)
        gains[chosen] = -1
        best = int(np.argmax(gains))
        if gains[best] <= 0:
            break
        chosen.append(best)
        wanted = np.maximum(0, wanted - covers[best])
    return chosen


class _Committee:
    """Conditions that explain the answers, each with its threshold at several places.

    A condition's weight is halved with each unit of its cost.
    """

    def __init__(self, best: Sequence[Condition]) -> None:
        self.size = len(best)
        self._members: list[Condition] = []
        weights: list[float] = []
        for condition in best:
            weight = math.ldexp(1.0, max(-40, best[0].cost - condition.cost))
            for place in _PLACES:
                self._members.append(_at(condition, place))
                weights.append(weight)
        self._weights = np.array(weights, np.float64)

    def inside(self, values: Features) -> NDArray[np.bool_]:
        """Return bool [members, inputs]: where each member says that inputs deviate."""
        if not self._members:
            return np.zeros((0, len(values)), bool)
        return np.array([member.holds(values) for member in self._members])

    def votes(self, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the weight of the members by which each input deviates: float64 [inputs]."""
        votes: NDArray[np.float64] = (self._weights[:, np.newaxis] * inside).sum(axis=0)
        return votes

    def most_telling(self, inside: NDArray[np.bool_], count: int) -> list[int]:
        """Return up to `count` inputs by which members are told apart, the best first.

        Each is the one that splits best what those before it left together.
        """
        groups = [np.arange(len(self._members))] if self._members else []
        total = float(self._weights.sum())
        chosen: list[int] = []
        while groups and len(chosen) < count:
            split = np.zeros(inside.shape[1])
            for group in groups:
                weights = self._weights[group]
                votes = (weights[:, np.newaxis] * inside[group]).sum(axis=0)
                split += np.minimum(votes, weights.sum() - votes)
            split[chosen] = 0
            best = int(np.argmax(split))
            if split[best] <= (_SETTLED * total if not chosen else 0):
                break
            chosen.append(best)
            parts = [
                part
                for group in groups
                for part in (group[inside[group, best]], group[~inside[group, best]])
            ]
            groups = [part for part in parts if part.size > 1]
        return chosen


def _at(condition: Condition, place: float) -> Condition:
    """Return a condition with its thresholds at this place between the answered values."""
    moved = (
        replace(threshold, at=threshold.low + (threshold.high - threshold.low) * place)
        for threshold in condition.thresholds
    )
    return replace(condition, thresholds=tuple(moved))

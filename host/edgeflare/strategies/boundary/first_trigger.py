"""The first triggering input: near a crossing of two classes, or where three classes tie.

Where the deployed model has an independent error of about the same size for each class, it prefers
each of three tied classes equally often: it decides otherwise than the original, which gives one of
them, in two cases of three, near a boundary of two classes in one of two (measured:
docs/research/tried.md).
"""

import math
from collections.abc import Generator
from functools import cached_property, lru_cache

import numpy as np

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare.answers.metrics import class_scores
from edgeflare.strategies.boundary.paths import Bracket, TargetMargin
from edgeflare.strategies.boundary.perturb import TieBreak
from edgeflare.strategies.boundary.points import PathPoint, log_probabilities
from edgeflare.strategies.boundary.probing import Observation, SearchContext, nearest_target
from edgeflare.strategies.boundary.schedule import CrossingSchedule
from edgeflare.strategies.boundary.ties import Tie
from edgeflare.types import Answer, Ask, KnownAnswers, Scores, Seed

_MAX_LOG_PROB = 15.0
_MAX_DRIFT = 3.0
_RIDGE = 100.0
_SEED_SHARE = 0.3
_CHANCE = 1.2
"""This / sqrt(seeds), 2.4 standard deviations, is what chance adds to one half of right signs."""


class DriftModel:
    """The drift of log-probabilities by deployment, a linear function of the original's.

    Ridge regression over the answers to the first inputs of the source (`Seed.known`), plus three
    tenths of the residual at the search's own seed. The drift at the seed stands for all inputs
    where there are too few answers, and where a score of the device is exactly 0, as it is of int8
    outputs: such scores say little of the drift (docs/research/boundary.md). For the fit,
    log-probabilities are centred and clipped to +-15, their drift to +-3.
    """

    def __init__(self, seed: Seed) -> None:
        original, deployed = seed.outputs.original, seed.outputs.deployed
        self._at_seed: Floats | None = None
        if original is not None and deployed is not None and seed.kind.is_scored:
            self._log_probs = log_probabilities(class_scores(original))
            self._own = log_probabilities(class_scores(deployed)) - self._log_probs
            self._at_seed = _centred(self._own[None], _MAX_DRIFT)[0]
        self._known = seed.known if self._at_seed is not None else None
        self._has_steps = self._known is not None and bool((self._known.deployed == 0).any())

    def predict(self, log_probs: Floats, label: int, rival: int) -> float | None:
        """Return the expected drift of `label` over `rival` at the original's `log_probs`.

        `log_probs`: float64 [classes]. None where the device returns labels only.
        """
        if self._at_seed is None:
            return None
        if self._has_steps:
            own = float(self._own[label] - self._own[rival])
            return min(max(own, -2 * _MAX_DRIFT), 2 * _MAX_DRIFT)
        drift = self._at_seed
        if self._known is not None and len(self._known.original) > len(log_probs):
            there, here = _fitted(self._known).predict(np.stack([log_probs, self._log_probs]))
            drift = there + _SEED_SHARE * (self._at_seed - here)
        return float(drift[label] - drift[rival])

    @property
    def is_reliable(self) -> bool:
        """Whether the predictions are better than chance; True with too few seeds to know.

        Measured by how often the sign of a seed's drift between its two likeliest classes is
        predicted from the other seeds.
        """
        if self._at_seed is None:
            return False
        if self._known is None or len(self._known.original) <= len(self._log_probs):
            return True
        wanted = 0.5 + _CHANCE / math.sqrt(len(self._known.original))
        return bool(_fitted(self._known).sign_accuracy >= wanted)

    def typical(self) -> float:
        """Return the median drift between the two likeliest classes of a seed; 0 if unknown."""
        return 0.0 if self._known is None else _typical_drift(self._known)


@lru_cache(maxsize=4)
def _typical_drift(known: KnownAnswers) -> float:
    log_probs = log_probabilities(known.original)
    order = np.argsort(log_probs, axis=1)[:, -2:]
    drift = np.take_along_axis(_drift(log_probs, log_probabilities(known.deployed)), order, axis=1)
    return float(np.median(np.abs(drift[:, 1] - drift[:, 0])))


class Ridge:
    """Ridge regression in dual form (an unknown for each seed) that does not shrink the mean."""

    def __init__(self, known: KnownAnswers) -> None:
        log_probs = log_probabilities(known.original)
        features, drift = _features(log_probs), _drift(log_probs, log_probabilities(known.deployed))
        self._centre: Floats = np.asarray(features.mean(axis=0))
        self._mean: Floats = np.asarray(drift.mean(axis=0))
        self._features = features - self._centre
        gram = self._products(self._features) + _RIDGE * np.eye(len(features))
        self._inverse = exact.inverse(gram)
        self._weights = exact.matmul(self._inverse, drift - self._mean)
        self._log_probs = log_probs
        self._drift = drift

    @cached_property
    def sign_accuracy(self) -> float:
        """The share of seeds whose sign of drift is predicted from the other seeds.

        Where the drift is 0 (both clipped), half a seed is counted. Leave-one-out, but for the
        means, in closed form: the error of ridge regression is the weight over the diagonal of the
        inverse.
        """
        shrunk = np.diag(self._inverse)
        left_out = self._drift - self._weights / shrunk[:, None]
        order = np.argsort(self._log_probs, axis=1)[:, -2:]
        real, predicted = (
            np.diff(np.take_along_axis(one, order, axis=1), axis=1)[:, 0]
            for one in (self._drift, left_out)
        )
        return float(np.mean(np.where(real == 0, 0.5, np.sign(real) == np.sign(predicted))))

    def predict(self, log_probs: Floats) -> Floats:
        """Return the drift at inputs with these log-probabilities, both float64 [n, classes]."""
        shares = self._products(_features(log_probs) - self._centre)
        return np.asarray(self._mean + exact.matmul(shares, self._weights))

    def _products(self, features: Floats) -> Floats:
        """Return the products of features with those of all seeds, float64 [n, seeds]."""
        return np.stack([(features * one).sum(axis=1) for one in self._features], axis=1)


@lru_cache(maxsize=4)
def _fitted(known: KnownAnswers) -> Ridge:
    """Return the regression over these answers, which all searches of a campaign have."""
    return Ridge(known)


def _features(log_probs: Floats) -> Floats:
    return _centred(log_probs, _MAX_LOG_PROB)


def _drift(original: Floats, deployed: Floats) -> Floats:
    return _centred(deployed - original, _MAX_DRIFT)


def _centred(values: Floats, most: float) -> Floats:
    return np.asarray(np.clip(values - values.mean(axis=1, keepdims=True), -most, most))


_QUERIES_A_CROSSING = 3
_FLOORS_OF_DRIFT = 4.0
_WEAK_SHARE = 0.3
_MAX_WEAK = 0.05
_COARSE_SHARE = 0.3
_FLOORS_OF_SEVERITY = 1.2
_QUERIES_A_TIE = 3
_MAX_SPREAD = 3.0
_CLOSE = 0.15


class FirstTriggerSearch:
    """Asks the device at crossings, on the side where its drift should change its decision.

    `drift_model` predicts the drift until an observation says it. `min_drift`: with less drift
    another crossing is more promising.
    """

    def __init__(self, context: SearchContext, *, coarse: bool) -> None:
        self._context = context
        self.drift_model = DriftModel(context.original.seed)
        typical = self.drift_model.typical()
        self._coarse = _COARSE_SHARE * typical if coarse else 0.0
        self.min_drift = max(
            _FLOORS_OF_DRIFT * context.floor, min(_WEAK_SHARE * typical, _MAX_WEAK)
        )

    def search(self, bracket: Bracket, drift: float | None = None) -> Generator[Ask, Answer, None]:
        """Ask the device at a crossing until an input triggers or the crossing promises no more.

        `drift`: the drift expected there; None: predicted.
        """
        context = self._context
        if drift is None:
            drift = self._expected_drift(bracket.outside)
        keeps_label = bool(context.rng.integers(2)) if drift is None else drift < 0
        point = yield from context.approach_or_perturb(bracket, self._target(bracket, keeps_label))
        for query in range(_QUERIES_A_CROSSING):
            if point is None or context.device.remaining <= 0:
                return
            seen = yield from context.device.query((point,))
            if not seen or seen[0].margin > 0:
                return
            drift = seen[0].drift
            if drift is None:
                if query:
                    return
                keeps_label = not keeps_label
            elif not self.is_enough(seen[0]):
                return
            else:
                keeps_label = drift < 0
            point = yield from context.perturb(point, bracket, self._target(bracket, keeps_label))

    def is_enough(self, seen: Observation) -> bool:
        """Whether the drift at an input is enough for a trigger beside it; True if unknown."""
        if seen.drift is None:
            return True
        enough = _FLOORS_OF_SEVERITY * self._context.floor
        return abs(seen.drift) >= self.min_drift and seen.severity >= enough

    def both_sides(self, bracket: Bracket) -> Generator[Ask, Answer, list[PathPoint]]:
        """Return the points just above the floor on either side of a crossing, as far as found."""
        found = []
        for keeps_label in (True, False):
            target = self._target(bracket, keeps_label)
            point = yield from self._context.approach_or_perturb(bracket, target)
            if point is not None:
                found.append(point)
        return found

    def _target(self, bracket: Bracket, keeps_label: bool) -> TargetMargin:
        """Return the target just above the floor on one side."""
        outside = bracket.outside
        both = outside.log_probs[[outside.rival, self._context.original.label]]
        likely = float(exact.exp(both).sum())
        return nearest_target(self._context.floor, keeps_label, likely=likely, coarse=self._coarse)

    def _expected_drift(self, point: PathPoint) -> float | None:
        """Return the drift last observed with this rival, else the drift model's prediction."""
        for seen in reversed(self._context.device.observations):
            if seen.point.rival == point.rival:
                return seen.drift
        return self.drift_model.predict(point.log_probs, self._context.original.label, point.rival)


class TieSearch:
    """Asks the device at ties: at one of the classes, then by its answer at another.

    `min_drift`: with less drift between the tied classes another place is more promising.
    """

    def __init__(self, context: SearchContext, drift_model: DriftModel, min_drift: float) -> None:
        self._context = context
        self._drift_model = drift_model
        self._min_drift = min_drift

    def search(
        self, bracket: Bracket, crossings: CrossingSchedule, reach: float
    ) -> Generator[Ask, Answer, bool]:
        """Ask at a tie of a third class with the two of a crossing; whether there was one.

        One that is more than `reach` times as far from the seed as the crossing doesn't count.

        The original gives the class for which the device's lowest probability is expected, then the
        one for which it was observed, of several rather one not yet tried. Where the device prefers
        two classes equally, one of these is handicapped.
        """
        context = self._context
        if bracket.outside.path.exact:
            return False
        tie = yield from crossings.find_tie(bracket)
        if tie is None or tie.spread > _MAX_SPREAD or not context.bounds.contain(tie.point.sample):
            return False
        distance = context.original.distance
        if distance(tie.point.sample) > reach * distance(bracket.outside.sample):
            return False
        point, winner, handicapped = tie.point, self._least_expected(tie), None
        tried: set[int] = set()
        for query in range(_QUERIES_A_TIE):
            wanted = TieBreak(winner, tie.others(winner), context.floor, query > 0, handicapped)
            broken = yield from context.break_tie(point, wanted)
            if (
                broken is None
                or not wanted.is_close(broken, _CLOSE)
                or context.device.remaining <= 0
            ):
                return query > 0
            seen = yield from context.device.query((broken,))
            if not seen or seen[0].margin > 0 or self._has_weak_drift(seen[0], tie):
                return True
            deployed = seen[0].deployed
            point = broken
            tried.add(winner)
            winner = min(tie.classes, key=lambda one: (float(deployed[one]), one in tried))
            handicapped = self._equally_preferred(deployed[list(tie.classes)], tie, winner)
        return True

    def _least_expected(self, tie: Tie) -> int:
        """Return the class expected to be least probable on the device.

        A random one without a reliable drift model.
        """
        if not self._drift_model.is_reliable:
            return int(self._context.rng.choice(tie.classes))
        label, log_probs = self._context.original.label, tie.point.log_probs
        drift = [
            self._drift_model.predict(log_probs, one, label) if one != label else 0.0
            for one in tie.classes
        ]
        return tie.classes[int(np.argmin(np.array(drift, dtype=np.float64)))]

    def _equally_preferred(self, scores: Scores, tie: Tie, winner: int) -> int | None:
        """Return one of two classes, not the winner, that the device prefers equally, else None."""
        preferred = np.flatnonzero(scores >= scores.max() - self._context.floor)
        others = [tie.classes[place] for place in preferred if tie.classes[place] != winner]
        return others[0] if len(preferred) > 1 else None

    def _has_weak_drift(self, seen: Observation, tie: Tie) -> bool:
        """Whether the drift between the classes is too small for this place to be promising."""
        if seen.drift is None:
            return False
        classes = list(tie.classes)
        drift = log_probabilities(seen.deployed)[classes] - seen.point.log_probs[classes]
        return float(np.ptp(drift)) < self._min_drift

"""The first triggering input: near a crossing of two classes, or where three classes tie.

Where the deployed model has an independent error of about the same size for each class, it prefers
each of three tied classes equally often: it decides otherwise than the original, which gives one of
them, in two cases of three, near a boundary of two classes in one of two (measured:
docs/research/tried.md).
"""

from collections.abc import Generator

import numpy as np

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare.metrics import class_scores
from edgeflare.strategies.boundary.paths import Bracket, TargetMargin
from edgeflare.strategies.boundary.perturb import TieBreak
from edgeflare.strategies.boundary.points import PathPoint, log_probabilities
from edgeflare.strategies.boundary.probing import Observation, SearchContext, nearest_target
from edgeflare.strategies.boundary.schedule import CrossingSchedule
from edgeflare.strategies.boundary.ties import Tie
from edgeflare.types import Answer, Ask, Scores, Seed

_MAX_DRIFT = 3.0


class DriftModel:
    """The drift of log-probabilities by deployment: everywhere that at the search's own seed.

    Log-probabilities are centred, and their drift is clipped to +-3: a quantised probability of 0
    only means that it is small.
    """

    def __init__(self, seed: Seed) -> None:
        original, deployed = seed.outputs.original, seed.outputs.deployed
        self._at_seed: Floats | None = None
        if original is not None and deployed is not None and not seed.labels_only:
            ours, theirs = (log_probabilities(class_scores(one)) for one in (original, deployed))
            drift = theirs - ours
            self._at_seed = np.clip(drift - drift.mean(), -_MAX_DRIFT, _MAX_DRIFT)

    def predict(self, label: int, rival: int) -> float | None:
        """Return the expected drift of `label` over `rival`; None for labels only."""
        if self._at_seed is None:
            return None
        return float(self._at_seed[label] - self._at_seed[rival])


_QUERIES_A_CROSSING = 3
_FLOORS_OF_DRIFT = 4.0
_FLOORS_OF_SEVERITY = 1.2
_QUERIES_A_TIE = 3
_MAX_SPREAD = 3.0
_CLOSE = 0.15


class FirstTriggerSearch:
    """Asks the device at crossings, on the side where its drift should change its decision.

    `drift_model` predicts the drift until an observation says it. `min_drift`: with less drift
    another crossing is more promising.
    """

    def __init__(self, context: SearchContext) -> None:
        self._context = context
        self.drift_model = DriftModel(context.original.seed)
        self.min_drift = _FLOORS_OF_DRIFT * context.floor

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
        return nearest_target(self._context.floor, keeps_label, likely=likely)

    def _expected_drift(self, point: PathPoint) -> float | None:
        """Return the drift last observed with this rival, else the drift model's prediction."""
        for seen in reversed(self._context.device.observations):
            if seen.point.rival == point.rival:
                return seen.drift
        return self.drift_model.predict(self._context.original.label, point.rival)


class TieSearch:
    """Asks the device at ties: at one of the classes, then by its answer at another.

    `min_drift`: with less drift between the tied classes another place is more promising.
    """

    def __init__(self, context: SearchContext, drift_model: DriftModel, min_drift: float) -> None:
        self._context = context
        self._drift_model = drift_model
        self._min_drift = min_drift

    def search(self, bracket: Bracket, crossings: CrossingSchedule) -> Generator[Ask, Answer, bool]:
        """Ask at a tie of a third class with the two of a crossing; whether there was one.

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

        A random one where the device returns labels only.
        """
        label = self._context.original.label
        drift = [self._drift_model.predict(one, label) for one in tie.classes]
        known = [one for one in drift if one is not None]
        if not known:
            return int(self._context.rng.choice(tie.classes))
        return tie.classes[int(np.argmin(known))]

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

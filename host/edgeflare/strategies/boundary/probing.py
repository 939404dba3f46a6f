"""Queries to the device about points, their answers, and the state shared by one search."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from edgeflare._internal import exact
from edgeflare.answers.oracles import margins
from edgeflare.strategies.boundary.options import Bounds
from edgeflare.strategies.boundary.paths import Bracket, TargetMargin, approach
from edgeflare.strategies.boundary.perturb import TieBreak, break_tie, perturb_locally
from edgeflare.strategies.boundary.points import OriginalProbe, Path, PathPoint, log_probabilities
from edgeflare.types import Answer, Ask, Decision, Outcome, Outputs, Scores

_ABOVE_FLOOR = 1.3
"""The original's margin at an input is to be this many times the floor."""
_MAX_MARGIN = 0.99
_MIN_LOG_ODDS = 1e-4
_MAX_EARLIER = 3
_MAX_DRIFT = 6.0
_SATISFIED = 0.99
_NEAR = 0.1
_NEAR_SHARE = 4.0


class Observation(NamedTuple):
    """What the device's answer says about a point.

    `drift`: the deployed model's log-odds of the seed's label over the point's rival, less the
    original's; at most 6 either way, since a quantised probability of 0 only means that it is
    small; None where the device returns labels only. `severity`: the smaller margin that an input
    near this one would have where the drift is split evenly between both models. `margin`: the
    smaller margin of the point itself, 0 where both models agree. `deployed`: the deployed model's
    answer, float64 [classes].
    """

    point: PathPoint
    drift: float | None
    severity: float
    margin: float
    deployed: Scores

    @property
    def path(self) -> Path:
        """The path that the point lies on."""
        return self.point.path


@dataclass
class DeviceProbe:
    """Asks both models about up to `budget` points (None: any number); has the best trigger."""

    original: OriginalProbe
    budget: int | None
    best: Observation | None = None
    queries: int = 0
    observations: list[Observation] = field(default_factory=list)

    @property
    def remaining(self) -> float:
        """The number of points still allowed on the device; infinity without a budget."""
        return np.inf if self.budget is None else self.budget - self.queries

    @property
    def is_satisfied(self) -> bool:
        """Whether both models are as sure of different answers as they need be."""
        return self.best is not None and self.best.margin >= _SATISFIED

    def query(
        self, points: Sequence[PathPoint], *, far: bool = False
    ) -> Generator[Ask, Answer, list[Observation]]:
        """Ask about points in one request; return observations in order, none below the floor.

        `far`: they are not added to `observations`, which are about inputs near the boundary.
        """
        self.queries += len(points)
        answer = yield Ask(tuple(point.sample for point in points), best=self.original.best)
        found = []
        for point, outputs in zip(points, answer.outputs, strict=True):
            if outputs.deployed is None:
                continue
            seen = self._observe(point, self.original.read(outputs.deployed), outputs)
            found.append(seen)
            if seen.margin > 0 and (self.best is None or seen.margin > self.best.margin):
                self._set_best(seen)
        if not far:
            self.observations += found
        return found

    def _set_best(self, seen: Observation) -> None:
        """Make this the best trigger; earlier ones are tried where it is not confirmed."""
        before = self.original.best
        earlier = () if before is None else (replace(before, earlier=()), *before.earlier)
        self.best = seen
        mutations = seen.path.mutations(seen.point.t)
        self.original.best = Outcome(seen.point.sample, mutations, earlier[:_MAX_EARLIER])

    def is_new(self, point: PathPoint) -> bool:
        """Whether the device was never asked about this input."""
        return all(not np.array_equal(one.point.sample, point.sample) for one in self.observations)

    def _observe(self, point: PathPoint, deployed: Scores, outputs: Outputs) -> Observation:
        deviates = outputs.decision is Decision.DEVIATION
        if not self.original.seed.kind.is_scored:
            margin = point.margin if deviates else 0.0
            return Observation(point, None, margin, margin, deployed)
        label, rival = self.original.label, point.rival
        ours, theirs = point.log_probs, log_probabilities(deployed)
        drift = float(theirs[label] - theirs[rival] - ours[label] + ours[rival])
        drift = min(max(drift, -_MAX_DRIFT), _MAX_DRIFT)
        both = float(exact.exp(ours[[label, rival]]).sum())
        margin = 0.0
        if deviates and outputs.original is not None and outputs.deployed is not None:
            margin = margins(outputs.original, outputs.deployed).smaller or 0.0
        return Observation(
            point, drift, max(margin, both * float(exact.tanh(abs(drift) / 4))), margin, deployed
        )


@dataclass(frozen=True)
class SearchContext:
    """The state of one boundary search; finds points within the bounds and new to the device.

    `floor` is the margin floor of the oracle.
    """

    original: OriginalProbe
    device: DeviceProbe
    bounds: Bounds
    rng: np.random.Generator
    floor: float

    def approach(
        self, bracket: Bracket, target: TargetMargin
    ) -> Generator[Ask, Answer, PathPoint | None]:
        """Return a new point of a bracket's path that meets the target."""
        return self._if_usable((yield from approach(self.original, bracket, target, self.rng)))

    def perturb(
        self, point: PathPoint, bracket: Bracket, target: TargetMargin
    ) -> Generator[Ask, Answer, PathPoint | None]:
        """Return a new point near the target next to another one; of an exact path, on it."""
        if point.path.exact:
            return (yield from self.approach(bracket, target))
        found = yield from perturb_locally(self.original, point, target, self.rng)
        if found is None or target.error(found) > max(_NEAR, _NEAR_SHARE * abs(target.log_odds)):
            return None
        return self._if_usable(found)

    def approach_or_perturb(
        self, bracket: Bracket, target: TargetMargin
    ) -> Generator[Ask, Answer, PathPoint | None]:
        """Return a new point that meets the target, else one next to the bracket's end.

        It has none where the seed itself is nearly on the boundary.
        """
        point = yield from self.approach(bracket, target)
        if point is None:
            end = bracket.inside if target.log_odds > 0 else bracket.outside
            point = yield from self.perturb(end, bracket, target)
        return point

    def break_tie(
        self, point: PathPoint, wanted: TieBreak
    ) -> Generator[Ask, Answer, PathPoint | None]:
        """Return a new point next to one where classes tie, with the tie broken as wanted."""
        return self._if_usable((yield from break_tie(self.original, point, wanted, self.rng)))

    def _if_usable(self, point: PathPoint | None) -> PathPoint | None:
        if point is None or not self.device.is_new(point):
            return None
        return point if self.bounds.contain(point.sample) else None


def nearest_target(
    floor: float, keeps_label: bool, *, likely: float = 1.0, coarse: float = 0.0
) -> TargetMargin:
    """Return the target just above the floor, on the side of the seed's label or beyond.

    `likely`: the probability of the two classes together, of which the margin is a share. `coarse`:
    the distance to the boundary, in log-odds, that is near enough, which saves queries to the
    original.
    """
    share = min(_ABOVE_FLOOR * floor / max(likely, floor), _MAX_MARGIN)
    log_odds = max(2.0 * exact.atanh(share), _MIN_LOG_ODDS, coarse / 2)
    tolerance = max(0.3 * log_odds, coarse / 2 - floor)
    return TargetMargin(log_odds if keeps_label else -log_odds, tolerance, floor)


def even_target(floor: float, drift: float) -> TargetMargin:
    """Return the target with equal margins of both models: half the drift from the boundary."""
    log_odds = -drift / 2.0
    if abs(log_odds) < 3.0 * floor:
        return nearest_target(floor, log_odds > 0)
    return TargetMargin(log_odds, 0.12 * abs(log_odds), floor)

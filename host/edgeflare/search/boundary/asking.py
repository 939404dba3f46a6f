"""Asking the device about a point, and what its answer tells."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from math import atanh, tanh
from typing import NamedTuple

import numpy as np

from edgeflare.answers import class_scores
from edgeflare.search.boundary.placing import Aim
from edgeflare.search.boundary.points import Path, Point, View, logs_of
from edgeflare.types import Answer, Ask, Decision, Outcome, Scores

_SHARPEST = 1.3
"""An input is aimed at so many times the floor on the original's side."""
_SUREST = 0.99
_MOST_EARLIER = 3
_LARGEST_DRIFT = 6.0
_CONTENT = 0.99


class Told(NamedTuple):
    """What the device told of a point.

    `drift`: the deployed model's log-odds of the seed's label over the point's rival, less the original's; at
    most 6 either way, since a quantised probability of 0 is no more than small; None where it tells labels
    only. `severity`: the smaller margin that an input near this one would have where the drift is split evenly
    between both models. `margin`: the smaller margin of the point itself, 0 where both agree.
    `deployed`: the deployed model's answer, float64 [classes].
    """

    point: Point
    drift: float | None
    severity: float
    margin: float
    deployed: Scores

    @property
    def path(self) -> Path:
        """The path that the point lies on."""
        return self.point.path


@dataclass
class Device:
    """Asks both models about points, at most `budget` of them (None: any number); keeps the best triggering input."""

    view: View
    budget: int | None
    best: Told | None = None
    asked: int = 0
    told: list[Told] = field(default_factory=list)

    @property
    def left(self) -> float:
        """How many points the device may still be asked about; infinity without a budget."""
        return np.inf if self.budget is None else self.budget - self.asked

    @property
    def content(self) -> bool:
        """Whether both models are as sure of different answers as they need be."""
        return self.best is not None and self.best.margin >= _CONTENT

    def ask(
        self, points: Sequence[Point], *, aside: bool = False
    ) -> Generator[Ask, Answer, list[Told]]:
        """Ask about points, in one request; the answers come back in order.

        `aside`: they aren't kept among those `told`, which say what is to be expected beside the boundary.
        """
        self.asked += len(points)
        answer = yield Ask(tuple(point.sample for point in points), best=self.view.best)
        found = []
        for point, outputs in zip(points, answer.outputs, strict=True):
            if outputs.deployed is None:
                continue
            told = self._read(point, class_scores(outputs.deployed), outputs.decision)
            found.append(told)
            if told.margin > 0 and (self.best is None or told.margin > self.best.margin):
                self._keep(told)
        if not aside:
            self.told += found
        return found

    def _keep(self, told: Told) -> None:
        """Make this the best triggering input; the last ones before it are tried where it doesn't repeat."""
        before = self.view.best
        earlier = () if before is None else (replace(before, earlier=()), *before.earlier)
        self.best = told
        steps = told.path.steps(told.point.t)
        self.view.best = Outcome(told.point.sample, steps, earlier[:_MOST_EARLIER])

    def is_new(self, point: Point) -> bool:
        """Whether the device was never asked about this input."""
        return all(not np.array_equal(one.point.sample, point.sample) for one in self.told)

    def _read(self, point: Point, deployed: Scores, decision: Decision) -> Told:
        deviates = decision is Decision.DEVIATION
        if self.view.seed.labels_only:
            margin = point.margin if deviates else 0.0
            return Told(point, None, margin, margin, deployed)
        drift = self._drift(point.logs, logs_of(deployed), point.rival)
        both = float(np.exp(point.logs[self.view.label]) + np.exp(point.logs[point.rival]))
        top = np.partition(deployed, -2)[-2:]
        margin = min(point.margin, float(top[1] - top[0])) if deviates else 0.0
        return Told(point, drift, max(margin, both * tanh(abs(drift) / 4)), margin, deployed)

    def _drift(self, original: Scores, deployed: Scores, rival: int) -> float:
        label = self.view.label
        drift = float(deployed[label] - deployed[rival] - original[label] + original[rival])
        return min(max(drift, -_LARGEST_DRIFT), _LARGEST_DRIFT)


def least_aim(floor: float, keeps_label: bool, *, likely: float = 1.0, coarse: float = 0.0) -> Aim:
    """Return the aim just beyond the floor, on the side where the original keeps the seed's label or the other one.

    `likely`: the probability of the two classes, of which the margin is a share. `coarse`: how far from the
    boundary, in log-odds, is near enough: fewer questions to the original.
    """
    share = min(_SHARPEST * floor / max(likely, floor), _SUREST)
    lead = max(2.0 * atanh(share), 1e-4, coarse / 2)
    return Aim(lead if keeps_label else -lead, max(0.3 * lead, coarse / 2 - floor), floor)


def split_aim(floor: float, drift: float) -> Aim:
    """Return the aim where both models are equally sure of different answers: half the drift away."""
    lead = -drift / 2.0
    if abs(lead) < 3.0 * floor:
        return least_aim(floor, lead > 0)
    return Aim(lead, 0.12 * abs(lead), floor)

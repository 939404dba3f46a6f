"""Inputs where three classes tie for the original: between crossings to two classes.

Near a boundary of two classes a deployed model with a random error decides otherwise on every
second input; where k classes tie, and the original gives one of them by a small margin, on k - 1 of
k.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare.strategies.boundary.paths import (
    Bracket,
    LinePath,
    TargetMargin,
    approach,
    cross_boundary,
)
from edgeflare.strategies.boundary.points import OriginalProbe, PathPoint
from edgeflare.types import Answer, Ask

_BISECTIONS = 10
_ON_BOUNDARY = TargetMargin(-0.02, 0.016, 0.0)
_TIED = 0.05
_NEWTON_STEPS = 3
_NEAR_ENOUGH = 0.1
_CLOSE = 0.5
_RCOND = 1e-3


class Tie(NamedTuple):
    """A point where the original hardly prefers one of `classes`; the seed's label is first."""

    point: PathPoint
    classes: tuple[int, ...]

    @property
    def spread(self) -> float:
        """The log-odds of the most over the least likely of the classes."""
        return float(np.ptp(self.point.log_probs[list(self.classes)]))

    @property
    def is_highest(self) -> bool:
        """Whether no other class is likelier than one of these."""
        highest = np.argsort(self.point.log_probs)[-len(self.classes) :]
        return set(highest.tolist()) == set(self.classes)

    def others(self, winner: int) -> tuple[int, ...]:
        """Return the classes except one."""
        return tuple(one for one in self.classes if one != winner)


def find_tie(
    probe: OriginalProbe, one: Bracket, other: Bracket, rng: np.random.Generator
) -> Generator[Ask, Answer, Tie | None]:
    """Return the tie of the seed's label with two crossings' rivals, near the first, or None.

    By bisection between the ends of both: at each place the boundary is searched for on the line
    from the seed, and the rival there says in which half the tie lies.
    """
    near, far = (probe.space.values(end.outside.sample) for end in (one, other))
    rivals = [one.outside.rival, other.outside.rival]
    best: Tie | None = None
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        share = (low + high) / 2.0
        end = (1.0 - share) * near + share * far
        bracket = yield from cross_boundary(probe, LinePath(probe.values, end))
        if bracket is None:
            return best
        point = (yield from approach(probe, bracket, _ON_BOUNDARY, rng)) or bracket.outside
        if point.rival != rivals[0]:
            rivals[1] = point.rival
        found = Tie(point, (probe.label, *rivals))
        if found.is_highest and (best is None or found.spread < best.spread):
            best = found
        if best is not None and best.spread < _TIED:
            return best
        if point.rival == rivals[0]:
            low = share
        else:
            high = share
    return best


def project_tie(probe: OriginalProbe, found: Tie, gradients: Floats) -> Generator[Ask, Answer, Tie]:
    """Return the tie nearest to the seed by linearisation, if it is nearer than the found one.

    `gradients`: float64 [tied classes, values], of their log-probabilities, at a place near by. The
    seed is projected on the inputs at which all classes tie, and Newton's steps correct for the
    linearisation.
    """
    slopes = gradients[0] - gradients[1:]
    offset = (probe.space.values(found.point.sample) - probe.values).ravel()
    wanted = (slopes * offset).sum(axis=1) - _log_odds(found)
    end = probe.values + exact.least_norm(slopes, wanted, _RCOND).reshape(probe.values.shape)
    for _ in range(_NEWTON_STEPS):
        path = LinePath(probe.values, probe.space.clipped(end))
        (point,) = yield from probe.points(path, (1.0,))
        tried = Tie(point, found.classes)
        if tried.spread < _NEAR_ENOUGH:
            break
        end = end - exact.least_norm(slopes, _log_odds(tried), _RCOND).reshape(end.shape)
    nearer = probe.distance(tried.point.sample) < probe.distance(found.point.sample)
    better = nearer and tried.is_highest and tried.spread < max(found.spread, _CLOSE)
    return tried if better else found


def _log_odds(found: Tie) -> Floats:
    """Return the log-odds of the first class over each of the others, float64 [others]."""
    log_probs = found.point.log_probs[list(found.classes)]
    return np.asarray(log_probs[0] - log_probs[1:])

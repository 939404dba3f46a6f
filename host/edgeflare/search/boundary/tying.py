"""Where three classes tie for the original: between a crossing to one class and a crossing to another.

Beside a boundary of two classes a deployed model that is off by chance decides otherwise on every second input;
where k classes tie, the original having the least of leads for one of them, on all but one of k.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from edgeflare.search.boundary.paths import Straight
from edgeflare.search.boundary.placing import Aim, Bracket, place, reach
from edgeflare.search.boundary.points import Floats, Point, View
from edgeflare.types import Answer, Ask

_HALVINGS = 10
_ON_BOUNDARY = Aim(-0.02, 0.016, 0.0)
_TIED = 0.05
_NEWTON_STEPS = 3
_NEAR_ENOUGH = 0.1
_CLOSE = 0.5
_RCOND = 1e-3


class Tie(NamedTuple):
    """A point where the original all but ties between `classes`; the seed's label is the first of them."""

    point: Point
    classes: tuple[int, ...]

    @property
    def spread(self) -> float:
        """The log-odds of the likeliest over the least likely of the classes."""
        return float(np.ptp(self.point.logs[list(self.classes)]))

    @property
    def is_highest(self) -> bool:
        """Whether no other class is likelier than one of these."""
        highest = np.argsort(self.point.logs)[-len(self.classes) :]
        return set(highest.tolist()) == set(self.classes)

    def others(self, winner: int) -> tuple[int, ...]:
        """Return the classes but for one."""
        return tuple(one for one in self.classes if one != winner)


def tie(
    view: View, one: Bracket, other: Bracket, rng: np.random.Generator
) -> Generator[Ask, Answer, Tie | None]:
    """Return the tie of the seed's label with the rivals of two crossings, near the first; None where none was found.

    The way from the end of one to the end of the other is halved; at each place the boundary is looked for on the
    line from the seed, and the rival there tells which half the tie lies in.
    """
    near, far = (view.space.values(end.outside.sample) for end in (one, other))
    rivals = [one.outside.rival, other.outside.rival]
    best: Tie | None = None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2.0
        point = yield from on_boundary(view, (1.0 - share) * near + share * far, rng)
        if point is None:
            return best
        if point.rival != rivals[0]:
            rivals[1] = point.rival
        found = Tie(point, (view.label, *rivals))
        if found.is_highest and (best is None or found.spread < best.spread):
            best = found
        if best is not None and best.spread < _TIED:
            return best
        if point.rival == rivals[0]:
            low = share
        else:
            high = share
    return best


def drawn_in(view: View, found: Tie, gradients: Floats) -> Generator[Ask, Answer, Tie]:
    """Return the tie that is nearest to the seed where the original is linearised; the one found, if that is no nearer.

    `gradients`: float64 [tied classes, values], of their log-probabilities by the values, at a place near by. The seed is
    projected on where all lead by nothing, and Newton's steps lead back to where they do.
    """
    slopes = gradients[0] - gradients[1:]
    away = (view.space.values(found.point.sample) - view.pixels).ravel()
    end = view.pixels + _least_norm(slopes, slopes @ away - _leads(found)).reshape(
        view.pixels.shape
    )
    for _ in range(_NEWTON_STEPS):
        (point,) = yield from view.points(Straight(view.pixels, view.space.within(end)), (1.0,))
        tried = Tie(point, found.classes)
        if tried.spread < _NEAR_ENOUGH:
            break
        end = end - _least_norm(slopes, _leads(tried)).reshape(end.shape)
    nearer = view.distance(tried.point.sample) < view.distance(found.point.sample)
    return (
        tried if nearer and tried.is_highest and tried.spread < max(found.spread, _CLOSE) else found
    )


def _leads(found: Tie) -> Floats:
    """Return the log-odds of the first class over each of the others, float64 [others]."""
    logs = found.point.logs[list(found.classes)]
    return np.asarray(logs[0] - logs[1:])


def _least_norm(slopes: Floats, wanted: Floats) -> Floats:
    return np.asarray(np.linalg.lstsq(slopes, wanted, rcond=_RCOND)[0])


def on_boundary(
    view: View, end: Floats, rng: np.random.Generator
) -> Generator[Ask, Answer, Point | None]:
    """Return a point on the line from the seed through `end`: as near to the original's boundary as was found, beyond it."""
    bracket = yield from reach(view, Straight(view.pixels, end))
    if bracket is None:
        return None
    point = yield from place(view, bracket, _ON_BOUNDARY, rng)
    return bracket.outside if point is None else point

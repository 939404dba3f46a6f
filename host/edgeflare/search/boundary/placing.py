"""Brings an input to where the original model is wanted: so much for the seed's label, or so much against it."""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from edgeflare.answers import class_scores
from edgeflare.search.boundary.paths import Mixed
from edgeflare.search.boundary.points import Path, Point, View
from edgeflare.types import Answer, Ask

_MOST_STEPS = 12
_REACH = 1.35


class Bracket(NamedTuple):
    """Two points of a path: on the first the original is for the seed's label, on the second against it."""

    inside: Point
    outside: Point


class Aim(NamedTuple):
    """Where the original is wanted: `lead` (log-odds of the seed's label), give or take `tolerance`.

    `floor` is the margin that it must have there.
    """

    lead: float
    tolerance: float
    floor: float

    def fits(self, point: Point) -> bool:
        """Whether a point is on the wanted side of the boundary, and far enough from it."""
        return point.lead * self.lead > 0 and point.margin >= self.floor

    def misses(self, point: Point) -> float:
        """Return by how much a point misses it."""
        return abs(point.lead - self.lead)


def start_of(view: View, path: Path) -> Point:
    """Return the seed as a point of a path."""
    scores = view.seed.outputs.original
    assert scores is not None  # noqa: S101 - seeds are answered before a search
    return view.point(path, 0.0, view.seed.sample, class_scores(scores))


def reach(view: View, path: Path, lead: float = 0.0) -> Generator[Ask, Answer, Bracket | None]:
    """Go along a path until the original's lead is below `lead`; None where it never is."""
    inside, t = start_of(view, path), min(1.0, path.farthest)
    while True:
        (point,) = yield from view.points(path, (t,))
        if point.lead < min(lead, 0.0):
            return Bracket(inside, point)
        if point.lead > inside.lead + 1.0 or t >= path.farthest:
            return None
        inside, t = point, min(t * _REACH, path.farthest)


def place(
    view: View, bracket: Bracket, aim: Aim, rng: np.random.Generator
) -> Generator[Ask, Answer, Point | None]:
    """Return the point that is nearest to the aim, of those that fit; None where none does.

    Along the bracket's path by the secant method, kept within the bracket; where that ends at two images a
    rounding apart, by taking over the second one's values, half as many each time.
    """
    seen = [bracket.inside, bracket.outside]
    yield from _narrow(view, bracket.inside.path, seen, aim)
    low, high = _around(seen, aim)
    near = bracket.inside.path.pure or aim.misses(_nearest(seen, aim)) <= aim.tolerance
    if not near and low is not None and high is not None:
        path = Mixed(low.sample, high.sample, rng)
        ends = [low._replace(path=path, t=0.0), high._replace(path=path, t=1.0)]
        yield from _narrow(view, path, ends, aim)
        seen += [
            one._replace(path=bracket.inside.path, t=low.t) for one in ends if 0.0 < one.t < 1.0
        ]
    fitting = [
        point
        for point in seen
        if aim.fits(point) and not np.array_equal(point.sample, view.seed.sample)
    ]
    return min(fitting, key=aim.misses) if fitting else None


def _narrow(view: View, path: Path, seen: list[Point], aim: Aim) -> Generator[Ask, Answer, None]:
    """Add points of a path to those seen until one is near enough, or no input lies between two of them."""
    halve = False
    for _ in range(_MOST_STEPS):
        low, high = _around(seen, aim)
        if low is None or high is None:
            return
        share = 0.5 if halve else _secant(low, high, aim)
        t = low.t + share * (high.t - low.t)
        sample = path.at(t)
        if any(np.array_equal(sample, one.sample) for one in (low, high)):
            if halve:
                return
            halve = True
            continue
        (point,) = yield from view.points(path, (t,))
        seen.append(point)
        if aim.misses(point) <= aim.tolerance and aim.fits(point):
            return
        closed = (point.t - low.t) if point.lead <= aim.lead else (high.t - point.t)
        halve = closed > 0.5 * (high.t - low.t)


def _around(seen: list[Point], aim: Aim) -> tuple[Point | None, Point | None]:
    """Return the last point before the aim and the first one after it."""
    before = [point for point in seen if point.lead > aim.lead]
    low = max(before, key=lambda point: point.t, default=None)
    after = [point for point in seen if point.lead <= aim.lead and (low is None or point.t > low.t)]
    return low, min(after, key=lambda point: point.t, default=None)


def _secant(low: Point, high: Point, aim: Aim) -> float:
    share = (low.lead - aim.lead) / (low.lead - high.lead)
    return float(np.clip(share, 0.05, 0.95))


def _nearest(seen: list[Point], aim: Aim) -> Point:
    return min(seen, key=aim.misses)

"""From an input where some classes all but tie for the original to one beside it that leans to one of them."""

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from edgeflare.search.boundary.nudging import GROUPS, Places, changed, probes
from edgeflare.search.boundary.points import Floats, Point, View
from edgeflare.search.boundary.space import space_of
from edgeflare.types import Answer, Ask, Sample

_PROBED = 32
_PROBED_NEAR = 96
_FINE = 8192
_ROUNDS = 3
_ORDERS = 4
_ORDERED_SHARE = 2 / 3
_MOST_LEVELS = 3
_MOST_CHANGES = 16
_CHANGES = (-2, -1, 1, 2)
_WORTH_A_CHANGE = 0.99
_ABOVE_FLOOR = 1.3
_TIGHT = 3.0
_CLOSE = 0.03
_SMALLEST = 1e-4
_BACK = 0.2


class Lean(NamedTuple):
    """What is wanted: the original says `winner`, by at least the margin `floor`, the `others` as likely as can be.

    But for the class `back`, which is to be farther behind: so much that rounding its scores doesn't undo it. `near`: as few levels changed as
    can be, rather than the others as close behind as can be.
    """

    winner: int
    others: tuple[int, ...]
    floor: float
    near: bool = False
    back: int | None = None

    def fits(self, point: Point) -> bool:
        """Whether the original says the winner, and surely enough."""
        sure = point.margin > 0 and point.margin >= self.floor
        return sure and int(point.logs.argmax()) == self.winner

    def spread(self, point: Point) -> float:
        """Return by how much the one that is farthest off is nearer to the winner, or farther, than wanted; in log-odds."""
        return float(np.abs(self.behind(point)).max())

    def behind(self, point: Point) -> Floats:
        """Return the log-odds of each of the others over the winner, plus what it is wanted back; float64 [others]."""
        back = np.array([_BACK if one == self.back else 0.0 for one in self.others])
        return np.asarray(point.logs[list(self.others)] - point.logs[self.winner] + back)

    def least(self, point: Point) -> float:
        """Return how far behind they are just above the floor, in log-odds."""
        share = float(np.exp(point.logs[[self.winner, *self.others]]).sum())
        floor = max(self.floor, _SMALLEST)
        return _ABOVE_FLOOR * floor * (1 + len(self.others)) / max(share, floor)

    def is_close(self, point: Point, close: float) -> bool:
        """Whether all others are within `close` of where they are wanted, or as near as the floor lets them be."""
        return self.spread(point) <= max(close, _TIGHT * self.least(point))


def leaning(
    view: View, point: Point, lean: Lean, rng: np.random.Generator
) -> Generator[Ask, Answer, Point | None]:
    """Return a point beside a given one that leans as wanted; None where none was found.

    The original is asked about changes of one level of some values, or groups of values (see `nudging`); whole
    numbers of levels that together lead there are looked for greedily, for all others at once.
    """
    found: list[Point] = []
    here = point
    count, fineness = (_PROBED_NEAR, _FINE) if lean.near else (_PROBED, GROUPS)
    for _ in range(_ROUNDS):
        groups, signs = probes(here.sample, count, rng, groups=fineness)
        samples = [
            changed(here.sample, [(group, sign)]) for group, sign in zip(groups, signs, strict=True)
        ]
        probed = yield from _points(view, point, samples)
        slopes = np.array([lean.behind(one) - lean.behind(here) for one in probed])
        wanted = -lean.least(here) - lean.behind(here)
        samples = _together(here.sample, groups, slopes * np.array(signs)[:, None], wanted, rng)
        reached = yield from _points(view, point, samples)
        found += [one for one in probed + reached if lean.fits(one)]
        best = _best(found, point, lean)
        if best is not None and (lean.near or lean.spread(best) < _TIGHT * lean.least(best)):
            break
        here = min(reached, key=lambda one: float(np.abs(lean.behind(one) + lean.least(one)).max()))
    return _best(found, point, lean)


def _best(found: Sequence[Point], start: Point, lean: Lean) -> Point | None:
    if not lean.near:
        return min(found, key=lean.spread, default=None)
    close = [point for point in found if lean.is_close(point, _CLOSE)]
    space = space_of(start.sample)
    begun = space.values(start.sample)
    return min(
        close or found,
        key=lambda point: float(np.abs(space.values(point.sample) - begun).sum()),
        default=None,
    )


def _points(
    view: View, start: Point, samples: Sequence[Sample]
) -> Generator[Ask, Answer, list[Point]]:
    scores = yield from view.scores(samples)
    return [
        view.point(start.path, start.t, sample, one)
        for sample, one in zip(samples, scores, strict=True)
    ]


def _together(
    sample: Sample, groups: list[Places], slopes: Floats, wanted: Floats, rng: np.random.Generator
) -> list[Sample]:
    """Return samples in which groups are changed so that, by their slopes [groups, others], all change as wanted."""
    found = []
    for number in range(_ORDERS):
        usable = np.arange(len(groups))
        if number:
            usable = rng.permutation(usable)[: max(1, round(_ORDERED_SHARE * len(groups)))]
        levels = _whole(slopes[usable], wanted)
        changes = [(groups[place], int(by)) for place, by in zip(usable, levels, strict=True) if by]
        found.append(changed(sample, changes))
    return found


def _whole(slopes: Floats, wanted: Floats) -> Floats:
    """Return whole numbers of levels, at most 3 either way, whose changes come near to what is wanted; greedily."""
    levels = np.zeros(len(slopes))
    steps = np.array(_CHANGES, dtype=np.float64)
    left = wanted.copy()
    for _ in range(_MOST_CHANGES):
        after = np.abs(left - steps[:, None, None] * slopes).max(axis=2)
        after[np.abs(levels + steps[:, None]) > _MOST_LEVELS] = np.inf
        step, place = np.unravel_index(int(after.argmin()), after.shape)
        if after[step, place] >= _WORTH_A_CHANGE * np.abs(left).max():
            break
        levels[place] += steps[step]
        left = left - steps[step] * slopes[place]
    return levels

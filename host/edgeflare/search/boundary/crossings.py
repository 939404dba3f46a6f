"""How the original's decision boundary is reached from a seed: four ways, one interface."""

from collections.abc import Callable, Generator, Mapping
from typing import Protocol

import numpy as np

from edgeflare.search.boundary.least_l2 import LeastL2
from edgeflare.search.boundary.paths import Straight, draw_graded
from edgeflare.search.boundary.placing import Bracket, reach, start_of
from edgeflare.search.boundary.points import Path, Point, View
from edgeflare.search.boundary.tying import Tie, tie
from edgeflare.types import Answer, Ask, Sample
from edgeflare_mutators import Corruption, Operator, SampleSpec

_LOOKED_AT = 32
_MOST_STEPS = 8
_PATIENCE = 3
"""After so many steps without a mutant of which the original is less sure, the least sure of them goes on."""
_MOST_CORRUPTIONS = 3
_TRIES = 4


class Crossing(Protocol):
    """Finds where the original's decision changes; asks nothing but the original."""

    def cross(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return a crossing, another one at each call; None where this try did not find one."""
        ...

    def tied(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return where a third class ties with the two of a crossing; None where this try did not find it."""
        ...


class Line:
    """Lines to other seeds that the original gives another label, the most alike of some first."""

    def __init__(self, view: View, rng: np.random.Generator) -> None:
        self._view = view
        self._rng = rng
        self._others: list[Sample] | None = None

    def cross(self) -> Generator[Ask, Answer, Bracket | None]:
        """Go to the next other seed; where none is left, off in a smooth direction."""
        if self._others is None:
            self._others = self._some_others()
        while self._others:
            end = self._view.space.values(self._others.pop(0))
            path = Straight(self._view.pixels, end, farthest=1.0)
            found = yield from reach(self._view, path)
            if found is not None:
                return found
        size = 0.1 * np.sqrt(self._view.pixels.size)
        ahead = Straight(self._view.pixels, self._view.pixels)
        return (yield from reach(self._view, ahead.varied(self._rng, float(size))))

    def tied(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return the tie between a crossing and one of the next lines'."""
        return (yield from _tied(self, found, self._view, self._rng))

    def _some_others(self) -> list[Sample]:
        """Return some of the other seeds of this shape, drawn at random, the nearest first."""
        others = self._view.seed.others
        drawn = self._rng.permutation(len(others))[:_LOOKED_AT]
        found = [others[int(place)] for place in drawn]
        mine = self._view.seed.sample
        fitting = [
            one for one in found if one.shape == mine.shape and not np.array_equal(one, mine)
        ]
        return sorted(fitting, key=self._view.distance)


class Mutants:
    """Mutants of the seed, the one of which the original is least sure going on, until one is across.

    Mutants of another length are left out.
    """

    def __init__(
        self, view: View, rng: np.random.Generator, screened: int, pool: Mapping[str, Operator]
    ) -> None:
        self._view = view
        self._rng = rng
        self._screened = screened
        self._pool = tuple(pool.values())
        self._at: Point | None = None
        self._spec = SampleSpec.of(view.seed.sample, view.seed.rate)

    def cross(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return the line from the seed to the first mutant across the boundary; a try goes on where the last ended."""
        best = self._at or start_of(self._view, Straight(self._view.pixels, self._view.pixels))
        stuck = 0
        for _ in range(_MOST_STEPS):
            drawn = [self._mutant(best.sample) for _ in range(self._screened)]
            samples = [one for one in drawn if one.shape == best.sample.shape]
            if not samples:
                break
            scores = yield from self._view.scores(samples)
            found = [
                self._view.point(self._line(sample), 1.0, sample, one)
                for sample, one in zip(samples, scores, strict=True)
            ]
            across = [point for point in found if point.lead < 0]
            if across:
                self._at = None
                nearest = min(across, key=lambda point: self._view.distance(point.sample))
                return Bracket(start_of(self._view, nearest.path), nearest)
            least = min(found, key=_lead)
            stuck = 0 if least.lead < best.lead else stuck + 1
            if stuck in (0, _PATIENCE):
                best, stuck = least, 0
        self._at = best
        return None

    def tied(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return the tie between a crossing and one of the next mutants'."""
        return (yield from _tied(self, found, self._view, self._rng))

    def _mutant(self, sample: Sample) -> Sample:
        operator = self._pool[self._rng.integers(len(self._pool))]
        return operator.apply(sample, operator.draw(self._rng, self._spec))

    def _line(self, sample: Sample) -> Path:
        return Straight(self._view.pixels, self._view.space.values(sample))


class Natural:
    """One to three natural corruptions that grow stronger together."""

    def __init__(
        self,
        view: View,
        rng: np.random.Generator,
        screened: int,
        pool: Mapping[str, Operator],
    ) -> None:
        self._view = view
        self._rng = rng
        self._screened = screened
        self._pool = tuple(one for one in pool.values() if isinstance(one, Corruption))
        self._spec = SampleSpec.of(view.seed.sample, view.seed.rate)

    def cross(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return, of some corruptions drawn, the one across the boundary that changes the seed least."""
        for step in range(_MOST_STEPS):
            most = 1 + min(step, _MOST_CORRUPTIONS - 1)
            paths = [
                draw_graded(self._view.seed.sample, self._pool, most, self._rng, self._spec)
                for _ in range(self._screened)
            ]
            samples = [path.at(1.0) for path in paths]
            scores = yield from self._view.scores(samples)
            across = [
                point
                for path, sample, one in zip(paths, samples, scores, strict=True)
                if (point := self._view.point(path, 1.0, sample, one)).lead < 0
            ]
            if across:
                nearest = min(across, key=lambda point: self._view.distance(point.sample))
                return Bracket(start_of(self._view, nearest.path), nearest)
        return None

    def tied(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return none: between two corruptions there is no third one."""
        del found
        yield from ()
        return None


def _tied(
    crossing: Crossing, found: Bracket, view: View, rng: np.random.Generator
) -> Generator[Ask, Answer, Tie | None]:
    """Return the tie between a crossing and the first of a few more that leads to another rival."""
    for _ in range(_TRIES):
        other = yield from crossing.cross()
        if other is not None and other.outside.rival != found.outside.rival:
            return (yield from tie(view, found, other, rng))
    return None


def _lead(point: Point) -> float:
    return point.lead


def crossing(
    name: str, view: View, rng: np.random.Generator, effort: int, pool: Mapping[str, Operator]
) -> Crossing:
    """Return the crossing of this name for a seed; `effort` grows what it asks the original.

    least-l2: so many directions; mutants and natural: so many inputs at once, up to 32.
    """
    screened = max(4, min(effort, 32))
    made: Mapping[str, Callable[[], Crossing]] = {
        "least-l2": lambda: LeastL2(view, rng, effort),
        "line": lambda: Line(view, rng),
        "mutants": lambda: Mutants(view, rng, screened, pool),
        "natural": lambda: Natural(view, rng, screened, pool),
    }
    return made[name]()

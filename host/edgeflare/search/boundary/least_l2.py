"""The nearest crossing: DeepFool (Moosavi-Dezfooli et al., CVPR 2016) by finite differences, in few directions.

The original's answer to one step along each direction gives the slopes of all its log-probabilities at once; the
step to the nearest of the linearised boundaries follows (DeepFool, equation 8), is tried at growing lengths,
and once the boundary is crossed the seed is projected on the boundary as it is linearised there.

Differences: DeepFool has the gradient in all pixels and uses real-valued images; here are `effort` directions (see
`directions`), and every input that is asked about is made of whole levels. DeepFool stops beyond the boundary; here the crossing
is where the boundary itself is looked for.
"""

from collections.abc import Callable, Generator

import numpy as np

from edgeflare.search.boundary.basis import directions
from edgeflare.search.boundary.paths import Straight
from edgeflare.search.boundary.placing import Bracket, reach, start_of
from edgeflare.search.boundary.points import Floats, Path, Point, View, levels
from edgeflare.search.boundary.space import space_of
from edgeflare.search.boundary.tying import Tie, drawn_in, tie
from edgeflare.types import Answer, Ask

_LENGTHS = (1.15, 1.6, 2.3, 3.4, 5.0)
_ROUNDS = 4
_PROJECTED = (1.05, 1.25, 1.6)
_OTHERS = 7
_WAYS = 3
_ELSEWHERE = (1.3, 2.2, 4.0)
_RCOND = 1e-3
_TINY = 1e-12
_BEYOND = 0.05  # in log-odds: a step that ends on the boundary itself may be lost in the rounding


class LeastL2:
    """Crossings near the seed: the nearest one that is found first, then others about it."""

    def __init__(self, view: View, rng: np.random.Generator, effort: int) -> None:
        self._view = view
        self._rng = rng
        self._basis = directions(view.pixels, effort)
        self._nearest: Bracket | None = None
        self._tried = False
        self._beside: tuple[Point, Floats] | None = None

    def cross(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return a crossing, None where this try did not find one."""
        if not self._tried:
            self._tried = True
            self._nearest = yield from self._descend()
            return self._nearest
        if self._nearest is None:
            return None
        path: Path = self._nearest.outside.path
        length = self._view.distance(self._nearest.outside.sample)
        away = length * float(self._rng.uniform(0.3, 1.5))
        return (yield from reach(self._view, path.varied(self._rng, away)))

    def tied(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return a tie near a crossing, as near to the seed as the slopes beside the boundary tell; None where none is."""
        if self._beside is None:
            return None
        other = yield from self._another_rival(found, *self._beside)
        if other is None:
            return None
        tied = yield from tie(self._view, found, other, self._rng)
        if tied is None:
            return None
        slopes = self._beside[1]
        gradients = [self._basis.combined(slopes[:, one]).ravel() for one in tied.classes]
        return (yield from drawn_in(self._view, tied, np.stack(gradients)))

    def _another_rival(
        self, found: Bracket, point: Point, slopes: Floats
    ) -> Generator[Ask, Answer, Bracket | None]:
        """Return a crossing to another rival: beyond the nearest inputs at which, by the slopes, two rivals tie."""
        label, rival = self._view.label, found.outside.rival
        fall = slopes[:, [label]] - slopes
        lead = point.logs[label] - point.logs
        ways = []
        for third in np.argsort(lead)[: _OTHERS + 2]:
            if third not in (label, rival):
                both = [rival, int(third)]
                shares = np.linalg.lstsq(fall[:, both].T, -lead[both], rcond=_RCOND)[0]
                ways.append((float(np.linalg.norm(shares)), shares))
        ways.sort(key=lambda way: way[0])
        for _, shares in ways[:_WAYS]:
            start, step = self._view.space.values(point.sample), self._basis.combined(shares)
            for length in _ELSEWHERE:
                end = self._view.space.within(start + length * step, 1.0)
                bracket = yield from reach(self._view, Straight(self._view.pixels, end))
                if bracket is not None and bracket.outside.rival != rival:
                    return bracket
        return None

    def _descend(self) -> Generator[Ask, Answer, Bracket | None]:
        """Step to the nearest linearised boundary until one is crossed; then once more from the other side."""
        pixels = self._view.pixels.copy()
        here = start_of(self._view, Straight(self._view.pixels, self._view.pixels))
        for _ in range(_ROUNDS):
            self._basis = self._basis.around(pixels)
            slopes = yield from self._slopes(pixels, here.logs)
            step = self._step(here.logs, slopes)
            if step is None:
                return None
            crossed = yield from self._lengthen(pixels, step)
            if isinstance(crossed, Bracket):
                return (yield from self._project(crossed))
            pixels, here = crossed
        return None

    def _slopes(self, pixels: Floats, logs: Floats) -> Generator[Ask, Answer, Floats]:
        """Return how the log-probabilities change along each direction, float64 [n, classes], per level of L2."""
        base = self._view.space.values(levels(pixels))
        samples, lengths = [], []
        for place in range(len(self._basis)):
            direction = self._basis[place]
            step = self._basis.probe(place)
            best = max((_gone(base, base + sign * step, direction) for sign in (1, -1)), key=_size)
            samples.append(best[0])
            lengths.append(best[1])
        scores = yield from self._view.scores(samples)
        path = Straight(self._view.pixels, self._view.pixels)
        found = np.array(
            [
                self._view.point(path, 1.0, sample, one).logs - logs
                for sample, one in zip(samples, scores, strict=True)
            ]
        )
        gone = np.array(lengths)[:, None]
        return np.where(np.abs(gone) > 1.0, found / np.where(gone == 0, 1.0, gone), 0.0)

    def _step(self, logs: Floats, slopes: Floats) -> Callable[[float], Floats] | None:
        """Return the step to the nearest boundary, in levels, at each length; None where nothing changes along any direction."""
        label = self._view.label
        lead = logs[label] - logs
        fall = slopes[:, [label]] - slopes
        steepness = np.linalg.norm(fall, axis=0)
        distance = np.where(steepness > _TINY, np.abs(lead) / np.maximum(steepness, _TINY), np.inf)
        distance[label] = np.inf
        rival = int(distance.argmin())
        if not np.isfinite(distance[rival]):
            return None
        return self._basis.step(fall[:, rival], float(lead[rival]) + _BEYOND)

    def _lengthen(
        self, pixels: Floats, step: Callable[[float], Floats]
    ) -> Generator[Ask, Answer, "Bracket | tuple[Floats, Point]"]:
        """Try growing lengths of a step; return the crossing, else the input with the least lead."""
        best: tuple[Floats, Point] | None = None
        inside = start_of(self._view, Straight(self._view.pixels, pixels))
        for length in _LENGTHS:
            end = self._view.space.within(pixels + step(length))
            path = Straight(self._view.pixels, end)
            (point,) = yield from self._view.points(path, (1.0,))
            if point.lead < 0:
                return Bracket(inside._replace(path=path), point)
            if best is None or point.lead < best[1].lead:
                best = end, point
        assert best is not None  # noqa: S101 - there are lengths
        return best

    def _project(self, bracket: Bracket) -> Generator[Ask, Answer, Bracket]:
        """Return the crossing from the seed straight onto the boundary as it is linearised beyond it, if nearer."""
        outside = bracket.outside
        share = _crossing_share(bracket)
        end = self._view.space.values(outside.sample)
        near = self._view.pixels + share * (end - self._view.pixels)
        (point,) = yield from self._view.points(Straight(self._view.pixels, near), (1.0,))
        self._basis = self._basis.around(near)
        slopes = yield from self._slopes(near, point.logs)
        self._beside = point, slopes
        shares = slopes[:, self._view.label] - slopes[:, point.rival]
        fall = self._basis.combined(shares)
        steepness = float(np.linalg.norm(fall))
        if steepness <= _TINY:
            return bracket
        normal = fall / steepness
        beyond = float(((near - self._view.pixels) * normal).sum()) - point.lead / steepness
        best = bracket
        for length in _PROJECTED:
            path = Straight(self._view.pixels, self._view.pixels + length * beyond * normal)
            (tried,) = yield from self._view.points(path, (1.0,))
            if tried.lead < 0:
                nearer = self._view.distance(tried.sample) < self._view.distance(outside.sample)
                best = Bracket(start_of(self._view, path), tried) if nearer else bracket
                break
        return best


def _crossing_share(bracket: Bracket) -> float:
    """Return where on the straight line between both points the lead is 0, as they tell."""
    inside, outside = bracket.inside.lead, bracket.outside.lead
    return inside / (inside - outside)


def _gone(base: Floats, end: Floats, direction: Floats) -> tuple[Floats, float]:
    sample = levels(end)
    return sample, float(((space_of(sample).values(sample) - base) * direction).sum())


def _size(one: tuple[Floats, float]) -> float:
    return abs(one[1])

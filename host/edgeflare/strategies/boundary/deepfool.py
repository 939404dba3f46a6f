"""The nearest crossing: DeepFool (Moosavi-Dezfooli et al., CVPR 2016) by finite differences.

The original's answer to one step along each direction gives the slopes of all its log-probabilities
at once. The step to the nearest of the linearised boundaries follows (DeepFool, equation 8) and is
tried at growing lengths; once the boundary is crossed, the seed is projected on the boundary as it
is linearised there.

With gradients of the original (see `OriginalProbe.gradients`) there are no finite differences: the
slopes are those of every value, and of the three likeliest rivals, as DeepFool has them.

Differences: DeepFool has the gradient in all pixels and uses real-valued images; without gradients
here are `effort` directions (see `directions_for`), and every input that is asked about has whole levels. DeepFool
stops beyond the boundary; here the crossing is where the boundary itself is searched for.
"""

from collections.abc import Callable, Generator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare.strategies.boundary.directions import Directions, SingleValues, directions_for
from edgeflare.strategies.boundary.paths import Bracket, LinePath, cross_boundary
from edgeflare.strategies.boundary.points import OriginalProbe, PathPoint, to_sample
from edgeflare.strategies.boundary.ties import Tie, find_tie, project_tie
from edgeflare.types import Answer, Ask, Sample

_LENGTHS = (1.15, 1.6, 2.3, 3.4, 5.0)
_ROUNDS = 4
_PROJECTED_LENGTHS = (1.05, 1.25, 1.6)
_MAX_RIVALS = 7
_MAX_RANK = 32
"""Classes considered as the nearest rival: those that the original ranks first."""
_RIVALS_TRIED = 3
_RIVAL_LENGTHS = (1.3, 2.2, 4.0)
_RIVALS_DIFFERENTIATED = 3
"""Rivals of which gradients are asked for: a backward pass each."""
_RCOND = 1e-3
_TINY = 1e-12
_BEYOND = 0.05  # in log-odds: a step that ends on the boundary itself may be lost in the rounding


class Slopes(NamedTuple):
    """Slopes of the log-probabilities of `classes` by direction, float64 [n, classes], per level.

    From gradients they are relative to those of the label, of the likeliest rivals alone.
    """

    classes: NDArray[np.intp]
    by_direction: Floats

    def of(self, one: int) -> Floats:
        """Return those of one class, float64 [n]."""
        return np.asarray(self.by_direction[:, self.place(one)])

    def place(self, one: int) -> int:
        """Return where a class is among `classes`."""
        return int(np.flatnonzero(self.classes == one)[0])


class DeepFoolCrossing:
    """Crossings near the seed: first the nearest one that is found, then others around it.

    `directions`: those to step along; None: about `effort` of `directions_for`.
    """

    def __init__(
        self,
        probe: OriginalProbe,
        rng: np.random.Generator,
        effort: int,
        directions: Directions | None = None,
    ) -> None:
        self._probe = probe
        self._rng = rng
        if probe.has_gradients:
            directions = SingleValues(probe.values.shape)
        self._directions: Directions = directions or directions_for(probe.values, effort)
        self._nearest: Bracket | None = None
        self._tried = False
        self._near_boundary: tuple[PathPoint, Slopes] | None = None

    def find(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return a crossing, None where this try did not find one."""
        if not self._tried:
            self._tried = True
            self._nearest = yield from self._descend()
            return self._nearest
        if self._nearest is None:
            return None
        length = self._probe.distance(self._nearest.outside.sample)
        scale = length * exact.uniform(self._rng, 0.3, 1.5)
        path = self._nearest.outside.path.perturbed(self._rng, scale)
        return (yield from cross_boundary(self._probe, path))

    def find_tie(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return a tie near a crossing, as near to the seed as the slopes allow, else None."""
        if self._near_boundary is None:
            return None
        point, slopes = self._near_boundary
        other = yield from self._another_rival(found, point, slopes)
        if other is None:
            return None
        tie = yield from find_tie(self._probe, found, other, self._rng)
        if tie is None:
            return None
        if self._probe.has_gradients:
            found_there = yield from self._probe.gradients(tie.point.sample, tie.classes)
            gradients = [np.zeros(self._probe.values.size), *(-one.ravel() for one in found_there)]
        else:
            gradients = [self._directions.combine(slopes.of(one)).ravel() for one in tie.classes]
        return (yield from project_tie(self._probe, tie, np.stack(gradients)))

    def _another_rival(
        self, found: Bracket, point: PathPoint, slopes: Slopes
    ) -> Generator[Ask, Answer, Bracket | None]:
        """Return a crossing to another rival.

        It is searched for beyond the nearest inputs at which, by the slopes, two rivals tie.
        """
        label, rival = self._probe.label, found.outside.rival
        if rival not in slopes.classes:
            return None
        relative = slopes.of(label)[:, None] - slopes.by_direction
        log_odds = point.log_probs[label] - point.log_probs[slopes.classes]
        steps = []
        for place in np.argsort(log_odds)[: _MAX_RIVALS + 2]:
            if slopes.classes[place] not in (label, rival):
                both = [slopes.place(rival), int(place)]
                shares = exact.least_norm(relative[:, both].T, -log_odds[both], _RCOND)
                steps.append((exact.norm(shares), shares))
        steps.sort(key=lambda one: one[0])
        for _, shares in steps[:_RIVALS_TRIED]:
            start, step = self._probe.space.values(point.sample), self._directions.combine(shares)
            for length in _RIVAL_LENGTHS:
                end = self._probe.space.clipped(start + length * step, 1.0)
                bracket = yield from cross_boundary(self._probe, LinePath(self._probe.values, end))
                if bracket is not None and bracket.outside.rival != rival:
                    return bracket
        return None

    def _descend(self) -> Generator[Ask, Answer, Bracket | None]:
        """Step to the nearest linearised boundary until one is crossed, then from beyond it."""
        values = self._probe.values.copy()
        here = self._probe.seed_point(LinePath(self._probe.values, self._probe.values))
        for _ in range(_ROUNDS):
            self._directions = self._directions.recentred(values)
            slopes = yield from self._slopes(values, here.log_probs)
            step = self._step(here.log_probs, slopes)
            if step is None:
                return None
            crossed = yield from self._lengthen(values, step)
            if isinstance(crossed, Bracket):
                return (yield from self._project(crossed))
            values, here = crossed
        return None

    def _slopes(self, values: Floats, log_probs: Floats) -> Generator[Ask, Answer, Slopes]:
        """Return the slopes at an input that the original has answered with `log_probs`."""
        if self._probe.has_gradients:
            return (yield from self._slopes_of_gradients(to_sample(values), log_probs))
        space = self._probe.space
        start = to_sample(values)
        base = space.values(start)
        samples: list[Sample] = []
        lengths: list[float] = []
        for region, directions, steps in self._directions.probes():
            here = base[region]
            up, down = space.whole(here + steps), space.whole(here - steps)
            moved, back = (
                ((one - here) * directions).reshape(len(steps), -1).sum(axis=1)
                for one in (up, down)
            )
            farther = np.abs(back) > np.abs(moved)
            up[farther] = down[farther]
            for part in space.stored(up):
                sample = start.copy()
                sample[region] = part
                samples.append(sample)
            lengths += np.where(farther, back, moved).tolist()
        path = LinePath(self._probe.values, self._probe.values)
        probed = yield from self._probe.ends([path] * len(samples), samples)
        changes = np.array([one.log_probs - log_probs for one in probed])
        by = np.array(lengths)[:, None]
        slopes = np.where(np.abs(by) > 1.0, changes / np.where(by == 0, 1.0, by), 0.0)
        return Slopes(np.arange(len(log_probs)), slopes)

    def _slopes_of_gradients(
        self, sample: Sample, log_probs: Floats
    ) -> Generator[Ask, Answer, Slopes]:
        label = self._probe.label
        ranked = np.argsort(-log_probs, kind="stable").tolist()
        classes = [label, *[one for one in ranked if one != label][:_RIVALS_DIFFERENTIATED]]
        found = yield from self._probe.gradients(sample, classes)
        relative = np.zeros((len(self._directions), len(classes)))
        relative[:, 1:] = -found.reshape(len(found), -1).T
        return Slopes(np.array(classes), relative)

    def _step(self, log_probs: Floats, slopes: Slopes) -> Callable[[float], Floats] | None:
        """Return the step to the nearest boundary at each length, in levels, or None."""
        label, log_probs = slopes.place(self._probe.label), log_probs[slopes.classes]
        log_odds = log_probs[label] - log_probs
        relative = slopes.by_direction[:, [label]] - slopes.by_direction
        steepness = np.sqrt(np.square(relative).sum(axis=0))
        distance = np.where(
            steepness > _TINY, np.abs(log_odds) / np.maximum(steepness, _TINY), np.inf
        )
        distance[label] = np.inf
        distance[np.argsort(-log_probs, kind="stable")[_MAX_RANK:]] = np.inf
        rival = int(distance.argmin())
        if not np.isfinite(distance[rival]):
            return None
        return self._directions.step(relative[:, rival], float(log_odds[rival]) + _BEYOND)

    def _lengthen(
        self, values: Floats, step: Callable[[float], Floats]
    ) -> Generator[Ask, Answer, Bracket | tuple[Floats, PathPoint]]:
        """Try growing lengths of a step; return the crossing, else the input nearest to one."""
        best: tuple[Floats, PathPoint] | None = None
        for length in _LENGTHS:
            end = self._probe.space.clipped(values + step(length))
            path = LinePath(self._probe.values, end)
            (point,) = yield from self._probe.points(path, (1.0,))
            if point.log_odds < 0:
                return Bracket(self._probe.seed_point(path), point)
            if best is None or point.log_odds < best[1].log_odds:
                best = end, point
        assert best is not None  # noqa: S101 - there are lengths
        return best

    def _project(self, bracket: Bracket) -> Generator[Ask, Answer, Bracket]:
        """Return the crossing from the seed onto the boundary as linearised there, if nearer."""
        probe, outside = self._probe, bracket.outside
        share = bracket.inside.log_odds / (bracket.inside.log_odds - outside.log_odds)
        near = probe.values + share * (probe.space.values(outside.sample) - probe.values)
        (point,) = yield from probe.points(LinePath(probe.values, near), (1.0,))
        self._directions = self._directions.recentred(near)
        slopes = yield from self._slopes(near, point.log_probs)
        self._near_boundary = point, slopes
        normal = self._directions.combine(slopes.of(probe.label) - slopes.of(point.rival))
        steepness = exact.norm(normal)
        if steepness <= _TINY:
            return bracket
        normal = normal / steepness
        beyond = exact.dot(near - probe.values, normal) - point.log_odds / steepness
        for length in _PROJECTED_LENGTHS:
            path = LinePath(probe.values, probe.values + length * beyond * normal)
            (tried,) = yield from probe.points(path, (1.0,))
            if tried.log_odds < 0:
                nearer = probe.distance(tried.sample) < probe.distance(outside.sample)
                return Bracket(probe.seed_point(path), tried) if nearer else bracket
        return bracket

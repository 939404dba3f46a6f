"""Paths of inputs from a seed, and points on them at a wanted distance to the boundary."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare.strategies.boundary.directions import noise_like
from edgeflare.strategies.boundary.points import OriginalProbe, Path, PathPoint, space_of, to_sample
from edgeflare.types import Answer, Ask, Sample
from edgeflare_mutators import Corruption, Mutation, Params

_MAX_T = 4.0
_MAX_STEPS = 12
_GROWTH = 1.35


@dataclass
class LinePath:
    """The line from `values` (at 0) through `end` (at 1) and beyond; float64 levels.

    `values` are the seed's, or those of `start`.
    """

    values: Floats
    end: Floats
    max_t: float = _MAX_T
    exact: bool = False
    start: PathPoint | None = None

    def at(self, t: float) -> Sample:
        """Return the input at `t`."""
        return to_sample(self.values + t * (self.end - self.values))

    def mutations(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return (): a line is no mutation."""
        del t
        return ()

    def perturbed(self, rng: np.random.Generator, scale: float) -> Path:
        """Return the line through the end moved by noise."""
        space = space_of(self.values)
        end = self.end + noise_like(rng, self.values) * scale * space.unit
        return LinePath(self.values, space.clipped(end, 1.0), self.max_t, start=self.start)


def line_ends(seed: Sample, others: Sequence[Sample]) -> list[Sample]:
    """Return those samples that a line from the seed may lead to: of its shape, not equal to it."""
    return [one for one in others if one.shape == seed.shape and not np.array_equal(one, seed)]


def line_between(probe: OriginalProbe, start: PathPoint, end: Sample) -> LinePath:
    """Return the line from a point that need not be the seed to another input."""
    return LinePath(
        probe.space.values(start.sample), probe.space.values(end), max_t=1.0, start=start
    )


@dataclass
class CorruptionPath:
    """Natural corruptions in sequence, each at `t` times its strength: at 0 the seed itself."""

    seed: Sample
    drawn: tuple[tuple[Corruption, Params, float], ...]
    max_t: float = 1.0
    exact: bool = True
    start: PathPoint | None = None

    def at(self, t: float) -> Sample:
        """Return the seed after all corruptions at strength `t`."""
        sample = self.seed
        if t > 0:
            for operator, params, strength in self.drawn:
                sample = operator.apply(sample, operator.graded(params, t * strength))
        return sample

    def mutations(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return the corruptions with their parameters."""
        if t <= 0:
            return ()
        return tuple(
            Mutation(operator.name, operator.graded(params, t * strength)).to_json()
            for operator, params, strength in self.drawn
        )

    def perturbed(self, rng: np.random.Generator, scale: float) -> Path:
        """Return the same corruptions in another proportion; `scale` is not used."""
        del scale
        drawn = tuple(
            (
                operator,
                params,
                float(np.clip(strength * exact.exp(0.3 * exact.normal(rng, ())), 0.02, 1.0)),
            )
            for operator, params, strength in self.drawn
        )
        return CorruptionPath(self.seed, drawn)


def draw_corruptions(
    seed: Sample,
    pool: Sequence[Corruption],
    most: int,
    rng: np.random.Generator,
    spec: Any,
) -> CorruptionPath:
    """Return a path of 1 to `most` random corruptions with strengths from 0.3 to 1."""
    count = int(rng.integers(1, most + 1))
    chosen = rng.choice(len(pool), size=min(count, len(pool)), replace=False)
    return CorruptionPath(
        seed,
        tuple(
            (pool[place], pool[place].draw(rng, spec), exact.uniform(rng, 0.3, 1.0))
            for place in sorted(chosen)
        ),
    )


class _MixPath:
    """From one input (at 0) to another (at 1), copying values that differ in a random order."""

    max_t = 1.0
    exact = False
    start: PathPoint | None = None

    def __init__(self, one: Sample, other: Sample, rng: np.random.Generator) -> None:
        self._one = one
        self._other = other.ravel()
        self._order = rng.permutation(np.flatnonzero(one.ravel() != self._other))

    def at(self, t: float) -> Sample:
        """Return the input with this share of the values copied."""
        copied = self._order[: round(t * len(self._order))]
        mixed: Sample = self._one.copy()
        mixed.ravel()[copied] = self._other[copied]
        return mixed

    def mutations(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return ()."""
        del t
        return ()

    def perturbed(self, rng: np.random.Generator, scale: float) -> Path:
        """Return itself: there is no other path between the two."""
        del rng, scale
        return self


class Bracket(NamedTuple):
    """Two points of a path: the original gives the seed's label at the first, not at the second."""

    inside: PathPoint
    outside: PathPoint


class TargetMargin(NamedTuple):
    """The original's wanted `log_odds` of the seed's label, within `tolerance`, margin >= `floor`.

    Positive log-odds keep the seed's label, negative ones have another.
    """

    log_odds: float
    tolerance: float
    floor: float

    def is_met_by(self, point: PathPoint) -> bool:
        """Whether a point is on the wanted side and has the margin, whatever its log-odds."""
        return point.log_odds * self.log_odds > 0 and point.margin >= self.floor

    def error(self, point: PathPoint) -> float:
        """Return by how much the log-odds at a point differ from the wanted ones."""
        return abs(point.log_odds - self.log_odds)

    def best(self, points: Sequence[PathPoint]) -> PathPoint | None:
        """Return the point with the smallest error of those that meet the target, else None."""
        return min(filter(self.is_met_by, points), key=self.error, default=None)


def cross_boundary(
    probe: OriginalProbe, path: Path, log_odds: float = 0.0
) -> Generator[Ask, Answer, Bracket | None]:
    """Follow a path until the original's log-odds are below `log_odds` and 0, else None."""
    inside, t = probe.first_point(path), min(1.0, path.max_t)
    while True:
        (point,) = yield from probe.points(path, (t,))
        if point.log_odds < min(log_odds, 0.0):
            return Bracket(inside, point)
        if point.log_odds > inside.log_odds + 1.0 or t >= path.max_t:
            return None
        inside, t = point, min(t * _GROWTH, path.max_t)


def approach(
    probe: OriginalProbe, bracket: Bracket, target: TargetMargin, rng: np.random.Generator
) -> Generator[Ask, Answer, PathPoint | None]:
    """Return the best point for the target that was tried between those of a bracket, or None.

    By the secant method along the path, safeguarded by bisection; where that ends at two inputs a
    rounding apart, by copying values of the second one into the first, half as many each time.
    """
    seen = [bracket.inside, bracket.outside]
    yield from _bisect(probe, bracket.inside.path, seen, target)
    low, high = _around(seen, target)
    done = bracket.inside.path.exact or min(map(target.error, seen)) <= target.tolerance
    if not done and low is not None and high is not None:
        path = _MixPath(low.sample, high.sample, rng)
        ends = [low._replace(path=path, t=0.0), high._replace(path=path, t=1.0)]
        yield from _bisect(probe, path, ends, target)
        seen += [
            one._replace(path=bracket.inside.path, t=low.t) for one in ends if 0.0 < one.t < 1.0
        ]
    return target.best(
        [point for point in seen if not np.array_equal(point.sample, probe.seed.sample)]
    )


def _bisect(
    probe: OriginalProbe, path: Path, seen: list[PathPoint], target: TargetMargin
) -> Generator[Ask, Answer, None]:
    """Add points of a path until one meets the target closely or no input is between two."""
    halve = False
    for _ in range(_MAX_STEPS):
        low, high = _around(seen, target)
        if low is None or high is None:
            return
        share = 0.5 if halve else _secant(low, high, target)
        t = low.t + share * (high.t - low.t)
        sample = path.at(t)
        if any(np.array_equal(sample, one.sample) for one in (low, high)):
            if halve:
                return
            halve = True
            continue
        (point,) = yield from probe.ask((path,), (t,), (sample,))
        seen.append(point)
        if target.error(point) <= target.tolerance and target.is_met_by(point):
            return
        closed = (point.t - low.t) if point.log_odds <= target.log_odds else (high.t - point.t)
        halve = closed > 0.5 * (high.t - low.t)


def _around(
    seen: list[PathPoint], target: TargetMargin
) -> tuple[PathPoint | None, PathPoint | None]:
    """Return the last point before the target and the first one after it."""
    before = [point for point in seen if point.log_odds > target.log_odds]
    low = max(before, key=lambda point: point.t, default=None)
    after = [
        point
        for point in seen
        if point.log_odds <= target.log_odds and (low is None or point.t > low.t)
    ]
    return low, min(after, key=lambda point: point.t, default=None)


def _secant(low: PathPoint, high: PathPoint, target: TargetMargin) -> float:
    share = (low.log_odds - target.log_odds) / (low.log_odds - high.log_odds)
    return float(np.clip(share, 0.05, 0.95))

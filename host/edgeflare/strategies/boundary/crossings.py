"""How the original's decision boundary is reached: five methods with one interface."""

from collections.abc import Callable, Generator, Mapping
from typing import Protocol

import numpy as np

from edgeflare._internal import exact
from edgeflare.strategies.boundary.deepfool import DeepFoolCrossing
from edgeflare.strategies.boundary.directions import noise_like
from edgeflare.strategies.boundary.paths import (
    Bracket,
    LinePath,
    cross_boundary,
    draw_corruptions,
    line_between,
    line_ends,
)
from edgeflare.strategies.boundary.points import OriginalProbe, PathPoint, to_sample
from edgeflare.strategies.boundary.ties import Tie, find_tie
from edgeflare.types import Answer, Ask, Sample
from edgeflare_mutators import Corruption, Operator, SampleSpec

_MAX_SEEDS = 32
_MAX_STEPS = 8
_PATIENCE = 3
"""Number of steps without a less certain mutant after which the search goes on from the best."""
_MAX_CORRUPTIONS = 3
_TIE_TRIES = 4
_SCREENED = 8
_KEPT = 24
_LEAST_GAIN = 1.0
_MOST_GAIN = 4.0
_MOST_NOISE = 0.3


class Crossing(Protocol):
    """Finds inputs where the original's decision changes; asks the original alone."""

    def find(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return a crossing, another one at each call; None where this try did not find one."""
        ...

    def find_tie(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return a tie of a third class with the two of a crossing; None if this try found none."""
        ...


class LineCrossing:
    """Lines to other seeds that have another label, the nearest of some first."""

    def __init__(self, probe: OriginalProbe, rng: np.random.Generator) -> None:
        self._probe = probe
        self._rng = rng
        self._others: list[Sample] | None = None

    def find(self) -> Generator[Ask, Answer, Bracket | None]:
        """Go to the next other seed; where none is left, in a random smooth direction."""
        if self._others is None:
            self._others = self._some_others()
        values = self._probe.values
        while self._others:
            end = self._probe.space.values(self._others.pop(0))
            found = yield from cross_boundary(self._probe, LinePath(values, end, max_t=1.0))
            if found is not None:
                return found
        path = LinePath(values, values).perturbed(self._rng, float(0.1 * np.sqrt(values.size)))
        return (yield from cross_boundary(self._probe, path))

    def find_tie(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return the tie between a crossing and one of the next lines'."""
        return (yield from _find_tie(self, found, self._probe, self._rng))

    def _some_others(self) -> list[Sample]:
        """Return some of the other seeds of this shape, drawn at random, the nearest first."""
        others = self._probe.seed.others
        drawn = self._rng.permutation(len(others))[:_MAX_SEEDS]
        found = [others[int(place)] for place in drawn]
        return sorted(line_ends(self._probe.seed.sample, found), key=self._probe.distance)


class MutantCrossing:
    """Mutants of the seed, then of the least certain mutant, until one crosses the boundary.

    Mutants of another length are left out.
    """

    def __init__(
        self,
        probe: OriginalProbe,
        rng: np.random.Generator,
        screened: int,
        pool: Mapping[str, Operator],
    ) -> None:
        self._probe = probe
        self._rng = rng
        self._screened = screened
        self._pool = tuple(pool.values())
        self._parent: PathPoint | None = None
        self._spec = SampleSpec.of(probe.seed.sample, probe.seed.rate)

    def find(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return the line from the seed to the first mutant across the boundary.

        A try goes on where the last one ended.
        """
        values = self._probe.values
        parent = self._parent or self._probe.seed_point(LinePath(values, values))
        stuck = 0
        for _ in range(_MAX_STEPS):
            drawn = [self._mutant(parent.sample) for _ in range(self._screened)]
            samples = [one for one in drawn if one.shape == parent.sample.shape]
            if not samples:
                break
            paths = [LinePath(values, self._probe.space.values(one)) for one in samples]
            found = yield from self._probe.ends(paths, samples)
            bracket = _nearest_across(self._probe, found)
            if bracket is not None:
                self._parent = None
                return bracket
            least = min(found, key=lambda point: point.log_odds)
            stuck = 0 if least.log_odds < parent.log_odds else stuck + 1
            if stuck in (0, _PATIENCE):
                parent, stuck = least, 0
        self._parent = parent
        return None

    def find_tie(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return the tie between a crossing and one of the next mutants'."""
        return (yield from _find_tie(self, found, self._probe, self._rng))

    def _mutant(self, sample: Sample) -> Sample:
        operator = self._pool[self._rng.integers(len(self._pool))]
        return operator.apply(sample, operator.draw(self._rng, self._spec))


class CorruptionCrossing:
    """One to three natural corruptions whose strengths grow together."""

    def __init__(
        self,
        probe: OriginalProbe,
        rng: np.random.Generator,
        screened: int,
        pool: Mapping[str, Operator],
    ) -> None:
        self._probe = probe
        self._rng = rng
        self._screened = screened
        self._pool = tuple(one for one in pool.values() if isinstance(one, Corruption))
        self._spec = SampleSpec.of(probe.seed.sample, probe.seed.rate)

    def find(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return, of some random corruptions across the boundary, the one nearest to the seed."""
        for step in range(_MAX_STEPS):
            most = 1 + min(step, _MAX_CORRUPTIONS - 1)
            paths = [
                draw_corruptions(self._probe.seed.sample, self._pool, most, self._rng, self._spec)
                for _ in range(self._screened)
            ]
            found = yield from self._probe.ends(paths, [path.at(1.0) for path in paths])
            bracket = _nearest_across(self._probe, found)
            if bracket is not None:
                return bracket
        return None

    def find_tie(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return None: between two corruptions there is no third one."""
        del found
        yield from ()
        return None


class FarCrossing:
    """Lines between two inputs far from the seed, one with its label and one with another.

    They are seeds with their contrast (a recording's level) raised and smooth noise added. A
    deployed model that hardly differs beside the seed may differ more where values are extreme.
    """

    def __init__(self, probe: OriginalProbe, rng: np.random.Generator) -> None:
        self._probe = probe
        self._rng = rng
        self._ends: list[PathPoint] = []

    def find(self) -> Generator[Ask, Answer, Bracket | None]:
        """Return the boundary between two of some random far inputs."""
        samples = [self._far() for _ in range(_SCREENED)]
        values = self._probe.values
        path = LinePath(values, values)
        self._ends += yield from self._probe.ends([path] * len(samples), samples)
        self._ends = self._ends[-_KEPT:]
        inside = [point for point in self._ends if point.log_odds > 0]
        outside = [point for point in self._ends if point.log_odds < 0]
        if not outside:
            return None
        start = self._one_of(inside) if inside else self._probe.seed_point(path)
        end = self._one_of(outside)
        line = line_between(self._probe, start, end.sample)
        return Bracket(self._probe.first_point(line), end._replace(path=line, t=1.0))

    def find_tie(self, found: Bracket) -> Generator[Ask, Answer, Tie | None]:
        """Return None: a tie is wanted near the seed."""
        del found
        yield from ()
        return None

    def _one_of(self, points: list[PathPoint]) -> PathPoint:
        return points[int(self._rng.integers(len(points)))]

    def _far(self) -> Sample:
        """Return the seed, or another one, with another contrast and noise."""
        probe, others = self._probe, self._probe.seed.others
        values = probe.values
        if others and self._rng.integers(2):
            other = others[int(self._rng.integers(len(others)))]
            if other.shape == probe.seed.sample.shape:
                values = probe.space.values(other)
        gain, noise = (
            exact.uniform(self._rng, _LEAST_GAIN, _MOST_GAIN),
            exact.uniform(self._rng, 0.0, _MOST_NOISE),
        )
        middle = probe.space.middle if values.ndim > 1 else 0.0
        size = noise * probe.space.unit * float(np.sqrt(values.size))
        return to_sample(middle + gain * (values - middle) + size * noise_like(self._rng, values))


def make_crossing(
    name: str,
    probe: OriginalProbe,
    rng: np.random.Generator,
    effort: int,
    pool: Mapping[str, Operator],
) -> Crossing:
    """Return the crossing of this name for a seed; `effort` sets how much it asks the original.

    least-l2: as many directions; mutants and natural: as many inputs at once, from 4 to 32.
    """
    screened = max(4, min(effort, 32))
    made: Mapping[str, Callable[[], Crossing]] = {
        "least-l2": lambda: DeepFoolCrossing(probe, rng, effort),
        "line": lambda: LineCrossing(probe, rng),
        "mutants": lambda: MutantCrossing(probe, rng, screened, pool),
        "far": lambda: FarCrossing(probe, rng),
        "natural": lambda: CorruptionCrossing(probe, rng, screened, pool),
    }
    return made[name]()


def _nearest_across(probe: OriginalProbe, found: list[PathPoint]) -> Bracket | None:
    """Return the crossing to the nearest of the points beyond the boundary; None without any."""
    across = [point for point in found if point.log_odds < 0]
    if not across:
        return None
    nearest = min(across, key=lambda point: probe.distance(point.sample))
    return Bracket(probe.seed_point(nearest.path), nearest)


def _find_tie(
    crossing: Crossing, found: Bracket, probe: OriginalProbe, rng: np.random.Generator
) -> Generator[Ask, Answer, Tie | None]:
    """Return the tie between a crossing and the first of a few more that leads to another rival."""
    for _ in range(_TIE_TRIES):
        other = yield from crossing.find()
        if other is not None and other.outside.rival != found.outside.rival:
            return (yield from find_tie(probe, found, other, rng))
    return None

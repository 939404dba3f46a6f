"""The boundary search by a tolerance: inputs on which both models' answers are farthest apart.

There is no boundary of the original's then: maps, embeddings, vectors and, with the oracle
tolerance, the scores of classes deviate where their distance (`edgeflare.metrics.disagreement`) is
above a tolerance. Deployment's error is a share of what a model computes: of values it grows where
the original's own answer moves most, and it moves scores of classes most where the original is least
sure. Inputs are made in several ways, as far from the seed as the bounds allow: lines to other
seeds, natural corruptions, contrast and smooth noise. The original alone is asked about several of
each; the device about the most promising one of each way, then about those of the way with the
largest distance of both models for what was promised, and about changes of the best one, until both
deviate. With a `device_budget` the rest of it brings the
finding nearer, by bisection on the line to the seed.

Source: none. Figures: docs/research/detection.md.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edgeflare._internal import exact
from edgeflare.errors import UsageError
from edgeflare.metrics import disagreement, is_finite, is_scores
from edgeflare.strategies.boundary.directions import noise_like
from edgeflare.strategies.boundary.options import TOLERANCE_EFFORT, BoundaryOptions, Bounds
from edgeflare.strategies.boundary.paths import LinePath, draw_corruptions
from edgeflare.strategies.boundary.points import Path, space_of
from edgeflare.types import Answer, Ask, Decision, Outcome, Output, Sample, Search, Seed
from edgeflare_mutators import Corruption, Operator, SampleSpec

_MAX_QUERIES = 100
"""Device queries after which a search without a finding ends."""
_GAINS = (0.2, 0.5, 2.0, 4.0)
_MAX_CORRUPTIONS = 2
_CHILDREN = 6
_SHORTENINGS = 5
_STEPS = 5
_REFINEMENTS = 3
_BISECTIONS = 8
_SCALES = (0.1, 0.5)
"""Lengths of changes of the best input, as shares of `Bounds.radius`."""


class _Place(NamedTuple):
    """An input to ask about, on a path of one way at `t`.

    `promise`: how far deployment's error may move the answers, see `_ToleranceSearch._promise`.
    """

    way: str
    path: Path
    t: float
    sample: Sample
    promise: float


@dataclass
class _Way:
    """What is known of a way of making inputs: those not asked about, the most promising last."""

    places: list[_Place]
    ratio: float = np.inf
    """The largest distance of both models, as a share of what the input promised."""

    def expected(self) -> float:
        """Return the distance to expect at the next place."""
        return self.places[-1].promise * self.ratio if self.places else -1.0


def check_options(options: BoundaryOptions) -> None:
    """Raise UsageError for options that only a decision of the original's has a meaning for."""
    stated = {
        "tied_classes 3": options.tied_classes == 3,
        "crossing mutants": options.crossing == "mutants",
        "gradients": options.gradients,
    }
    for name, given in stated.items():
        if given:
            raise UsageError(
                f"strategy boundary: {name} means nothing by a tolerance, which has no boundary of "
                "the original's; leave it out"
            )


def search_by_tolerance(
    options: BoundaryOptions, pool: Mapping[str, Operator], seed: Seed, rng: np.random.Generator
) -> Search:
    """Search from a seed on which both answers are within the tolerance; `pool`: corruptions.

    Raises UsageError for options that only a decision of the original's has a meaning for.
    """
    check_options(options)
    return (yield from _ToleranceSearch(options, pool, seed, rng).run())


class _ToleranceSearch:
    def __init__(
        self,
        options: BoundaryOptions,
        pool: Mapping[str, Operator],
        seed: Seed,
        rng: np.random.Generator,
    ) -> None:
        assert seed.outputs.original is not None  # noqa: S101 - seeds are answered before
        self._options = options
        self._seed = seed
        self._rng = rng
        self._original = seed.outputs.original
        self._bounds = Bounds(options, seed.sample)
        self._space = space_of(seed.sample)
        self._values = self._space.values(seed.sample)
        self._pool = [one for one in pool.values() if isinstance(one, Corruption)]
        self._count = max(1, (options.effort or TOLERANCE_EFFORT) // 4)
        self._left = options.device_budget or _MAX_QUERIES
        self._best: Outcome | None = None
        self._found: _Place | None = None
        self._largest = 0.0

    def run(self) -> Search:
        ways: list[_Way] = []
        for name, paths in self._paths().items():
            places = yield from self._places(name, paths)
            if places:
                ways.append(_Way(places))
        best: tuple[float, _Place] | None = None
        turn = 0
        while self._found is None and self._left > 0:
            turn += 1
            way = max(ways, key=lambda one: one.expected(), default=None)
            is_empty = way is None or not way.places
            unknown = any(one.places and one.ratio == np.inf for one in ways)
            if best is not None and (is_empty or (not unknown and turn % 2 == 0)):
                children = yield from self._children(best[1])
                if children:
                    apart = yield from self._query(children[-1])
                    best = max(best, (apart, children[-1]), key=lambda one: one[0])
                    continue
            if way is None or not way.places:
                break
            place = way.places.pop()
            apart = yield from self._query(place)
            share = apart / place.promise if place.promise > 0 else 0.0
            way.ratio = share if way.ratio == np.inf else max(way.ratio, share)
            if best is None or apart > best[0]:
                best = apart, place
        if self._found is not None and self._options.device_budget is not None:
            yield from self._bring_nearer(self._found)
        return self._best or Outcome(None, reason=self._reason())

    def _paths(self) -> dict[str, list[Path]]:
        """Return paths from the seed by the way in which they are made."""
        crossing, values, rng = self._options.crossing, self._values, self._rng
        found: dict[str, list[Path]] = {}
        if crossing != "natural":
            others = [
                self._space.values(one)
                for one in self._seed.others
                if one.shape == self._seed.sample.shape
                and not np.array_equal(one, self._seed.sample)
            ]
            drawn = rng.permutation(len(others))[: self._count]
            found["line"] = [LinePath(values, others[int(one)], max_t=1.0) for one in drawn]
        if crossing != "line" and self._pool:
            spec = SampleSpec.of(self._seed.sample, self._seed.rate)
            found["natural"] = [
                draw_corruptions(self._seed.sample, self._pool, _MAX_CORRUPTIONS, rng, spec)
                for _ in range(2 * self._count)
            ]
        if crossing in ("auto", "least-l2"):
            middle = self._space.middle if values.ndim > 1 else 0.0
            found["contrast"] = [
                LinePath(values, self._space.clipped(middle + gain * (values - middle)), max_t=1.0)
                for gain in _GAINS
            ]
            size = self._bounds.radius * self._space.unit
            found["noise"] = []
            for _ in range(self._count // 2 + 1):
                noise = size * noise_like(rng, values)
                found["noise"] += [
                    LinePath(values, values + sign * noise, max_t=1.0) for sign in (1.0, -1.0)
                ]
        return found

    def _places(self, way: str, paths: Sequence[Path]) -> Generator[Ask, Answer, list[_Place]]:
        """Ask the original on paths within the bounds; the most promising input last."""
        found = []
        for path in paths:
            most = self._farthest(path)
            if most is not None:
                found.append((yield from self._best_on(way, path, most)))
        return sorted(found, key=lambda one: one.promise)

    def _best_on(self, way: str, path: Path, most: float) -> Generator[Ask, Answer, _Place]:
        """Return the most promising input of a path up to `most`; of values the farthest one.

        Of scores it is somewhere between two sure answers: several inputs are asked about, then
        others beside the best one.
        """
        if not is_scores(self._original):
            return (yield from self._ask_original(way, path, (most,)))[0]
        step = most / _STEPS
        tried = yield from self._ask_original(way, path, [step * (n + 1) for n in range(_STEPS)])
        best = max(tried, key=lambda one: one.promise)
        for _ in range(_REFINEMENTS):
            step /= 2
            near = [t for t in (best.t - step, best.t + step) if 0 < t <= most]
            tried = yield from self._ask_original(way, path, near)
            best = max((best, *tried), key=lambda one: one.promise)
        return best

    def _ask_original(
        self, way: str, path: Path, places: Sequence[float]
    ) -> Generator[Ask, Answer, list[_Place]]:
        samples = tuple(path.at(t) for t in places)
        answer = yield Ask(samples, of="original", best=self._best)
        found = []
        for t, sample, outputs in zip(places, samples, answer.outputs, strict=True):
            assert outputs.original is not None  # noqa: S101 - the original was asked
            if not is_finite(outputs.original):
                yield Ask((sample,), best=self._best)  # a finding of its own kind: the search ends
            found.append(_Place(way, path, t, sample, self._promise(outputs.original)))
        return found

    def _promise(self, output: Output) -> float:
        """Return how far an error may move an answer: of scores 1 less the sum of their squares.

        Of values it is how far the original's answer is from that to the seed.
        """
        if is_scores(output):
            return 1.0 - float(np.square(output).sum())
        return disagreement(self._original, output)

    def _farthest(self, path: Path) -> float | None:
        """Return the farthest place of a path within the bounds, of some; None without any."""
        t = min(1.0, path.max_t)
        for _ in range(_SHORTENINGS):
            sample = path.at(t)
            if np.array_equal(sample, self._seed.sample):
                return None
            if self._bounds.contain(sample):
                return t
            t /= 2
        return None

    def _children(self, parent: _Place) -> Generator[Ask, Answer, list[_Place]]:
        """Return changes of the best input, the most promising one last."""
        paths = [
            parent.path.perturbed(
                self._rng, self._bounds.radius * exact.uniform(self._rng, *_SCALES)
            )
            for _ in range(_CHILDREN)
        ]
        return (yield from self._places(parent.way, paths))

    def _query(self, place: _Place) -> Generator[Ask, Answer, float]:
        """Ask both models; return how far apart they are, and keep what deviates."""
        self._left -= 1
        answer = yield Ask((place.sample,), best=self._best)
        (outputs,) = answer.outputs
        if outputs.decision is Decision.DEVIATION:
            self._found = place
            earlier = () if self._best is None else (self._best,)
            self._best = Outcome(place.sample, place.path.mutations(place.t), earlier[:1])
        apart = _distance(outputs.original, outputs.deployed)
        self._largest = max(self._largest, apart)
        return apart

    def _bring_nearer(self, place: _Place) -> Generator[Ask, Answer, None]:
        """Bisect for the least place of the path at which both deviate."""
        low, high = 0.0, place.t
        for _ in range(min(_BISECTIONS, self._left)):
            middle = (low + high) / 2
            sample = place.path.at(middle)
            if np.array_equal(sample, self._seed.sample):
                return
            here = place._replace(t=middle, sample=sample)
            self._found = None
            yield from self._query(here)
            low, high = (low, middle) if self._found is not None else (middle, high)

    def _reason(self) -> str:
        within = f" within {bounds}" if (bounds := self._options.bounds_text()) else ""
        return (
            f"no two answers further apart than the tolerance were found{within}: at most "
            f"{self._largest:.3g}; strategy dflare, or the survey, may find some"
        )


def _distance(original: Output | None, deployed: Output | None) -> float:
    return 0.0 if original is None or deployed is None else disagreement(original, deployed)

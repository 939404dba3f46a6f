"""The boundary search by a tolerance: inputs on which both models' answers are farthest apart.

There is no boundary of the original's then: maps, embeddings, vectors and, with the oracle
tolerance, the scores of classes deviate where their distance (`edgeflare.metrics.disagreement`) is
above a tolerance. Deployment's error is a share of what a model computes: of values it grows where
the original's own answer moves most, and it moves scores of classes most where the original is least
sure. Inputs are made by several methods, as far from the seed as the bounds allow: lines to other
seeds, natural corruptions, contrast and smooth noise. The original alone is asked about several of
each; the device about the most sensitive one of each method, then about those of the method with the
largest ratio of both models' distance to the sensitivity, and about changes of the best one, until
both deviate. With a `device_budget` the rest of it goes on in the same way, and the finding whose
answers are farthest apart is returned.

Source: none.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from edgeflare._internal import exact
from edgeflare.answers.metrics import disagreement, is_finite
from edgeflare.errors import UsageError
from edgeflare.strategies.boundary.directions import noise_like
from edgeflare.strategies.boundary.options import (
    TOLERANCE_EFFORT,
    BoundaryOptions,
    Bounds,
    refuse_class_options,
)
from edgeflare.strategies.boundary.paths import LinePath, draw_corruptions, line_ends
from edgeflare.strategies.boundary.points import Path, space_of
from edgeflare.types import Answer, Ask, Decision, Outcome, Output, Sample, Search, Seed
from edgeflare.words.search import within_tolerance
from edgeflare_mutators import Corruption, Operator, SampleSpec

_MAX_QUERIES = 100
"""Device queries after which a search without a finding ends."""
_GAINS = (0.2, 0.5, 2.0, 4.0)
_MAX_CORRUPTIONS = 2
_CHILDREN = 6
_SHORTENINGS = 5
_STEPS = 5
_REFINEMENTS = 3
_SCALES = (0.1, 0.5)
"""Lengths of changes of the best input, as shares of `Bounds.radius`."""


class _Candidate(NamedTuple):
    """An input to ask about, made by one method, at `t` on a path.

    `sensitivity`: how far deployment's error may move the answers, see
    `AnswerKind.sensitivity`; above 0, finite.
    """

    method: str
    path: Path
    t: float
    sample: Sample
    sensitivity: float


@dataclass
class _Method:
    """A method of making inputs: those not asked about yet, the most sensitive one last."""

    candidates: list[_Candidate]
    ratio: float | None = None
    """The largest ratio of both models' distance to the sensitivity; None before the first answer."""

    def expected(self) -> float:
        """Return the distance to expect at the next candidate: -1 without any, inf where unknown."""
        if not self.candidates:
            return -1.0
        return np.inf if self.ratio is None else self.candidates[-1].sensitivity * self.ratio


def check_options(options: BoundaryOptions) -> None:
    """Raise UsageError for options without a meaning where no decision changes at a boundary."""
    refuse_class_options(options, "tolerance")
    if (options.candidates or 1) > 1:
        raise UsageError(
            "strategy boundary: candidates means nothing by a tolerance, where one input is sent at "
            "a time; leave it out"
        )


def search_by_tolerance(
    options: BoundaryOptions, pool: Mapping[str, Operator], seed: Seed, rng: np.random.Generator
) -> Search:
    """Search from a seed on which both answers are within the tolerance; `pool`: corruptions.

    Raises UsageError as `check_options`.
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
        self._queries = 0
        self._best: Outcome | None = None
        self._largest = 0.0

    def run(self) -> Search:
        methods: list[_Method] = []
        for name, paths in self._paths().items():
            candidates = yield from self._candidates(name, paths)
            if candidates:
                methods.append(_Method(candidates))
        best: tuple[float, _Candidate] | None = None
        turn = 0
        while self._goes_on:
            turn += 1
            method = max(methods, key=lambda one: one.expected(), default=None)
            is_empty = method is None or not method.candidates
            unknown = any(one.candidates and one.ratio is None for one in methods)
            if best is not None and (is_empty or (not unknown and turn % 2 == 0)):
                children = yield from self._children(best[1])
                if children:
                    apart = yield from self._query(children[-1])
                    best = max(best, (apart, children[-1]), key=lambda one: one[0])
                    continue
            if method is None or not method.candidates:
                break
            candidate = method.candidates.pop()
            apart = yield from self._query(candidate)
            method.ratio = max(method.ratio or 0.0, apart / candidate.sensitivity)
            if best is None or apart > best[0]:
                best = apart, candidate
        return self._best or Outcome(None, reason=self._reason())

    @property
    def _goes_on(self) -> bool:
        if self._best is not None and self._options.device_budget is None:
            return False
        return self._queries < (self._options.device_budget or _MAX_QUERIES)

    def _paths(self) -> dict[str, list[Path]]:
        """Return paths from the seed by the method that makes them."""
        crossing, values, rng = self._options.crossing, self._values, self._rng
        found: dict[str, list[Path]] = {}
        if crossing != "natural":
            ends = line_ends(self._seed.sample, self._seed.others)
            others = [self._space.values(one) for one in ends]
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

    def _candidates(
        self, method: str, paths: Sequence[Path]
    ) -> Generator[Ask, Answer, list[_Candidate]]:
        """Ask the original on paths within the bounds; the most sensitive input last.

        Inputs on which the original answers as to the seed are left out.
        """
        found = []
        for path in paths:
            most = self._farthest(path)
            if most is not None:
                found.append((yield from self._best_on(method, path, most)))
        return sorted(
            (one for one in found if one.sensitivity > 0), key=lambda one: one.sensitivity
        )

    def _best_on(self, method: str, path: Path, most: float) -> Generator[Ask, Answer, _Candidate]:
        """Return the most sensitive input of a path up to `most`; of values the farthest one.

        Of scores it is somewhere between two sure answers: several inputs are asked about, then
        others beside the best one.
        """
        if self._seed.kind.moves_with_input:
            return (yield from self._ask_original(method, path, (most,)))[0]
        step = most / _STEPS
        tried = yield from self._ask_original(method, path, [step * (n + 1) for n in range(_STEPS)])
        best = max(tried, key=lambda one: one.sensitivity)
        for _ in range(_REFINEMENTS):
            step /= 2
            near = [t for t in (best.t - step, best.t + step) if 0 < t <= most]
            tried = yield from self._ask_original(method, path, near)
            best = max((best, *tried), key=lambda one: one.sensitivity)
        return best

    def _ask_original(
        self, method: str, path: Path, ts: Sequence[float]
    ) -> Generator[Ask, Answer, list[_Candidate]]:
        samples = tuple(path.at(t) for t in ts)
        answer = yield Ask(samples, of="original", best=self._best)
        found = []
        for t, sample, outputs in zip(ts, samples, answer.outputs, strict=True):
            assert outputs.original is not None  # noqa: S101 - the original was asked
            if not is_finite(outputs.original):
                yield Ask((sample,), best=self._best)  # a finding of its own kind: the search ends
            sensitivity = self._seed.kind.sensitivity(self._original, outputs.original)
            found.append(_Candidate(method, path, t, sample, sensitivity))
        return found

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

    def _children(self, parent: _Candidate) -> Generator[Ask, Answer, list[_Candidate]]:
        """Return changes of the best input, the most sensitive one last."""
        paths = [
            parent.path.perturbed(
                self._rng, self._bounds.radius * exact.uniform(self._rng, *_SCALES)
            )
            for _ in range(_CHILDREN)
        ]
        return (yield from self._candidates(parent.method, paths))

    def _query(self, candidate: _Candidate) -> Generator[Ask, Answer, float]:
        """Ask both models; return how far apart they are, and keep the farthest that deviates."""
        self._queries += 1
        answer = yield Ask((candidate.sample,), best=self._best)
        (outputs,) = answer.outputs
        apart = _distance(outputs.original, outputs.deployed)
        before = self._best
        if outputs.decision is Decision.DEVIATION and (before is None or apart > self._largest):
            earlier = () if before is None else (replace(before, earlier=()),)
            mutations = candidate.path.mutations(candidate.t)
            self._best = Outcome(candidate.sample, mutations, earlier)
        self._largest = max(self._largest, apart)
        return apart

    def _reason(self) -> str:
        largest = self._largest if self._queries else None
        return within_tolerance(largest, self._options.bounds_text())


def _distance(original: Output | None, deployed: Output | None) -> float:
    return 0.0 if original is None or deployed is None else disagreement(original, deployed)

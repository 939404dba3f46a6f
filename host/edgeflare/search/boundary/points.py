"""Inputs as the search sees them: where the original model stands on each, and ways that lead to more of them."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from edgeflare.answers import class_scores
from edgeflare.distances import l2
from edgeflare.search.boundary.space import Floats, space_of
from edgeflare.types import Answer, Ask, Outcome, Sample, Scores, Seed

__all__ = ["Floats", "Path", "Point", "View", "levels", "logs_of"]

_SMALLEST = 1e-30
_MOST_BYTES = 8 * 2**20


class Path(Protocol):
    """Inputs in a row, from the seed (at 0) on: `farthest` is the largest `t`.

    Of a `pure` path only the inputs on it will do: single values of them are not changed.
    """

    farthest: float
    pure: bool

    def at(self, t: float) -> Sample:
        """Return the input at `t`, of the seed's type."""
        ...

    def steps(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return the mutations that lead from the seed to the input at `t`, where there are any."""
        ...

    def varied(self, rng: np.random.Generator, scale: float) -> "Path":
        """Return a path that leads elsewhere; `scale`: how far its end at 1 moves, L2 (see `View.distance`)."""
        ...


class Point(NamedTuple):
    """An input on a path and the original's answer on it.

    `logs` are its log-probabilities, float64 [classes]; `lead` is the log-odds of the seed's label over
    the best other class, `rival`: positive where the original keeps the label. `margin`: top-1 minus top-2 probability.
    """

    path: Path
    t: float
    sample: Sample
    logs: Floats
    lead: float
    rival: int
    margin: float


def logs_of(scores: Scores) -> Floats:
    """Return log-probabilities, float64 [classes]; a probability of 0 counts as 1e-30."""
    return np.asarray(np.log(np.maximum(scores, _SMALLEST)), dtype=np.float64)


@dataclass
class View:
    """A seed, the label that the original gives it, and how the original is asked; `best` goes with every question.

    `pixels` are the seed's values in levels, float64 of its shape: bytes of an image, 16 bits of a recording.
    """

    seed: Seed
    best: Outcome | None = None

    def __post_init__(self) -> None:
        original = self.seed.outputs.original
        assert original is not None  # noqa: S101 - seeds are answered before a search
        self.logs = logs_of(class_scores(original))
        self.label = int(np.argmax(class_scores(original)))
        self.space = space_of(self.seed.sample)
        self.pixels = self.space.values(self.seed.sample)

    def scores(self, samples: Sequence[Sample]) -> Generator[Ask, Answer, list[Scores]]:
        """Ask the original alone, in requests of at most 8 MB; a non-finite answer is put to both models."""
        size = max(1, _MOST_BYTES // self.seed.sample.nbytes)
        found: list[Scores] = []
        for begin in range(0, len(samples), size):
            some = tuple(samples[begin : begin + size])
            answer = yield Ask(some, of="original", best=self.best)
            for sample, outputs in zip(some, answer.outputs, strict=True):
                assert outputs.original is not None  # noqa: S101 - it was asked
                scores = class_scores(outputs.original)
                if not np.isfinite(scores).all():
                    yield Ask(
                        (sample,), best=self.best
                    )  # a finding of its own kind: the search ends
                found.append(scores)
        return found

    def points(self, path: Path, places: Sequence[float]) -> Generator[Ask, Answer, list[Point]]:
        """Ask the original about inputs of a path."""
        samples = [path.at(t) for t in places]
        scores = yield from self.scores(samples)
        return [
            self.point(path, t, sample, one)
            for t, sample, one in zip(places, samples, scores, strict=True)
        ]

    def point(self, path: Path, t: float, sample: Sample, scores: Scores) -> Point:
        """Return the point of an input that the original has answered."""
        logs = logs_of(scores)
        lead, rival = self.lead(logs)
        top = np.partition(scores, -2)[-2:]
        return Point(path, t, sample, logs, lead, rival, float(top[1] - top[0]))

    def lead(self, logs: Floats) -> tuple[float, int]:
        """Return the log-odds of the seed's label over the best other class, and that class."""
        others = logs.copy()
        others[self.label] = -np.inf
        rival = int(others.argmax())
        return float(logs[self.label] - logs[rival]), rival

    def distance(self, sample: Sample) -> float:
        """Return the L2 distance to the seed, pixels from 0 to 1 or amplitudes from -1 to 1."""
        if sample.shape != self.seed.sample.shape:
            return l2(self.seed.sample, sample)
        return float(np.linalg.norm(self.space.values(sample) - self.pixels)) / self.space.unit


def levels(pixels: Floats) -> Sample:
    """Return the sample of some values, rounded to levels and clipped."""
    return space_of(pixels).sample(pixels)

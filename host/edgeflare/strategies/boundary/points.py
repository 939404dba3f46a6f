"""Samples as numbers, paths of inputs from a seed, and queries to the original model about them."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare.answers.metrics import class_scores
from edgeflare.metrics import l2
from edgeflare.types import Answer, Ask, Outcome, Output, Outputs, Sample, Scores, Seed

_SMALLEST_PROBABILITY = 1e-30
_MAX_REQUEST_BYTES = 8 * 2**20


@dataclass(frozen=True)
class Space:
    """Converts samples to real numbers and back, in levels: the smallest steps of a file.

    `low` and `high` bound a value; `unit` levels are 1 in the distances that users see. A level of
    an image is one of 255; one of audio is one of 32768: every recording that the search makes has
    16 bits, whatever the seed has.
    """

    low: float
    high: float
    unit: float

    @property
    def middle(self) -> float:
        """The value halfway between both bounds, in levels."""
        return float(np.ceil((self.low + self.high) / 2.0))

    def values(self, sample: Sample) -> Floats:
        """Return a sample's values in levels, float64 of the sample's shape."""
        whole = sample.astype(np.float64)
        return whole * self.unit if self.has_sign else whole

    @property
    def has_sign(self) -> bool:
        """Whether samples are recordings, whose values may be negative, and no images."""
        return self.low < 0

    def whole(self, values: Floats) -> Floats:
        """Return values in levels, of one sample or of several, rounded and clipped."""
        whole: Floats = np.asarray(np.rint(values))
        np.maximum(whole, self.low, out=whole)
        return np.minimum(whole, self.high, out=whole)

    def stored(self, whole: Floats) -> Sample:
        """Return what a sample has for whole levels."""
        if self.has_sign:
            return np.asarray(whole / self.unit, dtype=np.float32)
        return whole.astype(np.uint8)

    def sample(self, values: Floats) -> Sample:
        """Return the sample with these values in levels, rounded and clipped."""
        return self.stored(self.whole(values))

    def clipped(self, values: Floats, margin: float = 0.0) -> Floats:
        """Return values clipped to the bounds widened by `margin` times their range."""
        room = margin * np.ceil(self.high - self.low)
        return np.asarray(np.clip(values, self.low - room, self.high + room))


IMAGE_SPACE = Space(0.0, 255.0, 255.0)
AUDIO_SPACE = Space(-32768.0, 32767.0, 32768.0)


def space_of(sample: NDArray[Any]) -> Space:
    """Return the space of a sample or of its values: audio has one axis, an image three."""
    return AUDIO_SPACE if sample.ndim == 1 else IMAGE_SPACE


def to_sample(values: Floats) -> Sample:
    """Return the sample with these values in levels, rounded and clipped."""
    return space_of(values).sample(values)


class Path(Protocol):
    """A parametrised curve of inputs; `max_t` is the largest `t`.

    `start`: the point that it starts at (t = 0); None: the seed.

    `exact`: the inputs next to the path are no valid results, as those of natural corruptions;
    single values of its inputs are not changed.
    """

    max_t: float
    exact: bool
    start: "PathPoint | None"

    def at(self, t: float) -> Sample:
        """Return the input at `t`, of the seed's type."""
        ...

    def mutations(self, t: float) -> tuple[dict[str, Any], ...]:
        """Return the serialised mutations from the seed to the input at `t`; () without any."""
        ...

    def perturbed(self, rng: np.random.Generator, scale: float) -> "Path":
        """Return another path near this one.

        `scale`: L2 by which its end at 1 moves (see `OriginalProbe.distance`).
        """
        ...


class PathPoint(NamedTuple):
    """An input on a path, and the original's answer to it.

    `log_probs`: its log-probabilities, float64 [classes]. `log_odds`: of the seed's label over
    `rival`, the best other class; positive where the original keeps the label. `margin`: top-1
    minus top-2 probability.
    """

    path: Path
    t: float
    sample: Sample
    log_probs: Floats
    log_odds: float
    rival: int
    margin: float


def log_probabilities(scores: Scores) -> Floats:
    """Return log-probabilities, float64 of the same shape; a probability of 0 counts as 1e-30."""
    return exact.log(np.maximum(scores, _SMALLEST_PROBABILITY))


@dataclass
class OriginalProbe:
    """Queries the original model for one search; `best` is the outcome that goes with every query.

    `has_gradients`: whether the original is asked for `gradients`, too. `read` returns the scores,
    float64 [classes], of an answer: of a detector's those of one object (see
    `DetectedObject.scores`).

    `label` is the class that the original gives to the seed, `log_probs` its log-probabilities
    there, `values` the seed in levels, float64 of its shape: bytes of an image, 16 bits of a
    recording.
    """

    seed: Seed
    best: Outcome | None = None
    has_gradients: bool = False
    read: Callable[[Output], Scores] = class_scores

    def __post_init__(self) -> None:
        original = self.seed.outputs.original
        assert original is not None  # noqa: S101 - seeds are answered before a search
        self._scores = self.read(original)
        self.log_probs = log_probabilities(self._scores)
        self.label = int(np.argmax(self._scores))
        self.space = space_of(self.seed.sample)
        self.values = self.space.values(self.seed.sample)

    def ask(
        self, paths: Sequence[Path], places: Sequence[float], samples: Sequence[Sample]
    ) -> Generator[Ask, Answer, list[PathPoint]]:
        """Ask about samples, each on its path at its t, in requests of at most 8 MB.

        Both models are asked where the original's answer is not finite.
        """
        size = max(1, _MAX_REQUEST_BYTES // self.seed.sample.nbytes)
        found: list[PathPoint] = []
        for begin in range(0, len(samples), size):
            batch = tuple(samples[begin : begin + size])
            answer = yield Ask(batch, of="original", best=self.best)
            scores = np.array([self._scores_of(outputs) for outputs in answer.outputs])
            if not np.isfinite(scores).all():
                for sample, one in zip(batch, scores, strict=True):
                    if not np.isfinite(one).all():
                        yield Ask(
                            (sample,), best=self.best
                        )  # a finding of its own kind: the search ends
            found += self._points(
                paths[begin : begin + size], places[begin : begin + size], batch, scores
            )
        return found

    def _scores_of(self, outputs: Outputs) -> Scores:
        assert outputs.original is not None  # noqa: S101 - it was asked
        return self.read(outputs.original)

    def points(
        self, path: Path, places: Sequence[float]
    ) -> Generator[Ask, Answer, list[PathPoint]]:
        """Ask about the inputs at these values of t on a path."""
        samples = [path.at(t) for t in places]
        return (yield from self.ask([path] * len(samples), places, samples))

    def points_near(
        self, start: PathPoint, samples: Sequence[Sample]
    ) -> Generator[Ask, Answer, list[PathPoint]]:
        """Ask about samples next to a point; they have its path and its t."""
        count = len(samples)
        return (yield from self.ask([start.path] * count, [start.t] * count, samples))

    def ends(
        self, paths: Sequence[Path], samples: Sequence[Sample]
    ) -> Generator[Ask, Answer, list[PathPoint]]:
        """Ask about the inputs at 1 of several paths, which are `samples`."""
        return (yield from self.ask(paths, [1.0] * len(samples), samples))

    def gradients(self, sample: Sample, classes: Sequence[int]) -> Generator[Ask, Answer, Floats]:
        """Return the gradients of the log-odds of the first of `classes` over each of the others.

        float64 [others, ...] of the sample's shape, per level; 0 where one is not finite.
        """
        answer = yield Ask(
            (sample,), of="original", want="gradient", best=self.best, classes=tuple(classes)
        )
        (found,) = answer.gradients
        return np.where(np.isfinite(found), found, 0.0)

    def seed_point(self, path: Path) -> PathPoint:
        """Return the seed as the first point of a path."""
        (point,) = self._points((path,), (0.0,), (self.seed.sample,), self._scores[None])
        return point

    def first_point(self, path: Path) -> PathPoint:
        """Return the point that a path starts at."""
        if path.start is not None:
            return path.start._replace(path=path, t=0.0)
        return self.seed_point(path)

    def _points(
        self,
        paths: Sequence[Path],
        places: Sequence[float],
        samples: Sequence[Sample],
        scores: Scores,
    ) -> list[PathPoint]:
        """Return the points of inputs that the original has answered with `scores` [n, classes]."""
        log_probs = log_probabilities(scores)
        others = log_probs.copy()
        others[:, self.label] = -np.inf
        rivals = others.argmax(axis=1)
        log_odds = log_probs[:, self.label] - log_probs[np.arange(len(rivals)), rivals]
        top = np.partition(scores, -2, axis=1)[:, -2:]
        margins = top[:, 1] - top[:, 0]
        numbers = (log_odds.tolist(), rivals.tolist(), margins.tolist())
        columns = zip(paths, places, samples, log_probs, *numbers, strict=True)
        return [PathPoint(*one) for one in columns]

    def distance(self, sample: Sample) -> float:
        """Return the L2 distance to the seed, of pixels from 0 to 1 or amplitudes from -1 to 1."""
        if sample.shape != self.seed.sample.shape:
            return l2(self.seed.sample, sample)
        return exact.norm(self.space.values(sample) - self.values) / self.space.unit

"""Small models for tests of the search and the scheduler, and searches driven without a campaign.

Models of images with a known decision boundary, a linear classifier with devices that answer out of order,
and models of audio whose transcript depends on how loud each stretch of a clip is.
"""

import hashlib
import random
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from answering_models import Searched
from numpy.typing import NDArray
from typing_extensions import Self

from edgeflare.answers.oracles import LabelOracle, TranscriptOracle
from edgeflare.answers.oracles import margin as decision_margin
from edgeflare.devices import DeviceState
from edgeflare.devices.session.replies import Reply
from edgeflare.errors import EdgeFlareError
from edgeflare.strategies import build_strategy
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    KnownAnswers,
    Outcome,
    Outputs,
    Sample,
    Scores,
    Seed,
    Transcript,
)

Shape = tuple[int, int, int]
MANY = 200_000
Ending = TypeVar("Ending")


@dataclass(frozen=True)
class Affine:
    """A linear classifier: `weights`, float64 [values, classes], of pixels from -.5 to .5; `bias` [classes].

    Rough as a quantised model: pixels are rounded down to multiples of `coarse` levels, log-odds to
    multiples of `grain` (0: not at all).
    """

    weights: NDArray[np.float64]
    bias: NDArray[np.float64]
    coarse: int = 1
    grain: float = 0.0

    def logits(self, sample: Sample) -> Scores:
        pixels = sample.ravel() // self.coarse * self.coarse / 255.0 - 0.5
        found = pixels @ self.weights + self.bias
        return np.asarray(np.round(found / self.grain) * self.grain if self.grain else found)

    def __call__(self, sample: Sample) -> Scores:
        logits = self.logits(sample)
        powers = np.exp(logits - logits.max())
        return np.asarray(powers / powers.sum())

    def gradient(self, sample: Sample, classes: Sequence[int]) -> NDArray[np.float64]:
        """The gradients of the log-odds of the first class over the others, per level."""
        slopes = (self.weights[:, [classes[0]]] - self.weights[:, list(classes[1:])]).T / 255.0
        return np.asarray(slopes.reshape(-1, *sample.shape))


Model = Callable[[Sample], Scores]


@dataclass(frozen=True)
class Pair:
    """An original and its deployed copy, and what the oracle says of an input."""

    original: Model
    deployed: Model
    floor: float = 1e-3
    labels_only: bool = False

    def told(self, sample: Sample) -> Scores:
        """What the deployed model tells: its scores, or 1 at its label."""
        scores = self.deployed(sample)
        return np.eye(len(scores))[int(scores.argmax())] if self.labels_only else scores

    def outputs(self, sample: Sample) -> Outputs:
        answers = self.original(sample), self.told(sample)
        return Outputs(*answers, LabelOracle(self.floor).decide(*answers))

    def seed(self, sample: Sample, others: Sequence[Sample] = (), known: int = 0) -> Seed:
        """The seed; both models' answers on the first `known` of the others are known."""
        answers = None
        if known:
            answers = KnownAnswers(
                np.array([self.original(one) for one in others[:known]]),
                np.array([self.told(one) for one in others[:known]]),
            )
        return Seed(
            "a", sample, self.outputs(sample), others=others, labels_only=self.labels_only,
            margin_floor=self.floor, known=answers,
        )  # fmt: skip


def affine(shape: Shape, classes: int, number: int = 0) -> Affine:
    """A classifier of random images, mostly sure; the boundary is a few tenths of L2 away from them."""
    rng = np.random.default_rng((number, *shape, classes))
    size = int(np.prod(shape))
    weights = rng.standard_normal((size, classes)) * 10 / np.sqrt(size)
    return Affine(weights, rng.standard_normal(classes) * 0.1)


def moved(model: Affine, size: float = 0.1, number: int = 0) -> Affine:
    """A deployed model whose log-probabilities are off by constants: the drift is the same everywhere."""
    rng = np.random.default_rng((number, 77))
    return replace(model, bias=model.bias + size * rng.standard_normal(len(model.bias)))


def quantised(model: Affine, coarse: int = 2, grain: float = 1 / 64) -> Affine:
    """A deployed model with weights of 6 bits, coarse pixels and coarse scores: its drift changes on any step."""
    step = np.abs(model.weights).max() / 31
    weights = np.round(model.weights / step) * step
    return replace(model, weights=weights, coarse=coarse, grain=grain)


def images(shape: Shape, count: int, number: int = 0) -> list[Sample]:
    rng = np.random.default_rng((number, 5))
    return [rng.integers(30, 226, shape, dtype=np.uint8) for _ in range(count)]


def agreed(pair: Pair, shape: Shape, count: int = 1, surely: float = 0.05) -> list[Sample]:
    """Images on which both models agree and the original is sure."""
    found = []
    for sample in images(shape, 500):
        outputs = pair.outputs(sample)
        assert outputs.original is not None
        if outputs.decision is Decision.AGREE and margin(outputs.original) > surely:
            found.append(sample)
        if len(found) == count:
            return found
    raise AssertionError("these models hardly ever agree")


def margin(scores: Scores) -> float:
    second, first = np.sort(scores)[-2:]
    return float(first - second)


class Query(NamedTuple):
    """An input that the device was asked about."""

    sample: Sample
    outputs: Outputs

    @property
    def severity(self) -> float:
        """The smaller of both models' margins of a deviation, 0 of anything else."""
        if self.outputs.decision is not Decision.DEVIATION:
            return 0.0
        assert self.outputs.original is not None
        assert self.outputs.deployed is not None
        return min(margin(self.outputs.original), margin(self.outputs.deployed))


@dataclass
class Run:
    """What a search asked: `queries` of the device, `host` inputs of the original alone, `trips` inputs a request.

    `kept_back` are inputs meant for both models on which the original's margin is below the floor.
    `outcome` is None where a non-finite answer to both models ended the search.
    """

    asks: list[Ask] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    trips: list[int] = field(default_factory=list)
    host: int = 0
    kept_back: int = 0
    outcome: Outcome | None = None

    @property
    def gave_up(self) -> bool:
        return self.outcome is not None and self.outcome.sample is None

    @property
    def found(self) -> Sample:
        assert self.outcome is not None
        assert self.outcome.sample is not None
        return self.outcome.sample

    @property
    def samples(self) -> list[Sample]:
        return [sample for ask in self.asks for sample in ask.samples]

    @property
    def first(self) -> int:
        """How many queries it took up to the first deviation, its own included."""
        return next(place for place, one in enumerate(self.queries, 1) if one.severity > 0)

    @property
    def severest(self) -> float:
        return max(one.severity for one in self.queries)


def played(
    steps: Generator[Ask, Answer, Ending], pair: Pair, run: Run, most: int = MANY
) -> Ending | None:
    """Answer questions as the scheduler does, to their end; None where a non-finite answer ends them.

    Fails after `most` of them.
    """
    answer: Answer | None = None
    while True:
        try:
            ask = next(steps) if answer is None else steps.send(answer)
        except StopIteration as stop:
            ending: Ending = stop.value
            return ending
        run.asks.append(ask)
        if ask.want == "gradient":
            assert isinstance(pair.original, Affine)
            run.host += len(ask.classes) * len(ask.samples)
            nothing = [Outputs(None, None, Decision.UNDECIDED)] * len(ask.samples)
            found = [pair.original.gradient(one, ask.classes) for one in ask.samples]
            answer = Answer(nothing, found)
            continue
        answer = Answer([_answered(pair, ask, sample, run) for sample in ask.samples])
        if ask.of == "both":
            run.trips.append(len(ask.samples))
        assert run.host + len(run.queries) < most, "this search does not end"
        if any(outputs.decision is Decision.NONFINITE for outputs in answer.outputs):
            return None


def asked_of(pair: Pair, steps: Generator[Ask, Answer, Ending]) -> Ending:
    """Answer questions to the original alone, to their end."""
    run = Run()
    ending = played(steps, pair, run)
    assert not run.queries
    return ending  # type: ignore[return-value]


def search(pair: Pair, seed: Seed, number: int = 0, most: int = MANY, **options: Any) -> Run:
    """Search from a seed with the strategy `boundary`, by least-l2 of 16 directions unless said otherwise."""
    options = {"crossing": "least-l2", "effort": 16, **options}
    run = Run()
    strategy = build_strategy("boundary", options)
    run.outcome = played(strategy(seed, np.random.default_rng(number)), pair, run, most)
    return run


def _answered(pair: Pair, ask: Ask, sample: Sample, run: Run) -> Outputs:
    if ask.of == "original":
        run.host += 1
        return Outputs(pair.original(sample), None, Decision.UNDECIDED)
    outputs = pair.outputs(sample)
    assert outputs.original is not None
    if pair.floor > 0 and margin(outputs.original) < pair.floor:
        run.kept_back += 1
        return Outputs(outputs.original, None, Decision.BELOW_FLOOR)
    run.queries.append(Query(sample, outputs))
    return outputs


WEIGHTS = np.random.default_rng(0).normal(size=(64, 4)) / 100


def softmax(logits: Scores) -> Scores:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


class Linear:
    """A classifier of 8 x 8 x 1 images; `step` rounds its weights, as a quantised copy would."""

    def __init__(self, step: float = 0.0) -> None:
        self.weights = np.round(WEIGHTS / step) * step if step else WEIGHTS

    def one(self, sample: Sample) -> Scores:
        return softmax(sample.reshape(-1).astype(np.float64) @ self.weights)

    def scores(self, samples: Sequence[Sample]) -> list[Scores]:
        return [self.one(sample) for sample in samples]

    def answer(self, samples: Sequence[Sample]) -> tuple[list[Scores], list[float]]:
        return self.scores(samples), []


class Device:
    """Answers from threads of its own, in an order of its own; always there.

    The first answer comes when `hold` requests wait (after a minute, where they never do).
    """

    state = DeviceState.UP
    away_s = 0.0
    detail = ""
    depth = 4

    def __init__(
        self, model: Linear, *, seconds: float = 0.0, name: str = "board", hold: int = 0
    ) -> None:
        self.name = name
        self.model = model
        self.seconds = seconds
        self.pool = ThreadPoolExecutor(3)
        self.shuffle = random.Random(0)
        self.waiting = 0
        self.most_waiting = 0
        self.hold = hold
        self.held = threading.Event()
        self.lock = threading.Lock()

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        with self.lock:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
            pause = self.shuffle.random() * 2e-3
            if self.waiting >= self.hold:
                self.held.set()
        return self.pool.submit(self._answer, samples, pause)

    def give_up(self, error: EdgeFlareError) -> None:
        raise error

    def withdraw(self) -> None:
        raise AssertionError("this device is never away")

    def _answer(self, samples: Sequence[Sample], pause: float) -> Reply:
        self.held.wait(60)
        threading.Event().wait(pause)
        with self.lock:
            self.waiting -= 1
        return Reply(self.model.scores(samples), [self.seconds] * len(samples))


class Shelf:
    """A store of samples in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Sample] = {}

    def put_sample(self, sample: Sample) -> str:
        digest = hashlib.sha256(sample.tobytes()).hexdigest()
        self.kept[digest] = sample.copy()
        return digest

    def get_sample(self, digest: str) -> Sample:
        return self.kept[digest]


def make_seeds(count: int, original: Linear, deployed: Linear) -> list[Seed]:
    rng = np.random.default_rng(9)
    seeds = []
    while len(seeds) < count:
        sample = rng.integers(0, 256, (8, 8, 1), dtype=np.uint8)
        answers = original.one(sample), deployed.one(sample)
        outputs = Outputs(*answers, LabelOracle().decide(*answers))
        if outputs.decision == "agree":
            seeds.append(Seed(f"s{len(seeds)}", sample, outputs))
    return seeds


SURE = (0.9, 0.05)


def heard(text: str, unsure: Mapping[int, tuple[float, float]] | None = None) -> Transcript:
    """A transcript of these words; `unsure` gives, by place, the probabilities of a word and of the next best."""
    pieces = tuple(f" {word}" for word in text.split())
    scores = [(unsure or {}).get(place, SURE) for place in range(len(pieces))]
    return Transcript(pieces, np.array(scores, np.float64).reshape(-1, 2))


class Listener:
    """A recogniser of two words, the second by the mean loudness of a clip, "quiet" or "loud".

    `edge`: where the one becomes the other. How sure it is grows with the distance from there.
    """

    def __init__(self, edge: float) -> None:
        self.edge = edge

    def one(self, sample: Sample) -> Transcript:
        beyond = float(np.abs(sample.astype(np.float64)).mean()) - self.edge
        sure = 0.5 + min(abs(beyond), 0.5)
        word = "loud" if beyond >= 0 else "quiet"
        return heard(f"it's {word}", {1: (sure, 1 - sure)})

    def scores(self, samples: Sequence[Sample]) -> list[Transcript]:
        return [self.one(sample) for sample in samples]

    def answer(self, samples: Sequence[Sample]) -> tuple[list[Transcript], list[float]]:
        return self.scores(samples), []


class ListeningDevice:
    """A device with a `Listener`; always there."""

    name = "board"
    state = DeviceState.UP
    away_s = 0.0
    detail = ""
    depth = 2

    def __init__(self, model: Listener) -> None:
        self.model = model
        self.asked: list[Sample] = []
        self._pool = ThreadPoolExecutor(1)

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        self.asked += samples
        answers = self.model.scores(samples)
        return self._pool.submit(Reply, answers, [0.01] * len(samples))

    def give_up(self, error: EdgeFlareError) -> None:
        raise error

    def withdraw(self) -> None:
        raise AssertionError("this device is never away")


RATE = 8000
WORDS = 4
LOUD, SOFT = (" one", " two", " three", " four"), (" won", " too", " free", " for")


@dataclass(frozen=True)
class Hearer:
    """Hears as many words as the recording has quarters, each by whether its power is above a threshold.

    `thresholds`, float64 [4], in decibels; a word's margin grows with the distance from it.
    """

    thresholds: Any

    def __call__(self, sample: Sample) -> Transcript:
        parts = np.array_split(sample.astype(np.float64), WORDS)
        power = np.array([10 * np.log10(np.mean(part**2) + 1e-9) for part in parts])
        ahead = power - self.thresholds
        chosen = 1 / (1 + np.exp(-np.abs(ahead)))
        pieces = tuple(
            (LOUD if one > 0 else SOFT)[place] for place, one in enumerate(ahead.tolist())
        )
        return Transcript(pieces, np.stack([chosen, 1 - chosen], axis=1))


def recording(number: int, seconds: float = 0.5) -> Sample:
    """Noise of four loudnesses that sounds like speech to a `Hearer`."""
    rng = np.random.default_rng((number, 8))
    size = int(RATE * seconds)
    loudness = np.repeat(10 ** rng.uniform(-1.4, -0.6, WORDS), -(-size // WORDS))[:size]
    noise = np.convolve(rng.standard_normal(size), np.ones(4) / 2, "same")
    return np.clip(noise * loudness, -1, 1).astype(np.float32)


def hearers(drift: float, number: int = 0) -> tuple[Hearer, Hearer]:
    """An original and a deployed one, whose thresholds are off by `drift` decibels either way."""
    thresholds = np.array([-24.0, -22.0, -20.0, -23.0])
    signs = np.random.default_rng(number).choice([-1.0, 1.0], WORDS)
    return Hearer(thresholds), Hearer(thresholds + drift * signs)


@dataclass(frozen=True)
class LightReader:
    """Reads as many words as an image has stripes of a quarter of its width, each by whether it is light.

    `thresholds`, float64 [4], in levels; a word's margin grows with the distance from it.
    """

    thresholds: Any

    def __call__(self, sample: Sample) -> Transcript:
        stripes = np.array_split(sample.astype(np.float64), WORDS, axis=1)
        ahead = (np.array([one.mean() for one in stripes]) - self.thresholds) / 8
        chosen = 1 / (1 + np.exp(-np.abs(ahead)))
        pieces = tuple(
            (LOUD if one > 0 else SOFT)[place] for place, one in enumerate(ahead.tolist())
        )
        return Transcript(pieces, np.stack([chosen, 1 - chosen], axis=1))


def text_of_light(drift: float) -> tuple[LightReader, LightReader]:
    """An original and a deployed one, whose thresholds are off by `drift` levels either way."""
    thresholds = np.array([120.0, 130.0, 110.0, 125.0])
    return LightReader(thresholds), LightReader(thresholds + drift * np.array([1, -1, 1, -1]))


class Listened(Searched):
    """Searches on two models that return text; the device is not asked where the original is unsure."""

    def __init__(
        self,
        original: Callable[[Sample], Transcript],
        deployed: Callable[[Sample], Transcript],
        floor: float = 1e-3,
    ) -> None:
        super().__init__(original, deployed, TranscriptOracle(floor))
        self.kept_back = 0

    def seed(self, sample: Sample) -> Seed:
        floor = self.oracle.floor
        return Seed("a", sample, self.outputs(sample), margin_floor=floor, rate=RATE)

    def listen(
        self, sample: Sample, number: int = 0, operators: tuple[str, ...] = (), **options: Any
    ) -> Self:
        strategy = build_strategy("boundary", options, operators)
        return self.answer(strategy(self.seed(sample), np.random.default_rng(number)))

    def answer_to(self, sample: Sample, of: str) -> Outputs:
        if of != "original":
            original = self.original(sample)
            sure = decision_margin(original)
            if sure is not None and sure < self.oracle.floor:
                self.kept_back += 1
                return Outputs(original, None, Decision.BELOW_FLOOR)
        return super().answer_to(sample, of)

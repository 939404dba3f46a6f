"""Small models whose decision boundary is known, and a search driven beside them without a campaign."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from edgeflare.oracles import LabelOracle
from edgeflare.search import build_strategy
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
            "a",
            sample,
            self.outputs(sample),
            others=others,
            labels_only=self.labels_only,
            margin_floor=self.floor,
            known=answers,
        )


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

"""Small models that answer with detections or values, and searches on them without a campaign."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from edgeflare.answers.oracles import DetectionOracle, Oracle, ToleranceOracle
from edgeflare.strategies import build_strategy
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    DetectionRules,
    Detections,
    Outcome,
    Output,
    Outputs,
    Sample,
    Search,
    Seed,
    ValueRules,
    Values,
)

SIDE = 96
CELLS = 3
RULES = DetectionRules(confidence=0.5)


@dataclass(frozen=True)
class Detector:
    """A detector of bright cells of a grid of 3 x 3: class 0 where red, 1 where blue is brighter.

    A deployed copy has `bias`, float64 [3, 3], added to the log-odds, and scores in multiples of
    `grain` (0: exact). Without places (`rules.located`) each cell is a class of its own.
    """

    bias: NDArray[np.float64]
    grain: float = 0.0
    rules: DetectionRules = RULES

    def __call__(self, sample: Sample) -> Detections:
        cells = sample.reshape(CELLS, SIDE // CELLS, CELLS, SIDE // CELLS, 3).astype(np.float64)
        means = cells.mean(axis=(1, 3))
        odds = (means.mean(axis=2) - 128.0) / 16.0 + self.bias
        scores = (1 / (1 + np.exp(-odds))).ravel()
        if self.grain:
            scores = np.round(scores / self.grain) * self.grain
        places = np.arange(CELLS) / CELLS
        left, top = (one.ravel() for one in np.meshgrid(places, places))
        boxes = np.stack([left, top, left + 1 / CELLS, top + 1 / CELLS], axis=1)
        labels = (means[..., 2] > means[..., 0]).astype(np.int64).ravel()
        if not self.rules.located:
            labels = np.arange(CELLS**2)
        order = np.argsort(-scores, kind="stable")
        return Detections(boxes[order], labels[order], scores[order], self.rules)


def detectors(
    drift: float = 0.2, grain: float = 1 / 64, number: int = 0, *, located: bool = True
) -> tuple[Detector, Detector]:
    """An original and a copy of it whose log-odds are off by about `drift`, other ones in each cell."""
    rules = RULES._replace(located=located)
    bias = drift * np.random.default_rng(number).standard_normal((CELLS, CELLS))
    return Detector(np.zeros((CELLS, CELLS)), rules=rules), Detector(bias, grain, rules)


@dataclass(frozen=True)
class Regressor:
    """A vector of the smooth responses of random projections; a copy has rounded weights."""

    weights: NDArray[np.float64]
    rules: ValueRules = field(default_factory=ValueRules)

    def __call__(self, sample: Sample) -> Values:
        pixels = sample.reshape(8, SIDE // 8, 8, SIDE // 8, 3).mean(axis=(1, 3)).ravel() / 255.0
        return Values(np.tanh((pixels - 0.5) @ self.weights), self.rules)


def regressors(step: float = 0.1, rules: ValueRules | None = None) -> tuple[Regressor, Regressor]:
    """An original and a copy of it whose weights are multiples of `step`."""
    weights = np.random.default_rng(3).standard_normal((192, 6)) / 4
    rounded = np.round(weights / step) * step
    rules = rules or ValueRules()
    return Regressor(weights, rules), Regressor(rounded, rules)


def photographs(count: int, number: int = 0) -> list[Sample]:
    """Images of coloured cells with noise."""
    rng = np.random.default_rng((number, 11))
    side = SIDE // CELLS
    found = []
    for _ in range(count):
        cells = rng.uniform(70, 190, (CELLS, 1, CELLS, 1, 3)) + np.zeros((1, side, 1, side, 1))
        noisy = cells.reshape(SIDE, SIDE, 3) + rng.normal(0, 6, (SIDE, SIDE, 3))
        found.append(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
    return found


@dataclass
class Searched:
    """Searches on two models of any answers: what they asked, and how the last one ended.

    `outcome` is None where a non-finite answer, or the budget of `most` device queries, ended it.
    """

    original: Callable[[Sample], Output]
    deployed: Callable[[Sample], Output]
    oracle: Oracle
    most: int = 400
    asks: list[Ask] = field(default_factory=list)
    queries: list[tuple[Sample, Outputs]] = field(default_factory=list)
    host: int = 0
    outcome: Outcome | None = None

    def outputs(self, sample: Sample) -> Outputs:
        answers = self.original(sample), self.deployed(sample)
        return Outputs(*answers, self.oracle.decide(*answers))

    def seed(self, sample: Sample) -> Seed:
        return Seed(
            "a",
            sample,
            self.outputs(sample),
            others=photographs(4, 9),
            margin_floor=self.oracle.floor,
        )

    def search(self, name: str, sample: Sample, number: int = 0, **options: Any) -> Self:
        steps = build_strategy(name, options)(self.seed(sample), np.random.default_rng(number))
        return self.answer(steps)

    def answer(self, steps: Search) -> Self:
        """Answer a search's requests to its end."""
        answer: Answer | None = None
        while self.host < 20_000:
            try:
                ask = next(steps) if answer is None else steps.send(answer)
            except StopIteration as stop:
                self.outcome = stop.value
                return self
            self.asks.append(ask)
            if ask.of != "original" and len(self.queries) + len(ask.samples) > self.most:
                self.outcome = ask.best
                return self
            answer = Answer([self.answer_to(one, of=ask.of) for one in ask.samples])
            if any(one.decision is Decision.NONFINITE for one in answer.outputs):
                return self
        raise AssertionError("this search does not end")

    def answer_to(self, sample: Sample, of: str) -> Outputs:
        """Answer to one input, and count it."""
        if of == "original":
            self.host += 1
            return Outputs(self.original(sample), None, Decision.UNDECIDED)
        outputs = self.outputs(sample)
        self.queries.append((sample, outputs))
        return outputs

    @property
    def found(self) -> Sample:
        assert self.outcome is not None
        assert self.outcome.sample is not None
        return self.outcome.sample


def of_detectors(original: Detector, deployed: Detector, floor: float = 1e-3) -> Searched:
    return Searched(original, deployed, DetectionOracle(floor))


def of_regressors(original: Regressor, deployed: Regressor, tolerance: float = 0.1) -> Searched:
    return Searched(original, deployed, ToleranceOracle(tolerance))


def agreed(models: Searched, count: int = 6) -> list[Sample]:
    """Images on which both models agree."""
    found = [one for one in photographs(80) if models.outputs(one).decision is Decision.AGREE]
    assert len(found) >= count
    return found[:count]

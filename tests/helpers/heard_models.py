"""A stand-in for a recogniser: each stretch of a recording is a word by how loud it is, beside what is known of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflare.oracles import TranscriptOracle, margin
from edgeflare.search import build_strategy
from edgeflare.types import Answer, Ask, Decision, Outcome, Outputs, Sample, Seed, Transcript

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


@dataclass
class Listened:
    """A search beside two recognisers: what it asked, and how it ended (None: a non-finite answer ended it)."""

    original: Callable[[Sample], Transcript]
    deployed: Callable[[Sample], Transcript]
    floor: float = 1e-3

    def __post_init__(self) -> None:
        self.asks: list[Ask] = []
        self.queries: list[tuple[Sample, Outputs]] = []
        self.host = 0
        self.kept_back = 0
        self.outcome: Outcome | None = None
        self._oracle = TranscriptOracle(self.floor)

    def outputs(self, sample: Sample) -> Outputs:
        answers = self.original(sample), self.deployed(sample)
        return Outputs(*answers, self._oracle.decide(*answers))

    def seed(self, sample: Sample) -> Seed:
        return Seed("a", sample, self.outputs(sample), margin_floor=self.floor, rate=RATE)

    def search(
        self, sample: Sample, number: int = 0, operators: tuple[str, ...] = (), **options: Any
    ) -> "Listened":
        strategy = build_strategy("boundary", options, operators)
        steps = strategy(self.seed(sample), np.random.default_rng(number))
        answer: Answer | None = None
        while self.host < 5000:
            try:
                ask = next(steps) if answer is None else steps.send(answer)
            except StopIteration as stop:
                self.outcome = stop.value
                return self
            self.asks.append(ask)
            answer = Answer([self._answered(ask, one) for one in ask.samples])
            if any(one.decision is Decision.NONFINITE for one in answer.outputs):
                return self
        raise AssertionError("this search does not end")

    @property
    def found(self) -> Sample:
        assert self.outcome is not None
        assert self.outcome.sample is not None
        return self.outcome.sample

    def _answered(self, ask: Ask, sample: Sample) -> Outputs:
        if ask.of == "original":
            self.host += 1
            return Outputs(self.original(sample), None, Decision.UNDECIDED)
        outputs = self.outputs(sample)
        assert outputs.original is not None
        sure = margin(outputs.original)
        if sure is not None and sure < self.floor:
            self.kept_back += 1
            return Outputs(outputs.original, None, Decision.BELOW_FLOOR)
        self.queries.append((sample, outputs))
        return outputs

"""Transcripts for tests, a token a word, and models of audio that hear by how loud a clip is."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from edgeflare.devices import Reply, State
from edgeflare.types import Sample, Transcript

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
    state = State.UP
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

    def withdraw(self) -> None:
        raise AssertionError("this device is never away")

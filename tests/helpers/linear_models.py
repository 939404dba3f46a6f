"""A small linear classifier, devices that answer out of order, and a vault in memory, for the scheduler."""

import hashlib
import random
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from edgeflare.devices import Reply, State
from edgeflare.oracles import LabelOracle
from edgeflare.types import Outputs, Sample, Scores, Seed

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
    """Answers from threads of its own, in an order of its own; always there."""

    state = State.UP
    away_s = 0.0
    detail = ""
    depth = 4

    def __init__(self, model: Linear, *, seconds: float = 0.0, name: str = "board") -> None:
        self.name = name
        self.model = model
        self.seconds = seconds
        self.pool = ThreadPoolExecutor(3)
        self.shuffle = random.Random(0)
        self.waiting = 0
        self.most_waiting = 0
        self.lock = threading.Lock()

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        with self.lock:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
            pause = self.shuffle.random() * 2e-3
        return self.pool.submit(self._answer, samples, pause)

    def withdraw(self) -> None:
        raise AssertionError("this device is never away")

    def _answer(self, samples: Sequence[Sample], pause: float) -> Reply:
        threading.Event().wait(pause)
        with self.lock:
            self.waiting -= 1
        return Reply(self.model.scores(samples), [self.seconds] * len(samples))


class Shelf:
    """A vault in memory."""

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

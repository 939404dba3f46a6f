"""A deployed model that equals the original but for a planted fault, asked by a pursuit."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

import edgeflare
from edgeflare.survey.features import FeatureSet
from edgeflare.survey.proposals import Inputs, propose
from edgeflare.survey.pursuit import (
    Answered,
    Pursued,
    PursuitOptions,
    Reply,
    Round,
    Screen,
    Screened,
    pursue,
)
from edgeflare.types import Sample

ASSETS = Path(edgeflare.__file__).parent / "assets"
SURE = 0.3

Faulty = Callable[[Sample, int], bool]
"""Whether the deployed model is wrong on a sample that the original gives this class."""


class PlantedFault:
    """The shipped LeNet-5, and the same with another answer wherever `faulty` holds.

    `asked`: samples the deployed model was given, in order; `rounds` those of a pursuit.
    """

    def __init__(self, faulty: Faulty, inputs: Inputs) -> None:
        self._faulty = faulty
        self._session = onnxruntime.InferenceSession(
            str(ASSETS / "mnist" / "lenet5.onnx"), providers=["CPUExecutionProvider"]
        )
        self.inputs = inputs
        self.features = FeatureSet(inputs.seeds[0].shape, classes=10)
        self.asked: list[Sample] = []
        self.rounds: list[Round] = []

    def scores(self, samples: Sequence[Sample]) -> NDArray[np.float64]:
        """Return the original's probabilities: float64 [samples, 10]."""
        prepared = np.array(samples, np.float32).transpose(0, 3, 1, 2) / 255
        raw: Any = self._session.run(None, {"image": prepared})[0]
        return np.asarray(raw, np.float64)

    def screened(self, samples: Sequence[Sample]) -> list[Screened]:
        """Return the original's margins and classes."""
        scores = self.scores(samples)
        ordered = np.sort(scores, axis=1)
        return [
            Screened(float(margin), int(label))
            for margin, label in zip(
                ordered[:, -1] - ordered[:, -2], scores.argmax(axis=1), strict=True
            )
        ]

    def replies(self, samples: Sequence[Sample]) -> list[Reply]:
        """Return what the deployed model's answers amount to."""
        self.asked += samples
        return [
            Reply(self._faulty(sample, one.label or 0), one.margin)
            for sample, one in zip(samples, self.screened(samples), strict=True)
        ]

    def survey(self, rng: np.random.Generator, count: int) -> list[Answered]:
        """Return answers on inputs of any family on which the original is sure."""
        made = [one for one, _ in propose(rng, self.inputs, [], 3 * count)]
        samples = [self.inputs.sample(one) for one in made]
        sure = [
            (one, sample, original.label)
            for one, sample, original in zip(made, samples, self.screened(samples), strict=True)
            if original.margin >= SURE
        ][:count]
        replies = self.replies([sample for _, sample, _ in sure])
        return [
            Answered(one, self.features.of(sample, label), *reply)
            for (one, sample, label), reply in zip(sure, replies, strict=True)
        ]

    def pursue(
        self, surveyed: Sequence[Answered], rng: np.random.Generator, queries: int
    ) -> tuple[Pursued, ...]:
        """Run a pursuit to its end; return what it found."""
        pursuit = pursue(surveyed, self.inputs, self.features, PursuitOptions(queries, SURE), rng)
        reply: Any = None
        while True:
            try:
                request = next(pursuit) if reply is None else pursuit.send(reply)
            except StopIteration as stop:
                found: tuple[Pursued, ...] = stop.value
                return found
            if isinstance(request, Screen):
                reply = self.screened(request.samples)
            else:
                self.rounds.append(request)
                reply = self.replies(request.samples)

    def accuracy(self, pursued: Pursued, rng: np.random.Generator) -> tuple[float, float]:
        """Return precision and recall of a condition on 400 inputs that no pursuit saw."""
        fresh = self.survey(rng, 400)
        assert pursued.condition is not None
        inside = pursued.condition.holds(np.array([one.features for one in fresh]))
        wrong = np.array([one.deviates for one in fresh])
        return float(wrong[inside].mean()), float(inside[wrong].mean())


def demo_images(count: int) -> list[Sample]:
    """Return the first demo images: uint8 [28, 28, 1]."""
    with np.load(ASSETS / "demo" / "seeds.npz", allow_pickle=False) as archive:
        images = archive["images"][:count]
    return list(images.reshape(-1, 28, 28, 1))

"""Deployed models that equal the original but for a planted fault in a region of the input."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import edgeflare
import edgeflare_bench
from edgeflare.survey.features import FeatureSet
from edgeflare.survey.proposals import Derivation, Inputs, propose
from edgeflare.survey.pursuit import (
    Answered,
    PursuitResult,
    Reply,
    Round,
    Screen,
    Screened,
    pursue,
)
from edgeflare.types import Sample

ASSETS = Path(edgeflare.__file__).parent / "assets"
BENCH_ASSETS = Path(edgeflare_bench.__file__).parent / "assets"
SURE = 0.3

Faulty = Callable[[Sample, int], bool]
"""Whether the deployed model is wrong on a sample that the original gives this class."""


class PlantedFault:
    """The shipped LeNet-5, and the same with another answer wherever `faulty` holds.

    Where `drifts` does, the total variation is .4, else .01.

    `asked`: samples the deployed model was given, in order; `rounds` those of a pursuit.
    """

    def __init__(
        self,
        faulty: Faulty,
        inputs: Inputs,
        drifts: Faulty = lambda sample, label: False,
        rate: int | None = None,
    ) -> None:
        self._faulty = faulty
        self._drifts = drifts
        self._session = onnxruntime.InferenceSession(
            str(BENCH_ASSETS / "mnist" / "lenet5.onnx"), providers=["CPUExecutionProvider"]
        )
        self.inputs = inputs
        self.features = FeatureSet(inputs.seeds[0].shape, rate, 10)
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
        margins = ordered[:, -1] - ordered[:, -2]
        return [
            Screened(float(margin), int(one.argmax()), one)
            for margin, one in zip(margins, scores, strict=True)
        ]

    def replies(self, samples: Sequence[Sample]) -> list[Reply]:
        """Return what the deployed model's answers amount to."""
        self.asked += samples
        return [
            Reply(
                self._faulty(sample, one.label or 0),
                one.margin,
                0.4 if self._drifts(sample, one.label or 0) else 0.01,
            )
            for sample, one in zip(samples, self.screened(samples), strict=True)
        ]

    def survey(self, rng: np.random.Generator, count: int) -> list[Answered]:
        """Return answers on inputs of any family on which the original is sure."""
        made = [one for one, _ in propose(rng, self.inputs, [], 3 * count)]
        sure: list[tuple[Derivation, Sample, Screened]] = []
        for at in range(0, len(made), 32):
            some = made[at : at + 32]
            samples = [self.inputs.sample(one) for one in some]
            sure += [
                (one, sample, original)
                for one, sample, original in zip(some, samples, self.screened(samples), strict=True)
                if original.margin >= SURE
            ]
            if len(sure) >= count:
                break
        sure = sure[:count]
        replies = self.replies([sample for _, sample, _ in sure])
        return [
            Answered(
                one, self.features.of(sample, original.label), *reply, original=original.output
            )
            for (one, sample, original), reply in zip(sure, replies, strict=True)
        ]

    def pursue(
        self, surveyed: Sequence[Answered], rng: np.random.Generator, queries: int
    ) -> tuple[PursuitResult, ...]:
        """Run a pursuit to its end; return what it found."""
        pursuit = pursue(surveyed, self.inputs, self.features, queries, SURE, rng)
        reply: Any = None
        while True:
            try:
                request = next(pursuit) if reply is None else pursuit.send(reply)
            except StopIteration as stop:
                found: tuple[PursuitResult, ...] = stop.value
                return found
            if isinstance(request, Screen):
                reply = self.screened(request.samples)
            else:
                self.rounds.append(request)
                reply = self.replies(request.samples)

    def accuracy(self, pursued: PursuitResult, rng: np.random.Generator) -> tuple[float, float]:
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


REGIONS = {
    "dark": "brightest pixel below 100",
    "corner": "darkest pixel of the top left corner",
    "right columns": "right column",
    "bottom row": "bottom row",
    "contrast": "contrast (standard deviation) at least",
    "lifted": "darkest pixel at least",
    "class 3": "the original's answer is 3",
}
"""Planted regions, and what a right description of each has in it."""


class _Graph:
    """Nodes and constants that are added to a model."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node; arrays among its inputs become constants. Return its output's name."""
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        name = f"planted_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [name], **attributes))
        return name

    def _constant(self, value: Any) -> str:
        name = f"planted_constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name


def planted_model(
    source: Path, target: Path, region: str, mean: Sequence[float] = (), std: Sequence[float] = ()
) -> None:
    """Write an ONNX classifier of 10 classes that answers wrongly in one of the `REGIONS`.

    The class of each answer there is the one after the right class. `mean` and `std`, in levels of
    255: how the input is normalised, by channel; else it is levels / 255.
    """
    model = onnx.load(str(source))
    graph, added = model.graph, _Graph()
    output = graph.output[0].name
    clean = f"{output}_clean"
    for node in graph.node:
        node.output[:] = [clean if one == output else one for one in node.output]
        node.input[:] = [clean if one == output else one for one in node.input]
    first = graph.input[0].type.tensor_type.shape.dim[1].dim_value in (1, 3)
    shape = (1, -1, 1, 1) if first else (1, 1, 1, -1)
    scale = np.array(std or [255.0], np.float32).reshape(shape)
    offset = np.array(mean or [0.0], np.float32).reshape(shape)
    scaled = added.add("Mul", graph.input[0].name, scale)
    levels = added.add("Add", scaled, offset)
    rows, columns = (2, 3) if first else (1, 2)
    wrong = _planted(added, levels, clean, region, rows, columns)
    mask = added.add("Unsqueeze", wrong, np.array([1], np.int64))
    moved = added.add("Gather", clean, np.array([9, *range(9)], np.int64), axis=1)
    added.nodes.append(helper.make_node("Where", [mask, moved, clean], [output]))
    graph.node.extend(added.nodes)
    graph.initializer.extend(added.constants)
    onnx.save(model, str(target))


def _planted(added: _Graph, levels: str, clean: str, region: str, rows: int, columns: int) -> str:
    """Add the condition of a region: bool [batch]. Needs operators of opset 13 to 17."""
    all_axes = [1, 2, 3]

    def part(low: Sequence[int], high: Sequence[int]) -> str:
        ends = (np.array(one, np.int64) for one in (low, high, [rows, columns]))
        return added.add("Slice", levels, *ends)

    def reduced(operator: str, values: str) -> str:
        return added.add(operator, values, axes=all_axes, keepdims=0)

    most = np.iinfo(np.int64).max
    if region == "class 3":
        top = added.add("ArgMax", clean, axis=1, keepdims=0)
        return added.add("Equal", top, np.array(3, np.int64))
    if region == "dark":
        return added.add("Less", reduced("ReduceMax", levels), np.float32(99.5))
    if region == "corner":
        value, limit = reduced("ReduceMin", part([0, 0], [3, 3])), 249.5
    elif region == "right columns":
        value, limit = reduced("ReduceMean", part([0, -2], [most, most])), 128
    elif region == "bottom row":
        value, limit = reduced("ReduceMean", part([-1, 0], [most, most])), 100
    elif region == "lifted":
        value, limit = reduced("ReduceMin", levels), 59.5
    else:
        squares = reduced("ReduceMean", added.add("Mul", levels, levels))
        mean = reduced("ReduceMean", levels)
        value, limit = added.add("Sub", squares, added.add("Mul", mean, mean)), 95**2
    return added.add("Greater", value, np.float32(limit))

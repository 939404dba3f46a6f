"""A small classifier of random weights, images for it, changes to its file, and pairs to triage."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgeflare.models import InputSpec
from edgeflare.triage.cause import Triage
from edgeflare.triage.model import ModelFile
from edgeflare.triage.pair import Pair, PairSeeds
from edgeflare.triage.run import triage

SIZE, CLASSES = 16, 6
SPEC = InputSpec(
    shape=(1, 3, SIZE, SIZE),
    dtype="float32",
    size=(SIZE, SIZE),
    channels=3,
    layout="CHW",
    scale=(1.0, 255.0),
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
)
Fault = Callable[[onnx.ModelProto], None]


def network(seed: int = 0) -> onnx.ModelProto:
    """A classifier of random weights: two convolutions, a mean over space, a dense layer."""
    rng = np.random.default_rng(seed)

    def weights(name: str, *shape: int) -> onnx.TensorProto:
        size = float(np.prod(shape[1:])) or 1.0
        values = (
            rng.normal(0, 1.5 / size**0.5, shape) if len(shape) > 1 else rng.normal(0, 0.3, shape)
        )
        return numpy_helper.from_array(values.astype(np.float32), name)

    nodes = [
        helper.make_node(
            "Conv", ["image", "k1", "b1"], ["c1"], "conv1", pads=[1] * 4, strides=[2, 2]
        ),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "k2", "b2"], ["c2"], "conv2", pads=[1] * 4, strides=[2, 2]),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("Flatten", ["r2"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "k3", "b3"], ["logits"], "dense"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, SIZE, SIZE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES])],
        [
            *(weights("k1", 12, 3, 3, 3), weights("b1", 12)),
            *(weights("k2", 16, 12, 3, 3), weights("b2", 16)),
            *(weights("k3", 256, CLASSES), weights("b3", CLASSES)),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def images(count: int = 30, seed: int = 1) -> list[np.ndarray]:
    """Coloured gradients with noise, so that colours, axes and brightness all matter."""
    rng = np.random.default_rng(seed)
    along = np.linspace(0, 1, SIZE)
    found = []
    for _ in range(count):
        corners = rng.uniform(0, 200, (3, 3))
        image = (
            corners[0] + along[:, None, None] * corners[1] + along[None, :, None] ** 2 * corners[2]
        )
        found.append(np.clip(image + rng.normal(0, 12, image.shape), 0, 255).astype(np.uint8))
    return found


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Fault:
    def apply(model: onnx.ModelProto) -> None:
        (weights,) = (one for one in model.graph.initializer if one.name == name)
        values = change(numpy_helper.to_array(weights).copy())
        weights.CopyFrom(numpy_helper.from_array(values.astype(np.float32), name))

    return apply


def attribute(node: str, name: str, value: Any) -> Fault:
    def apply(model: onnx.ModelProto) -> None:
        (operator,) = (one for one in model.graph.node if one.name == node)
        kept = [one for one in operator.attribute if one.name != name]
        del operator.attribute[:]
        operator.attribute.extend([*kept, helper.make_attribute(name, value)])

    return apply


def ending(kind: str, *constants: np.ndarray, **attributes: Any) -> Fault:
    """Put an operator behind the logits."""

    def apply(model: onnx.ModelProto) -> None:
        graph = model.graph
        graph.node[-1].output[0] = "before"
        names = [f"constant{place}" for place in range(len(constants))]
        for name, values in zip(names, constants, strict=True):
            graph.initializer.append(numpy_helper.from_array(values, name))
        graph.node.append(
            helper.make_node(kind, ["before", *names], ["logits"], "last", **attributes)
        )

    return apply


def pair_of(original: Path, deployed: Path, **others: Any) -> Pair:
    files = [
        ModelFile(side, path, "onnx", {}, SPEC)
        for side, path in (("original", original), ("deployed", deployed))
    ]
    files[1] = replace(files[1], spec=others.pop("spec", SPEC))
    seeds = PairSeeds(others.pop("samples", None) or images(), **others)
    return Pair((files[0], files[1]), seeds)


def triaged(original: Path, folder: Path, fault: Fault, **others: Any) -> Triage:
    model = onnx.load(original)
    fault(model)
    onnx.save(model, folder / "deployed.onnx")
    return triage(pair_of(original, folder / "deployed.onnx", **others))

"""A small original of the suite of everyday faults, with random weights, and a healthy pair of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import prepare
from edgeflare_bench.everyday.planted import deployed_as
from edgeflare_bench.everyday.records import EverydayOriginal, EverydayPair, input_spec
from edgeflare_bench.everyday.tasks import CLASSIFICATION
from edgeflare_bench.faults.originals import observe

CLASSES, SIDE = 5, 16
INPUT: Mapping[str, str] = {
    "scale": "1/255",
    "mean": "0.485,0.456,0.406",
    "std": "0.229,0.224,0.225",
}


def small_everyday(folder: Path) -> EverydayOriginal:
    """Images 16 x 16 of three colours; three convolutions, one of them in a residual block, and softmax.

    Its labels are its own answers, so that it is always right.
    """
    rng = np.random.default_rng(5)

    def weights(name: str, *shape: int) -> Any:
        scale = 1.5 / np.sqrt(np.prod(shape[1:]))
        return numpy_helper.from_array((rng.normal(size=shape) * scale).astype(np.float32), name)

    constants = [
        *(weights("w1", 8, 3, 3, 3), weights("b1", 8), weights("w2", 8, 8, 3, 3)),
        *(weights("b2", 8), weights("w3", 12, 8, 3, 3), weights("b3", 12)),
        *(weights("w4", CLASSES, 12 * 16), weights("b4", CLASSES)),
    ]
    padded = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], "conv1", strides=[2, 2], **padded),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], "conv2", **padded),
        helper.make_node("Add", ["c2", "r1"], ["joined"], "join"),
        helper.make_node("Relu", ["joined"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["p2"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p2", "w3", "b3"], ["c3"], "conv3", **padded),
        helper.make_node("Relu", ["c3"], ["r3"], "relu3"),
        helper.make_node("Flatten", ["r3"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "w4", "b4"], ["logits"], "dense", transB=1),
        helper.make_node("Softmax", ["logits"], ["scores"], "softmax", axis=-1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])
    scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", CLASSES])
    model = helper.make_model(
        helper.make_graph(nodes, "small", [image], [scores], constants),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    samples = list(_images(rng, 64))
    spec = input_spec(TensorInfo("image", (1, 3, SIDE, SIDE), "float32"), INPUT)
    inputs = np.concatenate([prepare(sample, spec) for sample in [*samples, *_images(rng, 32)]])
    logits = observe(model, ["logits"], inputs)["logits"]
    factors = 2 / logits.std(axis=0)  # of classes that all win now and then
    weight, bias = map(numpy_helper.to_array, constants[-2:])
    balanced = {"w4": weight * factors[:, None], "b4": (bias - logits.mean(axis=0)) * factors}
    for tensor in [tensor for tensor in model.graph.initializer if tensor.name in balanced]:
        tensor.CopyFrom(numpy_helper.from_array(balanced[tensor.name], tensor.name))
    labels = [int(row.argmax()) for row in observe(model, ["scores"], inputs[:64])["scores"]]
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_value = 1
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save_model(model, folder / "small.onnx")
    return EverydayOriginal(
        *("small", model, folder / "small.onnx", samples, labels, INPUT),
        *(CLASSIFICATION, inputs[64:]),
    )


def _images(rng: np.random.Generator, count: int) -> Any:
    """Return images of one colour each that runs to another, with a little noise."""
    ends = rng.random((2, count, 1, 1, 3))
    down, along = np.mgrid[:SIDE, :SIDE][..., None] / (SIDE - 1)
    share = down * rng.random((count, 1, 1, 1)) + along * rng.random((count, 1, 1, 1))
    images = ends[0] * share / 2 + ends[1] * (1 - share / 2) + rng.normal(0, 0.05, share.shape)
    return np.rint(np.clip(images, 0, 1) * 255).astype(np.uint8)


def healthy_pair(original: EverydayOriginal, folder: Path, variant: str = "a") -> EverydayPair:
    """Return an original and what the int8 quantiser makes of it."""
    path = folder / f"healthy-{variant}.onnx"
    onnx.save_model(deployed_as(original.model, "int8", original.calibration), path)
    return EverydayPair(
        *(f"small/quantiser/{variant}", "quantiser", original.path, path, "small", INPUT, INPUT),
        *(original.samples, original.labels, original.kind),
    )

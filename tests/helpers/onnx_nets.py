"""Small float ONNX models with seeded weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper


def saved(
    path: Path,
    nodes: Sequence[Any],
    constants: dict[str, np.ndarray],
    shape: Sequence[int],
    output: str = "y",
) -> Path:
    graph = helper.make_graph(
        nodes,
        "made",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.ValueInfoProto(name=output)],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(model, str(path))
    return path


def convolutional(path: Path, kinds: Sequence[str]) -> Path:
    """A net without biases: convolution, activation, pooling, a skip connection, dense."""
    activation, pool = kinds
    rng = np.random.default_rng(1)
    constants = {
        "w1": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "w2": rng.normal(size=(4, 4, 3, 3)).astype(np.float32),
        "w3": rng.normal(size=(64, 5)).astype(np.float32),
    }
    pads, window = [1, 1, 1, 1], {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], pads=pads),
        helper.make_node(activation, ["c1"], ["r1"]),
        helper.make_node(pool, ["r1"], ["p1"], **window),
        helper.make_node("Conv", ["p1", "w2"], ["c2"], pads=pads),
        helper.make_node("Add", ["c2", "p1"], ["s"]),
        helper.make_node(activation, ["s"], ["r2"]),
        helper.make_node("Flatten", ["r2"], ["f"]),
        helper.make_node("MatMul", ["f", "w3"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    return saved(path, nodes, constants, [1, 3, 8, 8])

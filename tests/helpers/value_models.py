"""Small ONNX models of images [1, 3, 8, 8] for each task beyond labels and boxes, and photographs for them."""

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper
from small_models import save_onnx

SIZE, CLASSES, VALUES = 8, 4, 5
_TAILS = {
    "first": ([("Identity", {})], [1, CLASSES, SIZE, SIZE], TensorProto.FLOAT),
    "last": ([("Transpose", {"perm": [0, 2, 3, 1]})], [1, SIZE, SIZE, CLASSES], TensorProto.FLOAT),
    "labels": ([("ArgMax", {"axis": 1, "keepdims": 0})], [1, SIZE, SIZE], TensorProto.INT64),
    "roots": ([("Sqrt", {})], [1, CLASSES, SIZE, SIZE], TensorProto.FLOAT),
    "vector": ([("Flatten", {}), ("MatMul", {})], [1, VALUES], TensorProto.FLOAT),
    "tags": ([("Flatten", {}), ("MatMul", {}), ("Sigmoid", {})], [1, VALUES], TensorProto.FLOAT),
    "binary": ([("Flatten", {}), ("MatMul", {}), ("Sigmoid", {})], [1, 1], TensorProto.FLOAT),
    "scores": ([("Flatten", {}), ("MatMul", {}), ("Softmax", {})], [1, VALUES], TensorProto.FLOAT),
}


def value_onnx(path: Path, kind: str, coarse: bool = False, inputs: int = 1) -> Path:
    """Write a convolution and a tail.

    `kind`: maps with channels "first" or "last", of "labels", of "roots" that are NaN below 0;
    "vector", "tags", "binary" and "scores" of classes. `coarse`: with rounded weights. With two
    `inputs` the second, `gain` [1, 1], multiplies the maps.
    """
    tail, shape, dtype = _TAILS[kind]
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(CLASSES, 3, 3, 3)).astype(np.float32)
    dense = rng.normal(size=(CLASSES * SIZE * SIZE, VALUES)).astype(np.float32) / 8
    if coarse:
        weights = np.round(weights * 2) / 2
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["maps"], pads=[1] * 4),
        helper.make_node("Mul", ["maps", "gain"], ["t0"]),
    ]
    for place, (operator, attributes) in enumerate(tail):
        to = "y" if place == len(tail) - 1 else f"t{place + 1}"
        of = [f"t{place}", *(["dense"] if operator == "MatMul" else [])]
        nodes.append(helper.make_node(operator, of, [to], **attributes))
    constants = {"w": weights, "dense": dense[:, : shape[-1] if kind == "binary" else VALUES]}
    entries = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, SIZE, SIZE])]
    if inputs == 1:
        constants["gain"] = np.ones((1, 1), np.float32)
    else:
        entries.append(helper.make_tensor_value_info("gain", TensorProto.FLOAT, [1, 1]))
    metadata = {"edgeflare.input": '{"scale": "1/255"}'}
    output = helper.make_tensor_value_info("y", dtype, shape)
    return save_onnx(path, nodes, entries, [output], constants, metadata)


def value_pair(folder: Path, kind: str, inputs: int = 1) -> tuple[Path, Path]:
    """Write an original and its copy with rounded weights."""
    first = value_onnx(folder / f"{kind}.onnx", kind, inputs=inputs)
    return first, value_onnx(folder / f"{kind}_coarse.onnx", kind, coarse=True, inputs=inputs)


def photographs(path: Path, count: int = 4) -> Path:
    """Write seeds, uint8 [count, 8, 8, 3], each of one hue with a little noise."""
    rng = np.random.default_rng(5)
    hues = rng.integers(40, 216, (count, 1, 1, 3))
    images = np.clip(hues + rng.normal(0, 12, (count, SIZE, SIZE, 3)), 0, 255).astype(np.uint8)
    np.savez(path, images=images)
    return path

"""A small original of the fault suite, with random weights."""

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from edgeflare_bench.faults import Original
from edgeflare_bench.faults.originals import observe


def small_original() -> Original:
    """Images 8 x 8 of three colours; two convolutions (padded), a dense layer, softmax."""
    rng = np.random.default_rng(2)

    def weights(name: str, *shape: int) -> Any:
        scale = 3 / np.sqrt(np.prod(shape[1:]))
        return numpy_helper.from_array((rng.normal(size=shape) * scale).astype(np.float32), name)

    constants = [
        *(weights("w1", 6, 3, 3, 3), weights("b1", 6), weights("w2", 8, 6, 3, 3)),
        *(weights("b2", 8), weights("w3", 8 * 64, 5)),
    ]
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["t", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"]),
        helper.make_node("Flatten", ["r2"], ["f"]),
        helper.make_node("MatMul", ["f", "w3"], ["m"]),
        helper.make_node("Sub", ["m", "mean"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"], axis=-1),
    ]
    constants.append(numpy_helper.from_array(np.zeros(5, np.float32), "mean"))
    shape = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8, 8, 3])
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])
    model = helper.make_model(
        helper.make_graph(nodes, "small", [shape], [output], constants),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    images = rng.random((40, 8, 8, 3)).astype(np.float32) ** 2
    mean = observe(model, ["m"], images)["m"].mean(0)
    model.graph.initializer[-1].CopyFrom(
        numpy_helper.from_array(mean, "mean")
    )  # no class always wins
    small, large = np.zeros((1, 1, 1, 1), np.float32), np.ones((1, 1, 1, 1), np.float32)
    return Original("small", model, images, small, large, "NHWC")

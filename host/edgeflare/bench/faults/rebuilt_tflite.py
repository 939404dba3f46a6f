"""A float TFLite classifier rebuilt as ONNX, so that faults can be planted into it."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from edgeflare._internal import extras


def rebuilt(path: Path) -> Any:
    """Return the ONNX model of a float TFLite chain of convolutions, one pool and a dense layer.

    Convolutions, also depthwise ones, are padded as "same" and followed by Relu, the pool takes the
    mean of the whole map, the scores go through softmax. Input: [N, height, width, channels].

    Differences: weights stored in int8 become the real numbers that they stand for, and all is
    computed in float. TFLite, for such weights, rounds a layer's input to int8, too.
    """
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    onnx = extras.onnx()
    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = Interpreter(str(path), experimental_op_resolver_type=plain)
    interpreter.allocate_tensors()
    tensors = {one["index"]: one for one in interpreter.get_tensor_details()}
    nodes: list[Any] = []
    constants: list[Any] = []

    def weights(index: int) -> npt.NDArray[np.float32]:
        return _real(interpreter.get_tensor(index), tensors[index]["quantization_parameters"])

    def constant(values: npt.NDArray[Any]) -> str:
        name = f"constant_{len(constants)}"
        constants.append(onnx.numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def add(kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(nodes)}"
        nodes.append(onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    last = add("Transpose", "input", perm=[0, 3, 1, 2])
    for layer in interpreter._get_ops_details():
        kind, (given, *rest) = layer["op_name"], (int(one) for one in layer["inputs"])
        made = int(layer["outputs"][0])
        if kind in {"CONV_2D", "DEPTHWISE_CONV_2D"}:
            depthwise = kind.startswith("DEPTH")
            kernel = weights(rest[0]).transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))
            strides, pads = _window(
                tensors[given]["shape"][1:3], tensors[made]["shape"][1:3], kernel.shape[2:]
            )
            group = kernel.shape[0] if depthwise else 1
            names = constant(kernel), constant(weights(rest[1]))
            last = add("Conv", last, *names, strides=strides, pads=pads, group=group)
            last = add("Relu", last)
        elif kind == "AVERAGE_POOL_2D":
            last = add("Flatten", add("GlobalAveragePool", last))
        elif kind == "FULLY_CONNECTED":
            dense = constant(weights(rest[0]).T), constant(weights(rest[1]))
            last = add("Gemm", last, *dense)
        elif kind == "SOFTMAX":
            nodes.append(onnx.helper.make_node("Softmax", [last], ["output"], axis=-1))
            break
    (entry,), (end,) = interpreter.get_input_details(), interpreter.get_output_details()
    graph = onnx.helper.make_graph(
        nodes,
        path.stem,
        [onnx.helper.make_tensor_value_info("input", 1, ["n", *map(int, entry["shape"][1:])])],
        [onnx.helper.make_tensor_value_info("output", 1, ["n", int(end["shape"][1])])],
        constants,
    )
    opset = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)


def _real(values: npt.NDArray[Any], quantisation: Any) -> npt.NDArray[np.float32]:
    if not len(quantisation["scales"]):
        return np.asarray(values, np.float32)
    shape = [1] * values.ndim
    if len(quantisation["scales"]) > 1:
        shape[quantisation["quantized_dimension"]] = -1
    zeros = quantisation["zero_points"].reshape(shape)
    return np.asarray(
        (values - zeros.astype(np.float32)) * quantisation["scales"].reshape(shape), np.float32
    )


def _window(before: Any, after: Any, kernel: Any) -> tuple[list[int], list[int]]:
    """Return strides and pads (ONNX's order) of "same" from the sizes of a layer's maps."""
    strides = [-(-int(one) // int(other)) for one, other in zip(before, after, strict=True)]
    sizes = zip(before, after, strides, kernel, strict=True)
    total = [max((int(new) - 1) * stride + side - int(old), 0) for old, new, stride, side in sizes]
    return strides, [*(one // 2 for one in total), *(one - one // 2 for one in total)]

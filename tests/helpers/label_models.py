"""Deployed models that tell a label alone: a model's copy with coarse weights that ends in an ArgMax."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "uint8": TensorProto.UINT8,
    "int8": TensorProto.INT8,
    "float32": TensorProto.FLOAT,
}


def label_onnx(
    original: Path,
    path: Path,
    *,
    bits: int = 4,
    dtype: str = "int64",
    shape: tuple[int | str, ...] = (1,),
    offset: int = 0,
) -> Path:
    """Write an ONNX model's copy, its weights rounded to so many bits, whose output is the class index.

    The index, plus `offset`, has this dtype and shape: () is a scalar, a name an open axis.
    """
    model = onnx.load(original)
    for tensor in model.graph.initializer:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype == np.float32 and weights.ndim > 1:
            step = np.abs(weights).max() / (2 ** (bits - 1) - 1)
            rounded = (np.round(weights / step) * step).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(rounded, tensor.name))
    scores = model.graph.output[0].name
    sizes = [-1 if isinstance(size, str) else size for size in shape]
    constants = {"label_shape": np.array(sizes, np.int64), "offset": np.array(offset, np.int64)}
    model.graph.initializer.extend(
        numpy_helper.from_array(value, name) for name, value in constants.items()
    )
    model.graph.node.extend(
        [
            helper.make_node("ArgMax", [scores], ["index"], axis=-1, keepdims=0),
            helper.make_node("Add", ["index", "offset"], ["moved"]),
            helper.make_node("Cast", ["moved"], ["cast"], to=TYPES[dtype]),
            helper.make_node("Reshape", ["cast", "label_shape"], ["label"]),
        ]
    )
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("label", TYPES[dtype], list(shape)))
    onnx.save(model, path)
    return path


def label_tflite(original: Path, path: Path) -> Path:
    """Write a TFLite model's copy whose output is its class index, int32 [1]."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(original.read_bytes(), 0)
    graph = model.subgraphs[0]

    def add(name: str, shape: list[int], kind: int, content: bytes = b"") -> int:
        tensor: Any = schema.TensorT()
        tensor.name, tensor.shape, tensor.type = name, shape, kind
        if content:
            buffer: Any = schema.BufferT()
            buffer.data = list(content)
            model.buffers.append(buffer)
            tensor.buffer = len(model.buffers) - 1
        graph.tensors.append(tensor)
        return len(graph.tensors) - 1

    code: Any = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.ARG_MAX
    code.version = 2
    model.operatorCodes.append(code)
    options: Any = schema.ArgMaxOptionsT()
    options.outputType = schema.TensorType.INT32
    operator: Any = schema.OperatorT()
    operator.opcodeIndex = len(model.operatorCodes) - 1
    axis = add("axis", [1], schema.TensorType.INT32, np.array([1], "<i4").tobytes())
    label = add("label", [1], schema.TensorType.INT32)
    operator.inputs, operator.outputs = [int(graph.outputs[0]), axis], [label]
    operator.builtinOptionsType = schema.BuiltinOptions.ArgMaxOptions
    operator.builtinOptions = options
    graph.operators.append(operator)
    graph.outputs = [label]
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path

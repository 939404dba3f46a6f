"""Small models for tests: the project's TFLite files, and ONNX files built here."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TFLITE = Path(__file__).resolve().parents[1] / "data" / "tflite"
ONNX_TYPES = {
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "float64": TensorProto.DOUBLE,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
}


def flat_weights() -> np.ndarray:
    """The ONNX models' only weights: float32 [64, 4]."""
    return np.random.default_rng(1).normal(size=(64, 4)).astype(np.float32)


def save_onnx(
    path: Path,
    nodes: list[Any],
    inputs: list[Any],
    outputs: list[Any],
    constants: dict[str, np.ndarray] | None = None,
    metadata: dict[str, str] | None = None,
) -> Path:
    graph = helper.make_graph(
        nodes,
        "test",
        inputs,
        outputs,
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())
    return path


def dense_onnx(path: Path, shape: list[Any], dtype: str = "float32", softmax: bool = True) -> Path:
    """x -> cast, flatten to [n, 64], times the weights, softmax; integers are pixels."""
    nodes = [
        helper.make_node("Cast", ["x"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["real", "rows"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["sums"]),
        helper.make_node("Softmax" if softmax else "Identity", ["sums"], ["y"]),
    ]
    return save_onnx(
        path,
        nodes,
        [helper.make_tensor_value_info("x", ONNX_TYPES[dtype], shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], 4])],
        {"rows": np.array([-1, 64]), "w": flat_weights()},
        {"edgeflare.input": '{"scale": "1/255"}'},
    )


def endless_onnx(path: Path, rounds: int = 10**12, above: float = -1.0) -> Path:
    """What `dense_onnx` makes, after so many rounds of a loop: for pixels the first of which is above `above`, else none."""
    real, whole = TensorProto.FLOAT, TensorProto.INT64
    body = helper.make_graph(
        [
            helper.make_node("Sin", ["sum_in"], ["sum_out"]),
            helper.make_node("Identity", ["go_in"], ["go_out"]),
        ],
        "round",
        [
            helper.make_tensor_value_info("round", whole, []),
            helper.make_tensor_value_info("go_in", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum_in", real, [1, 4]),
        ],
        [
            helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum_out", real, [1, 4]),
        ],
    )
    nodes = [
        helper.make_node("Reshape", ["x", "rows"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["sums"]),
        helper.make_node("Gather", ["flat", "first"], ["pixels"], axis=1),
        helper.make_node("Squeeze", ["pixels"], ["pixel"]),
        helper.make_node("Greater", ["pixel", "above"], ["go"]),
        helper.make_node("Loop", ["rounds", "go", "sums"], ["y"], body=body),
    ]
    return save_onnx(
        path,
        nodes,
        [helper.make_tensor_value_info("x", real, [1, 8, 8, 1])],
        [helper.make_tensor_value_info("y", real, [1, 4])],
        {
            "rows": np.array([-1, 64]),
            "w": flat_weights(),
            "first": np.array([0]),
            "above": np.array(above, np.float32),
            "rounds": np.array(rounds),
        },
        {"edgeflare.input": '{"scale": "1/255"}'},
    )


def quantized_onnx(path: Path, dtype: str) -> Path:
    """Integers in, integers out: de-quantise, dense, softmax, quantise."""
    zero = np.array(np.iinfo(dtype).min, dtype)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "step_in", "zero"], ["real"]),
        helper.make_node("Reshape", ["real", "rows"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w"], ["sums"]),
        helper.make_node("Softmax", ["sums"], ["shares"]),
        helper.make_node("QuantizeLinear", ["shares", "step_out", "zero"], ["y"]),
    ]
    return save_onnx(
        path,
        nodes,
        [helper.make_tensor_value_info("x", ONNX_TYPES[dtype], [1, 8, 8, 1])],
        [helper.make_tensor_value_info("y", ONNX_TYPES[dtype], [1, 4])],
        {
            "rows": np.array([-1, 64]),
            "w": flat_weights(),
            "zero": zero,
            "step_in": np.array(1 / 255, np.float32),
            "step_out": np.array(1 / 256, np.float32),
        },
    )


def two_inputs_onnx(path: Path) -> Path:
    described = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("a", "b", "y")
    ]
    return save_onnx(
        path, [helper.make_node("Add", ["a", "b"], ["y"])], described[:2], described[2:]
    )


def open_axis_tflite(path: Path, axis: int) -> Path:
    """``float.tflite`` with one axis of its input declared open (0: the batch; its output too)."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf((TFLITE / "float.tflite").read_bytes(), 0)
    graph = model.subgraphs[0]
    for index in (graph.inputs[0], graph.outputs[0])[: 2 if axis == 0 else 1]:
        tensor = graph.tensors[index]
        tensor.shapeSignature = list(tensor.shape)
        tensor.shapeSignature[axis] = -1
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def running_sum_tflite(path: Path) -> Path:
    """y = the sum of every x so far, 1x4 float32, kept in a resource variable."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    def tensor(name: str, shape: list[int], kind: int, buffer: int = 0) -> Any:
        made = schema.TensorT()
        made.name, made.shape, made.type, made.buffer = name, shape, kind, buffer
        return made

    def operator(name: str, inputs: list[int], outputs: list[int], options: Any) -> Any:
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = names.index(name), inputs, outputs
        made.builtinOptions = options
        made.builtinOptionsType = getattr(
            schema.BuiltinOptions, type(options).__name__.removesuffix("T")
        )
        return made

    def graph(tensors: list[Any], inputs: list[int], outputs: list[int], steps: list[Any]) -> Any:
        made = schema.SubGraphT()
        made.tensors, made.inputs, made.outputs, made.operators = tensors, inputs, outputs, steps
        return made

    names = ["CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ADD", "ASSIGN_VARIABLE"]
    real, resource = schema.TensorType.FLOAT32, schema.TensorType.RESOURCE
    variable, once = schema.VarHandleOptionsT(), schema.CallOnceOptionsT()
    variable.sharedName, variable.container, once.initSubgraphIndex = "sum", "", 1
    assign = schema.AssignVariableOptionsT()
    model = schema.ModelT()
    model.version = 3
    model.operatorCodes = []
    for name in names:
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        model.operatorCodes.append(code)
    model.buffers = [schema.BufferT(), schema.BufferT()]
    model.buffers[1].data = [0] * 16
    handle = tensor("handle", [], resource)
    main = [tensor("x", [1, 4], real), handle, tensor("before", [1, 4], real)]
    model.subgraphs = [
        graph(
            [*main, tensor("y", [1, 4], real)],
            [0],
            [3],
            [
                operator("CALL_ONCE", [], [], once),
                operator("VAR_HANDLE", [], [1], variable),
                operator("READ_VARIABLE", [1], [2], schema.ReadVariableOptionsT()),
                operator("ADD", [0, 2], [3], schema.AddOptionsT()),
                operator("ASSIGN_VARIABLE", [1, 3], [], assign),
            ],
        ),
        graph(
            [handle, tensor("zero", [1, 4], real, 1)],
            [],
            [],
            [
                operator("VAR_HANDLE", [], [0], variable),
                operator("ASSIGN_VARIABLE", [0, 1], [], assign),
            ],
        ),
    ]
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


BUILDERS: dict[str, Callable[[Path], Path]] = {
    "float": lambda path: dense_onnx(path, [1, 8, 8, 1]),
    "flat": lambda path: dense_onnx(path, [1, 64], softmax=False),
    "open_batch": lambda path: dense_onnx(path, ["batch", 8, 8, 1]),
    "int8": lambda path: quantized_onnx(path, "int8"),
    "uint8": lambda path: quantized_onnx(path, "uint8"),
    "two_inputs": two_inputs_onnx,
    **{
        f"pixels_{dtype}": lambda path, dtype=dtype: dense_onnx(path, [1, 8, 8, 1], dtype)
        for dtype in ONNX_TYPES
    },
}

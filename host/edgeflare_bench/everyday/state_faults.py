"""A TFLite file that keeps its last answer, and adds it to the next one."""

import math
from importlib import import_module
from typing import Any


def keeps_state(file: bytes) -> bytes:
    """Return a float TFLite file with one output whose answers depend on the answer before.

    The state is a resource variable, as converters make of a stateful layer: it lives as long as the
    interpreter.
    """
    schema: Any = import_module("ai_edge_litert.schema_py_generated")
    flatbuffers: Any = import_module("flatbuffers")
    model = schema.ModelT.InitFromPackedBuf(file, 0)
    graph = model.subgraphs[0]
    (output,) = graph.outputs
    shape = [int(info) for info in graph.tensors[output].shape]

    def tensor(name: str, kind: int, buffer: int = 0) -> Any:
        entry = schema.TensorT()
        entry.name, entry.shape, entry.type, entry.buffer = name, shape, kind, buffer
        if kind == schema.TensorType.RESOURCE:
            entry.shape = []
        return entry

    def operator(name: str, inputs: list[int], outputs: list[int], options: Any) -> Any:
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        model.operatorCodes.append(code)
        entry = schema.OperatorT()
        entry.opcodeIndex = len(model.operatorCodes) - 1
        entry.inputs, entry.outputs, entry.builtinOptions = inputs, outputs, options
        kind = type(options).__name__[:-1]
        entry.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
        return entry

    handles, once = schema.VarHandleOptionsT(), schema.CallOnceOptionsT()
    handles.sharedName, handles.container = "last answer", ""
    once.initSubgraphIndex = len(model.subgraphs)
    zeros = schema.BufferT()
    zeros.data = [0] * (4 * math.prod(shape))
    model.buffers.append(zeros)
    real, resource = schema.TensorType.FLOAT32, schema.TensorType.RESOURCE
    handle, before, after = (len(graph.tensors) + number for number in range(3))
    graph.tensors += [tensor("handle", resource), tensor("before", real), tensor("summed", real)]
    reading, assign = schema.ReadVariableOptionsT(), schema.AssignVariableOptionsT()
    graph.operators += [
        operator("CALL_ONCE", [], [], once),
        operator("VAR_HANDLE", [], [handle], handles),
        operator("READ_VARIABLE", [handle], [before], reading),
        operator("ADD", [output, before], [after], schema.AddOptionsT()),
        operator("ASSIGN_VARIABLE", [handle, output], [], assign),
    ]
    # The first answer needs a variable that has a value: another graph, called once, sets it to zeros.
    graph.outputs = [after]
    first = schema.SubGraphT()
    first.tensors = [
        tensor("handle", resource),
        tensor("zeros", real, len(model.buffers) - 1),
    ]
    first.inputs, first.outputs, first.name = [], [], "begin"
    first.operators = [
        operator("VAR_HANDLE", [], [0], handles),
        operator("ASSIGN_VARIABLE", [0, 1], [], assign),
    ]
    model.subgraphs.append(first)
    # Interpreters that are asked by a signature would else answer without the state.
    for signature in model.signatureDefs or []:
        for named in signature.outputs:
            named.tensorIndex = after if named.tensorIndex == output else named.tensorIndex
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())

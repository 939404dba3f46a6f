"""ONNX models as graphs, run by onnxruntime."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from graphlib import CycleError, TopologicalSorter
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare._internal.text import reason
from edgeflare.errors import ModelError, UsageError
from edgeflare.models.tensors.graph import (
    ACTIVATIONS,
    ROUNDING,
    Grid,
    ModelGraph,
    Operator,
    Probe,
    Probed,
    SubModel,
    UnitActivations,
    Values,
    of_activations,
    on_grid,
)
from edgeflare_agent.runtimes.onnx import library_errors, session_settings

_SCALE_OF_OUTPUT: Mapping[str, int] = {
    "QuantizeLinear": 1,
    "QLinearConv": 6,
    "QLinearMatMul": 6,
    "QLinearAdd": 6,
    "QLinearMul": 6,
    "QGemm": 7,
    "QLinearConcat": 0,
    "QLinearAveragePool": 3,
    "QLinearGlobalAveragePool": 3,
    "QLinearLeakyRelu": 3,
    "QLinearSigmoid": 3,
    "QLinearSoftmax": 3,
}
"""Which input is the output's scale; the zero point follows it."""
_KEEPING_VALUES = {
    *("MaxPool", "Relu", "Clip", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze"),
    *("Identity", "Slice", "Split", "DequantizeLinear"),
}
"""Operators whose outputs lie on the grid of their input."""
_QUANTISING = frozenset(["QuantizeLinear", "DynamicQuantizeLinear", "DequantizeLinear"])
_HALF = ("float16", "bfloat16")
_INTEGERS: Mapping[str, str] = {
    **{name: name for name in ("int4", "uint4", "int8", "uint8", "int16")},
    "uint16": "int16",
}
_UNITS_LAST = {"MatMul", "QLinearMatMul", "LayerNormalization"}
"""Operators whose units are the elements of the last axis."""
_BY_ELEMENT = ACTIVATIONS | ROUNDING | {"Add", "Cast", "Div", "Dropout", "Identity", "Mul", "Sub"}
"""Operators that leave each unit where it is."""
_AXES_ARE_INPUT = 18
"""From this opset on, what reduces a tensor has its axes as an input, before as an attribute."""
_REDUCTIONS = ("ReduceMean", "ReduceMin", "ReduceMax")
_TRACED_BYTES = 256 << 20
"""Tensors of one input that are held at once when all are traced; one that is larger comes alone."""
_OF_UNKNOWN_SIZE = 32
"""How many are held at once where no shape can be told."""
_PROBE = "edgeflare probe"
"""What the names of a probe's own tensors begin with."""


def _in_order(nodes: Sequence[Any]) -> list[Any]:
    """Return nodes each behind those that make its inputs, else as they stand in the file.

    The format asks for that order, and converters to half precision don't keep it: they append casts,
    and runtimes sort.
    """
    makers = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    before = {
        place: {makers[name] for name in node.input if name in makers}
        for place, node in enumerate(nodes)
    }
    try:
        if all(maker < place for place, needed in before.items() for maker in needed):
            return list(nodes)
        return [nodes[place] for place in TopologicalSorter(before).static_order()]
    except CycleError:
        return list(nodes)


class OnnxGraph(ModelGraph):
    """An ``.onnx`` file; tensors have the names that they have in the file."""

    def __init__(self, path: Path, options: Mapping[str, Any], output: str | None) -> None:
        """Read the file. Raises UsageError without onnx, ModelError for what is no such file."""
        self._onnx = extras.onnx()
        self._path = path
        self._options = {"threads": 1, "graph_optimization": "all", "exact_int8": False, **options}
        try:
            self._model = self._onnx.load_model(str(path))
        except Exception as error:
            # protobuf's own words name its message, not what is wrong with the file
            why = "" if type(error).__name__ == "DecodeError" else f": {reason(error)}"
            raise ModelError(f"{path.name} is no ONNX file that can be read{why}") from error
        graph = self._model.graph
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].HasField("t"):
                self._constants[node.output[0]] = node.attribute[0].t
        self.inputs = [tensor.name for tensor in graph.input if tensor.name not in self._constants]
        self.outputs = [tensor.name for tensor in graph.output]
        self.output = output or self.outputs[0]
        self._nodes = _in_order(graph.node)
        for node in self._nodes:
            if any(attribute.HasField("g") for attribute in node.attribute):
                raise ModelError(
                    f"{path.name} has an operator with a graph of its own ({node.op_type})"
                )
        self.operations = of_activations(self.operators, self.inputs, self.output, path.name)
        self.grids = self._read_grids()
        self._reading: tuple[Sequence[str], Any] = ((), None)

    @cached_property
    def operators(self) -> list[Operator]:
        """All operators, with their attributes but for tensors; the format's defaults stand for those left out."""
        value = self._onnx.helper.get_attribute_value
        # the standard's domain has two names
        versions = {
            opset.domain.removeprefix("ai.onnx") or "": opset.version
            for opset in self._model.opset_import
        }

        @cache
        def defaults(kind: str, domain: str) -> dict[str, Any]:
            try:
                schema = self._onnx.defs.get_schema(kind, versions.get(domain, 1), domain)
            except self._onnx.defs.SchemaError:  # an operator of a runtime
                return {}
            stated = {name: each.default_value for name, each in schema.attributes.items()}
            return {name: _plain(value(each)) for name, each in stated.items() if each.type}

        return [
            Operator(
                node.op_type,
                node.name or node.output[0],
                tuple(node.input),
                tuple(node.output),
                defaults(node.op_type, node.domain)
                | {
                    attribute.name: _plain(value(attribute))
                    for attribute in node.attribute
                    if attribute.type != self._onnx.AttributeProto.TENSOR
                },
            )
            for node in self._nodes
        ]

    @cached_property
    def formats(self) -> frozenset[str]:
        """The dtypes of weights, of activations where operators quantise them."""
        quantising = any(
            node.op_type in _QUANTISING
            or node.op_type.startswith("QLinear")
            or node.op_type.endswith("Integer")
            for node in self._nodes
        )
        formats = {"float32"}
        for tensor in self._constants.values():
            dtype = self._dtype_of(tensor)
            if dtype in _HALF and prod(tensor.dims) > 1:
                formats.add(dtype)
            elif quantising and dtype in _INTEGERS:
                formats.add(_INTEGERS[dtype])
        if quantising and not formats & set(_INTEGERS.values()):
            formats.add("int8")
        return frozenset(formats)

    @cached_property
    def _weights(self) -> tuple[dict[str, Values], bool]:
        """Integers on a grid are under the name of what brings them to floats."""
        arrays = {name: self._array(tensor) for name, tensor in self._constants.items()}
        weights = {
            name: array.astype(np.float32)
            for name, array in arrays.items()
            if array.dtype.kind == "f"
        }
        per_channel = False
        for node in self._nodes:
            if node.op_type != "DequantizeLinear" or node.input[0] not in arrays:
                continue
            zero = arrays.get(node.input[2], 0) if len(node.input) > 2 else 0
            axis = next(
                (attribute.i for attribute in node.attribute if attribute.name == "axis"), 1
            )
            real, has_scales = on_grid(arrays[node.input[0]], arrays[node.input[1]], zero, axis)
            weights[node.output[0]] = real
            per_channel |= has_scales
        return weights, per_channel

    def _array(self, tensor: Any) -> NDArray[Any]:
        return np.asarray(self._onnx.numpy_helper.to_array(tensor, str(self._path.parent)))

    def _dtype_of(self, tensor: Any) -> str:
        return str(self._onnx.TensorProto.DataType.Name(tensor.data_type)).lower()

    def trace(self, tensors: Sequence[NDArray[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:  # noqa: D102
        return self.trace_several([tensors])

    def trace_several(  # noqa: D102
        self, runs: Sequence[Sequence[NDArray[Any]]]
    ) -> Iterator[tuple[str, NDArray[Any]]]:
        feeds = [dict(zip(self.inputs, tensors, strict=True)) for tensors in runs]
        for fed in feeds:
            yield from fed.items()
        for names in self._groups(feeds):
            # One session at a time, and none keeps what it needed: together they would hold more
            # than all tensors.
            session = self._session(self._handing_out(names), keeps_memory=False)
            for fed in feeds:
                for name, value in zip(names, self._run(session, fed), strict=True):
                    if isinstance(value, np.ndarray):  # not a list of tensors
                        yield name, self._real(name, value)

    def _groups(self, feeds: Sequence[Mapping[str, NDArray[Any]]]) -> list[list[str]]:
        """Return the names of all tensors, together as many as take `_TRACED_BYTES`, at least one."""
        sizes = self._sizes(feeds)
        # what a tensor counts whose size can't be told
        largest = max(sizes.values(), default=_TRACED_BYTES // _OF_UNKNOWN_SIZE)
        groups: list[list[str]] = []
        room = -1
        for operation in self.operations:
            for name in operation.outputs:
                room -= sizes.get(name, largest)
                if room < 0:
                    groups.append([])
                    room = _TRACED_BYTES - sizes.get(name, largest)
                groups[-1].append(name)
        return groups

    def _sizes(self, feeds: Sequence[Mapping[str, NDArray[Any]]]) -> dict[str, int]:
        """Return the bytes of tensors, as far as their shapes can be told with the largest of these inputs."""
        model = self._onnx.ModelProto()
        model.CopyFrom(self._model)
        for info in model.graph.input:
            shapes = [fed[info.name].shape for fed in feeds if info.name in fed]
            axes = info.type.tensor_type.shape.dim  # none where not even their number is stated
            for axis, lengths in zip(axes, zip(*shapes, strict=True), strict=False):
                axis.dim_value = max(lengths)
        try:
            inferred = self._onnx.shape_inference.infer_shapes(model)
        except (self._onnx.shape_inference.InferenceError, ValueError):
            return {}
        shapes_of = {
            info.name: [axis.dim_value for axis in info.type.tensor_type.shape.dim]
            for info in (*inferred.graph.value_info, *inferred.graph.output)
            if info.type.tensor_type.HasField("shape")
        }
        return {name: 4 * prod(shape) for name, shape in shapes_of.items() if all(shape)}

    def _handing_out(self, names: Iterable[str]) -> Any:
        """Return the model with these tensors as its outputs."""
        model = self._onnx.ModelProto()
        model.CopyFrom(self._model)
        del model.graph.output[:]
        model.graph.output.extend(self._onnx.ValueInfoProto(name=name) for name in names)
        return model

    def read(self, tensor: NDArray[Any], names: Iterable[str]) -> dict[str, Values]:  # noqa: D102
        probed = sorted({*names, self.output} - {self.input})
        if self._reading[0] != probed:
            self._reading = (probed, self._session(self._handing_out(probed)))
        values = dict(zip(probed, self._run(self._reading[1], {self.input: tensor}), strict=True))
        activations = {name: self._real(name, value) for name, value in values.items()}
        activations[self.output] = values[self.output]
        if self.input in names:
            activations[self.input] = tensor
        return activations

    def probe(self, names: Iterable[str]) -> Probe:
        """Return what computes the activations of tensors by units, one input after the other.

        A unit is an element of axis 1; after a MatMul one of the last axis, and the mean is over all
        others. Means, minima and maxima are taken within the graph, so that no tensor is handed
        out. Raises UsageError and ModelError as `ModelGraph.probe`; ModelError, too, where the tensor has no axis
        for units, or the runtime can't run the model with its probes.
        """
        probed = self._checked(names)
        model = self._onnx.ModelProto()
        model.CopyFrom(self._model)
        opsets = [opset for opset in model.opset_import if opset.domain in ("", "ai.onnx")]
        opset = opsets[0].version if opsets else _AXES_ARE_INPUT
        if not opsets:
            model.opset_import.append(self._onnx.helper.make_opsetid("", opset))
        results = [self.output]
        for place, name in enumerate(probed):
            nodes, reduced = self._reducing(name, f"{_PROBE}.{place}", opset)
            model.graph.node.extend(nodes)
            results += reduced
        if opset >= _AXES_ARE_INPUT:
            model.graph.initializer.extend(
                self._onnx.numpy_helper.from_array(np.array([axis]), f"{_PROBE}.axis{axis}")
                for axis in (0, 1)
            )
        del model.graph.output[:]
        model.graph.output.extend(self._onnx.ValueInfoProto(name=name) for name in results)
        session = self._session(model)
        grids = [self.grids[name] if name in self._integers else None for name in probed]

        def run(tensor: NDArray[Any]) -> Probed:
            output, *values = self._run(session, {self.input: tensor})
            activations = {}
            for place, (name, grid) in enumerate(zip(probed, grids, strict=True)):
                means, least, largest = values[3 * place : 3 * place + 3]
                if grid is not None:
                    means, least, largest = (
                        grid.real(integers) for integers in (means, least, largest)
                    )
                activations[name] = UnitActivations(means, float(least.min()), float(largest.max()))
            return Probed(activations, output)

        return run

    def _reducing(self, name: str, prefix: str, opset: int) -> tuple[list[Any], list[str]]:
        """Return operators that compute each unit's mean, minimum and maximum, and their outputs."""
        node = self._onnx.helper.make_node
        last = self.has_units_last(name)
        axis = 0 if last else 1
        rows, real = f"{prefix}.rows", f"{prefix}.real"
        nodes = [
            node("Cast", [name], [real], to=self._onnx.TensorProto.FLOAT),
            node("Flatten", [real], [rows], axis=-1 if last else 2),
        ]
        outputs = [f"{prefix}.{kind}" for kind in _REDUCTIONS]
        for kind, output in zip(_REDUCTIONS, outputs, strict=True):
            if opset >= _AXES_ARE_INPUT:
                nodes.append(node(kind, [rows, f"{_PROBE}.axis{axis}"], [output], keepdims=0))
            else:
                nodes.append(node(kind, [rows], [output], axes=[axis], keepdims=0))
        return nodes, outputs

    def has_units_last(self, name: str) -> bool:  # noqa: D102
        makers = {
            output: operation for operation in self.operations for output in operation.outputs
        }
        while name in makers and makers[name].kind in _BY_ELEMENT:
            name = makers[name].inputs[0]
        return name in makers and makers[name].kind in _UNITS_LAST

    def starting_at(self, names: Sequence[str]) -> SubModel:  # noqa: D102
        part = self.part_after(names)
        if part is None:
            raise UsageError(f"{', '.join(names)} don't suffice to compute {self.output}")
        produced = {name for operation in part[1] for name in operation.outputs}
        of_input = {name for operation in self.operations for name in operation.outputs}
        nodes = [
            node
            for node in self._nodes
            if produced & set(node.output) or not of_input & set(node.output)
        ]
        helper = self._onnx.helper
        dtypes = {name: self._dtype(name) for name in names}
        model = self._onnx.ModelProto()
        model.CopyFrom(self._model)
        for field in (model.graph.node, model.graph.input, model.graph.output):
            del field[:]
        model.graph.node.extend(nodes)
        model.graph.input.extend(
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), None)
            for name, dtype in dtypes.items()
        )
        model.graph.output.append(self._onnx.ValueInfoProto(name=self.output))
        session = self._session(model)

        def run(values: Sequence[Values]) -> NDArray[Any]:
            feeds = {}
            for name, value in zip(names, values, strict=True):
                stored = self.grids[name].quantized(value) if dtypes[name].kind in "iu" else value
                feeds[name] = stored.astype(dtypes[name])
            return np.asarray(self._run(session, feeds)[0])

        return run

    def _dtype(self, name: str) -> np.dtype[Any]:
        """Return the dtype of a tensor's values in the file."""
        return np.dtype(self.grids[name].dtype if name in self._integers else np.float32)

    def _read_grids(self) -> dict[str, Grid]:
        grids: dict[str, Grid] = {}
        self._integers: set[str] = set()
        for node in self._nodes:
            place = _SCALE_OF_OUTPUT.get(node.op_type)
            if place is not None:
                grid = self._grid(node.input[place], [*node.input, "", ""][place + 1])
                if grid is not None:
                    grids[node.output[0]] = grid
                    self._integers.add(node.output[0])
            elif node.op_type in _KEEPING_VALUES and node.input[0] in grids:
                grids.update((name, grids[node.input[0]]) for name in node.output if name)
                if node.op_type != "DequantizeLinear" and node.input[0] in self._integers:
                    self._integers.update(node.output)
        return grids

    def _grid(self, scale: str, zero_point: str) -> Grid | None:
        if scale not in self._constants:
            return None
        scales = self._onnx.numpy_helper.to_array(self._constants[scale]).reshape(-1)
        zero = np.zeros(1, np.uint8)
        if zero_point in self._constants:
            zero = self._onnx.numpy_helper.to_array(self._constants[zero_point]).reshape(-1)
        if len(scales) != 1 or zero.dtype.kind not in "iu":
            return None
        return Grid(float(scales[0]), int(zero[0]), zero.dtype.name)

    def _real(self, name: str, value: NDArray[Any]) -> Values:
        if value.dtype.kind in "iu" and name in self.grids:
            return self.grids[name].real(value)
        return np.asarray(value)

    def _session(self, model: Any, *, keeps_memory: bool = True) -> Any:
        import onnxruntime

        settings = session_settings(onnxruntime, self._options)
        settings.enable_cpu_mem_arena = keeps_memory
        try:
            return onnxruntime.InferenceSession(
                model.SerializeToString(),
                settings,
                providers=["CPUExecutionProvider"],
            )
        except library_errors() as error:
            raise self._failure(error) from error

    def _run(self, session: Any, feeds: Mapping[str, Any]) -> list[NDArray[Any]]:
        try:
            return list(session.run(None, feeds))
        except library_errors() as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> ModelError:
        first = next(iter(str(error).splitlines()), "")
        return ModelError(f"the tensors of {self._path.name} can't be read: {first}")


def _plain(value: Any) -> Any:
    """Return an attribute's value with texts in place of bytes."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return [_plain(entry) for entry in value] if isinstance(value, list | tuple) else value

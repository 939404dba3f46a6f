"""TFLite models as graphs, run by ai-edge-litert."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import counted
from edgeflare.errors import ModelError, UsageError
from edgeflare.models.tensors.graph import (
    Grid,
    ModelGraph,
    Operator,
    SubModel,
    Values,
    of_activations,
    on_grid,
)
from edgeflare_agent.runtimes import tflite

_IDENTIFIER = b"TFL3"
_INTEGERS = ("int4", "int8", "uint8", "int16")
_STORED = ("float32", "float16", "int8", "uint8", "int16", "int32")
"""Types of weights that are read."""
TENSORS = tflite.TENSORS
"""Name of the output in which a device sends all tensors, see `TFLiteGraph.split`."""


class TFLiteGraph(ModelGraph):
    """A ``.tflite`` file; of tensors with the same name the later ones have ``#index`` after it.

    Tensors are read with ``experimental_preserve_all_tensors``, by the kernels of the options; the
    one delegate is XNNPACK, where they allow it. Of several subgraphs only the first is read.
    Channels are the last axis. `layout` has, in the order of their indices, the name, shape and dtype of the input and of the
    tensors that operators make of it; `size` is the number of their bytes.
    """

    channels_last = True

    def __init__(self, path: Path, options: Mapping[str, Any], output: str | None) -> None:
        """Read the file. Raises ModelError for what is no such file."""
        self._path = path
        self._content = path.read_bytes()
        self._kernels = options.get("kernels", "default")
        self._by_xnnpack = options.get("delegate", True) is True
        self._reading = self._interpreter(self._content, preserve=True)
        details = self._reading.get_tensor_details()
        self._indices: dict[str, int] = {}
        for detail in details:
            name = str(detail["name"])
            if not name or name in self._indices:
                name = f"{name}#{detail['index']}"
            self._indices[name] = int(detail["index"])
        self._names = {index: name for name, index in self._indices.items()}
        inputs, outputs = self._reading.get_input_details(), self._reading.get_output_details()
        self.inputs = [self._names[detail["index"]] for detail in inputs]
        self.outputs = [self._names[detail["index"]] for detail in outputs]
        counted = [detail["index"] for detail in outputs if output in (None, str(detail["name"]))]
        if not counted:
            raise ModelError(f"{path.name} has no output {output!r}")
        self.output = self._names[counted[0]]
        self.grids = {
            self._names[detail["index"]]: Grid(
                float(detail["quantization_parameters"]["scales"][0]),
                int(detail["quantization_parameters"]["zero_points"][0]),
                np.dtype(detail["dtype"]).name,
            )
            for detail in details
            if len(detail["quantization_parameters"]["scales"]) == 1
            and np.dtype(detail["dtype"]).kind in "iu"
        }
        self.operations = of_activations(self.operators, self.inputs, self.output, path.name)
        kept = {*self.inputs, *(name for operator in self.operations for name in operator.outputs)}
        self.layout = [
            (name, tuple(int(n) for n in detail["shape"]), np.dtype(detail["dtype"]))
            for detail in details
            if (name := self._names[detail["index"]]) in kept
        ]
        self.size = sum(prod(shape) * dtype.itemsize for _, shape, dtype in self.layout)

    def read(self, tensor: NDArray[Any], names: Iterable[str]) -> dict[str, Values]:  # noqa: D102
        run = self._reading
        try:
            run.reset_all_variables()
            run.set_tensor(self._indices[self.input], tensor)
            run.invoke()
            values = {name: run.get_tensor(self._indices[name]) for name in {*names, self.output}}
        except (ValueError, RuntimeError) as error:
            raise self._failure(error) from error
        return {name: self._real(name, value) for name, value in values.items()}

    @cached_property
    def operators(self) -> list[Operator]:
        """All operators, with the numbers of their options."""
        model = self._schema.Model.GetRootAsModel(self._content, 0)
        graph, kinds = model.Subgraphs(0), _names_of(self._schema.BuiltinOperator)
        operators = []
        for place in range(graph.OperatorsLength()):
            operator = self._schema.OperatorT.InitFromObj(graph.Operators(place))
            code = model.OperatorCodes(operator.opcodeIndex)
            kind = kinds.get(max(code.BuiltinCode(), code.DeprecatedBuiltinCode()), "CUSTOM")
            if kind == "CUSTOM" and code.CustomCode():
                kind = code.CustomCode().decode()
            options = {} if operator.builtinOptions is None else vars(operator.builtinOptions)
            operators.append(
                Operator(
                    kind,
                    f"{kind} {place}",
                    self._named(operator.inputs),
                    self._named(operator.outputs),
                    {name: value for name, value in options.items() if np.isscalar(value)},
                    activated=bool(options.get("fusedActivationFunction", 0)),
                )
            )
        return operators

    def _named(self, indices: Any) -> tuple[str, ...]:
        """Return the names of an operator's tensors, without those that it leaves out."""
        return tuple(
            self._names[index] for index in (() if indices is None else indices) if index >= 0
        )

    @cached_property
    def formats(self) -> frozenset[str]:
        """The dtypes of tensors that lie on a grid, and of floats of half precision."""
        kinds = _names_of(self._schema.TensorType)
        formats = {"float32"}
        for tensor in self._model.subgraphs[0].tensors:
            kind = kinds[tensor.type].lower()
            if kind == "float16" or (kind in _INTEGERS and _has_grid(tensor)):
                formats.add(kind)
        return frozenset(formats)

    @cached_property
    def _weights(self) -> tuple[dict[str, Values], bool]:
        kinds = _names_of(self._schema.TensorType)
        weights: dict[str, Values] = {}
        per_channel = False
        tensors = self._model.subgraphs[0].tensors
        beside_floats = {
            place
            for step in self._model.subgraphs[0].operators
            if step.inputs is not None
            and len(step.inputs)
            and kinds[tensors[step.inputs[0]].type] == "FLOAT32"
            for place in step.inputs[1:]
        }
        for place, tensor in enumerate(tensors):
            data, dtype = self._model.buffers[tensor.buffer].data, kinds[tensor.type].lower()
            if data is None or not len(data) or dtype not in _STORED:
                continue
            array = np.frombuffer(bytes(data), dtype)
            if tensor.shape is not None and array.size == prod(map(int, tensor.shape)):
                array = array.reshape(tensor.shape)
            if array.dtype.kind == "f":
                weights[self._names[place]] = array.astype(np.float32)
            elif _has_grid(tensor):
                grid = tensor.quantization
                zero = 0 if grid.zeroPoint is None or not len(grid.zeroPoint) else grid.zeroPoint
                if dtype == "uint8" and place in beside_floats and not np.any(zero):
                    array = array.view(
                        np.int8
                    )  # so TensorFlow 1 stored int8 weights, so kernels read them
                real, has_scales = on_grid(array, grid.scale, zero, grid.quantizedDimension)
                weights[self._names[place]] = real
                per_channel |= has_scales
        return weights, per_channel

    @cached_property
    def _schema(self) -> Any:
        return import_module("ai_edge_litert.schema_py_generated")

    @cached_property
    def _model(self) -> Any:
        root = self._schema.Model.GetRootAsModel(self._content, 0)
        return self._schema.ModelT.InitFromObj(root)

    def trace(self, tensors: Sequence[NDArray[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:  # noqa: D102
        run = self._reading
        names = [
            *self.inputs,
            *(name for operation in self.operations for name in operation.outputs),
        ]
        try:
            run.reset_all_variables()
            for name, tensor in zip(self.inputs, tensors, strict=True):
                run.set_tensor(self._indices[name], tensor)
            run.invoke()
        except (ValueError, RuntimeError) as error:
            raise self._failure(error) from error
        for name in names:
            with suppress(ValueError):  # a tensor without values of its own
                value = run.get_tensor(self._indices[name])
                yield name, self.grids[name].real(value) if name in self.grids else value

    def one_after_the_other(
        self, runs: Iterable[Sequence[NDArray[Any]]]
    ) -> Iterator[list[NDArray[Any]]]:
        """Yield the raw outputs for each input, by one interpreter whose variables are never reset."""
        run = self._interpreter(self._content)
        targets = [detail["index"] for detail in run.get_input_details()]
        results = [detail["index"] for detail in run.get_output_details()]
        for tensors in runs:
            try:
                for target, tensor in zip(targets, tensors, strict=True):
                    run.set_tensor(target, tensor)
                run.invoke()
            except (ValueError, RuntimeError) as error:
                raise self._failure(error) from error
            yield [run.get_tensor(index) for index in results]

    def split(self, content: NDArray[np.uint8], names: Iterable[str]) -> dict[str, Values]:
        """Return what `read` does, from the bytes of all tensors one after the other (`layout`).

        Raises ModelError where they are more or fewer than `size`.
        """
        if content.nbytes != self.size:
            raise ModelError(
                f"{counted(content.nbytes, 'byte')} of tensors came, and {self._path.name} has "
                f"{self.size:,}"
            )
        probed, values, start = {*names, self.output}, {}, 0
        for name, shape, dtype in self.layout:
            end = start + prod(shape) * dtype.itemsize
            if name in probed:
                values[name] = self._real(name, content[start:end].view(dtype).reshape(shape))
            start = end
        return values

    def _real(self, name: str, value: NDArray[Any]) -> Values:
        """Return a tensor's real values; those of the output as they are."""
        if name == self.output or name not in self.grids:
            return value
        return self.grids[name].real(value)

    def starting_at(self, names: Sequence[str]) -> SubModel:  # noqa: D102
        part = self.part_after(names)
        if part is None:
            raise UsageError(f"{', '.join(names)} don't suffice to compute {self.output}")
        produced = {self._indices[name] for operation in part[1] for name in operation.outputs}
        of_input = {
            self._indices[name] for operation in self.operations for name in operation.outputs
        }
        schema: Any = import_module("ai_edge_litert.schema_py_generated")
        flatbuffers: Any = import_module("flatbuffers")
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(self._content, 0))
        graph = model.subgraphs[0]
        graph.operators = [
            operator
            for operator in graph.operators
            if produced.intersection(operator.outputs)
            or not of_input.intersection(operator.outputs)
        ]
        graph.inputs = [self._indices[name] for name in names]
        graph.outputs = [self._indices[self.output]]
        model.signatureDefs = []
        builder = flatbuffers.Builder(len(self._content))
        builder.Finish(model.Pack(builder), _IDENTIFIER)
        run_on = self._interpreter(bytes(builder.Output()))
        targets = [detail["index"] for detail in run_on.get_input_details()]
        result = run_on.get_output_details()[0]["index"]
        grids = [self.grids.get(name) for name in names]

        def run(values: Sequence[Values]) -> NDArray[Any]:
            try:
                run_on.reset_all_variables()
                for target, grid, value in zip(targets, grids, values, strict=True):
                    real = value.astype(np.float32)
                    run_on.set_tensor(target, real if grid is None else grid.quantized(real))
                run_on.invoke()
                return np.asarray(run_on.get_tensor(result))
            except (ValueError, RuntimeError) as error:
                raise self._failure(error) from error

        return run

    def _interpreter(self, content: bytes, *, preserve: bool = False) -> Any:
        library: Any = import_module("ai_edge_litert.interpreter")
        kinds = library.OpResolverType
        kind = kinds.AUTO if self._by_xnnpack else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        try:
            with warnings.catch_warnings(), _without_stderr():
                warnings.simplefilter("ignore")  # that tensors which are kept need memory
                interpreter = library.Interpreter(
                    model_content=content,
                    num_threads=1,
                    experimental_op_resolver_type=kinds.BUILTIN_REF
                    if self._kernels == "reference"
                    else kind,
                    experimental_preserve_all_tensors=preserve,
                )
                interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise self._failure(error) from error
        return interpreter

    def _failure(self, error: Exception) -> ModelError:
        first = next(iter(str(error).splitlines()), "")
        return ModelError(f"the tensors of {self._path.name} can't be read: {first}")


def _names_of(enumeration: Any) -> dict[int, str]:
    """Return the names of an enumeration of the schema by their numbers."""
    return {number: name for name, number in vars(enumeration).items() if isinstance(number, int)}


def _has_grid(tensor: Any) -> bool:
    """Whether a tensor of the schema holds integers that stand for real values."""
    grid = tensor.quantization
    return grid is not None and grid.scale is not None and len(grid.scale) > 0


@contextmanager
def _without_stderr() -> Iterator[None]:
    """Keep off the terminal what the library's own code says of its delegate."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)

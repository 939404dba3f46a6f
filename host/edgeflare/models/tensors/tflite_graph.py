"""TFLite models as graphs, run by ai-edge-litert."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    Operation,
    SubModel,
    Values,
    of_activations,
    only_input,
)
from edgeflare_agent.runtimes import tflite
from edgeflare_agent.runtimes.tflite_delegates import DELEGATED

_IDENTIFIER = b"TFL3"
TENSORS = tflite.TENSORS
"""Name of the output in which a device sends all tensors, see `TFLiteGraph.split`."""


class TFLiteGraph(ModelGraph):
    """A ``.tflite`` file; of tensors with the same name the later ones have ``#index`` after it.

    Tensors are read with ``experimental_preserve_all_tensors``, by the kernels of the options; the
    one delegate is XNNPACK, where they allow it. Of several subgraphs only the first is read.
    `layout` has, in the order of their indices, the name, shape and dtype of the input and of the
    tensors that operators make of it; `size` is the number of their bytes.
    """

    def __init__(self, path: Path, options: Mapping[str, Any], output: str | None) -> None:
        """Read the file. Raises ModelError for what is no such file."""
        self._path = path
        self._content = path.read_bytes()
        self._kernels = options.get("kernels", "default")
        self._by_xnnpack = options.get("delegate", True) is True
        self._reading = self._interpreter(self._content, preserve=True)
        details = self._reading.get_tensor_details()
        self._indices: dict[str, int] = {}
        for one in details:
            name = str(one["name"])
            if not name or name in self._indices:
                name = f"{name}#{one['index']}"
            self._indices[name] = int(one["index"])
        self._names = {index: name for name, index in self._indices.items()}
        inputs = [self._names[one["index"]] for one in self._reading.get_input_details()]
        self.input = only_input(inputs, path)
        outputs = self._reading.get_output_details()
        chosen = [one["index"] for one in outputs if output in (None, str(one["name"]))]
        if not chosen:
            raise ModelError(f"{path.name} has no output {output!r}")
        self.output = self._names[chosen[0]]
        self.grids = {
            self._names[one["index"]]: Grid(
                float(one["quantization_parameters"]["scales"][0]),
                int(one["quantization_parameters"]["zero_points"][0]),
                np.dtype(one["dtype"]).name,
            )
            for one in details
            if len(one["quantization_parameters"]["scales"]) == 1
            and np.dtype(one["dtype"]).kind in "iu"
        }
        activated = _fused_activations(self._content)
        self.operations = of_activations(
            (
                Operation(
                    str(one["op_name"]),
                    tuple(self._names.get(index, "") for index in one["inputs"]),
                    tuple(self._names.get(index, "") for index in one["outputs"]),
                    activated=not activated.isdisjoint(map(int, one["outputs"])),
                )
                for one in self._reading._get_ops_details()
                if one["op_name"] != DELEGATED
            ),
            self.input,
            self.output,
            path.name,
        )
        kept = {self.input, *(name for one in self.operations for name in one.outputs)}
        self.layout = [
            (name, tuple(int(n) for n in one["shape"]), np.dtype(one["dtype"]))
            for one in details
            if (name := self._names[one["index"]]) in kept
        ]
        self.size = sum(prod(shape) * dtype.itemsize for _, shape, dtype in self.layout)

    def read(self, given: NDArray[Any], names: Iterable[str]) -> dict[str, Values]:  # noqa: D102
        run = self._reading
        try:
            run.reset_all_variables()
            run.set_tensor(self._indices[self.input], given)
            run.invoke()
            found = {name: run.get_tensor(self._indices[name]) for name in {*names, self.output}}
        except (ValueError, RuntimeError) as error:
            raise self._failure(error) from error
        return {name: self._real(name, value) for name, value in found.items()}

    def split(self, content: NDArray[np.uint8], names: Iterable[str]) -> dict[str, Values]:
        """Return what `read` does, from the bytes of all tensors one after the other (`layout`).

        Raises ModelError where they are more or fewer than `size`.
        """
        if content.nbytes != self.size:
            raise ModelError(
                f"{counted(content.nbytes, 'byte')} of tensors came, and {self._path.name} has "
                f"{self.size:,}"
            )
        wanted, found, start = {*names, self.output}, {}, 0
        for name, shape, dtype in self.layout:
            end = start + prod(shape) * dtype.itemsize
            if name in wanted:
                found[name] = self._real(name, content[start:end].view(dtype).reshape(shape))
            start = end
        return found

    def _real(self, name: str, value: NDArray[Any]) -> Values:
        """Return a tensor's real values; those of the output as they are."""
        if name == self.output or name not in self.grids:
            return value
        return self.grids[name].real(value)

    def starting_at(self, names: Sequence[str]) -> SubModel:  # noqa: D102
        part = self.part_after(names)
        if part is None:
            raise UsageError(f"{', '.join(names)} don't suffice to compute {self.output}")
        made = {self._indices[name] for one in part[1] for name in one.outputs}
        of_input = {self._indices[name] for one in self.operations for name in one.outputs}
        schema: Any = import_module("ai_edge_litert.schema_py_generated")
        flatbuffers: Any = import_module("flatbuffers")
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(self._content, 0))
        graph = model.subgraphs[0]
        graph.operators = [
            one
            for one in graph.operators
            if made.intersection(one.outputs) or not of_input.intersection(one.outputs)
        ]
        graph.inputs = [self._indices[name] for name in names]
        graph.outputs = [self._indices[self.output]]
        model.signatureDefs = []
        builder = flatbuffers.Builder(len(self._content))
        builder.Finish(model.Pack(builder), _IDENTIFIER)
        run_on = self._interpreter(bytes(builder.Output()))
        targets = [one["index"] for one in run_on.get_input_details()]
        result = run_on.get_output_details()[0]["index"]
        grids = [self.grids.get(name) for name in names]

        def run(values: Sequence[Values]) -> NDArray[Any]:
            try:
                run_on.reset_all_variables()
                for target, grid, value in zip(targets, grids, values, strict=True):
                    given = value.astype(np.float32)
                    run_on.set_tensor(target, given if grid is None else grid.quantized(given))
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
                made = library.Interpreter(
                    model_content=content,
                    num_threads=1,
                    experimental_op_resolver_type=kinds.BUILTIN_REF
                    if self._kernels == "reference"
                    else kind,
                    experimental_preserve_all_tensors=preserve,
                )
                made.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise self._failure(error) from error
        return made

    def _failure(self, error: Exception) -> ModelError:
        first = next(iter(str(error).splitlines()), "")
        return ModelError(f"the tensors of {self._path.name} can't be read: {first}")


def _fused_activations(content: bytes) -> set[int]:
    """Return the indices of the tensors that operators make by an activation fused into them."""
    schema: Any = import_module("ai_edge_litert.schema_py_generated")
    graph = schema.Model.GetRootAsModel(content, 0).Subgraphs(0)
    operators = (graph.Operators(place) for place in range(graph.OperatorsLength()))
    unpacked = (schema.OperatorT.InitFromObj(one) for one in operators)
    return {
        int(index)
        for one in unpacked
        if getattr(one.builtinOptions, "fusedActivationFunction", 0)
        for index in one.outputs
    }


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

"""TFLite models as graphs, run by ai-edge-litert."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import ModelError, UsageError
from edgeflare.models.tensors.graph import (
    Grid,
    ModelGraph,
    Operation,
    SubModel,
    Values,
    of_activations,
)

_IDENTIFIER = b"TFL3"


class TFLiteGraph(ModelGraph):
    """A ``.tflite`` file; of tensors with the same name the later ones have ``#index`` after it.

    Tensors are read with ``experimental_preserve_all_tensors``, without a delegate. Of several
    subgraphs only the first is read.
    """

    def __init__(self, path: Path, options: Mapping[str, Any], output: str | None) -> None:
        """Read the file. Raises ModelError for what is no such file."""
        self._path = path
        self._content = path.read_bytes()
        self._kernels = options.get("kernels", "default")
        self._reading = self._interpreter(self._content, preserve=True)
        details = self._reading.get_tensor_details()
        self._indices: dict[str, int] = {}
        for one in details:
            name = str(one["name"])
            if not name or name in self._indices:
                name = f"{name}#{one['index']}"
            self._indices[name] = int(one["index"])
        self._names = {index: name for name, index in self._indices.items()}
        self.input = self._names[self._reading.get_input_details()[0]["index"]]
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
        self._operators = self._reading._get_ops_details()
        self.operations = of_activations(
            (
                Operation(
                    str(one["op_name"]),
                    tuple(self._names.get(index, "") for index in one["inputs"]),
                    tuple(self._names.get(index, "") for index in one["outputs"]),
                )
                for one in self._operators
            ),
            self.input,
            self.output,
            path.name,
        )

    def read(self, given: NDArray[Any], names: Iterable[str]) -> dict[str, Values]:  # noqa: D102
        run = self._reading
        found = {}
        try:
            run.reset_all_variables()
            run.set_tensor(self._indices[self.input], given)
            run.invoke()
            for name in {*names, self.output}:
                value = run.get_tensor(self._indices[name])
                is_real = name == self.output or name not in self.grids
                found[name] = value if is_real else self.grids[name].real(value)
        except (ValueError, RuntimeError) as error:
            raise self._failure(error) from error
        return found

    def starting_at(self, names: Sequence[str]) -> SubModel:  # noqa: D102
        part = self.part_after(names)
        if part is None:
            raise UsageError(f"{', '.join(names)} don't suffice to compute {self.output}")
        made = {self._indices[name] for one in part.operations for name in one.outputs}
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
        reference = self._kernels == "reference"
        try:
            made = library.Interpreter(
                model_content=content,
                num_threads=1,
                experimental_op_resolver_type=kinds.BUILTIN_REF
                if reference
                else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                experimental_preserve_all_tensors=preserve,
            )
            made.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise self._failure(error) from error
        return made

    def _failure(self, error: Exception) -> ModelError:
        first = next(iter(str(error).splitlines()), "")
        return ModelError(f"the tensors of {self._path.name} can't be read: {first}")

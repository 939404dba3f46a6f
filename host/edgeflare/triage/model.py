"""One model of a pair on this machine: its file, how samples enter it, and its answers as real values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import reason
from edgeflare.errors import EdgeFlareError, ModelError
from edgeflare.models import InputOptions, InputSpec, Spec
from edgeflare.models.first_operators import FirstOperators, operators_at
from edgeflare.models.inferred_input import Inference, InputFile, infer_input
from edgeflare.models.tensors.graph import Grid, KeepsState, ModelStructure
from edgeflare.models.tensors.open import open_structure
from edgeflare.triage.agreement import Outputs, Values, stacked
from edgeflare.triage.cause import NumberFormat
from edgeflare.triage.ways import Way
from edgeflare.types import Sample
from edgeflare_agent.configuration.fixed_inputs import ONE_INPUT, FixedInputs, GivenInputs
from edgeflare_agent.errors import AgentError, RequestError
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize, quantize
from edgeflare_agent.runtimes import Runtime, load


@dataclass(frozen=True)
class ModelFile:
    """A model as a triage is told of it.

    `side`: "original" or "deployed". `runtime` runs the file on this machine, by `options`. Samples
    enter it as `spec` says, other inputs are `given`. `outputs` are the names of those that count.
    A file that this machine can't run has no runtime, ""; then `unread` says why, and `announced` has the
    outputs as the device described them.
    """

    side: Literal["original", "deployed"]
    path: Path
    runtime: str
    options: Mapping[str, Any]
    spec: Spec
    given: GivenInputs = ONE_INPUT
    outputs: tuple[str, ...] = ()
    unread: str = ""
    announced: tuple[TensorInfo, ...] = ()

    def resizing(self, rule: str) -> "ModelFile":
        """Return a model of images for those of other sizes, which a rule brings to its own."""
        return replace(self, spec=cast("InputSpec", self.spec)._replace(resize=rule))


class HostModel:
    """A model on this machine; used by one thread. Raises ModelError where it can't be loaded.

    `calls` counts the inferences.
    """

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self.side = file.side
        self.spec = file.spec
        self.calls = 0
        self._runtime = self._loaded()
        try:
            self._fixed = FixedInputs.of(self._runtime.inputs, file.given)
        except AgentError as error:
            raise ModelError(f"{file.path.name}: {reason(error)}") from error
        names = [output.name for output in self._runtime.outputs]
        self._places = [names.index(name) for name in file.outputs] or list(range(len(names)))

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """The inputs as the file has them."""
        return self._runtime.inputs

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The outputs that count."""
        return [self._runtime.outputs[place] for place in self._places]

    @property
    def parts(self) -> int:
        """The number of inputs that a sample becomes."""
        return self.file.given.parts

    def _loaded(self) -> Runtime:
        file = self.file
        try:
            return load(str(file.path), file.runtime, {"threads": 1, **file.options})
        except AgentError as error:
            raise ModelError(f"{file.path.name}: {reason(error)}") from error

    def forget(self) -> None:
        """Load the model anew, so that nothing of earlier inferences is left."""
        self._runtime.close()
        self._runtime = self._loaded()

    def tensors(self, sample: Sample, way: Way, row: int = 0) -> list[NDArray[Any]]:
        """Return what each input is given for one sample that enters the model in a way.

        Raises ModelError where it can't enter so.
        """
        try:
            return self._fixed.tensors(way.tensor(sample, self._fixed.tensor), row)
        except RequestError as error:
            raise ModelError(f"{self.file.path.name}: {reason(error)}") from error

    def fed(self, sample: Sample, row: int = 0) -> list[NDArray[np.float64]]:
        """Return the real values that each input is fed for one sample, before they are quantised."""
        plain = Way(self.spec._replace(dtype="float32", quantization=None))
        values = self._fixed.tensors(plain.tensor(sample, self._fixed.tensor), row)
        return [
            values[place].astype(np.float64)
            if place in self._fixed.searched
            else dequantize(values[place], info.quantization)
            for place, info in enumerate(self.inputs)
        ]

    def run(self, tensors: Sequence[NDArray[Any]]) -> list[Values]:
        """Return the real values of each output that counts; a batch axis of 1 is left out.

        Raises ModelError where the runtime fails.
        """
        self.calls += 1
        try:
            raws = self._runtime.run_several(list(tensors))
        except AgentError as error:
            raise ModelError(f"{self.file.path.name}: {reason(error)}") from error
        return [real_values(raws[place], self._runtime.outputs[place]) for place in self._places]

    def answers(self, samples: Sequence[Sample], way: Way, rows: Sequence[int]) -> Outputs | None:
        """Return the answers to samples, one array an output; None where shapes change by sample."""
        pairs = zip(samples, rows, strict=True)
        return stacked([self.run(self.tensors(sample, way, row)) for sample, row in pairs])

    def at_once(self, calls: Sequence[Sequence[NDArray[Any]]]) -> list[list[Values]] | None:
        """Return the answers to inputs that are given together, as rows of a batch.

        None where the file takes one input at a time, or an output has no row for each.
        """
        if not all(info.shape[:1] == (None,) for info in self.inputs):
            return None
        self.calls += 1
        try:
            raws = self._runtime.run_several(
                [np.concatenate(rows) for rows in zip(*calls, strict=True)]
            )
        except (AgentError, ValueError):  # of inputs of several shapes
            return None
        outputs = [(raws[place], self._runtime.outputs[place]) for place in self._places]
        if any(raw.shape[:1] != (len(calls),) for raw, _ in outputs):
            return None
        return [
            [real_values(raw[row : row + 1], info) for raw, info in outputs]
            for row in range(len(calls))
        ]

    def without_reset(self, calls: Sequence[Sequence[NDArray[Any]]]) -> list[list[Values]] | None:
        """Return the answers to inputs one after the other, as an application has them: nothing is reset.

        None where the file's runtime keeps nothing.
        """
        structure: object = self.structure
        if not isinstance(structure, KeepsState):
            return None
        self.calls += len(calls)
        places = self._places
        return [
            [real_values(raws[place], self._runtime.outputs[place]) for place in places]
            for raws in structure.one_after_the_other(calls)
        ]

    @cached_property
    def structure(self) -> ModelStructure | None:
        """What stands in the file; None where it can't be read, see `unread`."""
        try:
            return open_structure(self.file.path, self.file.runtime, self.file.options)
        except EdgeFlareError as error:
            self.unread = str(error)
            return None

    @cached_property
    def inference(self) -> Inference:
        """How the file is fed, as far as it tells, whatever is stated."""
        tensor, place = self._fixed.tensor, min(self._fixed.searched, default=0)

        def read(file: InputFile) -> FirstOperators | None:
            if self.structure is None:
                return None
            return operators_at(self.structure, file.tensor.name, file.channels)

        file = self.file
        about = InputFile(
            file.path, file.runtime, tensor, self._runtime.metadata, place, file.options
        )
        return infer_input(about, InputOptions(), read)

    unread: str = ""
    """Why the file can't be read as a graph."""

    @cached_property
    def number_format(self) -> NumberFormat:
        """The coarsest format of the file's numbers; float32 where it can't be read and tells none."""
        formats = set() if self.structure is None else set(self.structure.formats)
        formats |= {tensor.dtype for tensor in (*self.inputs, *self.outputs) if tensor.quantization}
        if "int16" in formats:
            return "int16"
        if formats & {"int4", "uint4", "int8", "uint8"}:
            return "int8"
        return "float16" if formats & {"float16", "bfloat16"} else "float32"

    def grid_of_input(self, place: int) -> Grid | None:
        """Return the integers that hold an input, be it stored so or quantised first."""
        info = self.inputs[place]
        if info.quantization is not None:
            return Grid(*info.quantization, info.dtype)
        if self.structure is None:
            return None
        name = self.structure.inputs[place]
        readers = [operator for operator in self.structure.operators if name in operator.inputs]
        quantising = [
            operator for operator in readers if operator.kind in ("QuantizeLinear", "QUANTIZE")
        ]
        if len(readers) != 1 or not quantising:
            return None
        return self.structure.grids.get(quantising[0].outputs[0])


class RecordedModel(HostModel):
    """A deployed model that can't be run on this machine: what the device answered is all of it."""

    def __init__(self, file: ModelFile) -> None:
        self.file = file
        self.side = file.side
        self.spec = file.spec
        self.calls = 0
        self.structure = None
        self.unread = file.unread
        self.number_format = "int8"  # it isn't known: of int8 the least is expected

    @property
    def inputs(self) -> Sequence[TensorInfo]:
        """None: a device tells those of its outputs alone."""
        return ()

    @property
    def outputs(self) -> Sequence[TensorInfo]:
        """The outputs that count, as the device described them."""
        return self.file.announced

    def tensors(self, sample: Sample, way: Way, row: int = 0) -> list[NDArray[Any]]:
        """Raise ModelError: nothing can be asked of it."""
        del sample, way, row
        raise ModelError(f"{self.file.path.name} can't be run here: {self.unread}")


def real_values(raw: NDArray[Any], info: TensorInfo) -> Values:
    """Return an output's real values, float64, without a batch axis of 1."""
    real: Values = dequantize(raw, info.quantization)
    return real[0] if real.ndim > 1 and len(real) == 1 else real


def stored(values: NDArray[Any], info: TensorInfo) -> NDArray[Any]:
    """Return real values as an input stores them."""
    if info.quantization is None:
        return np.ascontiguousarray(values.astype(info.dtype))
    return quantize(values.astype(np.float32), info.quantization, np.dtype(info.dtype))

"""What the graphs of all formats share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import first_of
from edgeflare.errors import ModelError, UsageError

Values: TypeAlias = NDArray[np.float32]
"""Real values of a tensor, in its shape."""
SubModel: TypeAlias = Callable[[Sequence[Values]], NDArray[Any]]
"""Computes the raw output from the values of the tensors that it starts at, in their order."""


class Grid(NamedTuple):
    """The integers that hold a quantised tensor: real = (integer - zero_point) * scale."""

    scale: float
    zero_point: int
    dtype: str

    @property
    def integers(self) -> tuple[int, int]:
        """The least and the largest."""
        limits = np.iinfo(self.dtype)
        return int(limits.min), int(limits.max)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest real value."""
        least, largest = ((integer - self.zero_point) * self.scale for integer in self.integers)
        return least, largest

    def quantized(self, values: Values) -> NDArray[Any]:
        """Return the nearest integers, ties to the even one."""
        rounded = np.round(values / np.float32(self.scale)) + self.zero_point
        within: NDArray[Any] = np.clip(rounded, *self.integers).astype(self.dtype)
        return within

    def real(self, integers: NDArray[Any]) -> Values:
        """Return the real values of integers."""
        return ((integers.astype(np.float64) - self.zero_point) * self.scale).astype(np.float32)


DRAWING = frozenset(
    [
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform"),
        *("RandomUniformLike", "MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"),
        *("bernoulli", "multinomial", "normal_functional", "rand", "rand_like", "randn"),
        *("randn_like", "uniform"),
    ]
)
"""Kinds of operators that draw random numbers."""
KEEPING_STATE = frozenset(
    [
        *("ASSIGN_VARIABLE", "CALL_ONCE", "READ_VARIABLE", "SVDF", "VAR_HANDLE"),
        *("UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"),
    ]
)
"""Kinds of operators that keep values from one inference to the next."""
_NORMALISING = frozenset(["BatchNormalization", "Dropout"])


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator: the names of the tensors that it reads and makes.

    `attributes` are numbers, texts and lists of these, by the format's own names. `activated`: it ends
    with an activation function, which is fused into it.
    """

    kind: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    activated: bool = False

    @property
    def is_in_training_mode(self) -> bool:
        """Whether it normalises by the input that it is given, as in training."""
        return self.kind in _NORMALISING and bool(self.attributes.get("training_mode"))


class ModelStructure(ABC):
    """A model's operators, weights and tensors, as its file has them.

    `inputs` and `outputs` are names of tensors in the model's order, `grids` those of the quantised
    ones. Used by one thread at a time, in this process.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    grids: Mapping[str, Grid]
    channels_last: bool = False
    """Whether channels are the last axis of the file's tensors."""

    @property
    @abstractmethod
    def operators(self) -> Sequence[Operator]:
        """All operators, in the order in which they run; constants are among their inputs."""

    @property
    @abstractmethod
    def constants(self) -> Mapping[str, Values]:
        """Weights and other constants as real values, by the names that operators read."""

    @property
    @abstractmethod
    def formats(self) -> frozenset[str]:
        """The dtypes of weights and activations, such as "float32" and "int8"."""

    @property
    @abstractmethod
    def is_per_channel(self) -> bool:
        """Whether a weight of two axes or more has a scale for each channel."""

    @abstractmethod
    def trace(self, tensors: Sequence[NDArray[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield each tensor that depends on the inputs, with its real values, one after the other.

        `tensors` are those of the inputs, in their order. Raises ModelError where the runtime can't
        run the model in this way.
        """

    def trace_several(
        self, runs: Sequence[Sequence[NDArray[Any]]]
    ) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the tensors of several runs as `trace`; those of one name in the order of the runs."""
        for tensors in runs:
            yield from self.trace(tensors)


@runtime_checkable
class KeepsState(Protocol):
    """A structure whose file may keep values from one inference to the next."""

    def one_after_the_other(
        self, runs: Iterable[Sequence[NDArray[Any]]]
    ) -> Iterator[list[NDArray[Any]]]:
        """Yield the raw outputs for each input, without a reset between them."""


def on_grid(values: NDArray[Any], scales: Any, zero_points: Any, axis: int) -> tuple[Values, bool]:
    """Return the real values of stored integers, and whether each channel has a scale of its own.

    `scales` and `zero_points`: one number, or one for each element of `axis`.
    """
    scale, zero = np.atleast_1d(np.asarray(scales, np.float64)), np.atleast_1d(zero_points)
    zero = zero.astype(np.float64)
    if scale.size == 1 or values.ndim == 0:
        return ((values.astype(np.float64) - zero.flat[0]) * scale.flat[0]).astype(
            np.float32
        ), False
    shape = [1] * values.ndim
    shape[axis] = -1
    zero = zero.reshape(shape) if zero.size > 1 else zero
    real = (values.astype(np.float64) - zero) * scale.reshape(shape)
    return real.astype(np.float32), real.ndim > 1


ROUNDING = frozenset(["QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE"])
"""Kinds of operators that only bring a tensor to another grid, or from a grid to floats."""
ACTIVATIONS = frozenset(
    [
        *("Celu", "Clip", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu"),
        *("QLinearLeakyRelu", "QLinearSigmoid", "QuickGelu", "Relu", "Selu", "Sigmoid", "Softplus"),
        *("Softsign", "Swish", "Tanh", "ThresholdedRelu"),
        *("ELU", "GELU", "HARD_SWISH", "LEAKY_RELU", "LOGISTIC", "PRELU", "RELU", "RELU6"),
        *("RELU_0_TO_1", "RELU_N1_TO_1", "TANH"),
    ]
)
"""Kinds of operators that are activation functions; a softmax is none."""


class UnitActivations(NamedTuple):
    """What one layer does on one input.

    `units` is float32 [units]: the mean over space of each channel, or the value of each dense unit.
    `least` and `largest` are those of all values of the layer's tensor.
    """

    units: Values
    least: float
    largest: float


class Probed(NamedTuple):
    """What a probe reads on one input: the tensors by their names, and the raw output."""

    tensors: Mapping[str, UnitActivations]
    output: NDArray[Any]


Probe: TypeAlias = Callable[[NDArray[Any]], Probed]
"""Runs a model on one input tensor, whose batch axis is 1."""


class ModelGraph(ModelStructure):
    """A model whose tensors are read by name, and that is started in the middle.

    `operations` are `operators` with only the tensors that depend on the inputs; weights and other
    constants are left out. `output` is the one that counts; of a model with one input `input` is
    that.
    """

    output: str
    operations: Sequence[Operator]

    @property
    @abstractmethod
    def _weights(self) -> tuple[dict[str, Values], bool]:
        """The constants as real values, and whether one has a scale for each channel; read once."""

    @property
    def constants(self) -> dict[str, Values]:
        """Weights and other constants as real values, by the names that operators read."""
        return self._weights[0]

    @property
    def is_per_channel(self) -> bool:
        """Whether a weight of two axes or more has a scale for each channel."""
        return self._weights[1]

    @property
    def input(self) -> str:
        """The name of the only input."""
        (name,) = self.inputs
        return name

    @abstractmethod
    def read(self, tensor: NDArray[Any], names: Iterable[str]) -> dict[str, Values]:
        """Return tensors' real values, and the raw output under `output`, for one input tensor.

        Raises ModelError where the runtime can't run the model in this way.
        """

    @abstractmethod
    def starting_at(self, names: Sequence[str]) -> SubModel:
        """Return the part of the model that computes the output from these tensors.

        They must suffice, see `part_after`: else UsageError. Raises ModelError as `read`.
        """

    def probe(self, names: Iterable[str]) -> Probe:
        """Return what computes the activations of tensors by units, one input after the other.

        Quantised tensors give real values. A unit is an element of the last axis; ONNX models see
        `OnnxGraph.probe`. No more than the tensors of one input are held. Raises UsageError for a
        name that is no tensor which depends on the input; the probe raises ModelError as `read`.
        """
        checked = self._checked(names)

        def run(tensor: NDArray[Any]) -> Probed:
            values = self.read(tensor, checked)
            output = values[self.output]
            if self.output in self.grids:
                values = {**values, self.output: self.grids[self.output].real(output)}
            return Probed({name: _by_last_axis(values[name]) for name in checked}, output)

        return run

    def has_units_last(self, name: str) -> bool:
        """Whether a unit of a tensor is an element of its last axis, not of axis 1."""
        del name
        return True

    def _checked(self, names: Iterable[str]) -> list[str]:
        """Return names, each once. Raises UsageError for those that `operations` don't make."""
        probed = list(dict.fromkeys(names))
        tensors = {
            self.input,
            *(name for operation in self.operations for name in operation.outputs),
        }
        unknown = [name for name in probed if name not in tensors]
        if unknown:
            names = [name for operation in self.operations for name in operation.outputs]
            raise UsageError(
                f"the model has no tensor {unknown[0]!r} that depends on its input: name tensors "
                f"as the model's file does, {first_of(names)}"
            )
        return probed

    def copies(self) -> list[list[str]]:
        """Return the tensors in order, each with those that hold the same, but for rounding."""
        groups = {self.input: [self.input]}
        for operation in self.operations:
            for name in operation.outputs:
                groups[name] = groups[operation.inputs[0]] if operation.kind in ROUNDING else []
                groups[name].append(name)
        return list({id(group): group for group in groups.values()}.values())

    def part_after(
        self, names: Collection[str]
    ) -> tuple[tuple[str, ...], Sequence[Operator]] | None:
        """Return what lies between these tensors and the output, None where they don't suffice.

        It is the tensors that it starts at, and the operators in their order. They don't suffice
        where the output depends on the input past them as well.
        """
        makers = {name: operation for operation in self.operations for name in operation.outputs}
        needed, used, open_names = set(), set(), [self.output]
        while open_names:
            name = open_names.pop()
            if name in names:
                used.add(name)
            elif name not in makers:
                return None
            elif makers[name] not in needed:
                needed.add(makers[name])
                open_names += makers[name].inputs
        return (
            tuple(name for name in names if name in used),
            [operation for operation in self.operations if operation in needed],
        )


def _by_last_axis(values: Values) -> UnitActivations:
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    means = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    return UnitActivations(means, float(rows.min()), float(rows.max()))


def of_activations(
    operators: Iterable[Operator], entering: Collection[str], output: str, whose: str
) -> tuple[Operator, ...]:
    """Return operators with the tensors alone that depend on inputs; the others not.

    Raises ModelError where the output doesn't.
    """
    reached, kept = set(entering), []
    for operator in operators:
        inputs = tuple(name for name in operator.inputs if name in reached)
        if inputs:
            outputs = tuple(name for name in operator.outputs if name)
            reached.update(outputs)
            kept.append(replace(operator, inputs=inputs, outputs=outputs))
    if output not in reached:
        raise ModelError(f"output {output!r} of {whose} does not depend on its input")
    return tuple(kept)

"""What the graphs of all formats share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import ModelError

Values: TypeAlias = NDArray[np.float32]
"""Real values of a tensor, in its shape."""
SubModel: TypeAlias = Callable[[Sequence[Values]], NDArray[Any]]
"""Computes the raw output from the values of the tensors that it starts at, in their order."""


class Operation(NamedTuple):
    """One operator of a graph: the names of the tensors that it reads and makes."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


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
        least, largest = ((one - self.zero_point) * self.scale for one in self.integers)
        return least, largest

    def quantized(self, values: Values) -> NDArray[Any]:
        """Return the nearest integers, ties to the even one."""
        rounded = np.round(values / np.float32(self.scale)) + self.zero_point
        within: NDArray[Any] = np.clip(rounded, *self.integers).astype(self.dtype)
        return within

    def real(self, integers: NDArray[Any]) -> Values:
        """Return the real values of integers."""
        return ((integers.astype(np.float64) - self.zero_point) * self.scale).astype(np.float32)


ROUNDING = frozenset(["QuantizeLinear", "DequantizeLinear", "QUANTIZE", "DEQUANTIZE"])
"""Kinds of operators that only bring a tensor to another grid, or from a grid to floats."""


class Part(NamedTuple):
    """The end of a model: the tensors that it starts at, and its operators in their order."""

    names: tuple[str, ...]
    operations: Sequence[Operation]


class ModelGraph(ABC):
    """A model of one input, whose operators are known, in the order in which they run.

    `operations` have only tensors that depend on the input; weights and other constants are left
    out. `input` and `output` are names of tensors, `grids` those of the quantised ones. Used by one
    thread at a time, in this process.
    """

    input: str
    output: str
    operations: Sequence[Operation]
    grids: Mapping[str, Grid]

    @abstractmethod
    def read(self, given: NDArray[Any], names: Iterable[str]) -> dict[str, Values]:
        """Return tensors' real values, and the raw output under `output`, for one input tensor.

        Raises ModelError where the runtime can't run the model in this way.
        """

    @abstractmethod
    def starting_at(self, names: Sequence[str]) -> SubModel:
        """Return the part of the model that computes the output from these tensors.

        They must suffice, see `part_after`: else UsageError. Raises ModelError as `read`.
        """

    def copies(self) -> list[list[str]]:
        """Return the tensors in order, each with those that hold the same, but for rounding."""
        groups = {self.input: [self.input]}
        for one in self.operations:
            for name in one.outputs:
                groups[name] = groups[one.inputs[0]] if one.kind in ROUNDING else []
                groups[name].append(name)
        return list({id(one): one for one in groups.values()}.values())

    def part_after(self, names: Collection[str]) -> Part | None:
        """Return what lies between these tensors and the output, None where they don't suffice.

        That is where the output depends on the input past them as well.
        """
        makers = {name: one for one in self.operations for name in one.outputs}
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
        return Part(
            tuple(name for name in names if name in used),
            [one for one in self.operations if one in needed],
        )


def of_activations(
    operations: Iterable[Operation], given: str, output: str, whose: str
) -> tuple[Operation, ...]:
    """Return operators with the tensors alone that depend on the input `given`; the others not.

    Raises ModelError where the output doesn't.
    """
    known, kept = {given}, []
    for one in operations:
        inputs = tuple(name for name in one.inputs if name in known)
        if inputs:
            outputs = tuple(name for name in one.outputs if name)
            known.update(outputs)
            kept.append(Operation(one.kind, inputs, outputs))
    if output not in known:
        raise ModelError(f"output {output!r} of {whose} does not depend on its input")
    return tuple(kept)

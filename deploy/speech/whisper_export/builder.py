"""ONNX nodes by short calls: every call adds nodes to a graph and returns the name of a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

OPSET = 17


class Weights:
    """The constant tensors of a model, each kept once, in the outermost graph."""

    def __init__(self) -> None:
        self.tensors: dict[str, onnx.TensorProto] = {}

    def add(self, name: str, value: npt.NDArray[np.generic]) -> str:
        """Keeps ``value`` under ``name``, where it is not kept already, and returns the name."""
        if name not in self.tensors:
            self.tensors[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name


class Builder:
    """The nodes of one graph: the model's own, or the body of a loop in it."""

    def __init__(self, weights: Weights, scope: str) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self._scope = scope

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: int = 1,
        **attributes: float | Sequence[int] | onnx.GraphProto,
    ) -> list[str]:
        """Adds a node and returns the names of its results."""
        label = f"{self._scope}/{operator}_{len(self.nodes)}"
        names = [label if outputs == 1 else f"{label}:{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, label, **attributes))
        return names

    def call(
        self,
        operator: str,
        *inputs: str,
        **attributes: float | Sequence[int] | onnx.GraphProto,
    ) -> str:
        """Adds a node of one result and returns that result's name."""
        return self.node(operator, inputs, 1, **attributes)[0]

    def constant(self, name: str, value: npt.NDArray[np.generic]) -> str:
        """The name of a constant tensor of the model."""
        return self.weights.add(name, value)

    def integers(self, *values: int) -> str:
        """The name of a constant int64 [len(values)]."""
        name = "integers_" + "_".join(str(value) for value in values)
        return self.constant(name, np.array(values, np.int64))

    def scalar(self, name: str, value: float) -> str:
        """The name of a constant float32 scalar."""
        return self.constant(name, np.array(value, np.float32))

    def heads(self, tensor: str, count: int, width: int) -> str:
        """Splits float32 [1, n, width] into float32 [1, count, n, width / count]."""
        shape = self.integers(1, -1, count, width // count)
        return self.call("Transpose", self.call("Reshape", tensor, shape), perm=[0, 2, 1, 3])

    def rename(self, tensor: str, name: str) -> str:
        """Gives ``tensor`` the name ``name``, as an output of the graph."""
        self.nodes.append(helper.make_node("Identity", [tensor], [name], f"{self._scope}/{name}"))
        return name

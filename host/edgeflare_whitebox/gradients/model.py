"""An ONNX graph that torch runs node by node, so that gradients can be had."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgeflare._internal import extras
from edgeflare._internal.text import reason
from edgeflare.errors import UsageError

Operator = Callable[[Sequence[Any], Mapping[str, Any], int], Any]
"""Computes an operator's outputs of its inputs, its attributes and the opset's version."""


class Node(NamedTuple):
    """A node of the graph; an input that is left out is named ``""``, as in ONNX."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]


class DifferentiableModel:
    """A float or QDQ ONNX model, run by torch on the CPU; every tensor keeps its name in the file.

    `inputs` and `outputs` are the names of the graph's inputs (without its initialisers) and
    outputs; `kinds` are the nodes' operators.

    QuantizeLinear passes the gradient through its rounding unchanged, and none where it saturates
    (straight-through estimator; Bengio et al., arXiv:1308.3432). Quantised tensors are held as
    float32, which is exact for integers below 2**24.

    Agrees with ONNX Runtime to about 1e-5 on float models. QDQ models may differ by a step where a
    value lies between two, since torch adds in another order.
    """

    def __init__(
        self, model: Path | str | Any, operators: Mapping[str, Operator] | None = None
    ) -> None:
        """Load an ONNX file, or take an `onnx.ModelProto`.

        `operators` take the place of those of the same names, such as ``Relu``.

        Raises UsageError where torch or onnx is missing, for a file that can't be read, and for
        operators that are not known here, all of them named.
        """
        self._torch = extras.torch()
        onnx = extras.onnx()
        known = import_module("edgeflare_whitebox.gradients.operators").OPERATORS
        self._operators: Mapping[str, Operator] = {**known, **(operators or {})}
        name, proto = _read(onnx, model)
        self._opset = max(
            (one.version for one in proto.opset_import if one.domain in {"", "ai.onnx"}), default=1
        )
        graph = proto.graph
        self._constants = {
            one.name: self._tensor(onnx.numpy_helper.to_array(one)) for one in graph.initializer
        }
        self._nodes = [self._node(onnx, one) for one in graph.node]
        unknown = sorted({one.kind for one in self._nodes} - self._operators.keys())
        if unknown:
            raise UsageError(
                f"{name} has operators whose gradient is not known: {', '.join(unknown)}; export it "
                "without them, or use what needs no gradients"
            )
        self.inputs = tuple(one.name for one in graph.input if one.name not in self._constants)
        self.outputs = tuple(one.name for one in graph.output)
        self.kinds = frozenset(one.kind for one in self._nodes)
        self._makers = {name: node for node in self._nodes for name in node.outputs if name}

    def run(self, feeds: Mapping[str, Any], wanted: Iterable[str] = ()) -> dict[str, Any]:
        """Return the tensors `wanted` (by default the outputs) by name, as torch tensors.

        `feeds` holds a numpy array or torch tensor for each input that they need; gradients flow to
        those torch tensors that require them. Only nodes that `wanted` needs are run.

        Raises UsageError for a name that is no tensor of the graph, and for a missing feed.
        """
        names = tuple(wanted) or self.outputs
        values = dict(self._constants)
        values.update({name: self._tensor(value) for name, value in feeds.items()})
        known = values.keys() | self._makers.keys() | set(self.inputs)
        for name in (*names, *feeds):
            if name not in known:
                raise UsageError(
                    f"the model has no tensor {name!r}; its outputs are {self.outputs}"
                )
        for node in self._needed(names):
            self._run_node(node, values)
        self._check_fed(names, values)
        return {name: values[name] for name in names}

    def gradient(
        self,
        batch: Any,
        objective: Callable[[Mapping[str, Any]], Any],
        wanted: Sequence[str] = (),
    ) -> tuple[Any, Any]:
        """Return an objective's value [N] and its gradient with respect to the first input.

        `batch` is float32 [N, ...]; `objective` is given the tensors `wanted` (by default the
        outputs) by name and returns a torch tensor [N], one value for each sample, which depends on
        that sample alone. Both results are numpy arrays; the gradient has the batch's shape.
        """
        leaf = self._tensor(batch).clone().requires_grad_(True)
        values = objective(self.run({self.inputs[0]: leaf}, wanted))
        found = None
        if values.requires_grad:
            (found,) = self._torch.autograd.grad(values.sum(), leaf, allow_unused=True)
        if found is None:
            found = self._torch.zeros_like(leaf)
        return values.detach().numpy(), found.numpy()

    def node_of(self, tensor: str) -> Node | None:
        """Return the node that computes a tensor; None for inputs and initialisers."""
        return self._makers.get(tensor)

    def _run_node(self, node: Node, values: dict[str, Any]) -> None:
        self._check_fed(filter(None, node.inputs), values)
        arguments = [values[name] if name else None for name in node.inputs]
        results = self._operators[node.kind](arguments, node.attributes, self._opset)
        if not isinstance(results, tuple):
            results = (results,)
        values.update(
            (name, value) for name, value in zip(node.outputs, results, strict=False) if name
        )

    @staticmethod
    def _check_fed(names: Iterable[str], values: Mapping[str, Any]) -> None:
        missing = next((name for name in names if name not in values), None)
        if missing is not None:
            raise UsageError(f"the model's input {missing!r} is not fed")

    def _needed(self, names: Sequence[str]) -> list[Node]:
        needed, open_names = set(), list(names)
        while open_names:
            maker = self._makers.get(open_names.pop())
            if maker is not None and maker.outputs not in needed:
                needed.add(maker.outputs)
                open_names.extend(name for name in maker.inputs if name)
        return [node for node in self._nodes if node.outputs in needed]

    def _tensor(self, value: Any) -> Any:
        if isinstance(value, self._torch.Tensor):
            return value
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise UsageError(f"gradients need numbers, but a tensor holds {array.dtype}")
        return self._torch.from_numpy(np.array(array, order="C"))  # a copy, which torch may keep

    def _node(self, onnx: Any, node: Any) -> Node:
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        for name, value in attributes.items():
            if isinstance(value, bytes):
                attributes[name] = value.decode()
            elif isinstance(value, onnx.TensorProto):
                attributes[name] = self._tensor(onnx.numpy_helper.to_array(value))
            elif isinstance(value, list) and value and isinstance(value[0], bytes):
                attributes[name] = [one.decode() for one in value]
        kind = node.op_type if node.domain in {"", "ai.onnx"} else f"{node.domain}.{node.op_type}"
        attributes["outputs"] = len(node.output)
        return Node(kind, tuple(node.input), tuple(node.output), attributes)


def _read(onnx: Any, model: Any) -> tuple[str, Any]:
    if not isinstance(model, (str, Path)):
        return "the model", model
    unreadable = import_module("google.protobuf.message").DecodeError
    try:
        return str(model), onnx.load_model(str(model), format="protobuf")
    except OSError as error:
        raise UsageError(f"{model} can't be read: {reason(error)}") from error
    except (unreadable, ValueError, onnx.checker.ValidationError) as error:
        raise UsageError(f"{model} is no ONNX file that can be read") from error

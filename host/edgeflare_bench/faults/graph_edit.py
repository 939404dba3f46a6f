"""Changes of an ONNX graph, and the parameters of the faults that are planted by them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from edgeflare._internal import extras

T = TypeVar("T")

RECURRENT = ("LSTM", "GRU", "RNN")
_ACTIVATIONS = ("Relu", "Clip", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", *RECURRENT)
_ADDED = "fault__"
_WEIGHTED = ("Conv", "Gemm", "MatMul", *RECURRENT)


class GraphEdit:
    """A copy of an ONNX model (`model`) that is changed; the original stays as it is."""

    def __init__(self, model: Any) -> None:
        self._onnx = extras.onnx()
        self.model = self._onnx.ModelProto()
        self.model.CopyFrom(model)
        graph = self.model.graph
        known = [one.name for one in graph.initializer] + [
            n for one in graph.node for n in one.output
        ]
        self._count = sum(one.startswith(_ADDED) for one in known)  # of an earlier change

    @property
    def nodes(self) -> Sequence[Any]:
        """The graph's nodes."""
        return list(self.model.graph.node)

    def activations(self) -> list[str]:
        """Return the names of activations' and recurrent layers' outputs, in the graph's order.

        Of several outputs: the first that is used.
        """
        used = {name for one in self.nodes for name in one.input}
        used.update(one.name for one in self.model.graph.output)
        layers = [one.output for one in self.nodes if one.op_type in _ACTIVATIONS]
        return [name for names in layers for name in [one for one in names if one in used][:1]]

    def weights(self) -> list[tuple[Any, str]]:
        """Return the layers with weights: the node and the name of its weights, in order."""
        names = {one.name for one in self.model.graph.initializer}
        return [
            (one, one.input[1])
            for one in self.nodes
            if one.op_type in _WEIGHTED and one.input[1] in names
        ]

    def array(self, name: str) -> Any:
        """Return an initialiser as a new array."""
        tensor = next(one for one in self.model.graph.initializer if one.name == name)
        return np.array(self._onnx.numpy_helper.to_array(tensor))

    def set_array(self, name: str, array: Any) -> None:
        """Replace an initialiser."""
        tensor = next(one for one in self.model.graph.initializer if one.name == name)
        tensor.CopyFrom(self._onnx.numpy_helper.from_array(array, name))

    def constant(self, array: Any, dtype: Any = np.float32) -> str:
        """Add an initialiser; return its name."""
        name = self._name()
        values = np.asarray(array, dtype)
        self.model.graph.initializer.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output; return the output's name."""
        name = self._name()
        node = self._onnx.helper.make_node(kind, list(inputs), [name], **attributes)
        self.model.graph.node.append(node)
        return name

    def change(self, tensor: str, make: Callable[[str], str]) -> None:
        """Replace a tensor wherever it is used, as an output of the model, too.

        `make` is given the tensor's name, adds nodes and returns the name of what replaces it.
        """
        before = self.nodes
        maker = next((one for one in before if tensor in one.output), None)
        if maker is None:
            changed = make(tensor)
            for node in before:
                node.input[:] = [changed if name == tensor else name for name in node.input]
            return
        sound = self._name()
        maker.output[:] = [sound if name == tensor else name for name in maker.output]
        node = self._onnx.helper.make_node("Identity", [make(sound)], [tensor])
        self.model.graph.node.append(node)

    def of_type(self, *types: str) -> list[Any]:
        """Return the operators of these types, in order."""
        return [node for node in self.nodes if node.op_type in types]

    def constants(self) -> dict[str, npt.NDArray[Any]]:
        """Return all tensors that stand in the file, by name."""
        to_array = self._onnx.numpy_helper.to_array
        arrays = {tensor.name: to_array(tensor) for tensor in self.model.graph.initializer}
        for node in self.of_type("Constant"):
            value = attribute(node, "value")
            if value is not None:
                arrays[node.output[0]] = to_array(value)
        return arrays

    def weighted(self, *types: str) -> list[Any]:
        """Return the layers with weights that stand in the file, of these types, else of any."""
        kinds = types or ("Conv", "Gemm", "MatMul")
        return [node for node, _ in self.weights() if node.op_type in kinds]

    def hidden(self, *types: str) -> list[Any]:
        """Return layers with weights but for the last one, whose outputs are the answer."""
        return [node for node in self.weighted()[:-1] if not types or node.op_type in types]

    def moving(self, node: Any) -> list[str]:
        """Return an operator's inputs that don't stand in the file."""
        constants = self.constants()
        return [name for name in node.input if name and name not in constants]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of tensors that follow from the file, by name."""
        graph = self._onnx.shape_inference.infer_shapes(self.model).graph
        return {
            info.name: tuple(axis.dim_value for axis in info.type.tensor_type.shape.dim)
            for info in (*graph.value_info, *graph.input, *graph.output)
        }

    def added(self) -> list[str]:
        """Return the names of the tensors that changes have added; an operator is called by what it makes."""
        made = [name for node in self.nodes for name in node.output]
        return [name for name in made if name.startswith(_ADDED)]

    def output_names(self) -> set[str]:
        """Return the names of the model's outputs."""
        return {info.name for info in self.model.graph.output}

    def place_of(self, node: Any, *tensors: str) -> tuple[str, ...]:
        """Return what a sentence may call an operator: its name, its outputs, and those of what follows it."""
        outputs = [name for name in node.output if name]
        behind = [reader for reader in self.nodes if set(outputs) & set(reader.input)]
        names = [node.name, *outputs, *tensors]
        for reader in behind[:2]:
            names += [reader.name, *reader.output]
        return tuple(dict.fromkeys(filter(None, names)))

    def rewire(self, tensor: str, make: Callable[[str], str]) -> None:
        """Replace what an operator makes by something that is made of it, under the name it had."""
        self.change(tensor, make)
        nodes = self.model.graph.node
        named = nodes[-1]  # an Identity
        maker = next((node for node in nodes if named.input[0] in node.output), None)
        if maker is not None and maker.name == "":
            maker.output[:] = [tensor if name == named.input[0] else name for name in maker.output]
            nodes.remove(named)

    def set_weights(
        self,
        node: Any,
        change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]],
        place: int = 1,
    ) -> tuple[str, ...]:
        """Change a layer's weights (or its bias, `place` 2); return where."""
        name = node.input[place]
        before = self.array(name)
        self.set_array(name, np.ascontiguousarray(change(before)).astype(before.dtype))
        return self.place_of(node, name)

    def finish(self) -> Any:
        """Return the model, its nodes in an order in which they can run."""
        waiting = self.nodes
        names = [one.name for one in self.model.graph.initializer]
        known = {"", *names, *(one.name for one in self.model.graph.input)}
        ordered = []
        while waiting:
            ready = [one for one in waiting if known.issuperset(one.input)]
            if not ready:
                raise ValueError("the graph has a circle")
            ordered.extend(ready)
            known.update(name for one in ready for name in one.output)
            taken = {id(one) for one in ready}
            waiting = [one for one in waiting if id(one) not in taken]
        copies = [self._onnx.NodeProto.FromString(one.SerializeToString()) for one in ordered]
        del self.model.graph.node[:]
        self.model.graph.node.extend(copies)
        return self.model

    def _name(self) -> str:
        self._count += 1
        return f"{_ADDED}{self._count}"


def attribute(node: Any, name: str, default: Any = None) -> Any:
    """Return an operator's attribute."""
    value = extras.onnx().helper.get_attribute_value
    return next((value(stated) for stated in node.attribute if stated.name == name), default)


def set_attribute(node: Any, name: str, value: Any) -> None:
    """State an operator's attribute otherwise; None: not at all."""
    for stated in [stated for stated in node.attribute if stated.name == name]:
        node.attribute.remove(stated)
    if value is not None:
        node.attribute.append(extras.onnx().helper.make_attribute(name, value))


def output_axis(node: Any) -> int:
    """Return the axis of a layer's weights that counts its outputs."""
    if node.op_type == "Gemm":
        return 0 if attribute(node, "transB", 0) else 1
    return -1 if node.op_type == "MatMul" else 0


def pick(rng: np.random.Generator, items: Sequence[Any], what: str) -> Any:
    """Return one of several by chance. Raises Inapplicable where there is none."""
    if not items:
        raise Inapplicable(f"the model has no {what}")
    return items[int(rng.integers(len(items)))]


class Inapplicable(Exception):  # noqa: N818 - no error: the suite leaves this fault out
    """A model has nothing that this kind of fault could change; says what is missing."""


class Parameters(NamedTuple):
    """`strength` is above 0, up to 1; `layer`, `channel` and `place` lie in 0 to 1.

    The last three choose one of as many layers, channels or places as the model has.
    """

    strength: float
    layer: float
    channel: float
    place: float


def chosen(items: Sequence[T], share: float, what: str) -> T:
    """Return the item at a share (0 to 1) of a sequence. Raises Inapplicable where it is empty."""
    if not items:
        raise Inapplicable(f"the model has no {what}")
    return items[min(int(share * len(items)), len(items) - 1)]


def whole(share: float, size: int) -> int:
    """Return a share of a size, rounded, at least 1."""
    return max(1, round(share * size))

"""ONNX files in which single operators are those of another file, or aren't quantised."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from edgeflare._internal import extras
from edgeflare_bench.faults.graph_edit import GraphEdit

_PASSING = ("Identity", "Cast", "QuantizeLinear", "DequantizeLinear")
"""Operators that change no value but by rounding it."""
_MARK = "sound__"


class Graph:
    """A model's operators by what they are called."""

    def __init__(self, model: Any) -> None:
        self.nodes = list(model.graph.node)
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.makers = {name: node for node in self.nodes for name in node.output}
        self.inputs = {info.name for info in model.graph.input}

    def named(self, name: str) -> list[Any]:
        """Return the operators of this name, that make the tensor of this name, or read the constant."""
        return [
            node
            for node in self.nodes
            if name in (node.name, *node.output) or (name in self.constants and name in node.input)
        ]

    def is_constant(self, name: str) -> bool:
        """Whether a tensor doesn't depend on the model's inputs."""
        if name in self.inputs:
            return False
        maker = self.makers.get(name)
        return maker is None or all(map(self.is_constant, maker.input))

    def makers_of(self, tensors: Collection[str]) -> Iterator[Any]:
        """Yield the operators that make tensors, and past those that only pass them on, the ones before."""
        waiting = [*tensors]
        while waiting:
            tensor = waiting.pop()
            maker = self.makers.get(tensor)
            if maker is not None and not self.is_constant(tensor):
                yield maker
                waiting += maker.input if maker.op_type in _PASSING else ()

    def around(self, name: str) -> list[str]:
        """Return what is made beside the operators of a name: their inputs, and by the same constants."""
        named = self.named(name)
        read = {part for node in named for part in node.input}
        near = [*self.makers_of(read)]
        near += [node for node in self.nodes if read & set(node.input) & {*self.constants}]
        return [output for node in near for output in node.output]

    def last(self, output: str, count: int) -> list[str]:
        """Return the names of the tensors that the last operators make before an output."""
        names = [output]
        for name in names:
            read = [part for node in self.named(name) for part in node.input]
            names += [
                node.output[0] for node in self.makers_of(read) if node.output[0] not in names
            ]
            if len(names) >= count:
                break
        return names[:count]

    def until(self, node: Any, tensors: Collection[str]) -> list[Any]:
        """Return an operator, or the first ones behind it that make tensors of these."""
        if set(node.output) <= set(tensors):
            return [node]
        readers = [reader for reader in self.nodes if set(node.output) & set(reader.input)]
        return [reached for reader in readers for reached in self.until(reader, tensors)]


def grafted(
    names: Collection[str], faulty: Any, sound: Any, read_as: Mapping[str, str] | None = None
) -> Any | None:
    """Return a file in which the operators of these names are those of another file.

    What they are given stays the faulty file's, as far as that has it; `read_as`: what they read instead
    of its tensors. None where no name is in both.
    """
    onnx = extras.onnx()
    graph, model = Graph(sound), onnx.ModelProto.FromString(faulty.SerializeToString())
    own = {name for node in model.graph.node for name in node.output}
    taken = {
        node.output[0]: node
        for name in names
        for start in graph.named(name)
        for node in graph.until(start, own)
    }
    if not taken:
        return None
    kept = [node for node in model.graph.node if not set(node.output) & set(taken)]
    del model.graph.node[:], model.graph.value_info[:]
    model.graph.node.extend(kept)
    own |= {info.name for info in model.graph.input}
    renamed = {} if read_as is None else read_as
    waiting, copied = list(taken.values()), set()
    while waiting:
        node = waiting.pop()
        if node.output[0] in copied:
            continue
        copied.add(node.output[0])
        foreign = [
            name for name in node.input if name and (name not in own or graph.is_constant(name))
        ]
        copy = onnx.NodeProto.FromString(node.SerializeToString())
        copy.name = ""  # it may be that of an operator that stays
        copy.input[:] = [
            _MARK + name if name in foreign else renamed.get(name, name) for name in node.input
        ]
        if node.output[0] not in taken:
            copy.output[:] = [_MARK + name for name in node.output]
        model.graph.node.append(copy)
        waiting += [graph.makers[name] for name in foreign if name in graph.makers]
        stated = {tensor.name for tensor in model.graph.initializer}
        for name in {*foreign} & {*graph.constants}:
            if _MARK + name not in stated:
                model.graph.initializer.add().CopyFrom(graph.constants[name])
                model.graph.initializer[-1].name = _MARK + name
    return GraphEdit(model).finish()


def in_float(names: Collection[str], quantised: Any, original: Any) -> Any | None:
    """Return an int8 file in which what is named isn't quantised; None where it has nothing of it."""
    model = extras.onnx().ModelProto.FromString(quantised.SerializeToString())
    graph = Graph(model)
    read_as, kept = {}, {*names}
    for reader in graph.nodes:
        stored = graph.makers.get(reader.input[0]) if reader.op_type == "DequantizeLinear" else None
        if stored is None or graph.is_constant(stored.input[0]):
            continue
        called = {reader.name, *reader.output, stored.name, *stored.output, stored.input[0]}
        if called.isdisjoint(names):
            read_as[stored.input[0]] = reader.output[0]  # its rounding may be its activation
            continue
        kept |= {stored.input[0], reader.output[0]}
        for node in model.graph.node:
            node.input[:] = [
                stored.input[0] if name == reader.output[0] else name for name in node.input
            ]
    changed = grafted(kept, model, original, read_as)
    return changed or (model if len(kept) > len({*names}) else None)

"""What stands in a ``.pt2`` file of PyTorch, and its tensors, run node after node."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare._internal.text import reason
from edgeflare.errors import ModelError
from edgeflare.models.tensors.graph import ModelStructure, Operator, Values

_ROUNDED = ("float16", "bfloat16", "int8", "uint8")


class TorchStructure(ModelStructure):
    """A program of `torch.export`; tensors have the names of the nodes that make them."""

    def __init__(self, path: Path, options: Mapping[str, Any], output: str | None) -> None:
        """Read the file. Raises UsageError without PyTorch, ModelError for what is no such file."""
        del output
        self._torch = extras.torch(what="reading a PyTorch file")
        if path.suffix.lower() != ".pt2":
            raise ModelError(f"{path.name} is TorchScript, and graphs are read in .pt2 files")
        self._torch.set_num_threads(int(options.get("threads", 1)))
        self._path = path
        self._program = self._torch.export.load(str(path))
        self._module = self._program.module()
        self.inputs = list(self._program.graph_signature.user_inputs)
        self.outputs = [str(name) for name in self._program.graph_signature.user_outputs]
        self.grids = {}

    @cached_property
    def operators(self) -> list[Operator]:
        """All nodes that call a function."""
        return [
            Operator(
                str(node.target).removeprefix("aten.").split(".", maxsplit=1)[0],
                str(node.name),
                tuple(str(source.name) for source in node.all_input_nodes),
                (str(node.name),),
                {
                    argument.name: value
                    for argument, value in zip(
                        getattr(getattr(node.target, "_schema", None), "arguments", ()),
                        node.args,
                        strict=False,
                    )
                    if isinstance(value, int | float | bool | str)
                    or (
                        isinstance(value, list | tuple)
                        and all(isinstance(entry, int | float) for entry in value)
                    )
                },
            )
            for node in self._module.graph.nodes
            if node.op == "call_function"
        ]

    @cached_property
    def constants(self) -> dict[str, Values]:
        """Weights and buffers of floats, by the names of the nodes that read them."""
        tensors = {**self._program.state_dict, **dict(self._program.constants)}
        nodes = {
            str(node.target): str(node.name)
            for node in self._module.graph.nodes
            if node.op == "get_attr"
        }
        return {
            nodes.get(name, name): tensor.detach().float().numpy()
            for name, tensor in tensors.items()
            if isinstance(tensor, self._torch.Tensor) and tensor.is_floating_point()
        }

    @cached_property
    def formats(self) -> frozenset[str]:
        """The dtypes of weights that are rounded, and "float32"."""
        names = {
            str(tensor.dtype).rpartition(".")[2]
            for tensor in (*self._program.state_dict.values(), *self._program.constants.values())
            if isinstance(tensor, self._torch.Tensor)
        }
        return frozenset({"float32", *names.intersection(_ROUNDED)})

    is_per_channel = False

    def trace(self, tensors: Sequence[NDArray[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:  # noqa: D102
        torch = self._torch
        entering = dict(zip(self.inputs, tensors, strict=True))
        last_use = {
            source: node for node in self._module.graph.nodes for source in node.all_input_nodes
        }
        interpreter = torch.fx.Interpreter(self._module, garbage_collect_values=False)
        values = iter([torch.from_numpy(np.array(tensor)) for tensor in tensors])
        interpreter.args_iter = values
        yield from entering.items()
        try:
            with torch.no_grad():
                for node in self._module.graph.nodes:
                    interpreter.env[node] = value = interpreter.run_node(node)
                    # a tensor goes after its last reader, so that few are held at once
                    for used in node.all_input_nodes:
                        if last_use[used] is node:
                            interpreter.env.pop(used, None)
                    if node.op != "call_function":
                        continue
                    parts = value if isinstance(value, tuple | list) else [value]
                    for place, part in enumerate(parts):
                        if isinstance(part, torch.Tensor):
                            name = str(node.name) if len(parts) == 1 else f"{node.name}:{place}"
                            yield (
                                name,
                                part.detach().float().numpy()
                                if part.is_floating_point()
                                else part.detach().numpy(),
                            )
        except (RuntimeError, ValueError, TypeError) as error:
            raise ModelError(
                f"the tensors of {self._path.name} can't be read: {reason(error)}"
            ) from error

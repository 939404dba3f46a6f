"""What stands in a Keras file, and the outputs of its layers."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import reason
from edgeflare.errors import ModelError
from edgeflare.models.tensors.graph import ModelStructure, Operator, Values

_SHOWN = (
    *("activation", "axis", "data_format", "dilation_rate", "epsilon", "filters", "groups"),
    *("kernel_size", "mean", "offset", "padding", "pool_size", "reset_after", "scale", "strides"),
    *("units", "variance"),
)


class KerasStructure(ModelStructure):
    """A functional or sequential model; an operator is a layer, which has the name of its tensor."""

    channels_last = True
    is_per_channel = False
    grids: Mapping[str, Any]

    def __init__(self, path: Path, options: Mapping[str, Any], output: str | None) -> None:
        """Read the file. Raises ModelError for what is no such file, or has layers without a graph."""
        del options, output
        os.environ.setdefault("KERAS_BACKEND", "torch")  # read by the import
        self._keras: Any = import_module("keras")
        self._path = path
        self._model = self._keras.models.load_model(path, compile=False)
        try:
            makers = {id(layer.output): layer.name for layer in self._model.layers}
        except (AttributeError, ValueError) as error:
            raise ModelError(f"the layers of {path.name} have no graph: {reason(error)}") from error
        self._layers = [
            layer for layer in self._model.layers if type(layer).__name__ != "InputLayer"
        ]
        self.inputs = [self._named(tensor, makers) for tensor in self._model.inputs]
        self.outputs = [self._named(tensor, makers) for tensor in self._model.outputs]
        self.grids = {}

    def _named(self, tensor: Any, makers: Mapping[int, str]) -> str:
        return makers.get(id(tensor), str(tensor.name))

    @cached_property
    def operators(self) -> list[Operator]:
        """All layers but those of the inputs."""
        makers = {id(layer.output): layer.name for layer in self._model.layers}
        operators = []
        for layer in self._layers:
            tensors = layer.input if isinstance(layer.input, list | tuple) else [layer.input]
            config = layer.get_config()
            operators.append(
                Operator(
                    type(layer).__name__,
                    str(layer.name),
                    (
                        *(self._named(tensor, makers) for tensor in tensors),
                        *(f"{layer.name}/{weight.name}" for weight in layer.weights),
                    ),
                    (str(layer.name),),
                    {name: config[name] for name in _SHOWN if name in config},
                )
            )
        return operators

    @cached_property
    def constants(self) -> dict[str, Values]:
        """The weights of all layers."""
        return {
            f"{layer.name}/{weight.name}": np.asarray(
                self._keras.ops.convert_to_numpy(weight.value), np.float32
            )
            for layer in self._layers
            for weight in layer.weights
        }

    @cached_property
    def formats(self) -> frozenset[str]:
        """The dtypes of weights that are rounded, and "float32"."""
        kinds = {str(weight.dtype) for weight in self._model.weights}
        return frozenset({"float32", *kinds.intersection(("float16", "bfloat16", "int8"))})

    @cached_property
    def _tracing(self) -> Any:
        return self._keras.Model(self._model.inputs, [layer.output for layer in self._layers])

    def trace(self, tensors: Sequence[NDArray[Any]]) -> Iterator[tuple[str, NDArray[Any]]]:  # noqa: D102
        fed = list(tensors) if len(tensors) > 1 else tensors[0]
        try:
            values = self._tracing(fed, training=False)
        except (RuntimeError, ValueError, TypeError) as error:
            raise ModelError(
                f"the tensors of {self._path.name} can't be read: {reason(error)}"
            ) from error
        yield from zip(self.inputs, tensors, strict=True)
        values = values if isinstance(values, list | tuple) else [values]
        for layer, value in zip(self._layers, values, strict=True):
            if not isinstance(value, list | tuple):
                yield str(layer.name), np.asarray(self._keras.ops.convert_to_numpy(value))

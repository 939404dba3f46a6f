"""Opens a model file as a graph."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from edgeflare._internal.text import reason
from edgeflare.errors import ModelError, UsageError
from edgeflare.models.tensors.graph import ModelGraph, ModelStructure

_READERS: Mapping[str, str] = {
    "onnx": "edgeflare.models.tensors.onnx_graph:OnnxGraph",
    "tflite": "edgeflare.models.tensors.tflite_graph:TFLiteGraph",
}
_STRUCTURES: Mapping[str, str] = {
    "torch": "edgeflare.models.tensors.torch_structure:TorchStructure",
    "keras": "edgeflare.models.tensors.keras_structure:KerasStructure",
}
_PLAIN: Mapping[str, Mapping[str, Any]] = {
    "onnx": {"graph_optimization": "none"},
    "tflite": {"delegate": False},
}
"""Options with which a runtime runs each operator of a file by itself."""


def open_graph(
    path: Path, runtime: str, options: Mapping[str, Any], output: str | None = None
) -> ModelGraph:
    """Return the graph of a model with one input; `options` are the runtime's own, as far as they apply.

    `output` is the name of the output that counts, the first one where it is None. Raises
    UsageError where tensors can't be read in models of this runtime, or a library is missing;
    ModelError where this file's can't.
    """
    if runtime not in _READERS:
        raise UsageError(
            f"tensors are read in ONNX and TFLite models, and {path.name} is run by {runtime}"
        )
    graph: ModelGraph = _opened(_READERS[runtime], path, options, output)
    if len(graph.inputs) > 1:
        raise ModelError(
            f"{path.name} has {len(graph.inputs)} inputs, and the tensors of models with one are read"
        )
    return graph


def open_structure(path: Path, runtime: str, options: Mapping[str, Any]) -> ModelStructure | None:
    """Return what stands in a model's file; None where no reader knows this runtime's files.

    Operators are neither fused nor reordered when tensors are traced. Raises as `open_graph`.
    """
    reader = {**_READERS, **_STRUCTURES}.get(runtime)
    if reader is None:
        return None
    opened: ModelStructure = _opened(reader, path, {**options, **_PLAIN.get(runtime, {})}, None)
    return opened


def _opened(reader: str, *arguments: Any) -> Any:
    module, _, name = reader.partition(":")
    try:
        return getattr(import_module(module), name)(*arguments)
    except (ValueError, RuntimeError, KeyError, IndexError) as error:
        path = arguments[0].name
        raise ModelError(f"{path} can't be read as a graph: {reason(error)}") from error

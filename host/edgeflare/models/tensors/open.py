"""Opens a model file as a graph."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from edgeflare._internal.text import reason
from edgeflare.errors import ModelError, UsageError
from edgeflare.models.tensors.graph import ModelGraph

_READERS: Mapping[str, str] = {
    "onnx": "edgeflare.models.tensors.onnx_graph:OnnxGraph",
    "tflite": "edgeflare.models.tensors.tflite_graph:TFLiteGraph",
}


def open_graph(
    path: Path, runtime: str, options: Mapping[str, Any], output: str | None = None
) -> ModelGraph:
    """Return the graph of a model file; `options` are the runtime's own, as far as they apply.

    `output` is the name of the output that counts, the first one where it is None. Raises
    UsageError where tensors can't be read in models of this runtime, or a library is missing;
    ModelError where this file's can't.
    """
    if runtime not in _READERS:
        raise UsageError(
            f"tensors are read in ONNX and TFLite models, and {path.name} is run by {runtime}"
        )
    module, _, name = _READERS[runtime].partition(":")
    make: Callable[..., ModelGraph] = getattr(import_module(module), name)
    try:
        return make(path, options, output)
    except (ValueError, RuntimeError, KeyError, IndexError) as error:
        raise ModelError(f"{path.name} can't be read as a graph: {reason(error)}") from error

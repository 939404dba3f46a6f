"""Opens a model file as a graph, and the options of the kernels that compute it."""

from collections.abc import Mapping, Sequence
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
_EXACT_INT8 = {"graph_optimization": "extended", "exact_int8": True}
_WITHOUT_FLOAT = (b"QLinear", b"MatMulInteger", b"ConvInteger", b"QGemm")
"""Operators of 8 bits, whose products onnxruntime computes exactly only where it may rewrite them."""
KERNELS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "tflite": ({"kernels": "reference"}, {"delegate": False}),
    "onnx": ({"graph_optimization": "none"}, _EXACT_INT8),
    "torch": ({"onednn": False},),
    "tensorrt": ({"precision": "fp32", "tf32": False},),
}
"""Options by which a runtime computes with other kernels than by default, the plainest first."""
_BY_ITSELF = {"onnx": KERNELS["onnx"][0], "tflite": KERNELS["tflite"][1]}
"""Options with which a runtime runs each operator of a file by itself."""


def plainest_kernels(path: Path, runtime: str) -> Mapping[str, Any]:
    """Return the options with which a runtime computes a file most plainly; {}: none are known."""
    if runtime == "onnx" and any(name in path.read_bytes() for name in _WITHOUT_FLOAT):
        return _EXACT_INT8
    return next(iter(KERNELS.get(runtime, ())), {})


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
    opened: ModelStructure = _opened(reader, path, {**options, **_BY_ITSELF.get(runtime, {})}, None)
    return opened


def _opened(reader: str, *arguments: Any) -> Any:
    module, _, name = reader.partition(":")
    try:
        return getattr(import_module(module), name)(*arguments)
    except (ValueError, RuntimeError, KeyError, IndexError) as error:
        path = arguments[0].name
        raise ModelError(f"{path} can't be read as a graph: {reason(error)}") from error

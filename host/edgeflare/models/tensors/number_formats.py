"""Whether a model file computes with floats of 32 bits or more alone, read in the file.

What a deployed model does otherwise than its original is the work of a compression only where one
of the files holds integers or floats of half precision in the place of numbers.
"""

import struct
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from edgeflare._internal import extras
from edgeflare.errors import EdgeFlareError, ModelError

_SMALL = frozenset(
    [
        *("FLOAT16", "BFLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT4", "UINT4", "INT2"),
        *("FLOAT4E2M1", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT2"),
    ]
)
"""ONNX's types of a weight that is rounded. A plain shape or index is of 32 or 64 bits."""
_HALF = frozenset(["FLOAT16", "BFLOAT16"])


def is_float_file(path: Path, runtime: str) -> bool | None:
    """Whether a file has no integer or half-precision weight or activation.

    `runtime` names what runs it: ``onnx``, ``tflite``, ``torch`` or ``keras``. None where the file
    isn't of these, or can't be read here.
    """
    reader = _READERS.get(runtime)
    if reader is None:
        return None
    try:
        return not any(reader(path))
    except (
        EdgeFlareError,
        ImportError,
        OSError,
        RuntimeError,
        ValueError,
        TypeError,
        struct.error,
    ):
        return None


def _in_onnx(path: Path) -> Iterator[bool]:
    """Yield of each weight and operator of an ONNX file whether its numbers are rounded."""
    onnx = extras.onnx()
    names: Mapping[int, str] = {number: name for name, number in onnx.TensorProto.DataType.items()}
    try:
        model = onnx.load_model(str(path), load_external_data=False)
    except Exception as error:
        raise ModelError(f"{path.name} is no ONNX file that can be read") from error
    graphs = [model.graph, *model.functions]
    while graphs:
        graph = graphs.pop()
        yield from (
            names.get(tensor.data_type) in _SMALL for tensor in getattr(graph, "initializer", ())
        )
        for tensor in getattr(graph, "input", ()):
            if not isinstance(tensor, str):  # a function's are names
                yield names.get(tensor.type.tensor_type.elem_type) in _HALF
        for node in graph.node:
            yield node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear")
            for attribute in node.attribute:
                yield node.op_type == "Cast" and names.get(attribute.i) in _HALF
                yield attribute.HasField("t") and names.get(attribute.t.data_type) in _SMALL
                graphs += [attribute.g] if attribute.HasField("g") else attribute.graphs


def _in_tflite(path: Path) -> Iterator[bool]:
    """Yield of each tensor of a TFLite file whether it is quantised or of half precision."""
    schema: Any = import_module("ai_edge_litert.schema_py_generated")
    model = schema.Model.GetRootAsModel(path.read_bytes(), 0)
    half = {schema.TensorType.FLOAT16, getattr(schema.TensorType, "BFLOAT16", None)}
    for place in range(model.SubgraphsLength()):
        graph = model.Subgraphs(place)
        for number in range(graph.TensorsLength()):
            tensor = graph.Tensors(number)
            quantization = tensor.Quantization()
            yield tensor.Type() in half
            # A float tensor may keep the range that a converter saw in it, without a scale.
            yield quantization is not None and quantization.ScaleLength() > 0


def _in_torch(path: Path) -> Iterator[bool]:
    """Yield of each weight and value of a PyTorch file whether its numbers are rounded."""
    torch = extras.torch(what="reading a PyTorch file")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated; these files are there
        if path.suffix.lower() == ".pt2":
            program = torch.export.load(str(path))
            values = [node.meta.get("val") for node in program.graph.nodes]
            tensors = [*program.state_dict.values(), *program.constants.values(), *values]
        else:
            model = torch.jit.load(str(path), map_location="cpu")
            yield "quantized::" in str(model.inlined_graph)
            tensors = [*model.state_dict().values()]
    small = (torch.float16, torch.bfloat16, torch.int8, torch.uint8, torch.int16)
    for tensor in tensors:
        if isinstance(tensor, torch.Tensor):
            yield tensor.is_quantized or tensor.dtype in small


def _in_keras(path: Path) -> Iterator[bool]:
    """Yield of each layer and weight of a Keras file whether its numbers are rounded."""
    keras: Any = import_module("keras")
    model = keras.models.load_model(path, compile=False)
    kinds = [str(weight.dtype) for weight in model.weights]
    kinds += [str(getattr(layer, "compute_dtype", "float32")) for layer in model.layers]
    yield from (kind not in ("float32", "float64", "int32", "int64", "bool") for kind in kinds)


_READERS: Mapping[str, Callable[[Path], Iterator[bool]]] = {
    "onnx": _in_onnx,
    "tflite": _in_tflite,
    "torch": _in_torch,
    "keras": _in_keras,
}

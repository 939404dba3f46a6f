"""Deployed models made from an original by changing some of its weights (section 5.4.1)."""

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare._internal.files import write_durably
from edgeflare.errors import UsageError
from edgeflare.store.failures import told_of


def perturb_weights(model: Path, out: Path, *, percent: float, by: float, seed: int) -> int:
    """Write a copy of the ONNX file `model` to `out` in which some weights differ; return how many.

    The weights are the elements of all float32 initialisers of two or more axes. `percent` % of them
    (0 to 100, the count rounded to whole weights), drawn uniformly over all of them together, are each
    multiplied by 1 + `by` or 1 - `by`, with probability 1/2. The same `seed` gives the same file.
    Everything else of the model, metadata included, is kept. `out` is replaced in one step.

    Raises UsageError for numbers out of range, and where `model` is no ONNX file that can be read or
    has no such weights; StoreError, DiskFullError among them, where `out` can't be written.
    """
    if not 0 <= percent <= 100:
        raise UsageError(f"percent is {percent}, but a share of the weights lies in 0 to 100")
    if not math.isfinite(by):
        raise UsageError(f"by is {by}, but weights are changed by a finite share, such as 0.1")
    onnx, numpy_helper = _onnx()
    graph_file = _loaded(onnx, model)
    tensors = [
        tensor
        for tensor in graph_file.graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) >= 2
    ]
    arrays = [numpy_helper.to_array(tensor) for tensor in tensors]
    weights = np.concatenate([array.ravel() for array in arrays] or [np.empty(0, np.float32)])
    if not weights.size:
        raise UsageError(
            f"{model} has no float32 weights to change (initialisers of two or more axes); take the "
            "original as a float32 ONNX file"
        )
    rng = np.random.default_rng(seed)
    changed = rng.choice(weights.size, round(weights.size * percent / 100), replace=False)
    factors = rng.choice(np.array([1 + by, 1 - by], np.float32), changed.size)
    weights[changed] *= factors
    ends = np.cumsum([array.size for array in arrays])[:-1]
    for tensor, array, values in zip(tensors, arrays, np.split(weights, ends), strict=True):
        tensor.CopyFrom(numpy_helper.from_array(values.reshape(array.shape), tensor.name))
    _write(out, graph_file.SerializeToString(deterministic=True))
    return int(changed.size)


def _onnx() -> tuple[Any, Any]:
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise UsageError(
            "changing a model's weights needs onnx; install it with `pip install 'edgeflare[bench]'`"
        ) from error
    return onnx, numpy_helper


def _loaded(onnx: Any, path: Path) -> Any:
    unparsable = import_module(
        "google.protobuf.message"
    ).DecodeError  # comes with onnx; has no types
    try:
        model = onnx.load_model(path, format="protobuf")
    except FileNotFoundError as error:
        raise UsageError(f"{error.filename or path} is needed, but does not exist") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error}") from error
    except (unparsable, ValueError, onnx.checker.ValidationError) as error:
        raise UsageError(f"{path} is no ONNX file that can be read") from error
    if not model.graph.node:
        raise UsageError(f"{path} is no ONNX file: there is no graph in it")
    return model


def _write(path: Path, content: bytes) -> None:
    with told_of(path.parent, begun=False):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_durably(path, content)

"""The deployed models that a suite asks to make from their originals (section 5.4.1)."""

import math
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare._internal import extras
from edgeflare._internal.files import write_durably
from edgeflare._internal.text import reason
from edgeflare.errors import UsageError
from edgeflare.store.database import translate_errors
from edgeflare_bench.cells import Bench, Cell, CellState, made_model
from edgeflare_bench.suite import PairConfig


def make_model(folder: Path, pair: PairConfig) -> None:
    """Make a pair's deployed model in the bench's folder, unless it is there or is not to be made.

    Raises UsageError where it can't be made from the original, StoreError where it can't be
    written.
    """
    made = made_model(folder, pair)
    if pair.perturb is None or made.is_file():
        return
    if not pair.original.path.is_file():
        raise UsageError(f"there is no model file {pair.original.path}")

    with translate_errors(folder):
        made.parent.mkdir(exist_ok=True)
        perturb_weights(pair.original.path, made, **pair.perturb.model_dump())


def make_again(bench: Bench, states: Mapping[Cell, CellState]) -> None:
    """Make the models again that were removed since their cells began; they come out the same.

    One that can't be made is left out: `check_same_files` reports it.
    """
    for pair in bench.suite.pairs:
        own = {state for cell, state in states.items() if cell.pair == pair.name}
        if own - {"missing"} and own != {"finished"}:
            with suppress(UsageError):
                make_model(bench.folder, pair)


def perturb_weights(model: Path, out: Path, *, percent: float, by: float, seed: int) -> int:
    """Write a copy of the ONNX file `model` to `out` in which some weights differ; return how many.

    The weights are the elements of all float32 initialisers of two or more axes. `percent` % of
    them (0 to 100, the count rounded to whole weights), drawn uniformly over all of them together,
    are each multiplied by 1 + `by` or 1 - `by`, with probability 1/2. The same `seed` gives the
    same file. Everything else of the model, metadata included, stays. `out` is replaced in one
    step.

    Raises UsageError for numbers out of range, and where `model` is no ONNX file that can be read
    or has no such weights; StoreError, DiskFullError among them, where `out` can't be written.
    """
    if not 0 <= percent <= 100:
        raise UsageError(f"percent is {percent}, but a share of the weights lies in 0 to 100")
    if not math.isfinite(by):
        raise UsageError(f"by is {by}, but weights are changed by a finite share, such as 0.1")
    onnx = extras.onnx("changing a model's weights")
    numpy_helper = onnx.numpy_helper
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
    with translate_errors(out.parent, resumable=False):
        out.parent.mkdir(parents=True, exist_ok=True)
        write_durably(out, graph_file.SerializeToString(deterministic=True))
    return int(changed.size)


def _loaded(onnx: Any, path: Path) -> Any:
    unparsable = import_module("google.protobuf.message").DecodeError  # comes with onnx
    try:
        model = onnx.load_model(path, format="protobuf")
    except FileNotFoundError as error:
        raise UsageError(f"{error.filename or path} is needed, but does not exist") from error
    except OSError as error:
        raise UsageError(f"{path} can't be read: {reason(error)}") from error
    except (unparsable, ValueError, onnx.checker.ValidationError) as error:
        raise UsageError(f"{path} is no ONNX file that can be read") from error
    if not model.graph.node:
        raise UsageError(f"{path} is no ONNX file: there is no graph in it")
    return model

"""Healthy compressed models of an original: what a fault must be told apart from."""

import io
import logging
import math
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from edgeflare.models.quantized import Recipe, quantized
from edgeflare_bench.faults.distillation import distilled
from edgeflare_bench.faults.graph_edit import GraphEdit
from edgeflare_bench.faults.originals import Batch, Original

SEED = 20_261_124
"""Draws the calibration sets."""
_SETS = 5
_SHARES = (0.05, 0.1, 0.15, 0.2)


@dataclass(frozen=True)
class Healthy:
    """A compressed model without a fault: its name, kind of compression and ONNX model.

    `base`: the float ONNX model whose int8 models are its references, where that isn't the
    original.
    """

    name: str
    kind: str
    model: Any
    base: Any = None


def healthy_models(original: Original) -> Iterator[Healthy]:
    """Yield compressed models of an original, made one by one, always the same: 24, or 27.

    Static int8 by ONNX Runtime with weights per channel and per tensor, each calibrated on five
    sets of natural inputs by least and greatest values, per channel on three by percentiles, too;
    dynamic int8 with signed and unsigned weights; 5 to 20 % of each layer's smallest weights pruned
    (magnitude pruning; Han et al., NeurIPS 2015), and each of these in int8; weights in half
    precision. Of an original with one channel, where the extra `torch` is installed: a distilled
    student, in float and in int8 with weights per channel and per tensor.
    """
    for number in range(_SETS):
        calibration = _calibration(original, number)
        for per_channel in (True, False):
            kind = "per-channel" if per_channel else "per-tensor"
            model = _int8(original.model, calibration, Recipe(kind, per_channel))
            yield Healthy(f"{kind} {number}", kind, model)
        if number < 3:
            recipe = Recipe("percentile", per_channel=True, calibration="percentile")
            model = _int8(original.model, calibration, recipe)
            yield Healthy(f"percentile {number}", "percentile", model)
    for unsigned in (False, True):
        dynamic = Recipe("dynamic", False, calibration="dynamic", unsigned=unsigned)
        model = _int8(original.model, original.inputs[:0], dynamic)
        yield Healthy(f"dynamic {'QUInt8' if unsigned else 'QInt8'}", "dynamic", model)
    for share in _SHARES:
        base = pruned(original.model, share)
        model = _int8(base, _calibration(original, 0), Recipe("pruned", per_channel=True))
        yield Healthy(f"pruned {share:.0%}", "pruned", base, base)
        yield Healthy(f"pruned {share:.0%}, int8", "pruned, int8", model, base)
    yield Healthy("half-precision weights", "fp16", half_precision(original.model))
    size = math.prod(original.inputs.shape[axis] for axis in original.axes)
    if original.inputs[0].size == size and find_spec("torch"):
        student = distilled(original)
        yield Healthy("distilled", "distilled", student, student)
        for kind in ("per-channel", "per-tensor"):
            recipe = Recipe(kind, per_channel=kind == "per-channel")
            model = _int8(student, _calibration(original, 0), recipe)
            yield Healthy(f"distilled, int8 {kind}", "distilled", model, student)


def pruned(model: Any, share: float) -> Any:
    """Return a copy in which this share (0 to 1) of each layer's weights, the smallest, are 0."""
    edit = GraphEdit(model)
    for name in dict.fromkeys(name for _, name in edit.weights()):
        weights = edit.array(name)
        smallest = np.argsort(np.abs(weights), axis=None, kind="stable")
        weights.reshape(-1)[smallest[: int(share * weights.size)]] = 0
        edit.set_array(name, weights)
    return edit.finish()


def half_precision(model: Any) -> Any:
    """Return a copy whose weights are rounded to half precision; it computes as before."""
    edit = GraphEdit(model)
    for name in dict.fromkeys(name for _, name in edit.weights()):
        edit.set_array(name, edit.array(name).astype(np.float16).astype(np.float32))
    return edit.finish()


def _calibration(original: Original, number: int) -> Batch:
    rng = np.random.default_rng([SEED, number])
    count = len(original.inputs)
    return original.inputs[rng.permutation(count)[: min(64, count * 4 // 5)]]


def _int8(model: Any, calibration: Batch, recipe: Recipe) -> Any:
    chatty = logging.getLogger()
    level = chatty.level
    chatty.setLevel(logging.ERROR)  # advice to prepare the model, on the root logger
    try:
        with redirect_stdout(io.StringIO()):  # the quantiser prints its progress
            return quantized(model, recipe, [one[None] for one in calibration])
    finally:
        chatty.setLevel(level)

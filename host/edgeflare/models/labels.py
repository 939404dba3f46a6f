"""Outputs that are a label and no scores: one value, the class index, such as the output of an ArgMax."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import ModelError
from edgeflare.text import shape_text
from edgeflare.types import Scores
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize

_SLACK = 1e-3
"""A float this close to a whole number is that class."""


def has_one_value(tensor: TensorInfo) -> bool:
    """Whether an output is one number a sample: shape [], [1], [1, 1] and so on, the batch axis open or 1.

    A single open axis, shape [?], is taken for the batch; the answers are checked later.
    """
    return all(size == 1 for size in tensor.shape[1:]) and tensor.shape[:1] in ((), (1,), (None,))


def is_index(tensor: TensorInfo) -> bool:
    """Whether an output can only be a class index: one integer a sample.

    A single float, and a single integer with a quantisation of its own, may be the score of one of two
    classes as well.
    """
    whole = tensor.quantization is None or tensor.quantization[0] == 1
    return has_one_value(tensor) and tensor.dtype.lstrip("u").startswith("int") and whole


def check_index(tensor: TensorInfo) -> None:
    """Raise ModelError where an output that the user states to be a class index can't be one."""
    if not all(size in (1, None) for size in tensor.shape):
        raise ModelError(
            f"output {tensor.name!r} of the deployed model has shape {shape_text(tensor.shape)}, more than one "
            "class index a sample; leave `output` at auto, or name another with `output_name`"
        )
    if tensor.quantization is not None and tensor.quantization[0] > 1:
        raise ModelError(
            f"output {tensor.name!r} of the deployed model is quantised in steps of "
            f"{tensor.quantization[0]:g}, which can't tell neighbouring classes apart; leave the class "
            "index an integer without quantisation"
        )


def one_hot(raw: NDArray[Any], tensor: TensorInfo, classes: int) -> Scores:
    """Return float64 [classes], 1 at the class that a raw output of one value names and 0 elsewhere.

    NaN and infinity give NaN throughout. Raises ModelError for more than one value, one that is not
    whole, and an index out of range.
    """
    if raw.size != 1:
        raise ModelError(
            f"output {tensor.name!r} of the deployed model holds {raw.size} values where one class index "
            "was expected; state what they are with `--deployed-output probabilities` or `logits`"
        )
    value = float(dequantize(raw, tensor.quantization).reshape(()))
    if not np.isfinite(value):
        return np.full(classes, np.nan)
    index = round(value)
    step = tensor.quantization[0] if tensor.quantization else 0.0
    if abs(value - index) > max(_SLACK, step / 2):
        raise ModelError(
            f"output {tensor.name!r} of the deployed model is {value:g}, which is no class index; give a "
            "model that ends in its class index, or in a score for each class"
        )
    if not 0 <= index < classes:
        raise ModelError(
            f"the deployed model names class {index}, but the original has {classes} classes, 0 to "
            f"{classes - 1}: the two number their classes differently (a background class at 0 is a "
            "usual cause); give two that number them alike"
        )
    scores = np.zeros(classes)
    scores[index] = 1.0
    return scores

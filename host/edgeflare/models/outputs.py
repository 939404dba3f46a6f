"""Raw model outputs -> probabilities. Done on the host for both models: `exp` differs by architecture."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import ModelError
from edgeflare.types import Scores
from edgeflare_agent.spec import TensorInfo

OutputKind: TypeAlias = Literal["probabilities", "logits"]

_SOFTMAX_STEP = 1.0 / 256
_SUM_TOLERANCE = 0.02


class OutputReader(NamedTuple):
    """How one model's raw output becomes scores."""

    tensor: TensorInfo
    kind: OutputKind

    def scores(self, raw: NDArray[Any]) -> Scores:
        """Return probabilities, float64 [classes], for one raw output of any shape.

        Integers are de-quantised by the model's own parameters; logits go through a softmax in
        float64. Probabilities are passed on as they are: those of an integer output may sum to a
        little less or more than 1. NaN and infinity are passed on, never hidden.
        """
        real = dequantise(raw, self.tensor)
        return softmax(real) if self.kind == "logits" else real


def dequantise(raw: NDArray[Any], tensor: TensorInfo) -> Scores:
    """Return real = scale * (stored - zero point) as float64 [classes]."""
    flat = np.asarray(raw).reshape(-1).astype(np.float64)
    if tensor.quantization is None:
        return flat
    scale, zero_point = tensor.quantization
    return scale * (flat - zero_point)


def softmax(logits: Scores) -> Scores:
    """Return exp(x) / sum(exp(x)), NaN throughout where an entry is not finite."""
    if not np.isfinite(logits).all():
        return np.full_like(logits, np.nan)
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def detect_kind(tensor: TensorInfo, raws: Sequence[NDArray[Any]]) -> OutputKind:
    """Tell probabilities from logits by the quantisation of the output, else by outputs seen.

    A step of 1/256 over [0, 1] is what TFLite gives a softmax. Otherwise probabilities are outputs
    that all lie in [0, 1] and sum to 1 (within 0.02); outputs with NaN or infinity say nothing.
    """
    if tensor.quantization is not None:
        scale, zero_point = tensor.quantization
        lowest = int(np.iinfo(np.dtype(tensor.dtype)).min)
        if scale == _SOFTMAX_STEP and zero_point == lowest:
            return "probabilities"
    vectors = [dequantise(raw, tensor) for raw in raws]
    finite = [vector for vector in vectors if np.isfinite(vector).all()]
    looks_like = all(
        vector.min() >= -1e-6
        and vector.max() <= 1 + 1e-6
        and abs(float(vector.sum()) - 1) <= _SUM_TOLERANCE
        for vector in finite
    )
    return "probabilities" if finite and looks_like else "logits"


def output_classes(tensor: TensorInfo, whose: str) -> int:
    """Return how many classes an output tensor has. Raises ModelError where it is no class vector."""
    known = (
        [size for size in tensor.shape[1:] if size != 1]
        if len(tensor.shape) > 1
        else [size for size in tensor.shape if size != 1]
    )
    if len(known) != 1 or known[0] is None:
        shape = " x ".join("?" if size is None else str(size) for size in tensor.shape)
        raise ModelError(
            f"output {tensor.name!r} of {whose} has shape {shape}: not one score for each class; "
            "name the output that is, with `output_name` in campaign.toml"
        )
    return known[0]

"""Raw model outputs -> probabilities, or transcripts.

Probabilities are computed on the host for both models, since `exp` differs by architecture. Transcripts are decoded where
the model runs, by `edgeflare_agent.decoding`, which has its own exp.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.errors import ModelError
from edgeflare.models.labels import one_hot
from edgeflare.text import clean_text, shape_text
from edgeflare.types import Output, Scores, Transcript
from edgeflare_agent.decoding import Decoded, RawOutput
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize

OutputKind: TypeAlias = Literal["probabilities", "logits", "label", "transcript"]
_SLACK = 1e-6


class OutputReader(NamedTuple):
    """Converts one model's raw output to its answer; a label alone becomes scores of `classes`."""

    tensor: TensorInfo
    kind: OutputKind
    classes: int = 0

    @property
    def labels_only(self) -> bool:
        """Whether its scores are a label written as scores: 1 and zeros."""
        return self.kind == "label"

    def read(self, raw: RawOutput | Output) -> Output:
        """Return a transcript, or probabilities, float64 [classes], for one raw output of any shape.

        Integers are de-quantised by the model's own parameters; logits go through a softmax in
        float64. Probabilities are unchanged: those of an integer output may sum to a little
        less or more than 1. A label becomes 1 at its class and 0 elsewhere. NaN and infinity stay. Raises ModelError for a label that is no class of the original.
        """
        if isinstance(raw, (Decoded, Transcript)):
            return unread(raw)
        if self.kind == "label":
            return one_hot(raw, self.tensor, self.classes)
        real = dequantise(raw, self.tensor)
        return softmax(real) if self.kind == "logits" else real


def unread(raw: RawOutput | Output) -> Output:
    """Return a decoded output as a transcript without control characters, any other output unchanged."""
    if isinstance(raw, Decoded):
        pieces = tuple(clean_text(one, lines=True) for one in raw.pieces)
        return Transcript(pieces, np.asarray(raw.scores, np.float64))
    return raw


def dequantise(raw: NDArray[Any], tensor: TensorInfo) -> Scores:
    """Return the real values of a raw output as float64 [classes]."""
    return dequantize(raw, tensor.quantization).reshape(-1)


def softmax(logits: Scores) -> Scores:
    """Return exp(x) / sum(exp(x)), NaN throughout where an entry is not finite."""
    if not np.isfinite(logits).all():
        return np.full_like(logits, np.nan)
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


def detect_kind(tensor: TensorInfo, raws: Sequence[NDArray[Any]]) -> OutputKind:
    """Return whether outputs are probabilities, which all lie in [0, 1], or logits.

    Their sum is not checked: rounded to 8 bits, a thousand probabilities may sum to 0.7. Outputs with NaN or infinity
    are ignored.
    """
    finite = [vector for vector in _real(tensor, raws) if np.isfinite(vector).all()]
    within = all(vector.min() >= -_SLACK and vector.max() <= 1 + _SLACK for vector in finite)
    return "probabilities" if finite and within else "logits"


def largest_sum_error(tensor: TensorInfo, raws: Sequence[NDArray[Any]]) -> float:
    """Return the largest difference of an output's sum from 1, beyond what its own rounding explains; 0 if none is."""
    step = tensor.quantization[0] if tensor.quantization else 0.0
    errors = [
        abs(float(vector.sum()) - 1) - vector.size * step / 2
        for vector in _real(tensor, raws)
        if np.isfinite(vector).all()
    ]
    return max(0.0, *errors) if errors else 0.0


def _real(tensor: TensorInfo, raws: Sequence[NDArray[Any]]) -> list[Scores]:
    return [dequantise(raw, tensor) for raw in raws]


def output_classes(tensor: TensorInfo, whose: str) -> int:
    """Return how many classes an output tensor has. Raises ModelError where it is no class vector."""
    known = (
        [size for size in tensor.shape[1:] if size != 1]
        if len(tensor.shape) > 1
        else [size for size in tensor.shape if size != 1]
    )
    if len(known) != 1 or known[0] is None:
        raise ModelError(
            f"output {tensor.name!r} of {whose} has shape {shape_text(tensor.shape)}: not one score for each class; "
            + (
                "export the model with a fixed number of classes"
                if known == [None]
                else "models for segmentation, detection and regression aren't supported yet"
            )
        )
    return known[0]

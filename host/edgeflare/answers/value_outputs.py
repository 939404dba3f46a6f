"""Raw outputs that are neither class scores, text nor boxes: values, embeddings, and labels of which several apply."""

from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.npz import read_npz
from edgeflare._internal.text import names_text
from edgeflare.answers.detections.formats.dense import as_shaped
from edgeflare.answers.measures import label_map
from edgeflare.answers.outputs import OutputKind, check_values, softmax
from edgeflare.errors import ModelError, UsageError
from edgeflare.types import DetectionRules, Detections, Output, Scores, ValueRules, Values
from edgeflare_agent.decoding import RawOutput
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize

MOST_TAGS = 300
"""So many labels of the highest scores are kept of an answer, and all that are detected."""
TEMPERATURE = 0.05
"""What cosines are divided by before the softmax over a gallery: one nearer by .05 is e times as likely."""
_MOST_GALLERY_BYTES = 1 << 28


class ValuesReader(NamedTuple):
    """Converts raw outputs to `Values`: one output in its own shape, several laid end to end.

    `moved_axes`: from which axis to which one of the sample's array is moved. `as_labels`: the
    values are the `edgeflare.values.label_map`, without axes of size 1.
    """

    tensors: tuple[TensorInfo, ...]
    rules: ValueRules
    moved_axes: tuple[int, int] | None = None
    as_labels: bool = False
    kind: OutputKind = "values"

    def read(self, raw: RawOutput | Output) -> Output:
        """Return the answer for one sample, an array or one for each tensor, dequantised.

        Each gets its tensor's shape without the batch axis, where the model's file states it. Raises
        ModelError for an array of another size.
        """
        if isinstance(raw, Values):
            return raw
        pairs = zip(_real(raw, self.tensors), self.tensors, strict=True)
        arrays = [_of_sample(one, tensor) for one, tensor in pairs]
        if len(arrays) == 1:
            [array] = arrays
        else:
            array = np.concatenate([one.reshape(-1) for one in arrays])
        if self.moved_axes is not None:
            array = np.moveaxis(array, *self.moved_axes)
        if self.as_labels and np.isfinite(array).all():
            labels = label_map(Values(array, self.rules)).squeeze()
            return Values(labels.astype(np.float64), self.rules._replace(axis=None))
        if self.rules.tolerances and len(self.rules.tolerances) != array.size:
            raise ModelError(
                f"the model returns {array.size} values, and there are {len(self.rules.tolerances)} tolerances: "
                "state one for each in the table [values]"
            )
        return Values(array, self.rules)

    def read_all(self, raws: Sequence[RawOutput | Output]) -> list[Output]:
        """Return the answers for several samples."""
        return [self.read(raw) for raw in raws]


class TagsReader(NamedTuple):
    """Converts the scores of labels, of which any number apply, to `Detections` without places.

    `logits`: the output is before the sigmoid.
    """

    tensor: TensorInfo
    rules: DetectionRules
    logits: bool = False

    @property
    def kind(self) -> OutputKind:
        """What the output is."""
        return "tag-logits" if self.logits else "tags"

    @property
    def classes(self) -> int:
        """The number of labels; 0 where the output's shape doesn't tell."""
        shape = self.tensor.shape
        return prod(size or 0 for size in (shape[1:] if len(shape) > 1 else shape))

    def read(self, raw: RawOutput | Output) -> Output:
        """Return the labels of one sample, the highest score first: `MOST_TAGS`, or all detected ones.

        Each has the whole sample as its box. NaN comes first; infinity becomes NaN.
        """
        if isinstance(raw, Detections):
            return raw
        scores = _real(raw, (self.tensor,))[0].reshape(-1)
        check_values(scores, self.tensor, self.classes)
        scores = np.where(np.isfinite(scores), scores, np.nan)
        if self.logits:
            scores = exact.sigmoid(scores)
        order = np.argsort(-scores, kind="stable")
        order = np.concatenate([order[np.isnan(scores[order])], order[~np.isnan(scores[order])]])
        order = order[: max(MOST_TAGS, np.count_nonzero(~(scores < self.rules.confidence)))]
        boxes = np.tile(np.array([0.0, 0.0, 1.0, 1.0]), (len(order), 1))
        return Detections(boxes, order.astype(np.int64), scores[order], self.rules)

    def read_all(self, raws: Sequence[RawOutput | Output]) -> list[Output]:
        """Return the answers for several samples."""
        return [self.read(raw) for raw in raws]


class GalleryReader(NamedTuple):
    """Converts an embedding to scores of the entries of a gallery: the softmax of the cosines.

    `gallery`: float64 [entries, size], rows of length 1. Cosines are divided by `TEMPERATURE`.
    """

    tensor: TensorInfo
    gallery: NDArray[np.float64]
    kind: OutputKind = "gallery"

    def read(self, raw: RawOutput | Output) -> Output:
        """Return float64 [entries]; NaN throughout where the embedding is 0 or not finite."""
        embedding = _real(raw, (self.tensor,))[0].reshape(-1)
        length = exact.norm(embedding) if np.isfinite(embedding).all() else 0.0
        if not 0 < length < np.inf:
            return np.full(len(self.gallery), np.nan)
        # rows laid out one after the other: each sum has the bits of `exact.dot`
        cosines = np.multiply(self.gallery, embedding, order="C").sum(axis=1) / length
        found: Scores = softmax(cosines / TEMPERATURE)
        return found

    def read_all(self, raws: Sequence[RawOutput | Output]) -> list[Output]:
        """Return the answers for several samples."""
        return [self.read(raw) for raw in raws]


def load_gallery(path: Path, size: int) -> NDArray[np.float64]:
    """Return the embeddings of a gallery, float64 [entries, size], each of length 1.

    `path`: an .npz with `embeddings`, [entries, size], of two entries at least. Raises UsageError.
    """
    where = f"the gallery {path}"
    arrays = read_npz(path, "gallery", "embeddings=...", _MOST_GALLERY_BYTES)
    if "embeddings" not in arrays:
        raise UsageError(
            f"{where} has no array `embeddings`; it has {names_text(arrays) or 'none'}"
        )
    if arrays["embeddings"].dtype.kind not in "biuf":
        raise UsageError(
            f"{where} holds no embeddings of real numbers; write it with numpy.savez(FILE, "
            "embeddings=...)"
        )
    rows = arrays["embeddings"].astype(np.float64)
    if rows.ndim != 2 or rows.shape[0] < 2 or rows.shape[1] != size:
        raise UsageError(
            f"{where} has embeddings of shape {list(rows.shape)}, and the model returns {size} values: give one "
            "row for each entry, two at least"
        )
    with np.errstate(over="ignore"):
        lengths = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        raise UsageError(f"{where} has an embedding that is 0 or not finite; leave it out")
    entries = np.asarray(rows / lengths) + 0.0  # -0.0 becomes 0.0, of other bytes
    seen: dict[bytes, int] = {}
    for place, entry in enumerate(entries):
        first = seen.setdefault(entry.tobytes(), place)
        if first != place:
            raise UsageError(
                f"{where} has the same embedding in rows {first} and {place} (counted from 0), which no answer "
                "tells apart: leave one out"
            )
    return entries


def _real(raw: Any, tensors: Sequence[TensorInfo]) -> list[NDArray[np.float64]]:
    """Return the real values of the raw outputs of one sample. Raises ModelError for others."""
    arrays = raw if isinstance(raw, tuple) else (raw,)
    if len(arrays) != len(tensors) or not all(isinstance(array, np.ndarray) for array in arrays):
        raise ModelError(f"{len(tensors)} outputs were to come from the model, {len(arrays)} came")
    pairs = zip(arrays, tensors, strict=True)
    return [dequantize(one, tensor.quantization) for one, tensor in pairs]


def _of_sample(array: NDArray[np.float64], tensor: TensorInfo) -> NDArray[np.float64]:
    """Return an output in its tensor's shape without the batch axis; as it came where that is open.

    An axis of 0 is open, too. Raises ModelError for another number of values.
    """
    shape = tuple(tensor.shape)
    if len(shape) > 1 and not shape[0] and array.ndim == len(shape) and array.shape[0] > 1:
        return array  # its first axis is no batch
    if len(shape) > 1 and shape[0] in (None, 0, 1):
        shape = shape[1:]
    if shape and all(shape):
        return as_shaped(array, tensor._replace(shape=(1, *shape)))
    return np.asarray(array[0]) if array.ndim > 1 and array.shape[0] == 1 else array

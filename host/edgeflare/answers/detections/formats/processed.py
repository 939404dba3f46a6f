"""Outputs in which the model itself has chosen its objects: end-to-end, and SSD's post-processing."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import names_text, shape_text
from edgeflare.answers.detections.formats.dense import (
    Decoder,
    Found,
    as_shaped,
    check_counts,
    listed,
    ltrb_shares,
)
from edgeflare.errors import ModelError
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize


class EndToEnd(Decoder):
    """One tensor [1, objects, 6]: left, top, right, bottom, score and class."""

    def __post_init__(self) -> None:
        """Raise ModelError for another tensor."""
        if len(self.tensor.shape) != 3 or self.tensor.shape[2] != 6:
            raise ModelError(
                f"output {self.tensor.name!r} of shape {shape_text(self.tensor.shape)} is no list of "
                "objects of kind end-to-end, [1, objects, 6]; state the format with `--decoder kind=`"
            )

    def decode(self, raws: Sequence[NDArray[Any]], floor: float) -> Found:
        """Return the candidates of a sample's raw outputs."""
        rows = dequantize(as_shaped(raws[0], self.tensor), self.tensor.quantization)
        options = self.options
        boxes = ltrb_shares(rows[:, :4].T, options.box_order, options.box_units, self.size)
        return listed(boxes, rows[:, 5], rows[:, 4], floor)


class SsdObjects(Decoder):
    """Boxes [1, objects, 4], classes and scores [1, objects], and maybe the number of objects."""

    def __post_init__(self) -> None:
        """Raise ModelError for other tensors."""
        shapes = [tensor.shape for tensor in self.tensors]
        fits = len(shapes) in (3, 4) and len(shapes[0]) == 3 and shapes[0][2] == 4
        if not fits or shapes[1][-1:] != shapes[2][-1:] or shapes[1][-1:] != shapes[0][1:2]:
            raise ModelError(
                "outputs of shapes "
                + names_text([shape_text(shape) for shape in shapes])
                + " are no boxes [1, objects, 4], classes and scores [1, objects] and number of "
                "objects; name them, in this order, with `--decoder outputs=`"
            )

    def decode(self, raws: Sequence[NDArray[Any]], floor: float) -> Found:
        """Return the candidates of a sample's raw outputs: those within the number of objects."""
        real = [
            dequantize(as_shaped(raw, tensor), tensor.quantization)
            for raw, tensor in zip(raws, self.tensors, strict=True)
        ]
        boxes, classes, scores = real[0].reshape(-1, 4), real[1].reshape(-1), real[2].reshape(-1)
        check_counts(boxes=len(boxes), classes=len(classes), scores=len(scores))
        if len(real) == 4:
            number = float(real[3].reshape(-1)[0])
            if np.isfinite(number):
                count = max(0, round(number))
                boxes, classes, scores = boxes[:count], classes[:count], scores[:count]
            else:
                scores = np.full(len(scores), np.nan)
        options = self.options
        shares = ltrb_shares(boxes.T, options.box_order, options.box_units, self.size)
        return listed(shares, classes, scores, floor)


def ssd_places(tensors: Sequence[TensorInfo]) -> tuple[int, ...] | None:
    """Return the places of boxes, the two lists and the number of objects among a model's outputs.

    None where shapes and names don't tell. Which list has the classes is not looked at.
    """
    boxes = [place for place, one in enumerate(tensors) if one.shape[2:] == (4,)]
    if len(boxes) > 1:
        boxes = [place for place in boxes if "raw" not in tensors[place].name.lower()]
    if len(boxes) != 1:
        return None
    objects = tensors[boxes[0]].shape[1]
    lists = [place for place, one in enumerate(tensors) if one.shape[1:] == (objects,)]
    if len(lists) > 2:
        words = ("class", "score")
        lists = [p for p in lists if any(word in tensors[p].name.lower() for word in words)]
    numbers = [
        place
        for place, one in enumerate(tensors)
        if place not in lists and all(size in (1, None) for size in one.shape)
    ]
    if len(lists) != 2 or len(numbers) > 1:
        return None
    return (*boxes, *lists, *numbers)

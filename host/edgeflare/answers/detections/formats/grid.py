"""Anchor-free grids, as `GridOptions` describes them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.text import shape_text
from edgeflare.answers.detections.formats.dense import (
    Decoder,
    Found,
    Plane,
    ScoreRule,
    as_shaped,
    broken_anchors,
    choose,
    ltrb_shares,
)
from edgeflare.answers.detections.formats.options import FASTESTDET, GridOptions
from edgeflare.errors import ModelError
from edgeflare_agent.image_spec import TensorInfo


class Grids(Decoder):
    """One or several tensors, each a grid over the whole image; anchors are cells, row by row."""

    def __post_init__(self) -> None:
        """Raise ModelError for tensors that are no such grids."""
        for tensor in self.tensors:
            channels = len(tensor.shape) == 4 and tensor.shape[channels_axis(tensor, self.size)]
            last = max(*self.grid.box, self.grid.objectness or 0, self._class_range(0).stop - 1)
            if None in tensor.shape[1:] or not channels or channels <= last:
                raise ModelError(
                    f"output {tensor.name!r} of shape {shape_text(tensor.shape)} is no grid with the "
                    f"channels that are stated, 0 to {last}; name the outputs that are with "
                    "`--decoder outputs=`"
                )

    @property
    def grid(self) -> GridOptions:
        """What describes a cell."""
        return self.options.grid or FASTESTDET

    @property
    def classes(self) -> int:
        """The number of classes."""
        tensor = self.tensors[0]
        channels = tensor.shape[channels_axis(tensor, self.size)]
        return len(self._class_range(channels or 0))

    def decode(self, raws: Sequence[NDArray[Any]], floor: float) -> Found:
        """Return the candidates of a sample's raw outputs."""
        parts = [
            self._of_grid(as_shaped(raw, tensor), tensor, floor)
            for raw, tensor in zip(raws, self.tensors, strict=True)
        ]
        return Found(*(np.concatenate(one) for one in zip(*parts, strict=True)))

    def _of_grid(self, values: NDArray[Any], tensor: TensorInfo, floor: float) -> Found:
        grid, numbers = self.grid, tensor.quantization
        if channels_axis(tensor, self.size) == 3:
            values = values.transpose(2, 0, 1)
        channels, rows, columns = values.shape
        values = values.reshape(channels, rows * columns)
        within = self._class_range(channels)
        classes = Plane(values[within.start : within.stop], numbers)
        boxes = Plane(values[list(grid.box)], numbers)
        objectness = None
        if grid.objectness is not None:
            objectness = Plane(values[grid.objectness : grid.objectness + 1], numbers)
        broken = broken_anchors([values])
        rule = ScoreRule(
            self.options.activation or "none",
            objectness_power=grid.objectness_power,
            class_power=grid.class_power,
        )
        anchors, labels, scores = choose(classes, objectness, rule, floor, broken)
        places = boxes.real(boxes.values[:, anchors])
        return Found(self._boxes(places, anchors, (rows, columns)), labels, scores)

    def _boxes(
        self,
        values: NDArray[np.float64],
        places: NDArray[np.int64],
        shape: tuple[int, int],
    ) -> NDArray[np.float64]:
        """Return boxes as `Detections` has them for the values [4, n] of the cells `places`."""
        rows, columns = shape
        row, column = places // columns, places % columns
        with np.errstate(invalid="ignore", over="ignore"):
            if self.grid.form == "distances":
                left, top, right, bottom = self._lengths(values, (columns, rows, columns, rows))
                middle = (column + 0.5) / columns, (row + 0.5) / rows
                corners = middle[0] - left, middle[1] - top, middle[0] + right, middle[1] + bottom
                return np.stack(corners, axis=1)
            width, height = self._lengths(values[2:], (columns, rows))
            offsets = _CENTRES[self.grid.centre](values[:2])
            centre = (column + offsets[0]) / columns, (row + offsets[1]) / rows
            return ltrb_shares(np.stack([*centre, width, height]), "cxcywh", "shares", self.size)

    def _lengths(
        self, values: NDArray[np.float64], cells: Sequence[int]
    ) -> list[NDArray[np.float64]]:
        """Return lengths as shares of the image, of values [k, n], in `cells` a side each."""
        if self.grid.size == "sigmoid":
            return list(exact.sigmoid(values))
        lengths = exact.exp(values) if self.grid.size == "exp" else values
        return [length / count for length, count in zip(lengths, cells, strict=True)]

    def _class_range(self, channels: int) -> range:
        first, count = self.grid.classes
        return range(first, max(channels, first + 1) if count is None else first + count)


def channels_axis(tensor: TensorInfo, size: tuple[int, int]) -> int:
    """Return which axis of a grid has the channels, 1 or 3: the others are as the image's sides."""
    _, one, two, three = (size or 0 for size in tensor.shape)
    height, width = size
    along_last = abs(one * width - two * height)
    along_first = abs(two * width - three * height)
    return 3 if along_last < along_first else 1


def _linear(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values


_CENTRES = {"tanh": exact.tanh, "sigmoid": exact.sigmoid, "linear": _linear}

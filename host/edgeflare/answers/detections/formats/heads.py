"""Heads with a prediction for each anchor: YOLO's, and SSD's with its priors decoded."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import shape_text
from edgeflare.answers.detections.formats.dense import (
    Decoder,
    Found,
    Plane,
    ScoreRule,
    as_shaped,
    broken_anchors,
    check_counts,
    choose,
    ltrb_shares,
)
from edgeflare.answers.detections.formats.options import NO_BACKGROUND, DetectorOptions
from edgeflare.errors import ModelError
from edgeflare_agent.image_spec import TensorInfo


class YoloHead(Decoder):
    """Boxes, maybe an objectness, and the classes in one tensor, one of whose axes has the anchors."""

    def __post_init__(self) -> None:
        """Raise ModelError where the tensor is none of a head."""
        if len(self.tensor.shape) != 3 or self.classes < 1:
            raise ModelError(
                f"output {self.tensor.name!r} of shape {shape_text(self.tensor.shape)} is no head of "
                f"kind {self.options.kind}, which has {self.first_class} values and the classes for "
                "each anchor; state the format with `--decoder kind=`, and its output with "
                "`--decoder outputs=`"
            )

    @property
    def first_class(self) -> int:
        """The first channel of the classes."""
        return 5 if self.options.kind == "yolo-objectness" else 4

    @property
    def classes(self) -> int:
        """The number of classes."""
        return (self.tensor.shape[channel_axis(self.tensor)] or 0) - self.first_class

    @property
    def anchor_axes(self) -> tuple[int, ...]:
        """The axis of the anchors of each tensor."""
        return (3 - channel_axis(self.tensor),)

    @property
    def values(self) -> int:
        """How many values an anchor has; a tensor has more anchors."""
        return self.first_class + self.classes

    @property
    def score_rows(self) -> tuple[int, int]:
        """The first and the last channel of the classes."""
        return self.first_class, self.values - 1

    def planes(self, raws: Sequence[NDArray[Any]]) -> tuple[Plane, Plane | None, Plane]:
        """Return boxes, objectness and classes of a sample's raw outputs."""
        values = self._by_anchor(raws)
        first, numbers = self.first_class, self.tensor.quantization
        objectness = Plane(values[4:5], numbers) if first == 5 else None
        return Plane(values[:4], numbers), objectness, Plane(values[first:], numbers)

    def decode(self, raws: Sequence[NDArray[Any]], floor: float) -> Found:
        """Return the candidates of a sample's raw outputs."""
        broken = broken_anchors([self._by_anchor(raws)])
        return _decoded(self.planes(raws), self.options, self.size, floor, broken)

    def _by_anchor(self, raws: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Return the raw output as [channels, anchors]."""
        values = as_shaped(raws[0], self.tensor)
        return values if channel_axis(self.tensor) == 1 else values.T


class SplitHead(Decoder):
    """Scores in one tensor and boxes in another: "ssd-raw"."""

    def __post_init__(self) -> None:
        """Raise ModelError for tensors that are not of the same anchors."""
        shapes, axis = (self.scores.shape, self.boxes.shape), box_axis(self.boxes)
        alike = axis and len(shapes[0]) == 3 and shapes[0][3 - axis] == shapes[1][3 - axis]
        if alike and self.background >= (count := shapes[0][axis] or 0) > 0:
            raise ModelError(
                f"background must be -1 to {count - 1}, not {self.background}: output "
                f"{self.scores.name!r} of shape {shape_text(shapes[0])} has scores of {count} classes; state the "
                "background's number with `--decoder background=`, or -1 for none"
            )
        if not alike or self.classes < 1:
            raise ModelError(
                f"outputs {self.scores.name!r} and {self.boxes.name!r} of shapes "
                f"{shape_text(shapes[0])} and {shape_text(shapes[1])} are no scores [1, anchors, "
                "classes] and boxes [1, anchors, 4] of the same anchors; name the two, in this order, "
                "with `--decoder outputs=`"
            )

    @property
    def scores(self) -> TensorInfo:
        """The first tensor."""
        return self.tensors[0]

    @property
    def boxes(self) -> TensorInfo:
        """The second one."""
        return self.tensors[1]

    @property
    def classes(self) -> int:
        """The number of classes without the background."""
        return (self.scores.shape[box_axis(self.boxes)] or 0) - (self.background >= 0)

    @property
    def background(self) -> int:
        """The class of the background, -1 for none."""
        stated = self.options.background
        return NO_BACKGROUND if stated is None else stated

    @property
    def anchor_axes(self) -> tuple[int, ...]:
        """The axis of the anchors of each tensor."""
        return (3 - box_axis(self.boxes),) * 2

    @property
    def values(self) -> int:
        """How many values a box has; a tensor has more anchors."""
        return 4

    @property
    def score_rows(self) -> tuple[int, int] | None:
        """The first and the last class after the background; None: all classes count."""
        return (1, self.classes) if self.background == 0 else None

    def planes(self, raws: Sequence[NDArray[Any]]) -> tuple[Plane, Plane | None, Plane]:
        """Return boxes, None and scores, that of the background among them, of raw outputs.

        Raises ModelError for other numbers of anchors in both.
        """
        scores, boxes = as_shaped(raws[0], self.scores), as_shaped(raws[1], self.boxes)
        if box_axis(self.boxes) == 2:
            scores, boxes = scores.T, boxes.T
        check_counts(boxes=boxes.shape[1], scores=scores.shape[1])
        return Plane(boxes, self.boxes.quantization), None, Plane(scores, self.scores.quantization)

    def decode(self, raws: Sequence[NDArray[Any]], floor: float) -> Found:
        """Return the candidates of a sample's raw outputs."""
        boxes, _, scores = self.planes(raws)
        broken = broken_anchors([boxes.values, scores.values])
        planes = boxes, None, scores
        return _decoded(planes, self.options, self.size, floor, broken, self.background)


def channel_axis(tensor: TensorInfo) -> int:
    """Return which axis of a head [1, ?, ?] has the channels: the shorter one."""
    first, second = (*tensor.shape, None, None, None)[1:3]
    return 2 if second is not None and (first is None or first > second) else 1


def box_axis(tensor: TensorInfo) -> int:
    """Return which axis of boxes has the four values, the last where both do; 0 for neither."""
    if len(tensor.shape) != 3:
        return 0
    return 2 if tensor.shape[2] == 4 else 1 if tensor.shape[1] == 4 else 0


def _decoded(
    planes: tuple[Plane, Plane | None, Plane],
    options: DetectorOptions,
    size: tuple[int, int],
    floor: float,
    broken: NDArray[np.int64],
    background: int = NO_BACKGROUND,
) -> Found:
    boxes, objectness, classes = planes
    rule = ScoreRule(options.activation or "none", background)
    anchors, labels, scores = choose(classes, objectness, rule, floor, broken)
    places = boxes.real(boxes.values[:, anchors])
    shares = ltrb_shares(places, options.box_order, options.box_units, size)
    return Found(shares, labels, scores)

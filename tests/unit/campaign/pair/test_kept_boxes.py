"""Which anchors a device is told to keep of a detector's raw outputs."""

import pytest

from edgeflare.answers import DETECTIONS
from edgeflare.answers.detections.interfaces import keeping_boxes
from edgeflare.answers.interface import ModelInterface
from edgeflare.errors import ModelError, UsageError
from edgeflare.models import DetectorOptions, InputSpec, TensorInfo

IMAGES = InputSpec(shape=(1, 64, 64, 3), dtype="float32", channels=3, size=(64, 64))
Shape = tuple[int | None, ...]


def side(*shapes: Shape, kind: str, background: int | None = None) -> ModelInterface:
    tensors = tuple(
        TensorInfo(name, shape, "float32", None)
        for name, shape in zip(("first", "second"), shapes, strict=False)
    )
    options = DetectorOptions(kind=kind, background=background)
    return ModelInterface(
        IMAGES, tensors[0], kind=DETECTIONS, task="detection", outputs=tensors, detector=options
    )


@pytest.mark.parametrize(
    ("shapes", "kind", "background", "axes", "rows"),
    [
        ([(1, 10, 84)], "yolo", None, [2], [4, 9]),
        ([(1, 84, 10)], "yolo", None, [1], [4, 9]),
        ([(1, 84, 21), (1, 84, 4)], "ssd-raw", 0, [1, 1], [1, 20]),
        ([(1, 21, 84), (1, 4, 84)], "ssd-raw", -1, [2, 2], None),
        ([(1, 10, 21), (1, 10, 4)], "ssd-raw", 0, [1, 1], [1, 20]),  # more classes than anchors
    ],
)
def test_the_anchors_are_those_that_the_decoder_reads(shapes, kind, background, axes, rows) -> None:
    whole = side(*shapes, kind=kind, background=background)
    kept = keeping_boxes(whole, 30)
    assert kept.keep == {"count": 30, "scores": 0, "axis": axes, "rows": rows}
    for before, after, axis in zip(whole.outputs, kept.outputs, axes, strict=True):
        assert after.shape[axis] == min(30, before.shape[axis] or 0)
        assert after.shape[3 - axis] == before.shape[3 - axis]
    assert kept.output == kept.outputs[0]
    assert keeping_boxes(whole, None) is whole


@pytest.mark.parametrize(
    ("whole", "most", "words"),
    [
        (side((1, 10, 84), kind="yolo-objectness"), 30, "ssd-raw"),
        (side((1, 10, None), kind="yolo"), 30, "output shapes"),
        (side((1, 84, 21), (1, 84, 4), kind="ssd-raw"), 30, "background"),
        (side((1, 10, 84), kind="yolo"), 10, "values, 10"),
        (side((1, 5, 84), (1, 4, 84), kind="ssd-raw", background=0), 4, "values, 4"),
    ],
)
def test_what_cannot_be_kept_is_said(whole: ModelInterface, most: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        keeping_boxes(whole, most)


def test_outputs_of_another_format_are_refused() -> None:
    with pytest.raises(ModelError, match="1 outputs"):
        keeping_boxes(side((1, 10, 84), (1, 4, 84), kind="yolo"), 30)

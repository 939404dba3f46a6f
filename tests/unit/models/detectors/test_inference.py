"""Formats by names and shapes, and what of a format the first values tell."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.answers.detections.formats import check_format, class_names
from edgeflare.errors import ModelError
from edgeflare.models import DetectorOptions, TensorInfo, complete_options, infer_format

SIZE = (640, 640)
ULTRALYTICS = {
    "task": "detect",
    "names": "{0: 'person', 1: 'dog', 2: 'cat'}",
    "imgsz": "[640, 640]",
}


def tensors(*shapes: tuple[int | None, ...], names: tuple[str, ...] = ()) -> list[TensorInfo]:
    named = names or tuple(f"out{number}" for number in range(len(shapes)))
    return [TensorInfo(name, shape, "float32") for name, shape in zip(named, shapes, strict=True)]


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ((1, 84, 8400), "yolo"),
        ((None, 84, 8400), "yolo"),
        ((1, 8400, 84), "yolo"),
        ((1, 8400, 85), "yolo-objectness"),  # YOLOX
        ((1, 25200, 85), "yolo-objectness"),
        ((1, 25200, 6), "yolo-objectness"),
        ((1, 300, 6), "end-to-end"),
        ((1, 85, 40, 40), "fastestdet"),
        ((1, 40, 40, 85), "fastestdet"),
    ],
)
def test_one_output(shape: tuple[int, ...], kind: str) -> None:
    found = infer_format(tensors(shape), SIZE, {})
    assert found.options.kind == kind
    assert "out0" in found.reason


@pytest.mark.parametrize(
    "shapes",
    [
        [(1, 1000)],
        [(1, 1000, 1, 1)],
        [(1, 21, 80, 80)],  # a segmentation map
        [(1, 255, 20, 20)],  # a grid whose anchors nothing states
        [(1, 512)],
        [(1, 197, 768)],  # patches of a transformer
        [(1, 1600, 384)],
        [(1, 40, 6625)],  # text in an image
        [(1, 56, 97)],
        [(1, 1, 6)],
        [(1, 1000), (1, 128)],
        [(1, 32, 80, 80), (1, 10, 7)],
        [(1, 3), (1, 10)],
    ],
)
def test_other_models_are_no_detectors(shapes: list[tuple[int, ...]]) -> None:
    assert infer_format(tensors(*shapes), SIZE, {}) is None
    assert infer_format(tensors((1, 84, 8400)), SIZE, {"task": "classify"}) is None


def test_a_head_beside_what_it_is_made_of() -> None:
    parts = [(1, 3, side, side, 85) for side in (80, 40, 20)]
    found = infer_format(tensors((1, 25200, 85), *parts), SIZE, {})
    assert found.options == DetectorOptions(kind="yolo-objectness", outputs=("out0",))


def test_names_of_classes_tell_objectness() -> None:
    for channels, kind in ((7, "yolo"), (8, "yolo-objectness")):
        found = infer_format(tensors((1, 8400, channels)), SIZE, ULTRALYTICS)
        assert found.options.kind == kind


def test_open_axes_where_the_file_says_that_it_detects() -> None:
    for shape, kind in (((None, 7, None), "yolo"), ((None, None, 6), "end-to-end")):
        found = infer_format(tensors(shape), SIZE, ULTRALYTICS)
        assert found.options.kind == kind
        assert infer_format(tensors(shape), SIZE, {}) is None
    assert infer_format(tensors((None, None, None)), SIZE, ULTRALYTICS) is None


def test_four_outputs_of_post_processing() -> None:
    shapes = ((1, 10), (1, 10, 4), (1,), (1, 10))
    named = ("detection_scores", "detection_boxes", "num_detections", "detection_classes")
    found = infer_format(tensors(*shapes, names=named), (300, 300), {})
    boxes, classes, scores, number = found.options.outputs
    assert (found.options.kind, boxes, number) == ("ssd", "detection_boxes", "num_detections")
    assert (classes, scores) == ("detection_classes", "detection_scores")
    unnamed = infer_format(tensors(*shapes), (300, 300), {})
    assert unnamed.options.outputs == ()


def test_scores_and_boxes_of_the_same_anchors() -> None:
    found = infer_format(tensors((1, 4420, 4), (1, 4420, 2)), (240, 320), {})
    assert found.options == DetectorOptions(kind="ssd-raw", outputs=("out1", "out0"))
    swapped = infer_format(tensors((1, 4, 8400), (1, 80, 8400)), SIZE, {})
    assert swapped.options.outputs == ("out1", "out0")
    four = infer_format(tensors((1, 99, 4), (1, 99, 4), names=("boxes", "scores")), SIZE, {})
    assert four.options.outputs == ("scores", "boxes")


@pytest.mark.parametrize(
    ("shapes", "metadata", "words"),
    [
        ([(1, 56, 8400)], {}, ("`--decoder kind=yolo`")),
        ([(1, 11, 8400)], {"task": "pose"}, "poses .*1"),
        ([(1, 11, 8400)], {"kpt_shape": "[2, 3]"}, "metadata states"),
        ([(1, 116, 8400), (1, 32, 160, 160)], {}, "--decoder outputs=out0`"),
        ([(1, 8400, 116), (1, 160, 160, 32)], {}, "objects"),
        ([(1, 20, 8400)], {"task": "obb"}, "metadata states"),
    ],
)
def test_poses_and_masks_are_refused(shapes, metadata, words) -> None:
    with pytest.raises(ModelError, match=words) as error:
        infer_format(tensors(*shapes), SIZE, metadata)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("metadata", [{"task": "pose"}, {"task": "segment"}, {"kpt_shape": "x"}])
def test_a_stated_format_does_not_hide_poses_and_masks(metadata: dict[str, str]) -> None:
    outputs = tensors((1, 56, 8400))
    with pytest.raises(ModelError, match=r"metadata states (poses|masks of objects)"):
        check_format(DetectorOptions(kind="yolo"), outputs, metadata)
    check_format(DetectorOptions(kind="yolo"), outputs, ULTRALYTICS)
    check_format(DetectorOptions(kind="yolo"), outputs, {})


def test_names_of_classes() -> None:
    assert class_names(ULTRALYTICS) == ("person", "dog", "cat")
    assert class_names({"names": "['a', 'b']"}) == ("a", "b")
    for other in (
        "",
        "{1: 'a'}",
        "{0: 1}",
        "['a'",
        "__import__('os')",
        "3",
        "[]",
        "{[]: 1}",
        "{1: 'a', 'b': 'c'}",
    ):
        assert class_names({"names": other}) is None
    assert class_names({}) is None


# What values tell


def completed(
    kind: str, *raws: NDArray[Any], stated: dict[str, Any] | None = None, **quantized: Any
) -> DetectorOptions:
    infos = [
        TensorInfo(f"out{number}", raw.shape, str(raw.dtype), quantized.get(f"out{number}"))
        for number, raw in enumerate(raws)
    ]
    return complete_options(DetectorOptions(kind=kind, **(stated or {})), infos, SIZE, [raws])


def head(boxes: float, scores: float) -> NDArray[np.float32]:
    raw = np.zeros((1, 7, 50), np.float32)
    raw[0, :4], raw[0, 4:] = boxes, scores
    return raw


def test_pixels_and_shares_by_the_largest_coordinate() -> None:
    assert completed("yolo", head(300, 0.2)).units == "pixels"
    assert completed("yolo", head(1.2, 0.2)).units == "shares"
    assert completed("yolo", head(1.2, 0.2), stated={"units": "pixels"}).units == "pixels"
    stored = np.full((1, 7, 50), 200, np.uint8)
    assert completed("yolo", stored, out0=(0.005, 0)).units == "shares"
    assert completed("yolo", stored, out0=(2.5, 0)).units == "pixels"
    alone = head(300, 0.2)[0]  # an array alone, without the batch axis
    one = complete_options(DetectorOptions(kind="yolo"), tensors((1, 7, 50)), SIZE, [alone])
    assert one.units == "pixels"
    nothing = complete_options(DetectorOptions(kind="yolo"), tensors((1, 7, 50)), SIZE, [])
    assert (nothing.units, nothing.activation) == ("pixels", "none")


def test_logits_by_scores_below_0() -> None:
    assert completed("yolo", head(300, 0.2)).activation == "none"
    assert completed("yolo", head(300, 1.4)).activation == "none"  # 8 bits for both
    assert completed("yolo", head(300, -6)).activation == "sigmoid"
    logits, boxes = np.full((1, 50, 3), -6, np.float32), np.zeros((1, 50, 4), np.float32)
    assert completed("ssd-raw", logits, boxes).activation == "sigmoid"
    assert completed("ssd-raw", logits, boxes, stated={"background": 0}).activation == "softmax"


def test_the_background_by_the_sum_of_scores_and_the_order_by_the_corners() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3), size=(1, 50)).astype(np.float32)
    corners = np.sort(rng.random((1, 50, 2, 2)), axis=2).reshape(1, 50, 4).astype(np.float32)
    found = completed("ssd-raw", shares, corners)
    assert (found.background, found.box, found.units) == (0, "xyxy", "shares")
    centres = rng.random((1, 50, 4)).astype(np.float32)
    found = completed("ssd-raw", shares / 2, centres)
    assert (found.background, found.box) == (-1, "cxcywh")


def test_classes_are_whole_numbers_and_scores_are_not() -> None:
    boxes, number = np.zeros((1, 10, 4), np.float32), np.array([10], np.float32)
    classes = np.arange(10, dtype=np.float32)[None]
    scores = np.linspace(1, 0, 10, dtype=np.float32)[None]
    found = completed("ssd", scores, boxes, number, classes)
    assert found.outputs == ("out1", "out3", "out0", "out2")
    assert completed("ssd", classes, boxes, number, scores).outputs[1:3] == ("out0", "out3")
    silent = completed("ssd", boxes, classes, np.zeros((1, 10), np.float32), number)
    assert silent.outputs == ("out0", "out1", "out2", "out3")

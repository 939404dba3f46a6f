"""Raw outputs of each format become the same detections."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError

from edgeflare.errors import ModelError
from edgeflare.models import DetectionReader, DetectorOptions, GridOptions, TensorInfo
from edgeflare.types import DetectionRules, Detections

SIZE = (240, 320)
PIXELS = np.array([320, 240, 320, 240])
BOXES = np.array([[0.1, 0.2, 0.3, 0.6], [0.5, 0.5, 0.9, 0.7], [0.11, 0.2, 0.31, 0.6]])
SCORES = np.array([[0.1, 0.9, 0], [0.4, 0.05, 0], [0, 0.7, 0.1]])
"""Three anchors: a detection of class 1, a candidate of class 0, and one that is suppressed."""
CENTRES = np.concatenate([(BOXES[:, :2] + BOXES[:, 2:]) / 2, BOXES[:, 2:] - BOXES[:, :2]], axis=1)


def reader(
    options: DetectorOptions, *raws: NDArray[Any], names: str = "abcd", **more: Any
) -> DetectionReader:
    tensors = [
        TensorInfo(name, raw.shape, str(raw.dtype)) for name, raw in zip(names, raws, strict=False)
    ]
    return DetectionReader(tuple(tensors), options, SIZE, **more)


def read(options: DetectorOptions, *raws: NDArray[Any], **more: Any) -> Detections:
    return reader(options, *raws, **more).read(raws)


def padded(rows: NDArray[Any], count: int = 20) -> NDArray[np.float32]:
    """Anchors of nothing after those of `rows`, in the batch axis that raw outputs have."""
    whole = np.zeros((count, rows.shape[1]), np.float32)
    whole[: len(rows)] = rows
    return whole[None]


def check(found: Detections) -> None:
    assert found.labels.tolist() == [1, 0]
    assert found.count == 1
    np.testing.assert_allclose(found.scores, [0.9, 0.4], rtol=1e-6)
    np.testing.assert_allclose(found.boxes, BOXES[:2], atol=1e-6)


@pytest.mark.parametrize("units", ["pixels", "shares"])
@pytest.mark.parametrize("last", [True, False])
def test_yolo_with_and_without_objectness(units: Any, last: bool) -> None:
    centres = CENTRES * PIXELS if units == "pixels" else CENTRES
    objectness = np.array([[0.9], [0.8], [1.0]])
    raws = {
        "yolo": padded(np.concatenate([centres, SCORES], axis=1)),
        "yolo-objectness": padded(
            np.concatenate([centres, objectness, SCORES / objectness], axis=1)
        ),
    }
    for kind, raw in raws.items():
        turned = raw if last else np.ascontiguousarray(raw.transpose(0, 2, 1))
        options = DetectorOptions(kind=kind, units=units)
        check(read(options, turned))
        assert reader(options, turned).classes == 3


def test_the_order_of_boxes_as_it_is_stated() -> None:
    orders = {
        "xyxy": BOXES,
        "yxyx": BOXES[:, [1, 0, 3, 2]],
        "cxcywh": CENTRES,
        "xywh": np.concatenate([BOXES[:, :2], CENTRES[:, 2:]], axis=1),
    }
    for order, boxes in orders.items():
        options = DetectorOptions(kind="ssd-raw", box=order)  # type: ignore[arg-type]
        check(read(options, padded(SCORES), padded(boxes)))
        swapped = [one.transpose(0, 2, 1).copy() for one in (padded(SCORES), padded(boxes))]
        check(read(options, *swapped))


def test_end_to_end_and_post_processed_objects_are_not_suppressed_again() -> None:
    rows = np.concatenate([BOXES * PIXELS, [[0.9, 1], [0.4, 0], [0.7, 1]]], axis=1)
    found = read(DetectorOptions(kind="end-to-end"), padded(rows))
    assert (found.labels.tolist(), found.count) == ([1, 1, 0], 2)
    check(read(DetectorOptions(kind="end-to-end", suppress=True), padded(rows)))


def test_post_processed_objects_in_any_order_up_to_their_number() -> None:
    parts = {
        "boxes": padded(BOXES[:, [1, 0, 3, 2]], 10),
        "classes": np.array([[1, 0] + [2] * 8], np.float32),
        "scores": np.array([[0.9, 0.4] + [0.8] * 8], np.float32),
        "number": np.array([2], np.float32),
    }
    names = ("boxes", "classes", "scores", "number")
    for order in (names, names[::-1], ("scores", "boxes", "number", "classes")):
        tensors = tuple(TensorInfo(name, parts[name].shape, "float32") for name in order)
        options = DetectorOptions(kind="ssd", outputs=names)
        check(DetectionReader(tensors, options, SIZE).read([parts[name] for name in order]))


def test_scores_before_their_activation_and_the_background() -> None:
    within = np.clip(SCORES, 1e-6, 1 - 1e-6)
    sigmoid = padded(np.log(within / (1 - within)))
    sigmoid[0, 3:] = -9
    check(read(DetectorOptions(kind="ssd-raw", activation="sigmoid"), sigmoid, padded(BOXES)))
    for background in (0, 3):
        rest = np.maximum(1 - within.sum(axis=1), 1e-6)
        shares = np.insert(within, background, rest, axis=1)
        softmax = padded(np.log(shares / shares.sum(axis=1, keepdims=True)) + 5)
        softmax[0, 3:, background] = 20
        options = DetectorOptions(kind="ssd-raw", activation="softmax", background=background)
        found = read(options, softmax, padded(BOXES))
        assert found.labels.tolist() == [1, 0]
        np.testing.assert_allclose(found.scores, [0.9, 0.4], atol=1e-5)
        assert reader(options, softmax, padded(BOXES)).classes == 3


def test_integers_have_the_numbers_of_their_own_tensor() -> None:
    scores = np.rint(padded(SCORES) / 0.05).astype(np.uint8)
    boxes = np.rint(padded(BOXES) / 0.01 - 128).astype(np.int8)
    tensors = (
        TensorInfo("s", scores.shape, "uint8", (0.05, 0)),
        TensorInfo("b", boxes.shape, "int8", (0.01, -128)),
    )
    check(DetectionReader(tensors, DetectorOptions(kind="ssd-raw"), SIZE).read((scores, boxes)))


def cell(grid: GridOptions, values: dict[tuple[int, int], list[float]]) -> Detections:
    """The detections of a grid of 6 x 8 cells, in which only `values` have an object."""
    raw = np.full((1, len(next(iter(values.values()))), 6, 8), -9, np.float32)
    for (row, column), one in values.items():
        raw[0, :, row, column] = one
    options = DetectorOptions(kind="grid", grid=grid, activation="sigmoid")
    turned = read(options, raw.transpose(0, 2, 3, 1).copy())
    found = read(options, raw)
    np.testing.assert_array_equal(turned.boxes, found.boxes)
    assert found.count == 1
    return found


def test_grids_by_their_description() -> None:
    yolox = GridOptions(box=(0, 1, 2, 3), objectness=4, classes=(5, None))
    found = cell(yolox, {(2, 3): [0.5, 0.25, np.log(2), 0, 9, -9, 9]})
    np.testing.assert_allclose(found.boxes[0], [2.5 / 8, 1.75 / 6, 4.5 / 8, 2.75 / 6], rtol=1e-6)
    assert found.labels.tolist() == [1]
    fcos = GridOptions(box=(2, 3, 4, 5), classes=(0, 2), form="distances", size="linear")
    found = cell(fcos, {(2, 3): [9, -9, 1, 0.5, 2, 1.5]})
    np.testing.assert_allclose(found.boxes[0], [2.5 / 8, 2 / 6, 5.5 / 8, 4 / 6], rtol=1e-6)
    shares = GridOptions(box=(0, 1, 2, 3), classes=(4, 1), centre="sigmoid", size="sigmoid")
    found = cell(shares, {(0, 0): [0, 0, 0, np.log(1 / 3), 9]})
    np.testing.assert_allclose(
        found.boxes[0],
        [0.5 / 8 - 0.25, 0.5 / 6 - 0.125, 0.5 / 8 + 0.25, 0.5 / 6 + 0.125],
        rtol=1e-6,
    )


def test_several_grids_are_one_answer() -> None:
    grid = GridOptions(box=(0, 1, 2, 3), classes=(4, 1), centre="linear")
    raws = [np.zeros((1, 5, *shape), np.float32) for shape in ((6, 8), (3, 4))]
    raws[0][0, 4, 1, 1], raws[1][0, 4, 2, 3] = 0.6, 0.8
    found = read(DetectorOptions(kind="grid", grid=grid), *raws)
    np.testing.assert_allclose(found.scores, [0.8, 0.6], rtol=1e-6)
    np.testing.assert_allclose(found.boxes[0, :2], [3 / 4 - 1 / 8, 2 / 3 - 1 / 6], rtol=1e-6)


def test_what_is_not_finite_comes_first_and_stays() -> None:
    for place in ((0, 5, 1), (0, 5, 6), (0, 0, 4)):
        raw = padded(np.concatenate([CENTRES, SCORES], axis=1))
        for value in (np.nan, np.inf, -np.inf):
            raw[place] = value
            found = read(DetectorOptions(kind="yolo", units="shares"), raw)
            assert np.isnan(found.scores[0])
            assert not np.isnan(found.scores[1:]).any()
            assert len(found.scores) == 3  # that anchor suppresses none
    rows = padded(np.full((20, 7), np.nan))
    assert np.isnan(read(DetectorOptions(kind="yolo"), rows).scores).all()
    objects = np.concatenate([BOXES, [[0.9, 1], [np.nan, 0], [0.7, np.nan]]], axis=1)
    found = read(DetectorOptions(kind="end-to-end", units="shares"), padded(objects))
    assert np.isnan(found.scores).tolist() == [True, True, False]


def test_ties_are_ordered_by_anchor_and_the_best_300_remain() -> None:
    places = np.linspace(0, 0.9, 400)
    boxes = np.stack([places, places, places + 0.002, places + 0.002], axis=1)
    scores = np.full((400, 1), 0.3)
    scores[350] = 0.4
    found = read(DetectorOptions(kind="ssd-raw"), padded(scores, 400), padded(boxes, 400))
    assert len(found.scores) == 300
    np.testing.assert_allclose(found.boxes[0], boxes[350], rtol=1e-6)
    np.testing.assert_allclose(found.boxes[1:, 0], places[:299], atol=1e-6)


def test_an_overlap_of_other_classes_or_just_at_the_bound_stays() -> None:
    boxes = np.array([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.25], [0, 0, 0.5, 0.5], [0.7, 0.7, 0.6, 0.9]])
    scores = np.array([[0.9, 0], [0.8, 0], [0, 0.7], [0.6, 0]])
    options = DetectorOptions(kind="ssd-raw")
    assert len(read(options, padded(scores), padded(boxes), nms=0.5).scores) == 4
    assert len(read(options, padded(scores), padded(boxes), nms=0.49).scores) == 3


def test_candidates_reach_a_quarter_of_the_confidence() -> None:
    scores = np.array([[0.9], [0.21], [0.19]])
    boxes = np.array([[0, 0, 0.1, 0.1], [0.5, 0, 0.6, 0.1], [0, 0.5, 0.1, 0.6]])
    rules = DetectionRules(confidence=0.8)
    found = read(DetectorOptions(kind="ssd-raw"), padded(scores), padded(boxes), rules=rules)
    np.testing.assert_allclose(found.scores, [0.9, 0.21], rtol=1e-6)
    assert (found.count, found.rules) == (1, rules)
    assert (
        reader(DetectorOptions(kind="ssd-raw"), padded(scores), padded(boxes)).read(found) is found
    )


@pytest.mark.parametrize(
    ("options", "shapes", "words"),
    [
        ({"kind": "yolo"}, [(1, 1000)], "kind yolo"),
        ({"kind": "yolo-objectness"}, [(1, 5, 400)], "kind yolo-objectness"),
        ({"kind": "yolo"}, [(1, 84, 400), (1, 3)], "1 outputs"),
        ({"kind": "yolo", "outputs": ("x",)}, [(1, 84, 400)], "output 'x'"),
        ({"kind": "end-to-end"}, [(1, 300, 7)], "objects"),
        ({"kind": "ssd"}, [(1, 10), (1, 10, 4), (1, 10), (1,)], "name them"),
        ({"kind": "ssd-raw"}, [(1, 10, 4), (1, 12, 4)], "same anchors"),
        ({"kind": "fastestdet"}, [(1, 5, 22, 22)], "channels"),
    ],
)
def test_outputs_that_are_none_of_the_format(options, shapes, words) -> None:
    with pytest.raises(ModelError, match=words):
        reader(DetectorOptions(**options), *(np.zeros(shape, np.float32) for shape in shapes))


def test_raw_outputs_of_another_number_or_shape() -> None:
    with pytest.raises(ModelError, match="2 raw"):
        reader(DetectorOptions(kind="yolo"), np.zeros((1, 6, 99))).read([np.zeros(3)] * 2)
    with pytest.raises(ModelError, match="shape 1"):
        reader(DetectorOptions(kind="yolo"), np.zeros((1, 6, 99))).read(np.zeros((1, 5, 99)))


def test_an_open_number_of_anchors() -> None:
    raw = padded(np.concatenate([CENTRES, SCORES], axis=1)).transpose(0, 2, 1)
    tensor = TensorInfo("a", (None, 7, None), "float32")
    check(DetectionReader((tensor,), DetectorOptions(kind="yolo", units="shares"), SIZE).read(raw))


def test_detected_objects_are_all_kept_and_candidates_up_to_a_limit() -> None:
    places = np.arange(900)
    corners = np.stack([places % 30, places // 30], axis=1) / 30
    boxes = np.concatenate([corners, corners + 1 / 40], axis=1)
    for kind in ("yolo", "end-to-end"):
        for least, count in ((0.6, 900), (0.2, 300)):
            scores = np.linspace(0.95 if least > 0.5 else 0.45, least, 900)
            if kind == "end-to-end":
                rows = np.concatenate([boxes, scores[:, None], np.zeros((900, 1))], axis=1)
                options = DetectorOptions(kind="end-to-end", units="shares")
            else:
                centres = [(boxes[:, :2] + boxes[:, 2:]) / 2, np.full((900, 2), 1 / 40)]
                rows = np.concatenate([*centres, scores[:, None]], axis=1)
                options = DetectorOptions(kind="yolo", units="shares")
            found = read(options, rows[None].astype(np.float32))
            assert len(found.scores) == count, (kind, least)


@pytest.mark.parametrize("kind", ["ssd-raw", "ssd"])
def test_outputs_of_different_numbers_of_objects_are_refused(kind: str) -> None:
    scores, boxes = np.zeros((1, 5, 3), np.float32), np.zeros((1, 6, 4), np.float32)
    raws = [scores, boxes] if kind == "ssd-raw" else [boxes, scores[..., 0], scores[..., 0]]
    tensors = tuple(
        TensorInfo(name, (1, None, *raw.shape[2:]), "float32")
        for name, raw in zip("abc", raws, strict=False)
    )
    opened = DetectionReader(tensors, DetectorOptions(kind=kind), SIZE)
    with pytest.raises(ModelError, match="5 scores"):
        opened.read(raws)


@pytest.mark.parametrize(
    "wrong",
    [{"box": (0, 1, 2, -1)}, {"classes": (4, 0)}, {"classes": (-1, None)}, {"objectness": -1}],
)
def test_a_grid_has_channels_from_0_and_a_class_at_least(wrong: dict[str, Any]) -> None:
    stated = {"box": (0, 1, 2, 3), "classes": (4, None)}
    GridOptions.model_validate(stated)
    with pytest.raises(ValidationError):
        GridOptions.model_validate(stated | wrong)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("label", [1e30, -1e30, np.inf, np.nan, 2.0**31])
def test_an_object_of_no_possible_class_is_broken(label: float) -> None:
    rows = np.array([[[0, 0, 0.5, 0.5, 0.9, label], [0, 0, 0.5, 0.5, 0.8, 2]]])
    found = read(DetectorOptions(kind="end-to-end"), rows)
    assert found.labels.tolist() == [0, 2]
    assert np.isnan(found.scores).tolist() == [True, False]

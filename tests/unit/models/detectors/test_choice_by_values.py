"""One shape, several formats: the values on the seeds decide, and where they don't, the user is asked."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.answers import DETECTIONS
from edgeflare.answers.detections.interfaces import format_by_values
from edgeflare.answers.interface import ModelInterface
from edgeflare.errors import ModelError
from edgeflare.models import InputSpec, TensorInfo, choose_format, infer_format

SIZE = (96, 96)
CELLS = np.concatenate(
    [
        np.stack(np.meshgrid(*[np.arange(0, 96, s) + s / 2] * 2), -1).reshape(-1, 2)
        for s in (8, 16, 32)
    ]
)
"""The centres of an input's 189 cells."""
Raw = NDArray[np.float32]
Make = Callable[[np.random.Generator, int], Raw]


def scores(rng: np.random.Generator, anchors: int, *, objectness: bool) -> Raw:
    """Return two columns at 8 anchors with an object: objectness and class, or two classes."""
    found = rng.uniform(0, 0.1, (anchors, 2))
    for at in rng.choice(anchors, 8, replace=False):
        found[at] = (0.8, 0.95) if objectness else ((0.9, 0.03), (0.02, 0.9))[rng.integers(2)]
    if objectness:
        found[:, 1] = rng.uniform(0.6, 1, anchors)  # a single class is likely everywhere
    return found.astype(np.float32)


def head(*, objectness: bool, copies: int = 1) -> Make:
    def make(rng: np.random.Generator, seed: int) -> Raw:
        cells = np.repeat(CELLS, copies, axis=0)
        boxes = np.concatenate(
            [cells + rng.normal(0, 3, cells.shape), rng.uniform(4, 40, cells.shape)], 1
        )
        columns = scores(rng, len(cells), objectness=objectness)
        return np.concatenate([boxes, columns], 1, dtype=np.float32)[None]

    return make


def logits(rng: np.random.Generator, seed: int) -> Raw:
    raw = head(objectness=False)(rng, seed)
    raw[..., 4:] = np.log(raw[..., 4:] / (1 - raw[..., 4:]))
    return raw


def listed(rows: int, classes: int, *, empty: bool = False) -> Make:
    def make(rng: np.random.Generator, seed: int) -> Raw:
        raw = np.zeros((1, rows, 6), np.float32)
        count = 0 if empty else 12
        raw[0, :count, :2] = rng.uniform(0, 60, (count, 2))
        raw[0, :count, 2:4] = raw[0, :count, :2] + rng.uniform(2, 30, (count, 2))
        raw[0, :count, 4] = np.sort(rng.uniform(0, 1, count))[::-1]
        raw[0, :count, 5] = rng.integers(classes, size=count)
        return raw

    return make


def padded(rng: np.random.Generator, seed: int) -> Raw:
    raw = listed(300, 80)(rng, seed)
    raw[0, 12:] = -1
    return raw


def queries(rng: np.random.Generator, seed: int) -> Raw:
    """Return 300 objects of a transformer: centre and size in shares, two scores."""
    boxes = np.concatenate([rng.uniform(0, 1, (300, 2)), rng.uniform(0.02, 0.4, (300, 2))], 1)
    columns = scores(rng, 300, objectness=False)
    return np.concatenate([boxes, columns], 1, dtype=np.float32)[None]


def chosen(make: Make, *, columns_first: bool = False) -> str:
    rng = np.random.default_rng(0)
    raws = [make(rng, seed) for seed in range(8)]
    if columns_first:
        raws = [raw.transpose(0, 2, 1) for raw in raws]
    tensors = [TensorInfo("out", raws[0].shape, "float32")]
    found = infer_format(tensors, SIZE, {})
    formats = (found.options, *found.others)
    return choose_format(formats, tensors, SIZE, raws, is_usual=found.is_usual).kind


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (head(objectness=False), "yolo"),
        (head(objectness=True), "yolo-objectness"),
        (head(objectness=True, copies=3), "yolo-objectness"),
        (logits, "yolo"),
        (listed(300, 80), "end-to-end"),
        (listed(300, 1), "end-to-end"),  # one class: its column has no more than 0
        (listed(300, 80, empty=True), "end-to-end"),
        (padded, "end-to-end"),
        (lambda *_: np.full((1, 300, 6), -1, np.float32), "end-to-end"),
        (listed(189, 80), "end-to-end"),  # as many rows as anchors
        (listed(189, 2), "end-to-end"),
        (queries, "yolo"),
    ],
)
def test_rows_of_six_values(make: Make, kind: str) -> None:
    assert chosen(make) == kind


def test_an_objectness_beside_more_classes() -> None:
    def wide(*, objectness: bool) -> Make:
        def make(rng: np.random.Generator, seed: int) -> Raw:
            raw = head(objectness=objectness)(rng, seed)
            return np.concatenate([raw, rng.uniform(0, 0.05, (1, 189, 3))], 2, dtype=np.float32)

        return make

    for columns_first in (False, True):
        assert chosen(wide(objectness=True), columns_first=columns_first) == "yolo-objectness"
        assert chosen(wide(objectness=False), columns_first=columns_first) == "yolo"


def test_what_fits_no_format_or_two_is_asked() -> None:
    def corners_and_two_scores(rng: np.random.Generator, seed: int) -> Raw:
        raw = head(objectness=False)(rng, seed)
        raw[..., 2:4] += raw[..., :2]
        return raw

    def without_objects(rng: np.random.Generator, seed: int) -> Raw:
        raw = head(objectness=False)(rng, seed)
        raw[..., 4:] *= 0.1
        return raw

    with pytest.raises(ModelError, match="fit none") as none:
        chosen(corners_and_two_scores)
    with pytest.raises(ModelError, match="than one") as several:
        chosen(without_objects)
    for kind in ("end-to-end", "yolo", "yolo-objectness"):
        for error in (none, several):
            assert f"--decoder kind={kind}" in str(error.value)
    assert chosen(without_objects, columns_first=True) == "yolo"  # as Ultralytics has it


@pytest.mark.parametrize("make", [listed(300, 80), padded])
def test_a_list_of_300_objects_is_read_without_a_word(make: Make) -> None:
    rng = np.random.default_rng(0)
    tensor = TensorInfo("out", (1, 300, 6), "float32")
    formats = infer_format([tensor], (640, 640), {})
    spec = InputSpec(shape=(1, 640, 640, 3), dtype="float32", channels=3, size=(640, 640))
    side = ModelInterface(
        spec, tensor, kind=DETECTIONS, task="detection", outputs=(tensor,),
        detector=formats.options, formats=formats,
    )  # fmt: skip
    options, notice = format_by_values(side, [make(rng, 0), make(rng, 1)], None, "original")
    assert (options.kind, notice) == ("end-to-end", "")


def test_a_deployed_model_of_the_same_shape_is_read_as_the_original() -> None:
    rng = np.random.default_rng(0)
    tensor = TensorInfo("out", (1, 189, 6), "float32")
    formats = infer_format([tensor], SIZE, {})
    spec = InputSpec(shape=(1, 96, 96, 3), dtype="float32", channels=3, size=SIZE)
    side = ModelInterface(
        spec, tensor, kind=DETECTIONS, task="detection", outputs=(tensor,),
        detector=formats.options, formats=formats,
    )  # fmt: skip
    options, notice = format_by_values(side, [head(objectness=False)(rng, 0)] * 2, None, "original")
    assert options.kind == "yolo"
    assert "kind yolo" in notice
    original = side._replace(detector=options).reader("detections")
    damaged = [np.zeros((1, 189, 6), np.float32)]
    deployed, silent = format_by_values(side, damaged, original, "deployed")
    assert (deployed, silent) == (options, "")


def test_classes_under_the_name_of_scores() -> None:
    names = ("detection_boxes", "detection_classes", "detection_scores", "num_detections")
    shapes = ((1, 10, 4), (1, 10), (1, 10), (1,))
    tensors = [
        TensorInfo(name, shape, "float32") for name, shape in zip(names, shapes, strict=True)
    ]
    found = infer_format(tensors, SIZE, {})
    boxes, number = np.zeros((1, 10, 4), np.float32), np.array([10], np.float32)
    classes = np.arange(10, dtype=np.float32)[None]
    values = np.linspace(1, 0, 10, dtype=np.float32)[None]
    for raws, expected in (
        ([boxes, classes, values, number], names),
        ([boxes, values, classes, number], (names[0], names[2], names[1], names[3])),
        ([boxes, 0 * values, 0 * classes, number], names),
    ):
        formats = (found.options, *found.others)
        assert choose_format(formats, tensors, SIZE, [raws], is_usual=True).outputs == expected

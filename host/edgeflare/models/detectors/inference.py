"""Which format a detector's outputs have, by their names and shapes, and what the file says."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from edgeflare._internal.text import clean_text, shape_text
from edgeflare.errors import ModelError
from edgeflare.models.detectors.heads import box_axis
from edgeflare.models.detectors.options import DetectorOptions
from edgeflare_agent.image_spec import TensorInfo

_STRIDES = (4, 8, 16, 32, 64, 128)
_MOST_OBJECTS = 1000
"""An end-to-end output lists at most so many objects; more rows are anchors."""
_POSE_CHANNELS = 56
"""Channels of a pose model of COCO's person: 4 + 1 + 3 * 17."""
_MASKS = 32
"""Prototypes of Ultralytics' segmentation models, and coefficients of each anchor."""
_FASTESTDET_CHANNELS = 85
_FASTESTDET_STRIDE = 16


class InferredFormat(NamedTuple):
    """An output format, and in words what tells it."""

    options: DetectorOptions
    reason: str


def infer_format(
    outputs: Sequence[TensorInfo], size: tuple[int, int], metadata: Mapping[str, str]
) -> InferredFormat | None:
    """Return the format of a detector's outputs, None where nothing tells that it is a detector.

    `size`: the model's input, (height, width) in pixels. `metadata`: what its file says, such as
    Ultralytics' ``task`` and ``names``. A head [1, channels, anchors] is taken for one where there
    is one anchor, or three, for each cell of the grids of usual strides, which scores of classes,
    frames of speech and tokens don't have. Raises ModelError for models of poses, masks and oriented
    boxes, of which the boxes alone would be compared.
    """
    task = metadata.get("task")
    shapes = {tensor.name: tensor.shape for tensor in outputs}
    _check_task(task, outputs)
    if task == "classify":
        return None
    if len(outputs) == 1:
        return _of_one(outputs[0], size, metadata)
    if (names := _ssd_names(outputs)) is not None:
        words = ", ".join(f"{name} {shape_text(shapes[name])}" for name in names)
        return InferredFormat(
            DetectorOptions(kind="ssd", outputs=names if _tell(names) else ()),
            f"outputs {words} are boxes, classes and scores of the same objects",
        )
    if (pair := _raw_pair(outputs)) is not None:
        scores, boxes = pair
        return InferredFormat(
            DetectorOptions(kind="ssd-raw", outputs=(scores.name, boxes.name)),
            f"outputs {scores.name} {shape_text(scores.shape)} and {boxes.name} "
            f"{shape_text(boxes.shape)} are scores and boxes of the same anchors",
        )
    return None


def class_names(metadata: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names of the classes that Ultralytics writes into a model's file, else None."""
    try:
        names = ast.literal_eval(metadata.get("names", ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if isinstance(names, dict) and sorted(names) == list(range(len(names))):
        names = [names[number] for number in range(len(names))]
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(clean_text(name) for name in names) or None


def _check_task(task: str | None, outputs: Sequence[TensorInfo]) -> None:
    """Raise ModelError for a model that also states poses or masks."""
    prototypes = any(
        len(one.shape) == 4 and _MASKS in (one.shape[1], one.shape[3]) for one in outputs
    ) and any(len(one.shape) == 3 for one in outputs)
    pose = (
        task is None
        and len(outputs) == 1
        and len(outputs[0].shape) == 3
        and _POSE_CHANNELS in outputs[0].shape[1:]
    )
    what = {"pose": "poses", "segment": "masks of objects", "obb": "oriented boxes"}.get(task or "")
    if what is None and (pose or prototypes):
        what = "poses" if pose else "masks of objects"
    if what is not None:
        raise ModelError(
            f"the model states {what} ({', '.join(shape_text(one.shape) for one in outputs)}), which "
            "aren't supported yet: give a model that detects boxes, or state a decoder of your own "
            "with `--decoder kind=NAME`"
        )


def _of_one(
    tensor: TensorInfo, size: tuple[int, int], metadata: Mapping[str, str]
) -> InferredFormat | None:
    shape = tensor.shape
    said = f"output {tensor.name} {shape_text(shape)}"
    if len(shape) == 4:
        cells = {size[0] // _FASTESTDET_STRIDE, size[1] // _FASTESTDET_STRIDE}
        if set(shape[1:]) == {_FASTESTDET_CHANNELS, *cells}:
            return InferredFormat(
                DetectorOptions(kind="fastestdet"),
                f"{said} is a grid of a cell each {_FASTESTDET_STRIDE} pixels with "
                f"{_FASTESTDET_CHANNELS} channels, as FastestDet's",
            )
        return None
    if len(shape) != 3 or shape[0] not in (1, None):
        return None
    first, second = shape[1:]
    if second == 6 and first is not None and first <= _MOST_OBJECTS:
        return InferredFormat(
            DetectorOptions(kind="end-to-end"),
            f"{said} is a list of objects with 6 values each",
        )
    if first is None or second is None:
        return None
    channels, anchors = min(first, second), max(first, second)
    last = second < first
    shares = dict(_anchor_counts(size, several=last))
    names = class_names(metadata)
    known = anchors in shares or metadata.get("task") == "detect"
    if not known or channels <= 4:
        return None
    if names is not None and channels - len(names) in (4, 5):
        objectness = channels - len(names) == 5
    elif shares.get(anchors) == 3:
        objectness = channels > 5
    else:
        # YOLOX has one anchor a cell, its objectness and, as v5, the channels last
        objectness = last and channels == _FASTESTDET_CHANNELS
    kind = "yolo-objectness" if objectness else "yolo"
    return InferredFormat(
        DetectorOptions(kind=kind),
        f"{said} has {channels - (5 if objectness else 4)} classes "
        f"{'and an objectness ' if objectness else ''}at each of {anchors} anchors",
    )


def _anchor_counts(size: tuple[int, int], *, several: bool) -> Iterator[tuple[int, int]]:
    """Yield numbers of anchors of an input, and how many of them a cell has.

    `several`: of grids of at least two strides. One alone may be a transformer's patches.
    """
    cells = [-(-size[0] // stride) * -(-size[1] // stride) for stride in _STRIDES]
    for begin in range(len(cells)):
        for end in range(begin + (2 if several else 1), len(cells) + 1):
            for boxes in (3, 1):
                yield boxes * sum(cells[begin:end]), boxes


_SSD_WORDS = (("box", "location"), ("class", "categor", "label"), ("score",), ("num", "count"))


def _ssd_names(outputs: Sequence[TensorInfo]) -> tuple[str, ...] | None:
    """Return the names of boxes, classes, scores and number, in this order, if those are there.

    Where names don't tell classes from scores, they are in the order of the outputs.
    """
    boxes = [one for one in outputs if len(one.shape) == 3 and one.shape[2] == 4]
    if len(boxes) > 1:
        boxes = [one for one in boxes if "raw" not in one.name.lower()]
    if len(boxes) != 1:
        return None
    objects = boxes[0].shape[1]
    lists = [one for one in outputs if len(one.shape) == 2 and one.shape[1] == objects]
    numbers = [
        one for one in outputs if one not in lists and all(axis in (1, None) for axis in one.shape)
    ]
    if len(lists) > 2:
        lists = [one for one in lists if _SSD_WORDS[1][0] in one.name.lower()][:1] + [
            one for one in lists if one.name.lower().endswith("scores")
        ][:1]
    if len(lists) != 2 or len(numbers) > 1:
        return None
    by_name = _by_name([one.name for one in lists])
    names = (boxes[0].name, *(by_name or [one.name for one in lists]))
    return (*names, *(one.name for one in numbers))


def _by_name(names: Sequence[str]) -> list[str] | None:
    """Return two names, that of the classes first, if they tell which is which."""
    found = []
    for words in _SSD_WORDS[1:3]:
        having = [name for name in names if any(word in name.lower() for word in words)]
        if len(having) != 1:
            return None
        found += having
    return found if found[0] != found[1] else None


def _tell(names: Sequence[str]) -> bool:
    return _by_name(names[1:3]) is not None


def _raw_pair(outputs: Sequence[TensorInfo]) -> tuple[TensorInfo, TensorInfo] | None:
    """Return scores and boxes of the same anchors, if there are two outputs of such shapes."""
    if len(outputs) != 2 or any(len(one.shape) != 3 for one in outputs):
        return None
    fitting = [
        (scores, boxes)
        for scores, boxes in (outputs, outputs[::-1])
        if (axis := box_axis(boxes))
        and scores.shape[3 - axis] == boxes.shape[3 - axis]
        and (boxes.shape[3 - axis] or _POSE_CHANNELS) > 4
    ]
    if len(fitting) == 2:  # four classes: the names tell
        fitting = [pair for pair in fitting if "box" in pair[1].name.lower()]
    return fitting[0] if len(fitting) == 1 else None

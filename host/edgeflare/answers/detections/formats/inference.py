"""Which format a detector's outputs have, by their names and shapes, and what the file says."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from edgeflare._internal.text import clean_text, names_text, shape_text
from edgeflare.answers.detections.formats.heads import box_axis, channel_axis
from edgeflare.answers.detections.formats.options import BUILT_IN, DetectorOptions
from edgeflare.answers.detections.formats.processed import ssd_places
from edgeflare.errors import ModelError
from edgeflare.words import answers as words
from edgeflare_agent.image_spec import TensorInfo

_STRIDES = (4, 8, 16, 32, 64, 128)
_MOST_OBJECTS = 1000
"""An end-to-end output lists at most so many objects; more rows are anchors."""
_POSE_CHANNELS = 56
"""Channels of a pose model of COCO's person: 4 + 1 + 3 * 17."""
_MASKS = 32
"""Prototypes of Ultralytics' segmentation models, and coefficients of each anchor."""
_COCO_CHANNELS = (84, 85)
"""Channels of a head for the 80 classes of COCO, without and with objectness."""
_FASTESTDET_STRIDE = 16


class InferredFormat(NamedTuple):
    """An output format, and in words what tells it.

    `others`: formats whose outputs have these shapes as well; `choose_format` decides by values.
    `is_usual`: whether exporters have these shapes for `options`, which hold where values decide
    nothing.
    """

    options: DetectorOptions
    reason: str
    others: tuple[DetectorOptions, ...] = ()
    is_usual: bool = True


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
    _check_metadata(outputs, metadata)
    task = metadata.get("task")
    if task is None:
        _check_shapes(outputs, size)
    if task == "classify":
        return None
    if len(outputs) == 1:
        return _of_one(outputs[0], size, metadata)
    heads = [output for output in outputs if len(output.shape) == 3]
    if len(heads) == 1 and all(len(output.shape) == 5 for output in outputs if output not in heads):
        # YOLOv5 and v7 also give what their head is made of: [1, anchors, rows, columns, channels]
        found = _of_one(heads[0], size, metadata)
        named = {"outputs": (heads[0].name,)}
        return found and found._replace(options=found.options.model_copy(update=named))
    if (found := _ssd(outputs)) is not None:
        return found
    if (pair := _raw_pair(outputs)) is not None:
        scores, boxes = pair
        return InferredFormat(
            DetectorOptions(kind="ssd-raw", outputs=(scores.name, boxes.name)),
            words.raw_pair((scores.name, scores.shape), (boxes.name, boxes.shape)),
        )
    return None


def class_names(metadata: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names of the classes that Ultralytics writes into a model's file, else None."""
    try:
        names = ast.literal_eval(metadata.get("names", ""))
        if isinstance(names, dict) and sorted(names) == list(range(len(names))):
            names = [names[number] for number in range(len(names))]
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return None
    return tuple(clean_text(name) for name in names) or None


def check_format(
    options: DetectorOptions, outputs: Sequence[TensorInfo], metadata: Mapping[str, str]
) -> None:
    """Raise ModelError for a stated format of boxes where a model's metadata says more than boxes.

    A user's own decoder may read any outputs.
    """
    if options.kind in BUILT_IN:
        _check_metadata(outputs, metadata)


_UNSUPPORTED = {"pose": "poses", "segment": "masks of objects", "obb": "oriented boxes"}
"""Tasks of Ultralytics whose boxes alone would be compared."""


def _unsupported(what: str, instead: str = "") -> ModelError:
    return ModelError(
        f"{what}, which aren't supported yet: {instead}give a model that detects boxes, or state a "
        "decoder of your own with `--decoder kind=NAME`"
    )


def _check_metadata(outputs: Sequence[TensorInfo], metadata: Mapping[str, str]) -> None:
    """Raise ModelError for a model whose metadata says that it has poses, masks or angles."""
    task = metadata.get("task") or ("pose" if "kpt_shape" in metadata else "")
    if task in _UNSUPPORTED:
        raise _unsupported(f"the model's metadata states {_UNSUPPORTED[task]} ({_shapes(outputs)})")


def _check_shapes(outputs: Sequence[TensorInfo], size: tuple[int, int]) -> None:
    """Raise ModelError for outputs of the shapes of poses or masks."""
    anchors = dict(_anchor_counts(size, several=False))
    heads = [
        output
        for output in outputs
        if len(output.shape) == 3 and not anchors.keys().isdisjoint(output.shape[1:])
    ]
    if not heads:
        return
    if any(len(output.shape) == 4 and _MASKS in output.shape[1::2] for output in outputs):
        raise _unsupported(
            f"the outputs ({_shapes(outputs)}) have the shape of masks of objects",
            "if the model is a detector, state `--decoder kind=yolo --decoder "
            f"outputs={heads[0].name}`, else ",
        )
    if len(outputs) == 1 and _POSE_CHANNELS in outputs[0].shape[1:]:
        raise _unsupported(
            f"the outputs ({_shapes(outputs)}) have the shape of poses",
            f"if the model is a detector of {_POSE_CHANNELS - 4} classes, state `--decoder "
            "kind=yolo`, else ",
        )


def _shapes(outputs: Sequence[TensorInfo]) -> str:
    return names_text([shape_text(output.shape) for output in outputs])


def _of_one(
    tensor: TensorInfo, size: tuple[int, int], metadata: Mapping[str, str]
) -> InferredFormat | None:
    shape = tensor.shape
    said = f"output {tensor.name} {shape_text(shape)}"
    if len(shape) == 4:
        cells = {size[0] // _FASTESTDET_STRIDE, size[1] // _FASTESTDET_STRIDE}
        if set(shape[1:]) == {_COCO_CHANNELS[1], *cells}:
            return InferredFormat(
                DetectorOptions(kind="fastestdet"),
                f"{said} {words.grid_of_cells(_FASTESTDET_STRIDE, _COCO_CHANNELS[1])}",
            )
        return None
    if len(shape) != 3 or shape[0] not in (1, None):
        return None
    first, second = shape[1:]
    last = channel_axis(tensor) == 2
    channels, anchors = (second, first) if last else (first, second)
    detects = metadata.get("task") == "detect"
    names = class_names(metadata)
    if second == 6 and (detects if first is None else 1 < first <= _MOST_OBJECTS):
        return _of_six_values(tensor, said, names, dict(_anchor_counts(size)).get(first or 0, 0))
    # with the channels last, one grid alone may be the patches of a transformer
    shares = dict(_anchor_counts(size, several=last and channels not in _COCO_CHANNELS))
    if channels is None or channels <= 4 or not (detects or anchors in shares):
        return None
    is_usual = True
    is_open = channels > 5  # whether the fifth value may be an objectness or a class
    if names is not None and channels - len(names) in (4, 5):
        objectness, is_open = channels - len(names) == 5, False
    elif shares.get(anchors or 0) == 3:
        objectness = channels > 5
    else:
        # YOLOX has one anchor a cell, its objectness and, as v5, the channels last
        objectness = last and channels == _COCO_CHANNELS[1]
        is_usual = not last or channels in _COCO_CHANNELS
    kinds = ("yolo", "yolo-objectness")[:: -1 if objectness else 1]
    told = words.anchors_with_scores(channels - 4, anchors)
    if is_usual or not is_open:
        classes = channels - (5 if objectness else 4)
        told = words.anchors_with_classes(classes, anchors, objectness=objectness)
    return InferredFormat(
        DetectorOptions(kind=kinds[0]),
        f"{said} {told}",
        (DetectorOptions(kind=kinds[1]),) if is_open else (),
        is_usual,
    )


def _of_six_values(
    tensor: TensorInfo, said: str, names: Sequence[str] | None, share: int
) -> InferredFormat:
    """Return the format of [1, N, 6]: objects with score and class, or anchors with two scores.

    `share`: how many anchors a cell has where there are as many rows as anchors, else 0.
    """
    heads: Sequence[str] = ()
    if names is not None:
        heads = {1: ("yolo-objectness",), 2: ("yolo",)}.get(len(names), ())
    elif channel_axis(tensor) == 2:
        # queries of a transformer have a score for each class, and no objectness
        heads = {0: ("yolo",), 3: ("yolo-objectness",)}.get(share, ("yolo", "yolo-objectness"))
    is_usual = not (share and heads)
    return InferredFormat(
        DetectorOptions(kind="end-to-end"),
        f"{said} {words.rows_of_six(is_usual=is_usual)}",
        tuple(DetectorOptions(kind=kind) for kind in heads),
        is_usual,
    )


def _anchor_counts(size: tuple[int, int], *, several: bool = False) -> Iterator[tuple[int, int]]:
    """Yield numbers of anchors of an input, and how many of them a cell has.

    `several`: of grids of at least two strides.
    """
    cells = [-(-size[0] // stride) * -(-size[1] // stride) for stride in _STRIDES]
    for begin in range(len(cells)):
        for end in range(begin + (2 if several else 1), len(cells) + 1):
            for boxes in (3, 1):
                yield boxes * sum(cells[begin:end]), boxes


def _ssd(outputs: Sequence[TensorInfo]) -> InferredFormat | None:
    places = ssd_places(outputs)
    if places is None:
        return None
    names = [outputs[place].name for place in places]
    is_class = ["class" in name.lower() for name in names[1:3]]
    is_score = ["score" in name.lower() for name in names[1:3]]
    told = is_class != is_class[::-1] and is_score == is_class[::-1]
    if told and is_score[0]:
        names[1], names[2] = names[2], names[1]
    exchanged = (names[0], names[2], names[1], *names[3:])
    return InferredFormat(
        DetectorOptions(kind="ssd", outputs=tuple(names) if told else ()),
        words.ssd_outputs(names, [outputs[place].shape for place in places]),
        (DetectorOptions(kind="ssd", outputs=exchanged),) if told else (),
    )


def _raw_pair(outputs: Sequence[TensorInfo]) -> tuple[TensorInfo, TensorInfo] | None:
    """Return scores and boxes of the same anchors, if there are two outputs of such shapes."""
    if len(outputs) != 2 or any(len(output.shape) != 3 for output in outputs):
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

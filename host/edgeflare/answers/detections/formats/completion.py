"""What of an output format its values tell: decided once, on the first inputs of a campaign."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.text import shape_text
from edgeflare.answers.detections.formats.heads import SplitHead, YoloHead
from edgeflare.answers.detections.formats.options import (
    NO_BACKGROUND,
    Activation,
    BoxUnits,
    DetectorOptions,
)
from edgeflare.answers.detections.formats.processed import EndToEnd, SsdObjects, ssd_places
from edgeflare.answers.detections.formats.reader import RawOutputs, decoder_of, read_places
from edgeflare.errors import ModelError
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize

_LARGEST_SHARE = 2.0
"""Boxes with a coordinate above this are in pixels; those in shares hardly reach beyond 1."""
_LOWEST_SCORE = -0.5
"""Logits are below this at most anchors; scores aren't, however coarsely they are quantised."""
_SUM_SLACK = 0.02
_ORDERED = 0.99
"""Share of anchors whose third and fourth values are at least the first two, of corners."""
_MOST_LISTED, _MOST_OF_HEAD = 0.9, 0.5
"""The same share of a list of objects is above the first (boxes of no score may be turned inside out), of
centres and sizes at anchors all over the image below the second: there are few as wide as they are far from the left."""
_SURE = 0.5
_FEWEST_SURE = 5
_MOSTLY = 0.8
_SCORE_SLACK = 0.01


def complete_options(
    options: DetectorOptions,
    tensors: Sequence[TensorInfo],
    size: tuple[int, int],
    raws: Sequence[RawOutputs],
) -> DetectorOptions:
    """Return options in which nothing is null that a decoder of the kind needs, what is stated kept.

    `raws`: the raw outputs of some inputs, as `DetectionReader.read` takes them. All are looked
    at together, so that one format holds for a campaign; without any the usual format of the kind is
    taken. Of each model by itself, since converters change units and order.

    - `outputs` of "ssd": classes are whole numbers, scores are not; if both are, classes come first.
    - `units`: pixels where a coordinate of a box exceeds 2.
    - `box` of "ssd-raw": corners where (nearly) all right and bottom values exceed the left and top
      ones, else centre, width and height. Corners are taken for left, top, right, bottom.
    - `activation`: none where no score is far below 0; otherwise a sigmoid, of "ssd-raw" with a
      stated background a softmax.
    - `background` of "ssd-raw": 0 where the scores of each anchor sum to 1.

    Raises ModelError where the tensors are not of the stated format.
    """
    whole = [[raw] if isinstance(raw, np.ndarray) else raw for raw in raws]
    if options.kind == "ssd" and not options.outputs:
        options = options.model_copy(update={"outputs": _ssd_outputs(tensors, whole)})
    places = read_places(tensors, options)
    chosen = tuple(tensors[place] for place in places)
    decoder = decoder_of(chosen, options, size)
    mine = [[raw[place] for place in places] for raw in whole]
    stated = options.model_dump(include={"units", "box", "activation", "background"})
    found: dict[str, Any] = {}
    match decoder:
        case YoloHead() | SplitHead():
            found = _of_head(decoder, mine)
        case EndToEnd() | SsdObjects():
            boxes = [dequantize(one[0], chosen[0].quantization) for one in mine]
            if isinstance(decoder, EndToEnd):
                boxes = [box.reshape(-1, 6)[:, :4] for box in boxes]
            found = {"units": _units(boxes, options.box_units), "activation": "none"}
    found |= {name: value for name, value in stated.items() if value is not None}
    return options.model_copy(update=found)


def choose_format(
    formats: Sequence[DetectorOptions],
    tensors: Sequence[TensorInfo],
    size: tuple[int, int],
    raws: Sequence[RawOutputs],
    *,
    is_usual: bool,
) -> DetectorOptions:
    """Return that one of several formats of the same shapes which the values of some inputs fit.

    `raws`: as `complete_options` takes them. The first format where there are none of finite values,
    and, if `is_usual`, where several formats fit.

    - "end-to-end": two corners, a score from 0 to 1, a class that is a whole number, whatever rows of
      class -1 have, which are no objects; of the heads the boxes have centre and size.
    - "yolo-objectness": nearly all anchors with a fifth value above 0.5 have a class above 0.5, too;
      "yolo": hardly any has.
    - "ssd": scores from 0 to 1, classes that are whole numbers.

    Raises ModelError, with what to state, where no format fits, or several and none is usual.
    """
    whole = [[raw] if isinstance(raw, np.ndarray) else raw for raw in raws]
    fitting = [one for one in formats if _fits(one, formats, tensors, size, whole)]
    kinds = [one.kind for one in formats]
    none_fits = not fitting and "end-to-end" in kinds
    if len(fitting) == 1 or not (none_fits or (fitting and not is_usual)):
        return (fitting or formats)[0]
    raise _unclear(kinds, tensors, none_fits=none_fits)


def _unclear(kinds: Sequence[str], tensors: Sequence[TensorInfo], *, none_fits: bool) -> ModelError:
    layouts = {
        "end-to-end": "objects with left, top, right, bottom, score and class",
        "yolo": "a box and a score for each class at each anchor",
        "yolo-objectness": "a box, its objectness and a score for each class at each anchor",
    }
    outputs = ", ".join(f"{tensor.name!r} {shape_text(tensor.shape)}" for tensor in tensors)
    return ModelError(
        f"the output {outputs} may be of the kinds {', '.join(kinds)}, and its values on the seeds fit "
        f"{'none' if none_fits else 'more than one'} of them: state "
        + ", or ".join(f"`--decoder kind={kind}` if it has {layouts[kind]}" for kind in kinds)
        + ", with `--decoder box=xyxy` where those boxes are corners"
    )


def _fits(
    options: DetectorOptions,
    formats: Sequence[DetectorOptions],
    tensors: Sequence[TensorInfo],
    size: tuple[int, int],
    raws: Sequence[Sequence[NDArray[Any]]],
) -> bool:
    """Whether values may be of a format; without finite ones of the first of `formats` alone."""
    places = read_places(tensors, options)
    chosen = tuple(tensors[place] for place in places)
    decoder = decoder_of(chosen, options, size)
    step = max([0.0, *(one.quantization[0] for one in chosen if one.quantization)])
    mine = [[raw[place] for place in places] for raw in raws]
    if isinstance(decoder, SsdObjects):
        classes, scores = (
            _finite(dequantize(raw[at], chosen[at].quantization).reshape(1, -1) for raw in mine)
            for at in (1, 2)
        )
        return _are_classes(classes, step) and _are_scores(scores, step)
    if isinstance(decoder, YoloHead):
        rows = _finite(_all_planes(decoder, raw) for raw in mine)
    else:
        rows = _finite(dequantize(raw[0], chosen[0].quantization).reshape(-1, 6).T for raw in mine)
    if not rows.size:
        return options is formats[0]
    falling = np.asarray((rows[2:4] >= rows[:2] - step).all(axis=0))
    if isinstance(decoder, EndToEnd):
        objects = np.rint(rows[5]) >= 0  # the rest of the list may be -1 throughout
        are_listed = _are_scores(rows[4, objects], step) and _are_classes(rows[5], step)
        return are_listed and (not objects.any() or float(falling[objects].mean()) >= _MOST_LISTED)
    corners = float(falling.mean())
    scores = rows[4:]
    if _activation([scores]) == "sigmoid":
        scores = exact.sigmoid(scores)
    if any(one.kind == "end-to-end" for one in formats) and not (
        corners <= _MOST_OF_HEAD and (rows[2:4] >= -step).all() and _are_scores(scores, step)
    ):
        return False
    return _has_objectness(scores) in (None, options.kind == "yolo-objectness")


def _all_planes(decoder: YoloHead, raw: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Return all that a head has of each anchor, [values, anchors]."""
    planes = [plane for plane in decoder.planes(raw) if plane is not None]
    return np.concatenate([plane.real(plane.values) for plane in planes])


def _finite(parts: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the columns of several inputs' values, [rows, columns], in which all are finite."""
    columns = list(parts)
    values = np.concatenate(columns, axis=1) if columns else np.zeros((0, 0))
    return np.asarray(values[:, np.isfinite(values).all(axis=0)])


def _are_scores(values: NDArray[np.float64], step: float) -> bool:
    slack = max(_SCORE_SLACK, step)
    return bool(((values >= -slack) & (values <= 1 + slack)).all())


def _are_classes(values: NDArray[np.float64], step: float) -> bool:
    """Whether values are whole numbers; -1 stands for no object."""
    off = abs(values - np.rint(values))
    return bool((off <= max(_SCORE_SLACK, step / 2)).all() and (values >= -1 - step).all())


def _has_objectness(scores: NDArray[np.float64]) -> bool | None:
    """Whether the first of scores [scores, anchors] is that of all classes; None: they don't tell."""
    first = np.flatnonzero(scores[0] > _SURE)
    others = np.asarray((scores[1:] > _SURE).any(axis=0))
    if len(first) < _FEWEST_SURE:
        # an objectness would say that hardly any of the classes' objects is one
        are_classes = np.count_nonzero(others) >= _FEWEST_SURE and not others[first].any()
        return False if are_classes else None
    together = float(others[first].mean())
    return True if together > _MOSTLY else False if together < 1 - _MOSTLY else None


def _of_head(
    decoder: YoloHead | SplitHead, raws: Sequence[Sequence[NDArray[Any]]]
) -> dict[str, Any]:
    planes = [decoder.planes(raw) for raw in raws]
    boxes = [boxes.real(boxes.values) for boxes, _, _ in planes]
    scores = [scores.real(scores.values) for _, _, scores in planes]
    split = isinstance(decoder, SplitHead)
    activation = _activation(scores)
    background = NO_BACKGROUND
    if split and activation == "none" and scores and _sum_to_one(scores):
        background = 0
    if decoder.options.background is not None:
        background = decoder.options.background
    if activation == "sigmoid" and background >= 0:
        activation = "softmax"
    found: dict[str, Any] = {
        "units": _units(boxes, decoder.options.box_units),
        "activation": activation,
        "background": background,
    }
    if split:
        found["box"] = "xyxy" if not boxes or _are_corners(boxes) else "cxcywh"
    return found


def _units(boxes: Sequence[NDArray[np.float64]], usual: BoxUnits) -> BoxUnits:
    largest = [float(box[np.isfinite(box)].max(initial=0.0)) for box in boxes]
    if not any(largest):
        return usual
    return "pixels" if max(largest) > _LARGEST_SHARE else "shares"


def _activation(scores: Sequence[NDArray[np.float64]]) -> Activation:
    for score in scores:
        finite = score[np.isfinite(score)]
        if finite.min(initial=0.0) < _LOWEST_SCORE:
            return "sigmoid"
    return "none"


def _sum_to_one(scores: Sequence[NDArray[np.float64]]) -> bool:
    """Whether the scores of each anchor, [classes, anchors] of several inputs, sum to 1."""
    with np.errstate(invalid="ignore"):
        sums = np.concatenate([score.sum(axis=0) for score in scores])
    finite = sums[np.isfinite(sums)]
    return (
        len(scores[0]) > 1
        and finite.size > 0
        and bool((abs(finite - 1) < _SUM_SLACK).mean() > _ORDERED)
    )


def _are_corners(boxes: Sequence[NDArray[np.float64]]) -> bool:
    """Whether boxes [4, anchors] of several inputs are two corners each."""
    with np.errstate(invalid="ignore"):
        falling = np.concatenate([(box[2:] >= box[:2]).all(axis=0) for box in boxes])
    return bool(falling.mean() >= _ORDERED)


def _ssd_outputs(
    tensors: Sequence[TensorInfo], raws: Sequence[Sequence[NDArray[Any]]]
) -> tuple[str, ...]:
    """Return the names of boxes, classes, scores and number of objects; none where it is unclear."""
    places = list(ssd_places(tensors) or ())
    if places and _fractional(tensors, raws, places[1]):
        places[1], places[2] = places[2], places[1]
    return tuple(tensors[place].name for place in places)


def _fractional(
    tensors: Sequence[TensorInfo], raws: Sequence[Sequence[NDArray[Any]]], place: int
) -> bool:
    """Whether an output holds numbers that are not whole."""
    for raw in raws:
        real = dequantize(raw[place], tensors[place].quantization)
        finite = real[np.isfinite(real)]
        if finite.size and (finite != np.rint(finite)).any():
            return True
    return False

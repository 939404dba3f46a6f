"""What of an output format its values tell: decided once, on the first inputs of a campaign."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.detectors.heads import SplitHead, YoloHead
from edgeflare.models.detectors.options import (
    NO_BACKGROUND,
    Activation,
    BoxUnits,
    DetectorOptions,
)
from edgeflare.models.detectors.processed import EndToEnd, SsdObjects, ssd_places
from edgeflare.models.detectors.reader import RawOutputs, decoder_of, read_places
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize

_LARGEST_SHARE = 2.0
"""Boxes with a coordinate above this are in pixels; those in shares hardly reach beyond 1."""
_LOWEST_SCORE = -0.5
"""Logits are below this at most anchors; scores aren't, however coarsely they are quantised."""
_SUM_SLACK = 0.02
_ORDERED = 0.99
"""Share of anchors whose third and fourth values are at least the first two, of corners."""


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
                boxes = [one.reshape(-1, 6)[:, :4] for one in boxes]
            found = {"units": _units(boxes, options.box_units), "activation": "none"}
    found |= {name: value for name, value in stated.items() if value is not None}
    return options.model_copy(update=found)


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
    largest = [float(one[np.isfinite(one)].max(initial=0.0)) for one in boxes]
    if not any(largest):
        return usual
    return "pixels" if max(largest) > _LARGEST_SHARE else "shares"


def _activation(scores: Sequence[NDArray[np.float64]]) -> Activation:
    for one in scores:
        finite = one[np.isfinite(one)]
        if finite.min(initial=0.0) < _LOWEST_SCORE:
            return "sigmoid"
    return "none"


def _sum_to_one(scores: Sequence[NDArray[np.float64]]) -> bool:
    """Whether the scores of each anchor, [classes, anchors] of several inputs, sum to 1."""
    with np.errstate(invalid="ignore"):
        sums = np.concatenate([one.sum(axis=0) for one in scores])
    finite = sums[np.isfinite(sums)]
    return (
        len(scores[0]) > 1
        and finite.size > 0
        and bool((abs(finite - 1) < _SUM_SLACK).mean() > _ORDERED)
    )


def _are_corners(boxes: Sequence[NDArray[np.float64]]) -> bool:
    """Whether boxes [4, anchors] of several inputs are two corners each."""
    with np.errstate(invalid="ignore"):
        falling = np.concatenate([(one[2:] >= one[:2]).all(axis=0) for one in boxes])
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

"""Scores and boxes of a head with one prediction for each anchor.

All that is done to every anchor is a comparison with the lowest value of interest, in the model's own
number format: de-quantisation and sigmoids keep the order. Only anchors that may reach it are decoded.
Exponentials are those of `edgeflare._internal.exact`, so that every host finds the same bits.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.text import shape_text
from edgeflare.answers.detections.formats.options import (
    NO_BACKGROUND,
    Activation,
    BoxOrder,
    BoxUnits,
    DetectorOptions,
)
from edgeflare.errors import ModelError
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import dequantize

_ABOVE_ONE = 1.1
"""A score that rounding left above 1 is below this."""
_SLACK = 1e-3
_LOGIT_SLACK = 0.05
"""What a bound is lowered by, so that no rounding of a half-precision number is above it."""


@dataclass(frozen=True)
class Decoder(ABC):
    """What turns raw outputs, in the order that its format has, into candidates by anchor.

    `size`: the model's input, (height, width) in pixels.
    """

    tensors: tuple[TensorInfo, ...]
    options: DetectorOptions
    size: tuple[int, int]

    def __post_init__(self) -> None:  # noqa: B027 - else that of a subclass is never called
        """Raise ModelError where the tensors are none of the format."""

    @property
    def tensor(self) -> TensorInfo:
        """The first tensor."""
        return self.tensors[0]

    @property
    def classes(self) -> int:
        """The number of classes; 0 where the outputs don't tell."""
        return 0

    @abstractmethod
    def decode(self, raws: Sequence[NDArray[Any]], floor: float) -> "Found":
        """Return the candidates of a sample's raw outputs with a score of at least `floor`."""


class Found(NamedTuple):
    """Candidates by anchor: boxes float64 [n, 4] as in `Detections`, int64 [n], float64 [n].

    Those with a score of at least the floor, and all with NaN or infinity anywhere, whose score is
    NaN then.
    """

    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    scores: NDArray[np.float64]


class Plane(NamedTuple):
    """A part of a raw output: values [channels, anchors], and how they become real numbers."""

    values: NDArray[Any]
    quantization: tuple[float, int] | None

    def stored(self, real: float) -> float:
        """Return what a real number is in this part, not rounded."""
        scale, zero_point = self.quantization or (1.0, 0)
        return real / scale + zero_point

    def real(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Return values of this part de-quantised, float64."""
        return dequantize(values, self.quantization)


class ScoreRule(NamedTuple):
    """How a score is made: see `DetectorOptions` and `GridOptions`."""

    activation: Activation = "none"
    background: int = NO_BACKGROUND
    objectness_power: float = 1.0
    class_power: float = 1.0


def as_shaped(raw: NDArray[Any], tensor: TensorInfo) -> NDArray[Any]:
    """Return a raw output in its tensor's shape without the batch axis, one open axis filled.

    Raises ModelError where it has another shape.
    """
    try:
        return raw.reshape([-1 if size is None else size for size in tensor.shape[1:]])
    except ValueError as error:
        raise ModelError(
            f"output {tensor.name!r} was read with shape {shape_text(raw.shape)}, and the model's "
            f"file says {shape_text(tensor.shape)}: export the model with fixed shapes"
        ) from error


def check_counts(**counts: int) -> None:
    """Raise ModelError where a sample's outputs of the same objects have different numbers of them."""
    if len(set(counts.values())) > 1:
        found = ", ".join(f"{count} {what}" for what, count in counts.items())
        raise ModelError(
            f"the model returned {found} for a sample: name the outputs that belong together with "
            "`--decoder outputs=`, or export the model with fixed shapes"
        )


def broken_anchors(raws: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Return the anchors with NaN or infinity in any of the raw values [channels, anchors]."""
    broken = np.zeros(0, np.int64)
    for values in raws:
        with np.errstate(invalid="ignore", over="ignore"):
            suspect = values.dtype.kind == "f" and not np.isfinite(values.sum())
        if suspect:
            broken = np.union1d(broken, np.flatnonzero(~np.isfinite(values).all(axis=0)))
    return broken


def choose(
    classes: Plane,
    objectness: Plane | None,
    rule: ScoreRule,
    floor: float,
    broken: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the anchors whose best class scores at least `floor`, and the `broken` ones.

    They are int64 [n], with their best classes and scores.
    """
    values = classes.values
    if rule.background >= 0:
        values = _without(values, rule.background)
    with np.errstate(invalid="ignore"):
        if objectness is not None:
            least = _least(floor / _ABOVE_ONE, rule.objectness_power, rule.activation)
            places = _reaching(objectness.values, objectness.stored(least))
        elif rule.activation == "softmax":
            places = _before_softmax(values, classes, rule.background, floor)
        else:
            least = _least(floor, rule.class_power, rule.activation)
            places = _reaching(values, classes.stored(least))
    places = np.setdiff1d(places, broken, assume_unique=True)
    if rule.activation == "softmax":
        shares = exact.softmax(classes.real(classes.values[:, places]))
        if rule.background >= 0:
            shares = _without(shares, rule.background)
        labels, scores = shares.argmax(axis=0), shares.max(axis=0)
    else:
        chosen = values[:, places]
        labels = chosen.argmax(axis=0)
        scores = _activated(classes.real(chosen.max(axis=0)), rule.activation)
    scores = power(scores, rule.class_power)
    if objectness is not None:
        one = _activated(objectness.real(objectness.values[0, places]), rule.activation)
        scores = power(one, rule.objectness_power) * scores
    enough = scores >= floor
    places = np.concatenate([places[enough], broken])
    order = np.argsort(places, kind="stable")
    labels = np.concatenate([labels[enough], np.zeros(len(broken), np.int64)])
    scores = np.concatenate([np.minimum(scores[enough], 1.0), np.full(len(broken), np.nan)])
    return places[order], labels[order].astype(np.int64), scores[order]


def listed(
    boxes: NDArray[np.float64],
    labels: NDArray[np.float64],
    scores: NDArray[np.float64],
    floor: float,
) -> Found:
    """Return the candidates of a list of objects: boxes [n, 4] as in `Detections`, [n] and [n].

    A class of more than 31 bits is none, as NaN is.
    """
    is_class = np.abs(labels) < 1 << 31
    broken = ~(np.isfinite(boxes).all(axis=1) & is_class & np.isfinite(scores))
    places = np.flatnonzero(broken | (scores >= floor))
    broken = broken[places]
    whole = np.where(broken, 0.0, np.rint(labels[places]))
    kept = np.where(broken, np.nan, np.minimum(scores[places], 1.0))
    return Found(boxes[places], whole.astype(np.int64), kept)


def ltrb_shares(
    boxes: NDArray[np.float64], order: BoxOrder, units: BoxUnits, size: tuple[int, int]
) -> NDArray[np.float64]:
    """Return boxes [4, n] of an order and units as `Detections` has them, float64 [n, 4].

    `size`: the model's input, (height, width) in pixels.
    """
    one, two, three, four = boxes
    if order == "yxyx":
        one, two, three, four = two, one, four, three
    elif order == "xywh":
        three, four = one + three, two + four
    elif order == "cxcywh":
        half_width, half_height = three / 2, four / 2
        one, two, three, four = (
            one - half_width,
            two - half_height,
            one + half_width,
            two + half_height,
        )
    height, width = size if units == "pixels" else (1, 1)
    return np.stack([one / width, two / height, three / width, four / height], axis=1)


def power(values: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Return values ** exponent of float64 [n]: 0 of what is not above 0, NaN of NaN."""
    if exponent == 1:
        return values
    raised = exact.exp(exponent * exact.log(np.where(values > 0, values, 1.0)))
    return np.where(values > 0, raised, values * 0.0)


def _without(values: NDArray[Any], row: int) -> NDArray[Any]:
    if row == 0:
        return values[1:]
    return np.delete(values, row, axis=0)


def _reaching(values: NDArray[Any], least: float) -> NDArray[np.int64]:
    """Return the anchors of values [channels, anchors] with one of at least `least`."""
    if values.dtype.kind in "iu":
        limits = np.iinfo(values.dtype)
        hits = values >= values.dtype.type(math.floor(min(max(least, limits.min), limits.max)))
    else:
        hits = values >= least
    if hits.flags.c_contiguous:
        return np.flatnonzero(hits.any(axis=0))
    return np.unique(np.flatnonzero(hits.T) // len(hits))  # an anchor's channels are neighbours


def _before_softmax(
    values: NDArray[Any], classes: Plane, background: int, floor: float
) -> NDArray[np.int64]:
    """Return the anchors of which a class may have a share of at least `floor`.

    It has at most the share that it has among itself and the background.
    """
    if background < 0:
        return np.arange(values.shape[1])
    step = classes.quantization[0] if classes.quantization else 1.0
    behind = classes.values[background].astype(np.float32)
    return _reaching(values - behind, _least(floor, 1.0, "softmax") / step)


def _least(floor: float, exponent: float, activation: Activation) -> float:
    """Return a value below all that a factor of a score of at least `floor` may have.

    `exponent`: what the factor is raised to; no other one is above `_ABOVE_ONE`.
    """
    least = math.pow(floor, 1.0 / exponent) * (1.0 - _SLACK)
    if activation == "none":
        return least
    return math.log(least / (1.0 - least)) - _LOGIT_SLACK if least > 0 else -math.inf


def _activated(values: NDArray[np.float64], activation: Activation) -> NDArray[np.float64]:
    return exact.sigmoid(values) if activation == "sigmoid" else values

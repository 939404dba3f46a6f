"""How two answers of real values are compared: the measures of distance, and their words."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.text import shape_text
from edgeflare.errors import ModelError
from edgeflare.types import Task, ValueMeasure, Values
from edgeflare.words import answers as words

SMALLEST_SHARE = 1e-3
"""An element of the original smaller than this share of its largest one counts as this share of
that, for relative differences: no element near 0 decides alone."""


def distance(original: Values, deployed: Values) -> float:
    """Return the distance of two answers of one shape, at least 0, by the original's rules.

    labels: the share of elements whose `label_map` differs, 0 to 1. absolute: the largest absolute
    difference of an element. relative: the largest one divided by the original's absolute value,
    with `SMALLEST_SHARE`. cosine: 1 less the cosine of both, 0 to 2; 1 where one of them is 0
    throughout, and 0 where both are. With tolerances, of absolute and relative, each element's
    difference is divided by its own one, so that more than 1 is beyond a tolerance. NaN where an
    element is not finite. Raises ModelError for answers, or label maps, of two shapes.
    """
    rules = original.rules
    measure = MEASURES_OF_VALUES[rules.measure]
    if not (np.isfinite(original.array).all() and np.isfinite(deployed.array).all()):
        return float("nan")
    ours, theirs = measure.read(original), measure.read(deployed)
    if ours.shape != theirs.shape:
        raise ModelError(
            f"the original model returned values of shape {shape_text(ours.shape)} for a sample, and the deployed "
            f"model {shape_text(theirs.shape)}: export both with the same fixed shapes"
        )
    apart = measure.compare(ours.reshape(-1), theirs.reshape(-1))
    if rules.tolerances and measure.by_element:
        apart = apart / np.array(rules.tolerances)
    return float(apart.max(initial=0.0))


def label_map(values: Values) -> NDArray[np.int64]:
    """Return the label of each pixel: int64 of the array's shape without its channels.

    It is the channel with the highest value (of equal ones the first), or with a single channel 1
    where that is at least the rules' threshold, else 0. An array without the axis of channels has a
    single one; with an axis of None its elements are the labels.
    """
    array, axis = values.array, values.rules.axis
    if axis is None:
        return np.asarray(array, np.int64)
    if array.ndim < 3 or array.shape[axis] == 1:
        single = array if array.ndim < 3 else array.take(0, axis)
        return np.asarray(single >= values.rules.threshold, np.int64)
    return np.asarray(array.argmax(axis), np.int64)


def mean_iou(original: Values, deployed: Values) -> float:
    """Return the mean, over the labels in either map, of their intersection over their union."""
    ours, theirs = label_map(original), label_map(deployed)
    shares = [
        ((ours == one) & (theirs == one)).sum() / ((ours == one) | (theirs == one)).sum()
        for one in np.union1d(ours, theirs)
    ]
    return float(np.mean(shares))


def _labels_apart(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.float64]:
    return np.array([(ours != theirs).mean()])


def _elements_apart(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.float64]:
    apart: NDArray[np.float64] = np.abs(ours - theirs)
    return apart


def _relatively_apart(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.float64]:
    size = np.abs(ours)
    least = SMALLEST_SHARE * size.max(initial=0.0)
    apart: NDArray[np.float64] = np.abs(ours - theirs) / np.maximum(
        size, least if least > 0 else 1.0
    )
    return apart


def _less_cosine(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[np.float64]:
    lengths = exact.norm(ours), exact.norm(theirs)
    if not min(lengths) > 0:
        return np.array([1.0 if max(lengths) > 0 else 0.0])
    cosine = exact.dot(ours, theirs) / (lengths[0] * lengths[1])
    return np.array([min(max(1.0 - cosine, 0.0), 2.0)])


class Measure(NamedTuple):
    """How two answers of values are compared: a row of `MEASURES_OF_VALUES`, a name in `types.ValueMeasure`.

    `read` makes of an answer the array that is compared; `compare` takes both, [n], finite, and returns the
    distances of their elements, or a single one of both, with the same bits on any processor
    (`_internal.exact`). `largest`: what no distance exceeds. `by_element`: elements may have
    tolerances of their own. `tasks`: those that it is for.
    """

    compare: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.float64]]
    read: Callable[[Values], NDArray[Any]] = lambda values: values.array
    largest: float = math.inf
    by_element: bool = False
    tasks: tuple[Task, ...] = ("dense", "embedding", "vector")


MEASURES_OF_VALUES: Mapping[ValueMeasure, Measure] = {
    "labels": Measure(
        _labels_apart,
        read=label_map,
        largest=1.0,
        tasks=("dense",),
    ),
    "absolute": Measure(
        _elements_apart,
        by_element=True,
    ),
    "relative": Measure(
        _relatively_apart,
        by_element=True,
    ),
    "cosine": Measure(
        _less_cosine,
        largest=2.0,
    ),
}

MEASURES: Mapping[ValueMeasure, str] = words.MEASURES
"""The measures, in words."""


def distance_words(original: Values, deployed: Values) -> str:
    """Return the distance of two answers of values: ``1.8 % of the pixels have another label``."""
    apart, measure = distance(original, deployed), MEASURES_OF_VALUES[original.rules.measure]
    if not np.isfinite(apart):
        return words.NOT_FINITE
    if original.rules.measure == "labels":
        return words.pixels_apart(apart, mean_iou(original, deployed))
    by_tolerance = bool(original.rules.tolerances) and measure.by_element
    return words.values_apart(original.rules.measure, apart, by_tolerance=by_tolerance)

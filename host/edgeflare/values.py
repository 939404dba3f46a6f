"""The distance of two answers of real values: maps, embeddings and vectors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.text import shape_text
from edgeflare.errors import ModelError
from edgeflare.types import Task, ValueMeasure, Values

MEASURES: Mapping[ValueMeasure, str] = {
    "labels": "the share of pixels whose label differs",
    "absolute": "the largest difference of an element",
    "relative": "the largest difference of an element, relative to the original's",
    "cosine": "1 less the cosine of both",
}
"""The measures, in words."""

DEFAULT_MEASURES: Mapping[Task, ValueMeasure] = {
    "dense": "labels",
    "embedding": "cosine",
    "vector": "absolute",
}
"""The measure of each task with answers of real values, where none is stated."""

LARGEST_DISTANCES: Mapping[ValueMeasure, float] = {"labels": 1.0, "cosine": 2.0}
"""The largest distance of each measure that has one."""

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
    ours: NDArray[Any] = original.array
    theirs: NDArray[Any] = deployed.array
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return float("nan")
    if rules.measure == "labels":
        ours, theirs = label_map(original), label_map(deployed)
    if ours.shape != theirs.shape:
        raise ModelError(
            f"the original model returned values of shape {shape_text(ours.shape)} for a sample, and the deployed "
            f"model {shape_text(theirs.shape)}: export both with the same fixed shapes"
        )
    if rules.measure == "labels":
        return float((ours != theirs).mean())
    if rules.measure == "cosine":
        return _cosine_distance(ours.reshape(-1), theirs.reshape(-1))
    apart = np.abs(ours - theirs).reshape(-1)
    if rules.measure == "relative":
        size = np.abs(ours).reshape(-1)
        least = SMALLEST_SHARE * size.max(initial=0.0)
        apart = apart / np.maximum(size, least if least > 0 else 1.0)
    if rules.tolerances:
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


def _cosine_distance(ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    lengths = exact.norm(ours), exact.norm(theirs)
    if not min(lengths) > 0:
        return 1.0 if max(lengths) > 0 else 0.0
    cosine = exact.dot(ours, theirs) / (lengths[0] * lengths[1])
    return min(max(1.0 - cosine, 0.0), 2.0)

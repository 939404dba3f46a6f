"""The distance of two answers of real values: maps, embeddings and vectors."""

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import exact
from edgeflare._internal.text import number_text, percent_text, shape_text
from edgeflare.answers.kind import ROUNDING, AnswerKind, Card, Name, Pieces, jsonable, later
from edgeflare.errors import ModelError
from edgeflare.statistics import Spread, median, spread
from edgeflare.types import Task, ValueMeasure, ValueRules, Values

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

_MOST_BYTES = 1 << 30
_MOST_STATE = 1024
"""Numbers that stand for a map with more of them, evenly spaced, in a state of a search."""

_ROUNDED_PIXELS = 0.01
"""The largest share of pixels whose label may differ by rounding alone; as the default tolerance."""


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


def distance_words(original: Values, deployed: Values) -> str:
    """Return the distance of two answers of values: ``1.8 % of the pixels have another label``."""
    apart, rules = distance(original, deployed), original.rules
    if not np.isfinite(apart):
        return "NaN or infinity among the values"
    if rules.measure == "labels":
        overlap = number_text(mean_iou(original, deployed))
        return f"{percent_text(apart)} of the pixels have another label (mean IoU {overlap})"
    if rules.measure == "cosine":
        return f"1 less the cosine is {apart:.3g}"
    if rules.tolerances:
        return f"an element is {apart:.3g} times its tolerance apart"
    if rules.measure == "relative":
        return f"an element is {100 * apart:.3g} % apart"
    return f"an element is {apart:.3g} apart"


@dataclass(frozen=True)
class ValueFigures:
    """How far the answers of values are apart, by `measure` (`edgeflare.values.MEASURES`).

    `tolerance` is the largest distance that is no deviation, None where a user's oracle decides.
    `seeds` and `triggers` are the distances, `mean_iou` the median over the seeds, of label maps.
    `by_element`: each element has a tolerance of its own, which its difference is divided by.
    """

    measure: ValueMeasure
    tolerance: float | None
    seeds: Spread | None
    triggers: Spread | None
    mean_iou: float | None
    by_element: bool = False


def value_figures_of(
    seeds: Sequence[tuple[Values, Values]],
    triggers: Sequence[tuple[Values, Values]],
    settings: Mapping[str, Any],
) -> ValueFigures:
    """Return the figures of pairs of values; `settings` is the campaign's configuration."""
    measure = seeds[0][0].rules.measure
    overlaps = [mean_iou(*both) for both in seeds] if measure == "labels" else []
    tolerance = (settings.get("search") or {}).get("tolerance")
    return ValueFigures(
        measure,
        None if tolerance is None else float(tolerance),
        spread([distance(*both) for both in seeds]),
        spread([distance(*both) for both in triggers]),
        median(overlaps),
        bool(seeds[0][0].rules.tolerances),
    )


class ValuesKind(AnswerKind[Values]):
    """A deviation is a distance beyond a tolerance."""

    name = "values"
    tasks = {
        "dense": "a map: a label or a value for each pixel",
        "embedding": "a vector that is compared by its direction",
        "vector": "numbers",
    }
    noun = "values"
    is_measured = True
    takes_tolerance = True
    largest_distance = math.inf

    def accepts(self, answer: object) -> bool:
        return isinstance(answer, Values)

    def interfaces(self, config: Any, task: str, original: Any, deployed: Any) -> tuple[Any, Any]:
        """Return both models' interfaces; with a gallery they have classes."""
        first, second = later(
            "edgeflare.campaign.pair.values:value_sides", config, task, original, deployed
        )
        return first, second

    def reader(self, side: Any) -> Any:
        from edgeflare.answers.value_outputs import ValuesReader

        compared = side.compared
        return ValuesReader(
            side.outputs, compared.value_rules, compared.moved_axes, compared.as_labels
        )

    def numbers(self, answer: Values) -> NDArray[np.float64]:
        return answer.array

    def agree(self, original: Values, deployed: Values) -> bool:
        return self.is_same(original, deployed)

    def distance(self, original: Values, deployed: Values) -> float:
        return distance(original, deployed)

    def margin(self, answer: Values) -> float | None:
        return None

    def rounds_to(self, first: Values, second: Values) -> bool | None:
        if first.rules.measure == "labels":
            return distance(first, second) <= _ROUNDED_PIXELS
        # An element near 0 may be a sum of large ones.
        ours, theirs = first.array, second.array
        size = np.maximum(np.abs(ours), np.abs(theirs))
        least = ROUNDING * float(size.max(initial=0.0))
        return bool((np.abs(ours - theirs) <= np.maximum(ROUNDING * size, least)).all())

    def repeat_difference(self, first: Values, second: Values) -> float:
        return self.distance(first, second)

    def uncertainty(self, answer: Values, k: int) -> float | None:
        """Return None: values are no decision."""
        return None

    def certainty(self, answer: Values) -> float | None:
        return 1.0 if self.is_finite(answer) else None

    def to_columns(self, answer: Values) -> tuple[bytes, Pieces]:
        with np.errstate(over="ignore"):
            single = answer.array.astype("<f4")
        exact = np.array_equal(single, answer.array, equal_nan=True)
        array = single if exact else np.asarray(answer.array, "<f8")
        about = {"shape": list(array.shape), "dtype": array.dtype.str, "rules": [*answer.rules]}
        return zlib.compress(array.tobytes(), 1), about

    def from_columns(self, data: bytes, pieces: Any) -> Values:
        dtypes: dict[str, np.dtype[Any]] = {"<f4": np.dtype("<f4"), "<f8": np.dtype("<f8")}
        dtype = dtypes[pieces["dtype"]]
        try:
            unpacked = zlib.decompressobj().decompress(data, _MOST_BYTES)
        except zlib.error as error:
            raise ValueError("the values of an answer are damaged") from error
        array = np.frombuffer(unpacked, dtype).astype(np.float64).reshape(pieces["shape"])
        measure, threshold, axis, tolerances = pieces["rules"]
        if not (
            measure in get_args(ValueMeasure)
            and type(threshold) in (int, float)
            and (axis is None or (type(axis) is int and -array.ndim <= axis < max(array.ndim, 1)))
            and all(type(tolerance) in (int, float) and tolerance > 0 for tolerance in tolerances)
            and len(tolerances) in (0, array.size)
        ):
            raise ValueError(
                f"{str(pieces['rules'])[:99]} are no rules of values {list(array.shape)}"
            )
        return Values(array, ValueRules(measure, threshold, axis, tuple(tolerances)))

    def fits(self, original: Values, deployed: Values) -> bool:
        sizes = original.array.size, deployed.array.size
        return 0 in sizes or sizes[0] == sizes[1]

    def difference(self, original: Values, deployed: Values, name: Name = str) -> str | None:
        return distance_words(original, deployed)

    def to_json(self, answer: Values) -> Any:
        return value_summary(answer)

    def card(self, original: Values, deployed: Values, seed: Sequence[Any] = ()) -> Card:
        card: Card = later("edgeflare.reports.html.answers:values_card", self, original, deployed)
        return card

    def figures(
        self, seeds: Iterable[Any], triggers: Iterable[Any], settings: Mapping[str, Any]
    ) -> Any:
        return value_figures_of(list(seeds), list(triggers), settings)

    def key_figures(self, figures: Any) -> Iterable[Any]:
        key_figures: Iterable[Any] = later(
            "edgeflare.reports.answers.document:value_key_figures", figures
        )
        return key_figures

    def state(self, answer: Values) -> NDArray[np.float64]:
        numbers = answer.array.reshape(-1)
        step = -(-numbers.size // _MOST_STATE)
        return numbers[::step] if step > 1 else numbers


def value_summary(answer: Values) -> dict[str, Any]:
    """Return the shape, smallest, largest and mean element of values, as `jsonable` data."""
    array = answer.array
    figures = {"min": array.min(), "max": array.max(), "mean": array.mean()} if array.size else {}
    return {"shape": list(array.shape), **{k: jsonable(float(v)) for k, v in figures.items()}}


VALUES = ValuesKind()

"""The distance of two answers of real values: maps, embeddings and vectors."""

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, model_validator

from edgeflare._internal.flags import OUTPUTS, Flag, ForTasks, Key, conflict
from edgeflare._internal.text import number_text
from edgeflare._internal.toml import AbsolutePath
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.measures import (
    MEASURES,
    MEASURES_OF_VALUES,
    distance,
    distance_words,
    label_map,
    mean_iou,
)
from edgeflare.answers.parts import (
    ROUNDING,
    Card,
    Name,
    Picture,
    Pieces,
    Tolerance,
    jsonable,
    later,
)
from edgeflare.answers.scores import SCORES
from edgeflare.document import KeyFigure
from edgeflare.statistics import Spread, median, spread
from edgeflare.types import Task, ValueMeasure, ValueRules, Values
from edgeflare.words.answers import (
    A_DIRECTION,
    A_MAP,
    GALLERY_NO_TOLERANCE,
    MEAN_IOU,
    OF_VALUES,
    VALUES_OF_SHAPE,
    distance_figure,
    distance_is,
)

DEFAULT_MEASURES: Mapping[Task, ValueMeasure] = {
    "dense": "labels",
    "embedding": "cosine",
    "vector": "absolute",
}
"""The measure of each task with answers of real values, where none is stated."""

DEFAULT_TOLERANCES: Mapping[Task, float] = {"dense": 0.01, "embedding": 0.01}
"""The tolerance where none is stated: of pixels with another label, and of 1 less the cosine."""

_MOST_ELEMENTS = 8
_SMALLEST_MAP = 8
_MAP_SIDE = 224
_LABELS = (
    *("1f2937", "e69f00", "56b4e9", "009e73", "f0e442", "0072b2", "d55e00", "cc79a7"),
    *("9ad1a3", "7f5fc9", "b3b3b3", "8c510a", "80cdc1", "f4a6c0", "4d9221", "c51b7d"),
)
"""Colours of labels, repeated beyond the last: Okabe and Ito's (2008), and others beside them."""
_DIFFERS = ("d7dbe0", "c1121f")
"""Colours of pixels with one label, and with two."""

_MOST_BYTES = 1 << 30
_MOST_STATE = 1024
"""Numbers that stand for a map with more of them, evenly spaced, in a state of a search."""

_ROUNDED_PIXELS = 0.01
"""The largest share of pixels whose label may differ by rounding alone; as the default tolerance."""


class ValuesConfig(BaseModel, extra="forbid", frozen=True):
    """How answers of real values are compared: maps, embeddings and vectors."""

    measure: Annotated[
        ValueMeasure | None,
        Flag("--measure", metavar="NAME", panel=OUTPUTS),
        ForTasks("dense", "embedding", "vector"),
    ] = Field(
        default=None,
        description="What --tolerance is compared with: labels (the share of pixels whose label differs; of "
        "maps the default), absolute (the largest difference of an element; of vectors the default), "
        "relative (that relative to the original's) or cosine (1 less the cosine; of embeddings the default).",
        examples=["absolute"],
    )
    threshold: Annotated[
        float, Flag("--threshold", metavar="F", panel=OUTPUTS), ForTasks("dense")
    ] = Field(
        default=0.5,
        allow_inf_nan=False,
        description="Of maps with a single channel, the least value of label 1; default 0.5.",
    )
    axis: Annotated[
        int | None, Flag("--channel-axis", metavar="N", panel=OUTPUTS), ForTasks("dense")
    ] = Field(
        default=None,
        ge=-1,
        le=3,
        description="Of maps, the axis of the labels' scores in the original's output, without the batch: 0 "
        "(channels first) or -1 (last); by default as the sizes of input and output tell.",
        examples=[-1],
    )
    tolerances: Annotated[
        tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...], ForTasks("vector")
    ] = Field(
        default=(),
        description="A tolerance for each element of a vector, in place of --tolerance.",
        examples=[[0.1, 0.1, 2.0]],
    )
    gallery: Annotated[
        AbsolutePath | None, Flag("--gallery", panel=OUTPUTS), ForTasks("embedding")
    ] = Field(
        default=None,
        description="An .npz with embeddings [n, size] as `embeddings`: models of embeddings are compared by the "
        "nearest one of them, which is then a class.",
        examples=["gallery.npz"],
    )

    def rules(self, default: ValueMeasure, axis: int | None = 0) -> ValueRules:
        """Return the rules that the answers carry; `axis`: that of the channels, None of label maps."""
        return ValueRules(self.measure or default, self.threshold, axis, self.tolerances)

    @model_validator(mode="after")
    def _divides_by_tolerances(self) -> "ValuesConfig":
        if self.tolerances and self.measure and not MEASURES_OF_VALUES[self.measure].by_element:
            raise conflict(
                "{tolerances} are of the elements of a vector, with measure absolute or relative, not with {measure}",
                tolerances=Key("tolerances"),
                measure=Key("measure", f'measure = "{self.measure}"', str(self.measure)),
            )
        return self


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


class ValuesKind(AnswerKind[Values]):
    """A deviation is a distance beyond a tolerance."""

    name = "values"
    tasks = {"dense": A_MAP, "embedding": A_DIRECTION, "vector": "numbers"}
    noun = "values"
    is_measured = True
    takes_tolerance = True
    largest_distance = math.inf
    page_part = ""
    report_words = OF_VALUES
    settings = ValuesConfig

    def accepts(self, answer: object) -> bool:
        return isinstance(answer, Values)

    def interfaces(self, task: str, settings: Any, original: Any, deployed: Any) -> tuple[Any, Any]:
        """Return both models' interfaces; with a gallery they have classes."""
        from edgeflare.answers.value_interfaces import value_interfaces

        return value_interfaces(settings, task, original, deployed)

    def tolerance(self, task: str, settings: Mapping[str, Any]) -> Tolerance:
        """Return the measure's; embeddings with a gallery are compared by its nearest entry."""
        if task == "embedding" and settings.get("gallery") is not None:
            return SCORES.tolerance(task, settings)._replace(refusal=GALLERY_NO_TOLERANCE)
        measure = settings.get("measure") or DEFAULT_MEASURES[task]
        default = 1.0 if task == "vector" and settings.get("tolerances") else None
        if measure not in MEASURES_OF_VALUES:  # the settings' own check tells of it
            return Tolerance(str(measure), default=DEFAULT_TOLERANCES.get(task, default))
        compared = MEASURES_OF_VALUES[measure]
        return Tolerance(MEASURES[measure], compared.largest, DEFAULT_TOLERANCES.get(task, default))

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

    def to_cell(self, answer: Values) -> Any:
        return value_summary(answer)

    def answer_words(self, answer: Values, name: Name = str) -> str:
        return VALUES_OF_SHAPE.format(list(answer.array.shape))

    def card(self, original: Values, deployed: Values, seed: Sequence[Any] = ()) -> Card:
        maps = _maps(original, deployed)
        values = {
            "mean_iou": None,
            "cosine": _cosine(original, deployed),
            "elements": [] if maps else _elements(original, deployed),
            "shape": list(original.array.shape),
        }
        is_finite = self.is_finite(original) and self.is_finite(deployed)
        if original.rules.measure == "labels" and is_finite:
            values["mean_iou"] = round(mean_iou(original, deployed), 4)
        return Card(distance_words(original, deployed), values=values, maps=maps)

    def figures(
        self, seeds: Iterable[Any], triggers: Iterable[Any], settings: Mapping[str, Any]
    ) -> Any:
        pairs = list(seeds)
        if not pairs:
            return None
        rules = pairs[0][0].rules
        overlaps = [mean_iou(*both) for both in pairs] if rules.measure == "labels" else []
        tolerance = (settings.get("search") or {}).get("tolerance")
        return ValueFigures(
            rules.measure,
            None if tolerance is None else float(tolerance),
            spread([distance(*both) for both in pairs]),
            spread([distance(*both) for both in triggers]),
            median(overlaps),
            bool(rules.tolerances),
        )

    def figures_json(self, figures: ValueFigures) -> dict[str, Any]:
        return {"values": asdict(figures)}

    def key_figures(self, figures: ValueFigures) -> Iterable[KeyFigure]:
        """Yield the distances."""
        measured = figures.measure, figures.tolerance, figures.by_element
        for where, distances in (("seeds", figures.seeds), ("triggers", figures.triggers)):
            if distances is not None:
                yield distance_figure(where, distances, *measured)
        if figures.mean_iou is not None:
            yield KeyFigure(MEAN_IOU, number_text(figures.mean_iou, 3))

    def page_note(self, figures: ValueFigures) -> str:
        return distance_is(figures.measure, figures.tolerance)

    def state(self, answer: Values) -> NDArray[np.float64]:
        numbers = answer.array.reshape(-1)
        step = -(-numbers.size // _MOST_STATE)
        return numbers[::step] if step > 1 else numbers


def value_summary(answer: Values) -> dict[str, Any]:
    """Return the shape, smallest, largest and mean element of values, as `jsonable` data."""
    array = answer.array
    figures = {"min": array.min(), "max": array.max(), "mean": array.mean()} if array.size else {}
    return {"shape": list(array.shape), **{k: jsonable(float(v)) for k, v in figures.items()}}


def _cosine(original: Values, deployed: Values) -> float | None:
    """Return the cosine of two finite answers, None of label maps and where one is 0 throughout."""
    if original.rules.measure == "labels" or not (original.array.any() and deployed.array.any()):
        return None
    by_cosine = Values(original.array, ValueRules("cosine"))
    cosine = 1 - distance(by_cosine, deployed)
    return float(f"{cosine:.5g}") if np.isfinite(cosine) else None


def _elements(original: Values, deployed: Values) -> list[list[Any]]:
    """Return the elements that differ most: [place, original's value, deployed's value]."""
    apart = np.abs(original.array - deployed.array)
    if original.rules.tolerances and len(original.rules.tolerances) == apart.size:
        apart = apart / np.array(original.rules.tolerances).reshape(apart.shape)
    order = np.argsort(-np.nan_to_num(apart.reshape(-1), nan=np.inf), kind="stable")
    rows = []
    for flat in order[:_MOST_ELEMENTS]:
        place = ", ".join(str(int(one)) for one in np.unravel_index(flat, apart.shape))
        values = (float(one.array.reshape(-1)[flat]) for one in (original, deployed))
        rows.append([place, *(f"{one:.5g}" for one in values)])
    return rows


def _maps(original: Values, deployed: Values) -> tuple[Picture, ...]:
    """Return the pictures of both maps and of their difference; none of values that are no map.

    Labels have a colour each, and red where they differ; a single channel is grey from the smallest
    to the largest value of both, and its difference blue where it is lower and red where higher.
    """
    shape = original.array.shape
    if shape != deployed.array.shape or not np.isfinite([original.array, deployed.array]).all():
        return ()
    if original.rules.measure == "labels" and len(shape) in (2, 3):
        ours, theirs = label_map(original), label_map(deployed)
        if min(ours.shape) < _SMALLEST_MAP:
            return ()
        colours = _palette(_LABELS)
        maps = [_indexed(one % len(_LABELS), colours) for one in (ours, theirs)]
        return (*maps, _indexed((ours != theirs).astype(np.int64), _palette(_DIFFERS)))
    planes = [one.array.squeeze() for one in (original, deployed)]
    if planes[0].ndim != 2 or min(planes[0].shape) < _SMALLEST_MAP:
        return ()
    low, high = min(one.min() for one in planes), max(one.max() for one in planes)
    span = high - low if high > low else 1.0
    greys = [np.rint(255 * (one - low) / span).astype(np.uint8) for one in planes]
    change = planes[1] - planes[0]
    most = float(np.abs(change).max()) or 1.0
    palette = later("edgeflare.reports.media:change_colours")
    shades = np.rint((change / most + 1) / 2 * (len(palette) - 1)).astype(np.int64)
    return (*(Picture(_small(one)) for one in greys), _indexed(shades, palette))


def _palette(colours: Sequence[str]) -> NDArray[np.uint8]:
    return np.array([list(bytes.fromhex(one)) for one in colours], np.uint8)


def _indexed(shades: NDArray[np.int64], palette: NDArray[np.uint8]) -> Picture:
    return Picture(_small(shades.astype(np.uint8)), palette)


def _small(plane: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a plane of at most 224 elements a side, by leaving out some."""
    import cv2

    scale = _MAP_SIDE / max(plane.shape)
    if scale >= 1:
        return plane
    size = (max(1, round(plane.shape[1] * scale)), max(1, round(plane.shape[0] * scale)))
    small: NDArray[np.uint8] = np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_NEAREST))
    return small


VALUES = ValuesKind()

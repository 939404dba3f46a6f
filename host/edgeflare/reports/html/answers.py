"""Detections and values in the page's gallery: boxes over pictures, maps, elements that differ."""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.answers import common_kind
from edgeflare.answers.detections.matching import Difference, differences
from edgeflare.answers.detections.words import BROKEN, kinds_words, score_words
from edgeflare.answers.kind import Card
from edgeflare.answers.metrics import is_finite
from edgeflare.answers.values import distance, distance_words, label_map, mean_iou
from edgeflare.reports.answers.boxes import Mark, box_marks
from edgeflare.reports.html.media import Media
from edgeflare.reports.media import Palette, change_colours, indexed_png, png
from edgeflare.types import Detections, Output, ValueRules, Values

_MOST_LISTED = 30
_MOST_SCORES = 8
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


ShownAnswers = Card


def shown_answers(
    original: Output | None, deployed: Output | None, seed: Sequence[Output | None] = ()
) -> Card:
    """Return what a card shows of both answers; `seed` are those to the seed, if it is another."""
    if original is None or deployed is None:
        return Card()
    return common_kind(original, deployed).card(original, deployed, seed)


def detections_card(
    kind: Any, original: Detections, deployed: Detections, seed: Sequence[Output | None]
) -> Card:
    """Return what a card shows of two detectors' answers."""
    finite = kind.is_finite(original) and kind.is_finite(deployed)
    found = differences(original, deployed) if finite else ()
    pairs = tuple(dict.fromkeys(difference_key(one.kind, one.label) for one in found))
    data = {
        "trigger": box_marks(original, deployed, found) if kind.located else None,
        "seed": _seed_marks(*seed) if kind.located and len(seed) == 2 else None,
        "differences": [_row(one, original, deployed) for one in found[:_MOST_LISTED]],
        "more": max(0, len(found) - _MOST_LISTED),
        "pairs": list(pairs),
        "counts": [original.count, deployed.count],
    }
    scores = None if kind.located else _tag_scores(original, deployed)
    words = kinds_words(found) or "no difference" if finite else BROKEN
    return Card(words, data, None, scores, pairs)


def values_card(kind: Any, original: Values, deployed: Values) -> Card:
    """Return what a card shows of two answers of values."""
    maps = _maps(original, deployed)
    values = {
        "mean_iou": None,
        "cosine": _cosine(original, deployed),
        "elements": [] if maps else _elements(original, deployed),
        "shape": list(original.array.shape),
    }
    if original.rules.measure == "labels" and kind.is_finite(original) and kind.is_finite(deployed):
        values["mean_iou"] = round(mean_iou(original, deployed), 4)
    return Card(distance_words(original, deployed), None, values, maps=maps)


def difference_key(kind: str, label: int) -> str:
    """Return the page's key of differences of a kind in a class, like ``lost:0``."""
    return f"{kind}:{label}"


# Detections


def _seed_marks(original: Output | None, deployed: Output | None) -> list[list[Mark]] | None:
    if not (isinstance(original, Detections) and isinstance(deployed, Detections)):
        return None
    return box_marks(original, deployed, differences(original, deployed))


def _row(one: Difference, original: Detections, deployed: Detections) -> list[Any]:
    """Return [kind, label, deployed label, figures in words, original's margin, deployed's]."""
    figures = score_words(one, original, deployed)
    if one.kind == "shift" and one.iou is not None:
        figures = f"IoU {one.iou:.2f}"
    return [one.kind, one.label, one.deployed_label, figures, *map(_number, one.margins)]


def _tag_scores(original: Detections, deployed: Detections) -> list[list[Any]]:
    """Return the highest scores of labels without boxes, either model's."""
    known: list[dict[int, float]] = [
        dict(zip(one.labels.tolist(), one.scores.tolist(), strict=True))
        for one in (original, deployed)
    ]
    ranked = sorted(
        {*known[0], *known[1]}, key=lambda label: -max(one.get(label, 0.0) for one in known)
    )
    return [
        [label, *(_number(one[label]) if label in one else None for one in known)]
        for label in ranked[:_MOST_SCORES]
    ]


def _number(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None


# Values


def _cosine(original: Values, deployed: Values) -> float | None:
    """Return the cosine of two finite answers, None of label maps and where one is 0 throughout."""
    if original.rules.measure == "labels" or not (original.array.any() and deployed.array.any()):
        return None
    by_cosine = Values(original.array, ValueRules("cosine"))
    return _number(1 - distance(by_cosine, deployed))


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


def _maps(original: Values, deployed: Values) -> tuple[Media, ...]:
    """Return the pictures of both maps and of their difference; none of values that are no map.

    Labels have a colour each, and red where they differ; a single channel is grey from the smallest
    to the largest value of both, and its difference blue where it is lower and red where higher.
    """
    shape = original.array.shape
    if shape != deployed.array.shape or not (is_finite(original) and is_finite(deployed)):
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
    palette = change_colours()
    shades = np.rint((change / most + 1) / 2 * (len(palette) - 1)).astype(np.int64)
    pictures = [Media(png(_small(one)[:, :, None]), "image/png", "png") for one in greys]
    return (*pictures, _indexed(shades, palette))


def _palette(colours: Sequence[str]) -> Palette:
    return np.array([list(bytes.fromhex(one)) for one in colours], np.uint8)


def _indexed(shades: NDArray[np.int64], palette: Palette) -> Media:
    return Media(indexed_png(_small(shades.astype(np.uint8)), palette), "image/png", "png")


def _small(plane: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a plane of at most 224 elements a side, by leaving out some."""
    scale = _MAP_SIDE / max(plane.shape)
    if scale >= 1:
        return plane
    size = (max(1, round(plane.shape[1] * scale)), max(1, round(plane.shape[0] * scale)))
    small: NDArray[np.uint8] = np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_NEAREST))
    return small

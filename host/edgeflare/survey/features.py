"""Readable features of a sample: what a fault is described by.

Each is a number that a reader can check by looking at the input: the brightest pixel, the mean of a
corner, the share of energy above a frequency. Sums are sums of integers and every other step is one
IEEE operation, so the values are the same on every CPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.types import Sample
from edgeflare.words import inputs as words

Features: TypeAlias = NDArray[np.float64]
"""The features of one sample, [features], or of several, [samples, features]; all finite."""

_CORNER = 3 / 28
"""Side of a corner as a share of the image's shorter side: 3 pixels of 28."""
_BORDER = 2 / 28
"""Width of a wide border, as a share of the image's shorter side: 2 pixels of 28."""
_MOST_CLASSES = 20
_WHITE = 250
_BLACK = 5
_LEVELS = 32767
_SILENT = _LEVELS // 100
_OCTAVES = 6
_PARTS = 8
_WINDOW_S = 0.02

_ROWS = ("top", "middle", "bottom")
_COLUMNS = ("left", "middle", "right")


@dataclass(frozen=True)
class Feature:
    """One feature: its `name` as in "NAME below 100 of 255", and the words after a number.

    `rank`: 0 for the whole sample, 1 for a channel or a part, 2 for the smallest or largest value
    in a part; of two features that explain the same, the one of the lower rank is chosen.
    `label`: the feature is 1 where the original answers this class, else 0.
    """

    name: str
    unit: str = ""
    rank: Literal[0, 1, 2] = 0
    label: int | None = None

    def words(self, at: float, *, below: bool) -> str:
        """Return a threshold in words, such as "brightest pixel below 100 of 255"."""
        if self.label is not None:
            return f"{self.name} {'not ' if below else ''}{self.label}"
        return f"{self.name} {'below' if below else 'at least'} {at:.4g}{self.unit}"


_Measure: TypeAlias = Callable[[Any], float]


class FeatureSet:
    """The features of samples of one kind and shape, and of the original's answers to them.

    `features` says what they are, in order. `shape`: [height, width, channels] of images,
    (samples,) of audio, then with `rate` in Hz. Audio of any other length has the same features.
    `classes`: the number of the original's classes; of more than 20, and of none (a model
    that returns text), its answers are no features.
    """

    def __init__(self, shape: Sequence[int], rate: int | None = None, classes: int = 0) -> None:
        self._measures = _audio(rate or 16_000) if len(shape) == 1 else _image(shape)
        self._classes = classes if classes <= _MOST_CLASSES else 0
        self.features = tuple(feature for feature, _ in self._measures) + tuple(
            Feature(words.ORIGINAL_ANSWERS, rank=1, label=label) for label in range(self._classes)
        )

    def measure(self, name: str) -> Callable[[Sample], float]:
        """Return what computes the one feature of this name, see `of`; ValueError where there is none."""
        for feature, measure in self._measures:
            if feature.name == name:
                return lambda sample: measure(_whole_numbers(sample))
        raise ValueError(f"there is no feature {name!r}")

    def of(self, sample: Sample, label: int | None = None) -> Features:
        """Return the features of a sample: float64 [features].

        `sample`: uint8 [height, width, channels] of the shape given, or float32 [samples]. `label`:
        the class that the original answers, None where it answers none.
        """
        values = _whole_numbers(sample)
        found = [measure(values) for _, measure in self._measures]
        return np.array([*found, *(float(one == label) for one in range(self._classes))])


def _whole_numbers(sample: Sample) -> Any:
    """Return an image's levels, or audio in 16-bit levels, as int64."""
    if sample.ndim == 1:
        return np.rint(sample.astype(np.float64) * _LEVELS).astype(np.int64)
    return sample.astype(np.int64)


def _image(shape: Sequence[int]) -> list[tuple[Feature, _Measure]]:
    """Return the features of images [height, width, channels], the simple ones first."""
    height, width, channels = shape
    level = " of 255"
    found: list[tuple[Feature, _Measure]] = [
        (Feature("mean brightness", level), _mean),
        (Feature("brightest pixel", level), _largest),
        (Feature("darkest pixel", level), _smallest),
        (Feature("contrast (standard deviation)", level), _deviation),
        (Feature(words.BRIGHTNESS_RANGE, level), _range),
        (Feature(words.MEAN_STEP, level), _edges),
        (Feature(words.FINE_DETAIL, " %"), _detail),
        (Feature(words.levels_from(_WHITE), " %"), _white),
        (Feature(words.levels_up_to(_BLACK), " %"), _black),
    ]
    if channels == len(words.CHANNELS):
        found.append((Feature(words.COLOURFULNESS, level), _colour))
        for number, name in enumerate(words.CHANNELS):
            found += [
                (Feature(f"mean of {name}", level, 1), _within(_mean, (..., number))),
                (Feature(f"largest {name}", level, 1), _within(_largest, (..., number))),
                (
                    Feature(f"smallest {name}", level, 1),
                    _within(_smallest, (..., number)),
                ),
            ]
    found += _grid(height, width)
    found += _corners(height, width)
    found += _borders(height, width)
    return found


def _grid(height: int, width: int) -> list[tuple[Feature, _Measure]]:
    """Return the mean of each field of a 3 x 3 grid."""
    found: list[tuple[Feature, _Measure]] = []
    for down, row in enumerate(_ROWS):
        for right, column in enumerate(_COLUMNS):
            part = (_third(height, down), _third(width, right))
            feature = Feature(words.ninth(row, column), " of 255", 1)
            found.append((feature, _within(_mean, part)))
    return found


def _third(side: int, place: int) -> slice:
    low = side * place // 3
    return slice(low, max(low + 1, side * (place + 1) // 3))


def _corners(height: int, width: int) -> list[tuple[Feature, _Measure]]:
    """Return mean, smallest and largest value of each corner."""
    side = max(2, round(min(height, width) * _CORNER))
    found: list[tuple[Feature, _Measure]] = []
    for row, down in (("top", slice(None, side)), ("bottom", slice(-side, None))):
        for column, right in (("left", slice(None, side)), ("right", slice(-side, None))):
            found += _extent(words.corner(row, column, side), (down, right))
    return found


def _borders(height: int, width: int) -> list[tuple[Feature, _Measure]]:
    """Return mean, smallest and largest value of the outermost row or column of each side.

    And the mean of a wider band.
    """
    wide = max(2, round(min(height, width) * _BORDER))
    found: list[tuple[Feature, _Measure]] = []
    for name, line, band in (
        ("top row", np.s_[:1], np.s_[:wide]),
        ("bottom row", np.s_[-1:], np.s_[-wide:]),
        ("left column", np.s_[:, :1], np.s_[:, :wide]),
        ("right column", np.s_[:, -1:], np.s_[:, -wide:]),
    ):
        found += _extent(f"the {name}", line)
        side, kind = name.split()
        feature = Feature(words.border(side, kind, wide), " of 255", 1)
        found.append((feature, _within(_mean, band)))
    return found


def _extent(name: str, part: Any) -> list[tuple[Feature, _Measure]]:
    level = " of 255"
    mean, darkest, brightest = words.extremes(name)
    return [
        (Feature(mean, level, 1), _within(_mean, part)),
        (Feature(darkest, level, 2), _within(_smallest, part)),
        (Feature(brightest, level, 2), _within(_largest, part)),
    ]


def _within(measure: _Measure, part: Any) -> _Measure:
    def of_part(values: Any) -> float:
        return measure(values[part])

    return of_part


def _mean(values: Any) -> float:
    return int(values.sum()) / int(values.size)


def _largest(values: Any) -> float:
    return float(values.max())


def _smallest(values: Any) -> float:
    return float(values.min())


def _range(values: Any) -> float:
    return float(values.max() - values.min())


def _deviation(values: Any) -> float:
    count = int(values.size)
    return float(np.sqrt(_squares(values) / (count * count)))


def _squares(values: Any) -> int:
    """Return the number of values squared times their variance: a whole number."""
    total = int(values.sum())
    return int(values.size) * int((values * values).sum()) - total * total


def _edges(values: Any) -> float:
    down, right = np.abs(np.diff(values, axis=0)), np.abs(np.diff(values, axis=1))
    steps = int(down.sum()) + int(right.sum())
    return steps / max(1, int(down.size + right.size))


def _detail(values: Any) -> float:
    """Return the share of the variance that is within 2 x 2 blocks, in percent; 0 if flat."""
    even = values[: values.shape[0] // 2 * 2, : values.shape[1] // 2 * 2]
    total = _squares(even) if even.size else 0
    if not total:
        return 0.0
    blocks = even[::2, ::2] + even[1::2, ::2] + even[::2, 1::2] + even[1::2, 1::2]
    inside = 4 * int((even * even).sum()) - int((blocks * blocks).sum())
    return 100 * (inside * int(even.size)) / (4 * total)


def _white(values: Any) -> float:
    return 100 * int((values >= _WHITE).sum()) / int(values.size)


def _black(values: Any) -> float:
    return 100 * int((values <= _BLACK).sum()) / int(values.size)


def _colour(values: Any) -> float:
    return _mean(values.max(axis=2) - values.min(axis=2))


def _audio(rate: int) -> list[tuple[Feature, _Measure]]:
    """Return the features of audio: level, peak, silence, octaves and parts in time."""
    full = words.OF_FULL_SCALE
    found: list[tuple[Feature, _Measure]] = [
        (Feature(words.ROOT_MEAN_SQUARE, full), _level),
        (Feature("peak", full), _peak),
        (Feature(words.FULL_SCALE, " %"), _clipped),
        (Feature("share of silence", " %"), _silence(max(1, round(rate * _WINDOW_S)))),
        (Feature("length", " s"), lambda values: int(values.size) / rate),
        (Feature("offset (mean)", full), lambda values: 100 * _mean(values) / _LEVELS),
    ]
    for octave in range(_OCTAVES):
        above = rate / (4 << octave)
        found.append((Feature(words.energy_above(above), " %"), _above(octave + 1)))
    found += [
        (Feature(words.level_of_part(part, _PARTS), full, 1), _part_level(part))
        for part in range(_PARTS)
    ]
    return found


def _level(values: Any) -> float:
    return float(100 * np.sqrt(int((values * values).sum()) / max(1, int(values.size))) / _LEVELS)


def _peak(values: Any) -> float:
    return 100 * int(np.abs(values).max()) / _LEVELS


def _clipped(values: Any) -> float:
    return 100 * int((np.abs(values) >= _LEVELS - 1).sum()) / int(values.size)


def _silence(window: int) -> _Measure:
    def share(values: Any) -> float:
        starts = range(0, values.size, window)
        silent = sum(int(np.abs(values[at : at + window]).max()) <= _SILENT for at in starts)
        return 100 * silent / len(starts)

    return share


def _above(octaves: int) -> _Measure:
    """Return the share of energy in the highest octaves, by Haar wavelets (whole numbers)."""

    def share(values: Any) -> float:
        total = int((values * values).sum())
        if not total:
            return 0.0
        high, parts = 0.0, 1
        for _ in range(octaves):
            pairs = values[: values.size // 2 * 2].reshape(-1, 2)
            if not pairs.size:
                break
            steps, values = pairs[:, 0] - pairs[:, 1], pairs[:, 0] + pairs[:, 1]
            parts *= 2
            high += int((steps * steps).sum()) / parts
        return 100 * high / total

    return share


def _part_level(part: int) -> _Measure:
    def level(values: Any) -> float:
        ends = [values.size * place // _PARTS for place in range(_PARTS + 1)]
        low, high = list(pairwise(ends))[part]
        return _level(values[low:high]) if high > low else 0.0

    return level

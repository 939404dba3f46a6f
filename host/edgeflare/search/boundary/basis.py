"""Directions in which a sample is changed: few of them, along which a model's answer changes much."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from edgeflare.search.boundary.points import Floats
from edgeflare.search.boundary.sounds import OwnSound, shaped_noise

LARGE = 64
"""From this longer side on an image's own detail gives the directions."""
_SMOOTH_SHARE = 0.3
_COARSEST = 32
_TWO_SCALES = 32
_LEAST_DETAIL = 1.0
_PROBED_LEVELS = 8.0


class Directions(Protocol):
    """Directions of unit length, each made when it is looked at: float64 of the sample's shape."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> Floats: ...

    def probe(self, place: int) -> Floats:
        """Return a step along a direction, in levels, so small that answers change in proportion, or nearly so."""
        ...

    def combined(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share; `shares`: float64 [n]."""
        ...

    def step(self, fall: Floats, wanted: float) -> Callable[[float], Floats]:
        """Return the smallest step along which something falls by `wanted`, going by how fast it rises: `fall` [n].

        Rises are per level; the step is told for each multiple of `wanted`.
        """
        ...

    def around(self, values: Floats) -> "Directions":
        """Return the directions about another input, where they depend on it."""
        ...


def directions(pixels: Floats, count: int) -> Directions:
    """Return about `count` directions for an image, float64 [height, width, channels], or a recording [samples].

    Small images: the lowest frequencies of the discrete cosine transform, brightness before colour. Large
    ones, whose models look at detail: what a blur takes away, window by window, so that a step along one
    blurs or sharpens there. Memory: two images a search for large ones; small ones of a shape share theirs. Recordings: see `OwnSound`.
    """
    if pixels.ndim == 1:
        return OwnSound(pixels, count)
    if max(pixels.shape[:2]) < LARGE:
        return LowestFrequencies(pixels.shape, count)
    detail = OwnDetail(pixels, count)
    return detail if len(detail) else LowestFrequencies(pixels.shape, count)


class LowestFrequencies:
    """The `count` cosines of lowest frequency of a shape (height, width, channels)."""

    def __init__(self, shape: tuple[int, ...], count: int) -> None:
        self._all = _cosines(shape, count)

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, place: int) -> Floats:
        return np.asarray(self._all[place])

    def probe(self, place: int) -> Floats:
        """Return the direction with a largest value of 8 levels."""
        return _small(self[place])

    def combined(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share."""
        return np.asarray(np.tensordot(shares, self._all, axes=1))

    def step(self, fall: Floats, wanted: float) -> Callable[[float], Floats]:
        """Return the smallest step, the same way at every length."""
        return _straight(self, fall, wanted)

    def around(self, values: Floats) -> "LowestFrequencies":
        """Return the same directions."""
        del values
        return self


class OwnDetail:
    """What blurs of growing width take away from an image, in overlapping windows; windows without detail are left out."""

    def __init__(self, pixels: Floats, count: int) -> None:
        scales = 1 if count < _TWO_SCALES else 2
        side = max(2, round(np.sqrt(count / scales)))
        self._details = _details(pixels, (2.0,) if scales == 1 else (1.0, 3.0))
        self._rows, self._columns = (_tents(length, side) for length in pixels.shape[:2])
        self._places: list[tuple[int, int, int, float]] = []
        for scale, detail in enumerate(self._details):
            power = np.square(detail).sum(axis=2)
            lengths = np.sqrt(np.square(self._rows) @ power @ np.square(self._columns).T)
            for row, column in np.argwhere(lengths > _LEAST_DETAIL):
                self._places.append((scale, int(row), int(column), float(lengths[row, column])))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, place: int) -> Floats:
        scale, row, column, length = self._places[place]
        window = self._rows[row][:, None] * self._columns[column][None]
        return np.asarray(self._details[scale] * (window / length)[..., None])

    def probe(self, place: int) -> Floats:
        """Return the direction with a largest value of 8 levels."""
        return _small(self[place])

    def combined(self, shares: Floats) -> Floats:
        """Return the sum of all directions, each times its share."""
        total = np.zeros_like(self._details[0], dtype=np.float64)
        for place, share in enumerate(shares):
            total += share * self[place]
        return total

    def step(self, fall: Floats, wanted: float) -> Callable[[float], Floats]:
        """Return the smallest step, the same way at every length."""
        return _straight(self, fall, wanted)

    def around(self, values: Floats) -> "OwnDetail":
        """Return the same directions: those of the seed."""
        del values
        return self


def _straight(basis: Directions, fall: Floats, wanted: float) -> Callable[[float], Floats]:
    step = basis.combined(-wanted / float(np.linalg.norm(fall)) ** 2 * fall)
    return lambda length: np.asarray(length * step)


def _small(direction: Floats) -> Floats:
    return np.asarray(direction * (_PROBED_LEVELS / np.abs(direction).max()))


@lru_cache(maxsize=8)
def _cosines(shape: tuple[int, ...], count: int) -> Floats:
    height, width, channels = shape
    rows = np.arange(min(height, _COARSEST))
    columns = np.arange(min(width, _COARSEST))
    frequency = (rows[:, None] / height) ** 2 + (columns[None] / width) ** 2
    colours = _colours(channels)
    later = 0.02 * (np.arange(len(colours)) > 0)
    order = np.argsort((frequency[..., None] + later).ravel(), kind="stable")[:count]
    i, j, c = np.unravel_index(order, (len(rows), len(columns), len(colours)))
    vertical = np.cos(np.pi * (np.arange(height)[None] + 0.5) * i[:, None] / height)
    horizontal = np.cos(np.pi * (np.arange(width)[None] + 0.5) * j[:, None] / width)
    found = vertical[:, :, None, None] * horizontal[:, None, :, None] * colours[c][:, None, None]
    lengths = np.linalg.norm(found.reshape(len(found), -1), axis=1)
    return np.asarray(found / lengths[:, None, None, None])


def _details(pixels: Floats, widths: tuple[float, ...]) -> list[Floats]:
    """Return what blurs of these widths, in 224ths of the shorter side, take away one after the other."""
    import cv2

    before = pixels.astype(np.float32)
    found = []
    for width in widths:
        blurred: Any = cv2.GaussianBlur(before, (0, 0), width * min(pixels.shape[:2]) / 224.0)
        after = np.reshape(blurred, pixels.shape)
        found.append(np.asarray(after - before, dtype=np.float64))
        before = after
    return found


def noise(rng: np.random.Generator, pixels: Floats) -> Floats:
    """Return noise of unit length, of the shape of some values: smooth for images, like the sound itself for recordings."""
    return shaped_noise(rng, pixels) if pixels.ndim == 1 else smooth(rng, pixels.shape)


def smooth(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return smooth noise of unit length: Gaussian coefficients of the lowest three tenths of all frequencies."""
    height, width, channels = shape
    rows = max(1, min(round(height * _SMOOTH_SHARE), _COARSEST))
    columns = max(1, min(round(width * _SMOOTH_SHARE), _COARSEST))
    drawn = rng.standard_normal((rows, columns, channels))
    vertical = np.cos(np.pi * (np.arange(height)[:, None] + 0.5) * np.arange(rows) / height)
    horizontal = np.cos(np.pi * (np.arange(width)[:, None] + 0.5) * np.arange(columns) / width)
    noise = np.einsum("hi,ijc,wj->hwc", vertical, drawn, horizontal, optimize=True)
    return np.asarray(noise / np.linalg.norm(noise))


def _colours(channels: int) -> Floats:
    """Return brightness, red against blue, and green against both; of one channel only brightness."""
    if channels == 1:
        return np.ones((1, 1))
    found = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def _tents(length: int, side: int) -> Floats:
    """Return `side` overlapping weights of the places along a side, float64 [side, length]; their sum is about 1."""
    at = (np.arange(length) + 0.5) / length * side - 0.5
    return np.asarray(np.maximum(0.0, 1.0 - np.abs(at[None] - np.arange(side)[:, None])))

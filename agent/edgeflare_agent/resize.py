"""Resizing in whole numbers, so that every machine gives the same pixels."""

from functools import lru_cache
from typing import Tuple

import numpy as np

from edgeflare_agent.arrays import Array

_FRACTION = 16
"""Bits after the point of what the first pass leaves."""
_MOST_WEIGHT = 38
"""Bits of the sum of weights: with a pixel's 8 and the fraction's 16, no sum goes beyond 62."""


def nearest(image: Array, size: Tuple[int, int]) -> Array:
    """Return uint8 [height, width, C] of the pixels nearest to the half-pixel centres.

    `image` is uint8 [H, W, C], `size` is (height, width). No antialiasing.
    """
    rows = _nearest_index(image.shape[0], size[0])
    columns = _nearest_index(image.shape[1], size[1])
    return np.asarray(image[rows][:, columns])


def bilinear(image: Array, size: Tuple[int, int]) -> Array:
    """Return uint8 [height, width, C], linear between the four pixels around each half-pixel centre.

    `image` is uint8 [H, W, C], `size` is (height, width). Weights are exact fractions; the exact sum
    is rounded once, halves upwards. No antialiasing; the border repeats.
    """
    top, bottom, down = _linear_weights(image.shape[0], size[0])
    left, right, along = _linear_weights(image.shape[1], size[1])
    wide = image.astype(np.int64)
    along, down = along[None, :, None], down[:, None, None]
    per_column, per_row = 2 * size[1], 2 * size[0]
    rows = wide[:, left] * (per_column - along) + wide[:, right] * along
    total = rows[top] * (per_row - down) + rows[bottom] * down
    whole = per_row * per_column
    return np.asarray((total + whole // 2) // whole, dtype=np.uint8)


def bilinear_antialias(image: Array, size: Tuple[int, int]) -> Array:
    """Return uint8 [height, width, C]: each value is the mean of all pixels around its half-pixel centre.

    `image` is uint8 [H, W, C], `size` is (height, width). Weights fall linearly to 0 at a distance of one pixel of the
    coarser grid, as in PIL's BILINEAR and in torchvision with antialias; at the border those within the image count.
    Rows are done first, with 16 bits after the point, then columns; halves are rounded upwards.
    """
    return _weighted(image, size, antialiased=True)


def area(image: Array, size: Tuple[int, int]) -> Array:
    """Return uint8 [height, width, C]: each value is the mean of the area of `image` that it covers.

    `image` is uint8 [H, W, C], `size` is (height, width). When shrinking as OpenCV's INTER_AREA; rounded as
    `bilinear_antialias`.
    """
    return _weighted(image, size, antialiased=False)


RULES = {
    "nearest": nearest,
    "bilinear": bilinear,
    "bilinear-antialias": bilinear_antialias,
    "area": area,
}
"""How samples of another size are brought to the model's, by the name of the input option `resize`."""


def _weighted(image: Array, size: Tuple[int, int], antialiased: bool) -> Array:
    values = image
    for axis, fraction in ((0, _FRACTION), (1, 0)):
        pixels, weights = _weights(image.shape[axis], size[axis], antialiased)
        if axis == 1:  # numpy goes through the first axis fastest
            values = values.swapaxes(0, 1)
        total = _sums(np.ascontiguousarray(values), pixels, weights)
        whole = weights.sum(axis=0)[:, None, None]
        values = ((total << fraction) + whole // 2) // whole
    rounded = (values.swapaxes(0, 1) + (1 << (_FRACTION - 1))) >> _FRACTION
    return np.ascontiguousarray(rounded, dtype=np.uint8)


def _sums(values: Array, pixels: Array, weights: Array) -> Array:
    """Return the weighted sums of rows, [new, ...], of values [old, ...]; by loops as short as can be."""
    if len(pixels) <= pixels.shape[1]:
        taps = zip(pixels, weights)
        return np.asarray(sum(values[rows] * weight[:, None, None] for rows, weight in taps))
    columns = zip(pixels.T, weights.T)
    return np.stack([(values[rows] * one[:, None, None]).sum(axis=0) for rows, one in columns])


@lru_cache(maxsize=16)
def _weights(old: int, new: int, antialiased: bool) -> Tuple[Array, Array]:
    """Return the pixels [taps, new] that go into each value, and their weights, whole numbers in any unit.

    Pixel x is from x * new to (x + 1) * new, in parts in which the image's side is old * new; value i from i * old
    to (i + 1) * old.
    """
    start = np.arange(new, dtype=np.int64) * old
    reach = max(old, new) - old // 2 if antialiased else 0
    first = (start - reach) // new
    taps = int(((start + old + reach) // new - first).max()) + 1
    pixel = first + np.arange(taps, dtype=np.int64)[:, None]
    if antialiased:
        weights = 2 * max(old, new) - np.abs((2 * pixel + 1) * new - (2 * start + old))
    else:
        weights = np.minimum(start + old, (pixel + 1) * new) - np.maximum(start, pixel * new)
    weights = np.where((pixel >= 0) & (pixel < old), np.maximum(weights, 0), 0)
    weights >>= max(0, int(weights.sum(axis=0).max()).bit_length() - _MOST_WEIGHT)
    return np.clip(pixel, 0, old - 1), weights


def _nearest_index(old: int, new: int) -> Array:
    return (2 * np.arange(new, dtype=np.int64) + 1) * old // (2 * new)


def _linear_weights(old: int, new: int) -> Tuple[Array, Array, Array]:
    """Return the pixel before, the pixel after and the weight of the latter in parts of 2 * new."""
    position = (2 * np.arange(new, dtype=np.int64) + 1) * old - new
    before = position // (2 * new)
    weight = position - before * (2 * new)
    return np.clip(before, 0, old - 1), np.clip(before + 1, 0, old - 1), weight

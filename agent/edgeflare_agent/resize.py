"""Resizing in whole numbers, so that every machine gives the same pixels."""

from typing import Tuple

import numpy as np

from edgeflare_agent.arrays import Array


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


def _nearest_index(old: int, new: int) -> Array:
    return (2 * np.arange(new, dtype=np.int64) + 1) * old // (2 * new)


def _linear_weights(old: int, new: int) -> Tuple[Array, Array, Array]:
    """Return the pixel before, the pixel after and the weight of the latter in parts of 2 * new."""
    position = (2 * np.arange(new, dtype=np.int64) + 1) * old - new
    before = position // (2 * new)
    weight = position - before * (2 * new)
    return np.clip(before, 0, old - 1), np.clip(before + 1, 0, old - 1), weight

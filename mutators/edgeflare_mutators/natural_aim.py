"""Corruptions by where the camera points: rotation, shift and crop.

What was outside of the picture is filled with its mirror image about the outermost pixels. Between
pixels values are interpolated linearly, in whole numbers: places are multiples of 1/256 pixel, results are rounded
half up. So the bits don't depend on the CPU; the C library's sine need only agree to six digits.
"""

import math

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import Params
from edgeflare_mutators.natural import Corruption, percent
from edgeflare_mutators.ranges import Range
from edgeflare_mutators.sample import Sample

_PARTS = 256
_SHIFT = 16


class Rotation(Corruption):
    """Rotate the picture's content about its centre by `degrees`, counter-clockwise if positive."""

    name = "rotation"
    limits = (Range("degrees", -180.0, 180.0),)
    moving = ("degrees",)

    def __init__(self, degrees: tuple[float, float] = (-15.0, 15.0)) -> None:
        super().__init__(degrees=degrees)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        angle = math.radians(params["degrees"])
        sine, cosine = math.sin(angle), math.cos(angle)
        height, width, _ = sample.shape
        down = (np.arange(height) - (height - 1) / 2)[:, np.newaxis]
        right = (np.arange(width) - (width - 1) / 2)[np.newaxis, :]
        return _sampled(
            sample,
            cosine * down + sine * right + (height - 1) / 2,
            cosine * right - sine * down + (width - 1) / 2,
        )

    def _words(self, params: Params) -> str:
        way = "counter-clockwise" if params["degrees"] >= 0 else "clockwise"
        return f"rotated by {abs(params['degrees']):.3g} degrees {way}"


class Shift(Corruption):
    """Shift the picture's content to the right by `x` of its width and down by `y` of its height."""

    name = "shift"
    limits = (Range("x", -1.0, 1.0), Range("y", -1.0, 1.0))
    moving = ("x", "y")

    def __init__(
        self, x: tuple[float, float] = (-0.1, 0.1), y: tuple[float, float] = (-0.1, 0.1)
    ) -> None:
        super().__init__(x=x, y=y)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        height, width, _ = sample.shape
        down = np.arange(height) - params["y"] * height
        right = np.arange(width) - params["x"] * width
        return _sampled(sample, down[:, np.newaxis], right[np.newaxis, :])

    def _words(self, params: Params) -> str:
        sideways = "right" if params["x"] >= 0 else "left"
        upright = "down" if params["y"] >= 0 else "up"
        return (
            f"shifted {percent(abs(params['x']))} to the {sideways}, "
            f"{percent(abs(params['y']))} {upright}"
        )


class Crop(Corruption):
    """Cut `share` off the width and off the height, and enlarge the rest to the whole picture.

    `x` and `y` say where the window lies: 0 at the left or top edge, 1 at the right or bottom edge.
    """

    name = "crop"
    limits = (Range("share", 0.0, 0.99), Range("x", 0.0, 1.0), Range("y", 0.0, 1.0))
    moving = ("share",)

    def __init__(
        self,
        share: tuple[float, float] = (0.0, 0.2),
        x: tuple[float, float] = (0.0, 1.0),
        y: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        super().__init__(share=share, x=x, y=y)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        height, width, _ = sample.shape
        kept = 1 - params["share"]
        down = np.arange(height) * kept + params["y"] * (height - 1) * params["share"]
        right = np.arange(width) * kept + params["x"] * (width - 1) * params["share"]
        return _sampled(sample, down[:, np.newaxis], right[np.newaxis, :])

    def _words(self, params: Params) -> str:
        return (
            f"cropped by {percent(params['share'])}, the window {percent(params['x'])} to the right "
            f"and {percent(params['y'])} down"
        )


def _sampled(
    sample: Sample, rows: NDArray[np.float64], columns: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """Return the sample's values at these places, in pixels; both broadcast to [height, width]."""
    height, width, channels = sample.shape
    planes = np.ascontiguousarray(sample.transpose(2, 0, 1)).reshape(channels, -1)
    row, below = _split(rows)
    column, beside = _split(columns)
    starts = [_mirrored(place, height) * width for place in (row, row + 1)]
    offsets = [_mirrored(place, width) for place in (column, column + 1)]
    total = np.full((channels, height, width), _PARTS**2 // 2, np.int32)
    for start, down in zip(starts, (_PARTS - below, below), strict=True):
        for offset, right in zip(offsets, (_PARTS - beside, beside), strict=True):
            total += planes.take(start + offset, axis=1) * (down * right)
    return np.transpose((total >> _SHIFT).astype(np.uint8), (1, 2, 0))


def _split(places: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the whole pixel at or before each place, and the rest in 1/256 pixel."""
    fixed = np.rint(places * _PARTS).astype(np.int32)
    return fixed >> 8, fixed & 255


def _mirrored(places: NDArray[np.int32], side: int) -> NDArray[np.int32]:
    """Return the places within the side that they are the mirror images of."""
    if side == 1:
        return np.zeros_like(places)
    period = 2 * (side - 1)
    folded = places % period
    return np.minimum(folded, period - folded)

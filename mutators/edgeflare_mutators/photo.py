"""Natural corruptions of a photograph.

By where the camera points: rotation, shift, crop and scale. What was outside of the picture is filled with
its mirror image about the outermost pixels. Between pixels values are interpolated linearly, in
whole numbers: places are multiples of 1/256 pixel, results are rounded half up. So the bits don't
depend on the CPU; the C library's sine need only agree to six digits. By the camera and what stores
its pictures: blur, sensor noise and JPEG. By light: brightness, contrast, saturation and haze; each step is an
IEEE operation on single values or an exact sum, so the bits don't depend on the CPU.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import SEED, Params, Range, Sample
from edgeflare_mutators.dflare import clipped, generator
from edgeflare_mutators.errors import SampleError
from edgeflare_mutators.natural import Corruption, percent

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
        return interpolated(
            sample,
            cosine * down + sine * right + (height - 1) / 2,
            cosine * right - sine * down + (width - 1) / 2,
        )

    def _words(self, params: Params) -> str:
        way = "counter-clockwise" if params["degrees"] >= 0 else "clockwise"
        return f"rotated by {abs(params['degrees']):.3g} degrees {way}"


class Shift(Corruption):
    """Shift the picture's content right by `x` of its width and down by `y` of its height."""

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
        return stretched(sample, down, right)

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
        return stretched(sample, down, right)

    def _words(self, params: Params) -> str:
        return (
            f"cropped by {percent(params['share'])}, the window {percent(params['x'])} to the "
            f"right and {percent(params['y'])} down"
        )


class Scale(Corruption):
    """Enlarge the picture's content about its centre by `by`, or shrink it where that is below 0."""

    name = "scale"
    limits = (Range("by", -0.9, 9.0),)
    moving = ("by",)

    def __init__(self, by: tuple[float, float] = (-0.3, 0.4)) -> None:
        super().__init__(by=by)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        rows, columns = (
            (np.arange(side) - (side - 1) / 2) / (1 + params["by"]) + (side - 1) / 2
            for side in sample.shape[:2]
        )
        return stretched(sample, rows, columns)

    def _words(self, params: Params) -> str:
        way = "enlarged" if params["by"] >= 0 else "shrunk"
        return f"{way} by {percent(abs(params['by']))}"


def interpolated(
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


def stretched(
    sample: Sample, rows: NDArray[np.float64], columns: NDArray[np.float64]
) -> NDArray[np.uint8]:
    """Return what `interpolated` does where all of a row has one place, [height], as all of a column."""
    height, width, _ = sample.shape
    row, below = _split(rows[:, np.newaxis])
    column, beside = _split(columns)
    planes = sample.transpose(2, 0, 1).astype(np.int32)
    lines = planes.take(_mirrored(row[:, 0], height), axis=1) * (_PARTS - below)
    lines += planes.take(_mirrored(row[:, 0] + 1, height), axis=1) * below
    total = lines.take(_mirrored(column, width), axis=2) * (_PARTS - beside)
    total += lines.take(_mirrored(column + 1, width), axis=2) * beside
    total += _PARTS**2 // 2
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


_UNIT = 4096
_KERNEL_PARTS = np.float32(16)
_LONGEST_JPEG_SIDE = 65_500


class NaturalBlur(Corruption):
    """Blur with a Gaussian of standard deviation `sigma`, a share of the image's shorter side.

    1/16 is 2 pixels of 32 and 14 of 224. Weights end at three standard deviations; the image is
    mirrored about its outermost pixels. Unlike `GaussianBlur`'s, the standard deviation is
    continuous.

    Weights are multiples of 1/4096 and what lies between the two passes is rounded to 1/16 level,
    so that all sums are exact in float32 and the bits don't depend on the CPU; the C library's
    exp() need only agree to nine digits or so. The time grows with the number of pixels times the
    side.
    """

    name = "natural-blur"
    limits = (Range("sigma", 0.0, 0.5),)
    moving = ("sigma",)

    def __init__(self, sigma: tuple[float, float] = (0.0, 1 / 16)) -> None:
        super().__init__(sigma=sigma)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        import cv2

        weights = _gaussian(params["sigma"] * min(sample.shape[:2]))
        if weights.size == 1:
            return sample
        values: Any = sample.astype(np.float32)
        for across, down in ((weights, np.ones(1)), (np.ones(1), weights)):
            values = cv2.sepFilter2D(
                np.rint(values * _KERNEL_PARTS) / _KERNEL_PARTS,
                cv2.CV_32F,
                across,
                down,
                borderType=cv2.BORDER_REFLECT_101,
            )
        blurred: Sample = np.rint(values).astype(np.uint8)
        return blurred.reshape(sample.shape)

    def _words(self, params: Params) -> str:
        return f"blurred with a sigma of {percent(params['sigma'])} of the side"


class SensorNoise(Corruption):
    """Add normal noise of mean 0 and standard deviation `sigma`, in levels of 255, to each value.

    What `GaussianNoise` does, from no noise on: the same sigma and seed give the same bits.
    """

    name = "sensor-noise"
    limits = (Range("sigma", 0.0, 255.0), SEED)
    moving = ("sigma",)

    def __init__(self, sigma: tuple[float, float] = (0.0, 25.0)) -> None:
        super().__init__(sigma=sigma)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        noise = generator(params).standard_normal(sample.shape, np.float32)
        return clipped(sample + params["sigma"] * noise)

    def _words(self, params: Params) -> str:
        return f"sensor noise of {params['sigma']:.3g} levels"


class Jpeg(Corruption):
    """Write the image as a baseline JPEG of this `quality` (100 the best) and read it again.

    Channels are taken as red, green, blue; colour is kept at half the resolution, as cameras do.
    The coder is OpenCV's: its bits are the same with and without a CPU's vector extensions, but an
    OpenCV built with another JPEG library than libjpeg-turbo may round otherwise. An image of more
    than 65,500 pixels a side is a SampleError.
    """

    name = "jpeg"
    limits = (Range("quality", 1, 100, "int"),)
    moving = ("quality",)
    neutral = 100.0

    def __init__(self, quality: tuple[int, int] = (5, 95)) -> None:
        super().__init__(quality=quality)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        import cv2

        if max(sample.shape) > _LONGEST_JPEG_SIDE:
            raise SampleError(
                f"jpeg: an image of {sample.shape[1]} x {sample.shape[0]} pixels is too large for "
                f"a JPEG, which has at most {_LONGEST_JPEG_SIDE} a side; leave this operator out"
            )
        colour = sample.shape[2] == 3
        pixels = np.ascontiguousarray(sample[..., ::-1])
        _, coded = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, params["quality"]])
        read: Any = cv2.imdecode(coded, cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE)
        return np.reshape(read, sample.shape)[..., ::-1].astype(np.uint8)

    def _words(self, params: Params) -> str:
        return f"JPEG quality {params['quality']}"


def _gaussian(sigma: float) -> NDArray[np.float64]:
    """Return weights of a sum of 1, float64 [odd], multiples of 1/4096; `sigma` in pixels."""
    radius = math.ceil(3 * sigma)
    if radius == 0:
        return np.ones(1)
    raw = [math.exp(-0.5 * (place / sigma) ** 2) for place in range(-radius, radius + 1)]
    total = math.fsum(raw)
    weights = np.array([round(weight / total * _UNIT) for weight in raw], np.float64)
    weights[radius] += _UNIT - weights.sum()
    return weights / _UNIT


_LEVELS = np.arange(256, dtype=np.float64)
_AIRLIGHT = 230
_OCTAVES = ((3, 1.0), (5, 0.5), (9, 0.25))
_STEPS = 4096


class Brightness(Corruption):
    """Multiply each value by 1 + `by`, as a longer or shorter exposure does; black stays black.

    Results are rounded half to even and clipped to [0, 255].
    """

    name = "brightness"
    limits = (Range("by", -1.0, 10.0),)
    moving = ("by",)

    def __init__(self, by: tuple[float, float] = (-0.5, 0.5)) -> None:
        super().__init__(by=by)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        return to_levels(_LEVELS * (1 + params["by"]))[sample]

    def _words(self, params: Params) -> str:
        return f"brightness {percent(params['by'], '+')}"


class Contrast(Corruption):
    """Multiply each value's distance from the mean of all values of the image by 1 + `by`.

    Results are rounded half to even and clipped to [0, 255].
    """

    name = "contrast"
    limits = (Range("by", -1.0, 10.0),)
    moving = ("by",)

    def __init__(self, by: tuple[float, float] = (-0.5, 0.5)) -> None:
        super().__init__(by=by)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        mean = int(sample.sum(dtype=np.int64)) / sample.size
        return to_levels(_LEVELS + (_LEVELS - mean) * params["by"])[sample]

    def _words(self, params: Params) -> str:
        return f"contrast {percent(params['by'], '+')}"


class Saturation(Corruption):
    """Multiply each colour's distance from the pixel's luma by 1 + `by`; at -1 the image is grey.

    The luma is BT.601's, (299 red + 587 green + 114 blue) / 1000. Results are rounded half to even
    and clipped to [0, 255]. An image of one channel has no colour and stays as it is.

    Differences from ImageNet-C's saturate: there the saturation of HSV is scaled and shifted.
    """

    name = "saturation"
    limits = (Range("by", -1.0, 20.0),)
    moving = ("by",)

    def __init__(self, by: tuple[float, float] = (-1.0, 2.0)) -> None:
        super().__init__(by=by)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        if sample.shape[2] == 1:
            return sample
        red, green, blue = (sample[..., channel].astype(np.int64) for channel in range(3))
        luma = ((299 * red + 587 * green + 114 * blue) / 1000)[..., np.newaxis]
        return to_levels(sample + (sample - luma) * params["by"])

    def _words(self, params: Params) -> str:
        return f"saturation {percent(params['by'], '+')}"


class Haze(Corruption):
    """Lay a haze of light grey (level 230) over the image, thicker here and thinner there.

    `density` is its opacity where it is thickest; where it is thinnest it is a third of that. The
    clouds come from `seed`: smooth noise of three scales, in proportion to the image's sides.
    """

    name = "haze"
    limits = (Range("density", 0.0, 1.0), SEED)
    moving = ("density",)

    def __init__(self, density: tuple[float, float] = (0.0, 0.6)) -> None:
        super().__init__(density=density)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        height, width, _ = sample.shape
        clouds = smooth_noise(height, width, generator(params))
        opacity = params["density"] * (1 + 2 * clouds) / 3
        planes = np.ascontiguousarray(sample.transpose(2, 0, 1))
        hazy = np.rint(planes + (_AIRLIGHT - planes.astype(np.int16)) * opacity)
        return np.transpose(hazy.astype(np.uint8), (1, 2, 0))

    def _words(self, params: Params) -> str:
        return f"haze of {percent(params['density'])}"


def to_levels(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return the nearest levels in [0, 255]; halves go to the even one."""
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def smooth_noise(height: int, width: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return smooth noise, float64 [height, width], from exactly 0 to exactly 1 (one pixel: 1).

    All factors are short binary fractions, so that every sum is exact in whatever order it is made.
    """
    noise = np.zeros((height, width))
    for points, weight in _OCTAVES:
        grid = rng.integers(0, 256, (points, points)) * weight
        noise += _spread(height, points) @ grid @ _spread(width, points).T
    low, high = noise.min(), noise.max()
    if low == high:
        return np.ones((height, width))
    stretched: NDArray[np.float64] = (noise - low) / (high - low)
    return stretched


def _spread(side: int, points: int) -> NDArray[np.float64]:
    """Return the weights, [side, points], that spread grid points over a side, smoothly between."""
    place = np.arange(side) * (points - 1) / max(side - 1, 1)
    first = np.minimum(place.astype(np.intp), points - 2)
    part = place - first
    part = np.rint(part * part * (3 - 2 * part) * _STEPS) / _STEPS
    weights = np.zeros((side, points))
    rows = np.arange(side)
    weights[rows, first] = 1 - part
    weights[rows, first + 1] = part
    return weights

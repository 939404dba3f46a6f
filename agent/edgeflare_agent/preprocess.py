"""A raw sample becomes a model's input tensor. Host and device run this same code.

Every step is a numpy operation of its own in float32, rounded as IEEE 754 says, so that all
architectures get the same bits; a step that changes nothing is skipped. Images are resized in whole
numbers. As a pixel has one of 256 values, those are computed once for a spec, and looked up for
each sample. For audio the steps are in float64 up to one rounding to float32; `front_ends` tells
how they come to the same bits.
"""

from functools import lru_cache
from typing import List, Optional, Sequence, Tuple

import numpy as np

from edgeflare_agent import front_ends
from edgeflare_agent.arrays import Array, DType
from edgeflare_agent.audio_spec import AudioSpec, Spec
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import RESIZES, InputSpec

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
    """Return uint8 [height, width, C], linear between four pixels at each half-pixel centre.

    `image` is uint8 [H, W, C], `size` is (height, width). Weights are exact fractions; the exact
    sum is rounded once, halves upwards. No antialiasing; the border repeats.
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
    """Return uint8 [height, width, C]: means of all pixels around each half-pixel centre.

    `image` is uint8 [H, W, C], `size` is (height, width). Weights fall linearly to 0 at a distance
    of one pixel of the coarser grid, as in PIL's BILINEAR and in torchvision with antialias; at the
    border those within the image count. Rows are done first, with 16 bits after the point, then
    columns; halves are rounded upwards.
    """
    return _weighted(image, size, antialiased=True)


def area(image: Array, size: Tuple[int, int]) -> Array:
    """Return uint8 [height, width, C]: means of the area of `image` that each value covers.

    `image` is uint8 [H, W, C], `size` is (height, width). When shrinking as OpenCV's INTER_AREA;
    rounded as `bilinear_antialias`.
    """
    return _weighted(image, size, antialiased=False)


RULES = {
    "nearest": nearest,
    "bilinear": bilinear,
    "bilinear-antialias": bilinear_antialias,
    "area": area,
}
"""Rules that bring samples to the model's size, by the name of the input option `resize`."""


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
    """Return the weighted sums of rows, [new, ...], of values [old, ...], with short loops."""
    if len(pixels) <= pixels.shape[1]:
        taps = zip(pixels, weights)
        return np.asarray(sum(values[rows] * weight[:, None, None] for rows, weight in taps))
    columns = zip(pixels.T, weights.T)
    return np.stack([(values[rows] * one[:, None, None]).sum(axis=0) for rows, one in columns])


@lru_cache(maxsize=16)
def _weights(old: int, new: int, antialiased: bool) -> Tuple[Array, Array]:
    """Return the pixels [taps, new] of each value and their weights, whole numbers in any unit.

    Pixel x is from x * new to (x + 1) * new, in parts in which the image's side is old * new; value
    i from i * old to (i + 1) * old.
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


_EXACT = 2**53
"""Whole numbers up to here are exact in float64."""


def prepare(sample: Array, spec: Spec) -> Array:
    """Return the input tensor for one sample, contiguous, of the spec's shape and dtype.

    `sample` is uint8 [H, W, C] with the spec's channels, or for an AudioSpec mono float32 [samples]
    in [-1, 1]; the steps are those that `InputSpec` and `AudioSpec` list. Raises RequestError for a
    sample of another dtype, rank, number of channels, or size where the spec names no `resize`; for
    a clip that is empty, has NaN or values beyond [-1, 1], or is too short for a frame.
    """
    if isinstance(spec, AudioSpec):
        return _audio(sample, spec)
    pixels = oriented(_sized(sample, spec), spec.orientation)
    if spec.color == "BGR":
        pixels = pixels[:, :, ::-1]
    tables = _tables(spec)
    if len(tables) == 1:
        values = tables[0].take(pixels)
    else:
        values = np.empty(pixels.shape, tables[0].dtype)
        for channel, table in enumerate(tables):
            values[:, :, channel] = table.take(pixels[:, :, channel])
    if spec.layout == "CHW":
        values = values.transpose(2, 0, 1)
    return np.ascontiguousarray(values).reshape(spec.shape)


def oriented(image: Array, orientation: str) -> Array:
    """Return an image [H, W, ...] turned as `InputSpec` says, a view of it."""
    if orientation in ("transpose", "rotate-90", "rotate-270", "transverse"):
        image = image.swapaxes(0, 1)
    if orientation in ("flip", "rotate-180", "rotate-270", "transverse"):
        image = image[::-1]
    if orientation in ("mirror", "rotate-180", "rotate-90", "transverse"):
        image = image[:, ::-1]
    return image


def get_ready(spec: Spec) -> None:
    """Work out what all samples need, so that the first one takes no longer than others."""
    if isinstance(spec, AudioSpec):
        front_ends.get_ready(spec)
    else:
        _tables(spec)


def dequantize(raw: Array, quantization: Optional[Tuple[float, int]]) -> Array:
    """Return real values = scale * (stored - zero point), float64, in the shape of `raw`."""
    real = np.asarray(raw).astype(np.float64)
    if quantization is None:
        return real
    scale, zero_point = quantization
    return np.asarray(scale * (real - zero_point))


def _audio(clip: Array, spec: AudioSpec) -> Array:
    values = front_ends.front_end(clip, spec)
    for step, number in zip((np.multiply, np.divide), spec.scale):
        if number != 1:
            values = step(values, number)
    for step, numbers, nothing in ((np.subtract, spec.mean, 0), (np.divide, spec.std, 1)):
        if any(number != nothing for number in numbers):
            each = np.asarray(numbers, np.float64)
            values = step(values, each[:, None] if spec.axes == "bands-frames" else each)
    dtype = np.dtype(spec.dtype)
    if dtype.kind in "iu":
        stored = quantize(values.astype(np.float32), spec.quantization or (1.0, 0), dtype)
    else:
        stored = values.astype(np.float32).astype(dtype)
    return np.ascontiguousarray(stored).reshape(spec.filled(stored.size))


def _sized(sample: Array, spec: InputSpec) -> Array:
    """Return an image, once it is checked, of the spec's size."""
    if sample.dtype != np.uint8 or sample.ndim != 3:
        raise RequestError(
            "a sample is a uint8 image of height x width x channels, not {} {}".format(
                sample.dtype, _times(sample.shape)
            )
        )
    if sample.shape[2] != spec.channels:
        raise RequestError(
            "the sample has {} channel(s), the model takes {}".format(
                sample.shape[2], spec.channels
            )
        )
    size = spec.upright_size
    if sample.shape[:2] == size:
        return sample
    if spec.resize is None or 0 in sample.shape:
        raise RequestError(
            "the sample is {} pixels (height x width), the model takes {}; bring the samples to "
            "that size, or set the input option `resize` to one of {}".format(
                _times(sample.shape[:2]), _times(size), ", ".join(RESIZES)
            )
        )
    return RULES[spec.resize](sample, size)


@lru_cache(maxsize=16)
def _tables(spec: InputSpec) -> List[Array]:
    """Return what each value of a pixel becomes: [256] for all channels, or one for each."""
    every = np.arange(256, dtype=np.float32)[:, None, None]
    dtype = np.dtype(spec.dtype)
    with np.errstate(all="ignore"):  # most samples don't have every value
        values = _scaled(np.repeat(every, spec.channels, axis=2), spec)
        if dtype.kind in "iu":
            values = quantize(values, spec.quantization or (1.0, 0), dtype)
        else:
            values = values.astype(dtype, copy=False)
    alike = len(set(spec.mean)) == len(set(spec.std)) == 1
    return [values[:, 0, channel].copy() for channel in range(1 if alike else spec.channels)]


def _scaled(values: Array, spec: InputSpec) -> Array:
    """Return (values * scale[0] / scale[1] - mean) / std, clipped; `values` is float32 [H, W, C]."""
    if spec.scale[0] != 1:
        values = np.multiply(values, np.float32(spec.scale[0]))
    if spec.scale[1] != 1:
        values = np.divide(values, np.float32(spec.scale[1]))
    if any(mean != 0 for mean in spec.mean):
        values = np.subtract(values, np.asarray(spec.mean, np.float32))
    if any(std != 1 for std in spec.std):
        values = np.divide(values, np.asarray(spec.std, np.float32))
    if spec.clip is not None:
        values = np.clip(values, np.float32(spec.clip[0]), np.float32(spec.clip[1]))
    return values


def quantize(values: Array, quantization: Tuple[float, int], dtype: DType) -> Array:
    """Return float32 values as the integers that stand for them, halves to even, clipped."""
    scale, zero_point = quantization
    if scale != 1:
        values = np.divide(values, np.float32(scale))
    stored = np.add(np.rint(values).astype(np.float64), zero_point)
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -_EXACT), min(limits.max, _EXACT)
    return np.asarray(np.clip(stored, low, high), dtype=dtype)


def _times(shape: Sequence[int]) -> str:
    return " x ".join(str(n) for n in shape)

"""Corruptions by the camera and what stores its pictures: blur, sensor noise and JPEG."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import Params
from edgeflare_mutators.errors import SampleError
from edgeflare_mutators.natural import Corruption, percent
from edgeflare_mutators.noise import clipped, generator
from edgeflare_mutators.ranges import SEED, Range
from edgeflare_mutators.sample import Sample

_UNIT = 4096
_PARTS = np.float32(16)
_LONGEST_JPEG_SIDE = 65_500


class NaturalBlur(Corruption):
    """Blur with a Gaussian whose standard deviation is `sigma`, a share of the image's shorter side.

    1/16 is 2 pixels of 32 and 14 of 224. Weights end at three standard deviations; the image is
    mirrored about its outermost pixels. Unlike `GaussianBlur`'s, the standard deviation is continuous.

    Weights are multiples of 1/4096 and what lies between the two passes is rounded to 1/16 level, so
    that all sums are exact in float32 and the bits don't depend on the CPU; the C library's exp()
    need only agree to nine digits or so. The time grows with the number of pixels times the side.
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
                np.rint(values * _PARTS) / _PARTS,
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

    Channels are taken as red, green, blue; colour is kept at half the resolution, as cameras do. The
    coder is OpenCV's: its bits are the same with and without a CPU's vector extensions, but an OpenCV built
    with another JPEG library than libjpeg-turbo may round otherwise. An image of more than 65,500
    pixels a side is a SampleError.
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
                f"jpeg: an image of {sample.shape[1]} x {sample.shape[0]} pixels is too large for a "
                f"JPEG, which has at most {_LONGEST_JPEG_SIDE} a side; leave this operator out"
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

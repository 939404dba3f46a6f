"""Natural corruptions by a camera's sensor, lens, motion and resolution.

They complete those of `photo` to the common corruptions of ImageNet-C (Hendrycks and Dietterich,
Benchmarking Neural Network Robustness to Common Corruptions and Perturbations, ICLR 2019). Lengths
are shares of the image's shorter side, so that small and large images change alike.

Weighted sums are sums of whole numbers below 2**53 and so exact in float64, in whatever order they
are made; all else is one IEEE operation on single values. So the bits don't depend on the CPU.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import SEED, Params, Range, Sample
from edgeflare_mutators.dflare import generator
from edgeflare_mutators.natural import Corruption, percent, portable_normal
from edgeflare_mutators.photo import Scale, interpolated, smooth_noise, to_levels

_PARTS = 256
_LEVELS = np.arange(256, dtype=np.float64)


class ShotNoise(Corruption):
    """Add the noise of few photons: normal, in proportion to the square root of each value.

    `sigma` is its standard deviation at white, in levels of 255; black has none.

    Differences from ImageNet-C: normal noise in place of Poisson's, whose draw takes logarithms.
    Its 60, 25, 12, 5 and 3 photons at white are a sigma of 33, 51, 74, 114 and 147.
    """

    name = "shot-noise"
    limits = (Range("sigma", 0.0, 255.0), SEED)
    moving = ("sigma",)

    def __init__(self, sigma: tuple[float, float] = (0.0, 75.0)) -> None:
        super().__init__(sigma=sigma)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        noise = portable_normal(generator(params), sample.shape)
        return to_levels(sample + (params["sigma"] * np.sqrt(_LEVELS / 255))[sample] * noise)

    def _words(self, params: Params) -> str:
        return f"shot noise of {params['sigma']:.3g} levels at white"


class ImpulseNoise(Corruption):
    """Set about `share` of the values, at random places, to 0 or 255, as dead and hot pixels are.

    A place is one channel of one pixel. A larger share has the places of a smaller one as well.
    """

    name = "impulse-noise"
    limits = (Range("share", 0.0, 1.0), SEED)
    moving = ("share",)

    def __init__(self, share: tuple[float, float] = (0.0, 0.12)) -> None:
        super().__init__(share=share)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        rng = generator(params)
        hit = rng.integers(0, 2**16, sample.shape, dtype=np.uint16) < params["share"] * 2**16
        ends = rng.integers(0, 2, sample.shape, dtype=np.uint8) * np.uint8(255)
        return np.where(hit, ends, sample)

    def _words(self, params: Params) -> str:
        return f"{percent(params['share'])} of the values black or white"


class DefocusBlur(Corruption):
    """Replace each value by the mean of the disk of this `radius` around it.

    The image is mirrored about its outermost pixels. Weights of the disk's edge are multiples of
    1/256. A radius below half a pixel changes nothing.
    """

    name = "defocus-blur"
    limits = (Range("radius", 0.0, 0.5),)
    moving = ("radius",)

    def __init__(self, radius: tuple[float, float] = (0.0, 1 / 14)) -> None:
        super().__init__(radius=radius)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        radius = params["radius"] * min(sample.shape[:2])
        return sample if radius <= 1 / 2 else _weighted_mean(sample, _disk(radius))

    def _words(self, params: Params) -> str:
        return f"out of focus by a radius of {percent(params['radius'])} of the side"


class MotionBlur(Corruption):
    """Replace each value by the mean along a line of this `length`, its middle there.

    `degrees`: the line's direction, 0 horizontal, 90 vertical. Between pixels the image is linear;
    beyond its outermost pixels it is mirrored.

    Differences from ImageNet-C: the weights along the line are equal, not a Gaussian's.
    """

    name = "motion-blur"
    limits = (Range("length", 0.0, 1.0), Range("degrees", 0.0, 180.0))
    moving = ("length",)

    def __init__(
        self,
        length: tuple[float, float] = (0.0, 0.25),
        degrees: tuple[float, float] = (0.0, 180.0),
    ) -> None:
        super().__init__(length=length, degrees=degrees)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        length = params["length"] * min(sample.shape[:2])
        return _weighted_mean(sample, line_weights(length, params["degrees"]))

    def _words(self, params: Params) -> str:
        return (
            f"moved along {percent(params['length'])} of the side at {params['degrees']:.0f} "
            "degrees"
        )


_ZOOMS = 16


class ZoomBlur(Corruption):
    """Replace the image by the mean of 16 enlargements of it, from 1 to 1 + `zoom` times."""

    name = "zoom-blur"
    limits = (Range("zoom", 0.0, 4.0),)
    moving = ("zoom",)

    def __init__(self, zoom: tuple[float, float] = (0.0, 0.35)) -> None:
        super().__init__(zoom=zoom)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        total = np.zeros(sample.shape, np.int64)
        scale = Scale()
        for step in range(_ZOOMS):
            total += scale.apply(sample, {"by": params["zoom"] * step / (_ZOOMS - 1)})
        return to_levels(total / _ZOOMS)

    def _words(self, params: Params) -> str:
        return f"zoomed by up to {percent(params['zoom'])} during the exposure"


class GlassBlur(Corruption):
    """Take each pixel from a random place up to `distance` away, as through frosted glass.

    Differences from ImageNet-C: each pixel is moved once and on its own, where there neighbours are
    exchanged in turn; no Gaussian blur before and after it.
    """

    name = "glass-blur"
    limits = (Range("distance", 0.0, 1.0), SEED)
    moving = ("distance",)

    def __init__(self, distance: tuple[float, float] = (0.0, 0.1)) -> None:
        super().__init__(distance=distance)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        height, width, _ = sample.shape
        moves = generator(params).integers(-_PARTS, _PARTS, (2, height, width), endpoint=True)
        return _moved(sample, moves / _PARTS, params["distance"])

    def _words(self, params: Params) -> str:
        return f"pixels scattered by up to {percent(params['distance'])} of the side"


class Elastic(Corruption):
    """Stretch the image here and squeeze it there, by up to `distance`, smoothly between.

    The displacements come from `seed`: smooth noise of three scales, in proportion to the sides.
    """

    name = "elastic"
    limits = (Range("distance", 0.0, 1.0), SEED)
    moving = ("distance",)

    def __init__(self, distance: tuple[float, float] = (0.0, 0.15)) -> None:
        super().__init__(distance=distance)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        height, width, _ = sample.shape
        rng = generator(params)
        moves = np.stack([2 * smooth_noise(height, width, rng) - 1 for _ in range(2)])
        return _moved(sample, moves, params["distance"])

    def _words(self, params: Params) -> str:
        return f"distorted by up to {percent(params['distance'])} of the side"


class Pixelate(Corruption):
    """Replace blocks, a pixel and `block` wide and high, by their mean, as a low resolution does.

    Blocks are whole pixels, in the mean of this size, as equal as the sides allow.
    """

    name = "pixelate"
    limits = (Range("block", 0.0, 1.0),)
    moving = ("block",)

    def __init__(self, block: tuple[float, float] = (0.0, 1 / 14)) -> None:
        super().__init__(block=block)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        size = 1 + params["block"] * min(sample.shape[:2])
        means: Any = sample.astype(np.int64)
        sizes = []
        for axis, side in enumerate(sample.shape[:2]):
            count = max(1, round(side / size))
            edges = np.arange(count + 1) * side // count
            means = np.add.reduceat(means, edges[:-1], axis)
            sizes.append(np.diff(edges))
        down, right = sizes
        levels = to_levels(means / np.multiply.outer(down, right)[..., np.newaxis])
        return levels.repeat(down, axis=0).repeat(right, axis=1)

    def _words(self, params: Params) -> str:
        return f"blocks of a pixel and {percent(params['block'])} of the side"


def line_weights(length: float, degrees: float) -> NDArray[np.float64]:
    """Return a line's weights around its middle: whole numbers, float64 [odd, odd].

    `length` in pixels. Points of the line are shared linearly among the four pixels around them, in
    1/256 pixel; the C library's sine need only agree to six digits.
    """
    points = max(64, 2 * math.ceil(length))
    along = (np.arange(points) / (points - 1) - 0.5) * length
    angle = math.radians(degrees)
    places = [
        np.rint(along * way * _PARTS).astype(int) for way in (-math.sin(angle), math.cos(angle))
    ]
    reach = math.ceil(length / 2) + 1
    weights = np.zeros((2 * reach + 1, 2 * reach + 1))
    (row, down), (column, right) = ((place >> 8, place & 255) for place in places)
    for below, height in ((0, _PARTS - down), (1, down)):
        for beside, width in ((0, _PARTS - right), (1, right)):
            np.add.at(weights, (row + below + reach, column + beside + reach), height * width)
    return weights


def weighted_sums(values: NDArray[Any], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums of the values around each pixel by weight; a mirror at the outermost pixels.

    `values` are whole numbers [height, width] or [height, width, channels]; the result has their
    shape. OpenCV may sum by a Fourier transform in float64; the rounding to whole numbers hides it.
    """
    import cv2

    sums: Any = cv2.filter2D(
        values.astype(np.float64), cv2.CV_64F, weights, borderType=cv2.BORDER_REFLECT_101
    )
    exact: NDArray[np.float64] = np.rint(sums).reshape(values.shape)
    return exact


def _weighted_mean(sample: Sample, weights: NDArray[np.float64]) -> Sample:
    return to_levels(weighted_sums(sample, weights) / weights.sum())


def _disk(radius: float) -> NDArray[np.float64]:
    """Return how much of each pixel's row lies in the disk, in 1/256: float64 [odd, odd].

    `radius` in pixels, above 1/2.
    """
    reach = math.ceil(radius)
    places = np.arange(-reach, reach + 1)
    half = np.sqrt(np.maximum(radius * radius - places * places, 0))[:, np.newaxis]
    inside = np.minimum(places + 0.5, half) - np.maximum(places - 0.5, -half)
    weights: NDArray[np.float64] = np.rint(np.clip(inside, 0, 1) * _PARTS)
    return weights


def _moved(sample: Sample, moves: NDArray[np.float64], distance: float) -> Sample:
    """Return the image with each pixel taken from elsewhere.

    `moves` [2, height, width] from -1 to 1, down and right; 1 is `distance` of the shorter side.
    """
    height, width, _ = sample.shape
    farthest = distance * min(height, width)
    return interpolated(
        sample,
        np.arange(height)[:, np.newaxis] + moves[0] * farthest,
        np.arange(width)[np.newaxis, :] + moves[1] * farthest,
    )

"""Corruptions by light: brightness, contrast and haze.

Each step is an IEEE operation on single values or an exact sum, so the bits don't depend on the CPU.
"""

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import Params
from edgeflare_mutators.natural import Corruption, percent
from edgeflare_mutators.noise import generator
from edgeflare_mutators.ranges import SEED, Range
from edgeflare_mutators.sample import Sample

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
        return _table(_LEVELS * (1 + params["by"]))[sample]

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
        return _table(_LEVELS + (_LEVELS - mean) * params["by"])[sample]

    def _words(self, params: Params) -> str:
        return f"contrast {percent(params['by'], '+')}"


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
        clouds = _clouds(height, width, generator(params))
        opacity = params["density"] * (1 + 2 * clouds) / 3
        planes = np.ascontiguousarray(sample.transpose(2, 0, 1))
        hazy = np.rint(planes + (_AIRLIGHT - planes.astype(np.int16)) * opacity)
        return np.transpose(hazy.astype(np.uint8), (1, 2, 0))

    def _words(self, params: Params) -> str:
        return f"haze of {percent(params['density'])}"


def _table(levels: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Return what each of the 256 levels becomes."""
    return np.clip(np.rint(levels), 0, 255).astype(np.uint8)


def _clouds(height: int, width: int, rng: np.random.Generator) -> NDArray[np.float64]:
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

"""The operators that add noise (DFLARE, table 3, "Adding Noise").

Noise comes from a PCG64 generator of the mutation's own. Sums and products are float32, rounded half to
even and clipped to [0, 255] (section 4.4).
Differences from the authors' code: it casts to uint8, which wraps around, where this clips; and its
noise comes from a global generator, so that no mutation can be repeated.
"""

import math

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import Operator, Params
from edgeflare_mutators.ranges import SEED, Range
from edgeflare_mutators.sample import Sample


class RandomPixelChange(Operator):
    """Set `count` values, at distinct random places, to uniform random levels in [0, 255].

    A place is one channel of one pixel; an image of fewer places has all of them set.

    Differences: the paper gives no count. The authors' code draws 0 to 9; here it is 1 to 9, since
    0 spends a query on an unchanged input. In the authors' code a place may be drawn twice.
    """

    name = "random-pixel-change"
    limits = (Range("count", 0, 2**31 - 1, "int"), SEED)

    def __init__(self, count: tuple[int, int] = (1, 9)) -> None:
        super().__init__(count=count)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        rng = generator(params)
        count = min(params["count"], sample.size)
        places = rng.choice(sample.size, count, replace=False)
        changed = sample.flatten()
        changed[places] = rng.integers(0, 256, count, dtype=np.uint8)
        return changed.reshape(sample.shape)


def clipped(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return the nearest levels in [0, 255]; halves go to the even one. Overwrites `values`."""
    np.rint(values, out=values)
    np.clip(values, 0, 255, out=values)
    return values.astype(np.uint8)


class GaussianNoise(Operator):
    """Add normal noise of mean 0 and standard deviation `sigma`, in levels of 255.

    Differences: the paper gives no sigma. In the authors' code it is 0.316 levels, which leaves nine
    values in ten as they are once rounded (and their cast then lowers the rest by a level or so).
    Here it is drawn from 1 level, which changes most values, to 16, about the second of the five
    severities of CIFAR-10-C (0.06 on the [0, 1] scale).
    """

    name = "gaussian-noise"
    _to_levels = staticmethod(clipped)
    limits = (Range("sigma", 0.0, 255.0), SEED)

    def __init__(self, sigma: tuple[float, float] = (1.0, 16.0)) -> None:
        super().__init__(sigma=sigma)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        noise = generator(params).standard_normal(sample.shape, np.float32)
        return self._to_levels(sample + params["sigma"] * noise)


class MultiplicativeNoise(Operator):
    """Add to each value its product with normal noise of `mean` and `variance`, both without unit.

    A mean of 0.5 brightens by half, one of -0.5 darkens by half; black stays black.

    Differences: the paper gives no parameters; these are the ranges of the authors' code.
    """

    name = "multiplicative-noise"
    _to_levels = staticmethod(clipped)
    limits = (Range("mean", -1.0, 10.0), Range("variance", 0.0, 10.0), SEED)

    def __init__(
        self,
        mean: tuple[float, float] = (-0.5, 0.5),
        variance: tuple[float, float] = (0.0, 0.05),
    ) -> None:
        super().__init__(mean=mean, variance=variance)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        noise = generator(params).standard_normal(sample.shape, np.float32)
        factor = params["mean"] + math.sqrt(params["variance"]) * noise
        return self._to_levels(sample + sample * factor)


def generator(params: Params) -> np.random.Generator:
    """Return the generator that a mutation's `seed` stands for."""
    return np.random.Generator(np.random.PCG64(params["seed"]))

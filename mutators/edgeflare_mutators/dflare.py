"""The operators of DFLARE.

Noise and blur of the paper's table 3, and those that only the authors' code has.

Noise comes from a PCG64 generator of the mutation's own. Sums and products are float32, rounded
half to even and clipped to [0, 255] (section 4.4). OpenCV blurs in integers, so that the vector
extensions of a CPU don't change the bits, on square kernels of `kernel` pixels, which may be larger
than the image. Borders: the average and the Gaussian filter mirror the image about its outermost
pixel (OpenCV's BORDER_REFLECT_101, its default); the median filter repeats that pixel, the only
border OpenCV has for it.

Differences: the authors' code casts noise to uint8, which wraps around, where this clips; and its
noise comes from a global generator, so that no mutation can be repeated. The paper draws the size
of the average filter from 1 to 5 (section 4.4); the authors' code draws the other two from 1, 3, 5,
7. A kernel of 1 changes nothing and would spend a query on an unchanged input: the default ranges
begin one kernel later. kernel=(1, 5) and (1, 7) restore theirs.

Operators that only the authors' code has, or has in another way than table 3, are never in the
default pool; `reference_pool` has them, and recorded mutations name them.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import SEED, Operator, Params, Range, Sample


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

    Differences: the paper gives no sigma. In the authors' code it is 0.316 levels, which leaves
    nine values in ten as they are once rounded (and their cast then lowers the rest by a level or
    so). Here it is drawn from 1 level, which changes most values, to 16, about the second of the
    five severities of CIFAR-10-C (0.06 on the [0, 1] scale).
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


class AverageBlur(Operator):
    """Replace each value by the mean of the kernel around it, rounded half to even.

    The pixel at row and column kernel // 2 of the kernel is the one replaced.

    Differences: the sums are OpenCV's, the division is not: for kernels of 2, 4, 8 and 16 OpenCV's
    own is up to a level off.
    """

    name = "average-blur"
    limits = (Range("kernel", 1, 255, "int"),)

    def __init__(self, kernel: tuple[int, int] = (2, 5)) -> None:
        super().__init__(kernel=kernel)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        import cv2

        kernel = params["kernel"]
        sums: Any = cv2.boxFilter(
            sample, cv2.CV_32S, (kernel, kernel), normalize=False, borderType=cv2.BORDER_REFLECT_101
        )
        levels: Sample = np.rint(sums / kernel**2).astype(np.uint8)
        return levels.reshape(sample.shape)


class GaussianBlur(Operator):
    """Blur with a Gaussian whose standard deviation follows from the kernel.

    It is 0.3 * ((kernel - 1) / 2 - 1) + 0.8 pixels; up to 7 OpenCV has fixed weights.
    Halves are rounded up, by OpenCV.
    """

    name = "gaussian-blur"
    limits = (Range("kernel", 1, 255, "odd"),)

    def __init__(self, kernel: tuple[int, int] = (3, 7)) -> None:
        super().__init__(kernel=kernel)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        import cv2

        kernel = params["kernel"]
        blurred: Any = cv2.GaussianBlur(
            sample, (kernel, kernel), 0, borderType=cv2.BORDER_REFLECT_101
        )
        return np.reshape(blurred, sample.shape)


class MedianBlur(Operator):
    """Replace each value by the median of the kernel around it, channel by channel."""

    name = "median-blur"
    limits = (Range("kernel", 1, 255, "odd"),)

    def __init__(self, kernel: tuple[int, int] = (3, 7)) -> None:
        super().__init__(kernel=kernel)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        import cv2

        return np.reshape(cv2.medianBlur(sample, params["kernel"]), sample.shape)


_REFERENCE_SIGMA = math.sqrt(0.1)


def wrapped(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return float values cast to uint8.

    The fraction is dropped, the rest taken modulo 256.

    So 255.4 stays 255, 256.2 becomes 0, -0.9 becomes 0 and -1.2 becomes 255. The cast itself is
    undefined in C beyond the type's range; this is what x86 does, written out.
    """
    return np.bitwise_and(np.trunc(values).astype(np.int64), 255).astype(np.uint8)


class WrappedGaussianNoise(GaussianNoise):
    """`GaussianNoise` whose values wrap around instead of being rounded and clipped.

    The dropped fraction lowers about half of the values by a level, and bright values may turn
    black.
    """

    name = "gaussian-noise-wrapped"
    _to_levels = staticmethod(wrapped)


class WrappedMultiplicativeNoise(MultiplicativeNoise):
    """`MultiplicativeNoise` whose values wrap around instead of being rounded and clipped.

    A mean above 0 turns bright places into a pattern of dark and bright ones.
    """

    name = "multiplicative-noise-wrapped"
    _to_levels = staticmethod(wrapped)


class SaltAndPepper(Operator):
    """Set ceil(`amount` * size / 2) random values to 255, then as many to 0.

    `amount` is a share of the values.

    Source: the seventh operator of the authors' code, with its amount of 0.004; not in table 3.
    A place is one channel of one pixel and may be drawn twice, as there.
    """

    name = "salt-and-pepper"
    limits = (Range("amount", 0.0, 1.0), SEED)

    def __init__(self, amount: tuple[float, float] = (0.004, 0.004)) -> None:
        super().__init__(amount=amount)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        rng = generator(params)
        count = math.ceil(params["amount"] * sample.size / 2)
        changed = sample.flatten()
        for level in (255, 0):
            changed[rng.integers(0, sample.size, count)] = level
        return changed.reshape(sample.shape)


def reference_pool(*, wrap: bool) -> dict[str, Operator]:
    """Return the seven operators of the authors' code, by name, with its ranges.

    `wrap`: whether the two noises wrap around, as there, or are clipped as the paper says.

    Differences from that code: random pixel change draws distinct places; noise is float32.
    """
    sigma = (_REFERENCE_SIGMA, _REFERENCE_SIGMA)
    noises: tuple[Operator, Operator] = (
        (WrappedGaussianNoise(sigma), WrappedMultiplicativeNoise())
        if wrap
        else (GaussianNoise(sigma), MultiplicativeNoise())
    )
    pool: tuple[Operator, ...] = (
        noises[0],
        SaltAndPepper(),
        noises[1],
        RandomPixelChange(count=(0, 9)),
        AverageBlur(kernel=(1, 5)),
        GaussianBlur(kernel=(1, 7)),
        MedianBlur(kernel=(1, 7)),
    )
    return {operator.name: operator for operator in pool}


def wrapping(pool: dict[str, Operator]) -> dict[str, Operator]:
    """Return the pool with its two noises, if it has them, replaced by those that wrap around."""
    others = {
        GaussianNoise.name: WrappedGaussianNoise,
        MultiplicativeNoise.name: WrappedMultiplicativeNoise,
    }
    changed: list[Operator] = []
    for name, operator in pool.items():
        replacement = others.get(name)
        ranges = {drawn.name: (drawn.low, drawn.high) for drawn in operator.ranges}
        ranges.pop(SEED.name, None)
        changed.append(replacement(**ranges) if replacement else operator)
    return {operator.name: operator for operator in changed}

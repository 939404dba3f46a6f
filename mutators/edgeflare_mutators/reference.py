"""Operators that only the authors' code of DFLARE has, or has in another way than table 3.

They are never in the default pool; `reference_pool` has them, and recorded mutations name them.
"""

import math

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import Operator, Params
from edgeflare_mutators.blur import AverageBlur, GaussianBlur, MedianBlur
from edgeflare_mutators.noise import (
    GaussianNoise,
    MultiplicativeNoise,
    RandomPixelChange,
    generator,
)
from edgeflare_mutators.ranges import SEED, Range
from edgeflare_mutators.sample import Sample

_REFERENCE_SIGMA = math.sqrt(0.1)


def wrapped(values: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return what a cast to uint8 makes of float values: the fraction is dropped, the rest taken modulo 256.

    So 255.4 stays 255, 256.2 becomes 0, -0.9 becomes 0 and -1.2 becomes 255. The cast itself is
    undefined in C beyond the type's range; this is what x86 does, written out.
    """
    return np.bitwise_and(np.trunc(values).astype(np.int64), 255).astype(np.uint8)


class WrappedGaussianNoise(GaussianNoise):
    """`GaussianNoise` whose values wrap around instead of being rounded and clipped.

    The dropped fraction lowers about half of the values by a level, and bright values may turn black.
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
    """Set ceil(`amount` * size / 2) random values to 255, then as many to 0; `amount` is a share of the values.

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
    """Return the pool with its two noises, where it has them, replaced by those that wrap around."""
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

"""Natural corruptions: operators with a strength that a search can set and a description in words.

Corruptions are not in the paper's table 3, and so not in the default pool.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import Operator, Params, Range
from edgeflare_mutators.errors import ParamsError


class Corruption(Operator):
    """An operator that models light, lens, sensor, storage or aim of a photograph, or speaker, room
    and microphone of a recording.

    A subclass defines what `Operator` requires, and `moving`: the names of the parameters that
    determine its strength (several: a direction), each without effect at the value `neutral`. All
    other parameters (a seed, a position) are independent of the strength.
    """

    moving: tuple[str, ...]
    neutral: float = 0.0

    def graded(self, params: Mapping[str, Any], strength: float) -> Params:
        """Return the same corruption (its seed, sign and direction) at another strength.

        `strength`: 0 is the mildest step of `ranges`, (nearly) the identity for the default ones; 1
        is the strongest in that direction; between them the parameters are linear in it, and whole
        numbers are rounded. Parameters without a direction (the identity's own) take that of the
        upper end. Raises ParamsError for parameters that `apply` refuses and for a strength beyond
        [0, 1].
        """
        self._check_params(params)
        if not 0 <= strength <= 1:
            raise ParamsError(
                f"{self.name}: the strength must be a number from 0 to 1, not {strength!r}"
            )
        steps = {d.name: self._step(d, params) for d in self.ranges if d.name in self.moving}
        farthest = max(share for _, _, share in steps.values())
        graded = dict(params)
        for drawn in self.ranges:
            if drawn.name in steps:
                mildest, span, share = steps[drawn.name]
                value = mildest + strength * span * (share / farthest if farthest > 0 else 1.0)
                value = min(max(value, drawn.low), drawn.high)
                graded[drawn.name] = round(value) if drawn.kind == "int" else float(value)
        return graded

    def words(self, params: Mapping[str, Any]) -> str:
        """Return the corruption in words for a report, such as "JPEG quality 37".

        Raises ParamsError for parameters that `apply` refuses.
        """
        self._check_params(params)
        return self._words(dict(params))

    def _step(self, drawn: Range, params: Mapping[str, Any]) -> tuple[float, float, float]:
        """Return a parameter's mildest value, distance to the strongest, and share of that."""
        mildest = min(max(self.neutral, drawn.low), drawn.high)
        down = drawn.low < mildest and (params[drawn.name] < mildest or drawn.high == mildest)
        span = (drawn.low if down else drawn.high) - mildest
        return mildest, span, (params[drawn.name] - mildest) / span if span else 0.0

    @abstractmethod
    def _words(self, params: Params) -> str:
        """Return the words; `params` are complete."""


def percent(share: float, sign: str = "") -> str:
    """Return a share as a percentage of three significant digits; sign "+" writes the plus too."""
    digits = np.format_float_positional(
        share * 100 + 0.0, precision=3, unique=False, fractional=False, trim="-", sign=sign == "+"
    )
    return f"{digits} %"


def portable_normal(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return standard normal noise with the same bits on every CPU: float64 of this shape.

    Each value is one of 65,536 quantiles of equal probability, rounded to 1/4096; the outermost
    are -4.32 and 4.32. (numpy's `standard_normal` takes logarithms in its tails, whose last bit
    depends on the C library and the CPU.)
    """
    return _quantiles()[rng.integers(0, _QUANTILES, shape, dtype=np.uint16)]


_QUANTILES = 65_536


@cache
def _quantiles() -> NDArray[np.float64]:
    """Return the quantiles of the normal distribution, float64 [65536], multiples of 1/4096."""
    quantile = NormalDist().inv_cdf
    upper = [
        round(quantile((place + 0.5) / _QUANTILES) * 4096) / 4096
        for place in range(_QUANTILES // 2, _QUANTILES)
    ]
    return np.array([*(-value for value in reversed(upper)), *upper])

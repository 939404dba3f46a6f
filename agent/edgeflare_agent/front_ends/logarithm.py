"""The logarithm in steps that IEEE 754 rounds alike everywhere."""

import numpy as np

from edgeflare_agent.arrays import Array

LN_2 = 0.6931471805599453
LOG10_E = 0.4342944819032518
_ROOT_HALF = 0.7071067811865476
_SERIES = tuple(2.0 / n for n in range(23, 0, -2))
"""2/23, 2/21 ... 2/1: ln((1 + s) / (1 - s)) = 2 s + 2 s**3 / 3 + ..."""


def natural_log(values: Array) -> Array:
    """Return ln(values), float64 in the shape of `values`, which are positive, finite and at least 1e-300.

    Within 1e-15, relative or absolute, whichever is larger.
    """
    fraction, exponent = np.frexp(values)
    small = fraction < _ROOT_HALF
    fraction = np.where(small, np.multiply(fraction, 2.0), fraction)
    power = np.subtract(exponent, small).astype(np.float64)
    s = np.divide(np.subtract(fraction, 1.0), np.add(fraction, 1.0))
    square = np.multiply(s, s)
    total = np.full_like(square, _SERIES[0])
    for term in _SERIES[1:]:
        np.multiply(total, square, out=total)
        np.add(total, term, out=total)
    np.multiply(total, s, out=total)
    np.multiply(power, LN_2, out=power)
    return np.add(total, power)

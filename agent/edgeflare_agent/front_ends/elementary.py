"""Elementary functions with the same bits on every processor.

numpy's and the C library's differ in their last bits from one processor to the next. These are made
of the operations that IEEE 754 rounds in one way only (+ - * /, float64), each rounded before the
next, and of powers of two.
"""

import numpy as np

from edgeflare_agent.arrays import Array

_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10
_LOWEST = -708.0
_HIGHEST = 709.0
_COEFFICIENTS = tuple(1.0 / float(n) for n in np.cumprod([1.0, *range(1, 15)])[::-1])


def exp(values: Array) -> Array:
    """Return exp(values), float64 in their shape, to two units in the last place.

    0 below -708, exp(709) above 709, NaN for NaN.
    """
    within = np.minimum(np.maximum(values, _LOWEST), _HIGHEST)
    halvings = np.rint(within / (_LN2_HIGH + _LN2_LOW))
    rest = (within - halvings * _LN2_HIGH) - halvings * _LN2_LOW
    power = np.full(rest.shape, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        power = power * rest + coefficient
    whole = np.where(np.isfinite(halvings), halvings, 0).astype(np.int32)
    return np.asarray(np.where(values < _LOWEST, 0.0, np.ldexp(power, whole)))


LN_2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_SERIES = tuple(2.0 / n for n in range(23, 0, -2))
"""2/23, 2/21 ... 2/1: ln((1 + s) / (1 - s)) = 2 s + 2 s**3 / 3 + ..."""


def natural_log(values: Array) -> Array:
    """Return ln(values), float64 in the shape of `values`, which are finite and at least 1e-300.

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

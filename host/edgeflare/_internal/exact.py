"""Arithmetic whose results have the same bits on every processor, for what decides a search.

BLAS, LAPACK, numpy's and the C library's transcendental functions, and numpy's normal deviates
choose their code by the processor, so that their last bits differ. Everything here is made of + - *
/ and the square root of float64, which IEEE 754 rounds in one way only, as separate elementwise
operations that no compiler fuses, and of numpy's sums, whose order depends on the arrays' layout
alone.

Like all code that has to give the same bits, users of this module also avoid `Generator.uniform`
(its multiplication and addition may be fused) and ``**`` with anything but a whole array's square.
"""

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgeflare_agent.front_ends import elementary

Floats: TypeAlias = NDArray[np.float64]

_EIGHTH_COEFFICIENTS = 9
_SINE = tuple((1, -1)[n % 2] / math.factorial(2 * n + 1) for n in range(_EIGHTH_COEFFICIENTS))
_COSINE = tuple((1, -1)[n % 2] / math.factorial(2 * n) for n in range(_EIGHTH_COEFFICIENTS))
_ROOT_HALF = 0.7071067811865476
_LOG_SERIES = tuple(2.0 / n for n in range(23, 0, -2))
_FEW = 16
"""Up to so many values the steps of a logarithm take longer with arrays than without."""
_UNIT = 2**53
"""Random numbers from 0 to 1 are multiples of 1 / this."""


def exp(values: ArrayLike) -> Floats:
    """Return exp(values), float64 in their shape, to two units in the last place.

    0 below -708, exp(709) above 709, NaN for NaN.
    """
    array = np.asarray(values, dtype=np.float64)
    return np.asarray(elementary.exp(array.reshape(-1))).reshape(array.shape)


def log(values: ArrayLike) -> Floats:
    """Return ln(values), float64 in their shape, within 1e-15 (relative, below 1 absolute).

    `values` are finite and at least 1e-300.
    """
    array = np.asarray(values, dtype=np.float64)
    flat = array.reshape(-1)
    if flat.size <= _FEW:
        return np.array([_log_of_one(one) for one in flat.tolist()]).reshape(array.shape)
    return np.asarray(elementary.natural_log(flat)).reshape(array.shape)


def _log_of_one(value: float) -> float:
    """Return ln(value) by the steps of `elementary.natural_log`, without arrays."""
    fraction, exponent = math.frexp(value)
    if fraction < _ROOT_HALF:
        fraction, exponent = 2.0 * fraction, exponent - 1
    s = (fraction - 1.0) / (fraction + 1.0)
    square = s * s
    total = _LOG_SERIES[0]
    for term in _LOG_SERIES[1:]:
        total = total * square + term
    return total * s + exponent * elementary.LN_2


def sigmoid(values: ArrayLike) -> Floats:
    """Return 1 / (1 + exp(-values)), float64 in their shape, NaN for NaN."""
    return np.asarray(1.0 / (1.0 + exp(-np.asarray(values, np.float64))))


def tanh(values: ArrayLike) -> Floats:
    """Return the hyperbolic tangent, float64 in the shape of `values`, within 1e-15; NaN for NaN."""
    array = np.asarray(values, np.float64)
    powers = exp(-2.0 * np.abs(array))
    return np.asarray(np.copysign((1.0 - powers) / (1.0 + powers), array))


def atanh(value: float) -> float:
    """Return the inverse hyperbolic tangent of a value between -1 and 1, within 1e-15."""
    return 0.5 * float(log((1.0 + value) / (1.0 - value)))


def dot(one: Floats, other: Floats) -> float:
    """Return the sum of the products of two arrays of one shape."""
    return float((one * other).sum())


def norm(values: Floats) -> float:
    """Return the square root of the sum of all squares."""
    return math.sqrt(float(np.square(values).sum()))


def matmul(one: Floats, other: Floats) -> Floats:
    """Return the matrix product of [m, k] and [k, n], summed in the order of k, which is small."""
    total = np.zeros((one.shape[0], other.shape[1]))
    for place, row in enumerate(other):
        total += one[:, place, None] * row
    return total


def softmax(logits: Floats) -> Floats:
    """Return exp(x) / sum(exp(x)) along the first axis, float64 in the shape of finite `logits`."""
    powers = exp(logits - logits.max(axis=0, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=0))


def least_norm(rows: Floats, wanted: Floats, rcond: float) -> Floats:
    """Return the shortest x, float64 [n], with ``rows @ x == wanted``.

    `rows`: float64 [k, n] with a small k, `wanted`: [k]. By Gram-Schmidt's method; a row whose part
    orthogonal to those before it is not longer than `rcond` times itself is left out.
    """
    found = np.zeros(rows.shape[1])
    basis: list[Floats] = []
    for row, value in zip(rows, wanted, strict=True):
        rest = row
        for unit in basis:
            rest = rest - dot(rest, unit) * unit
        length = norm(rest)
        if length > rcond * norm(row):
            unit = rest / length
            found = found + (float(value) - dot(row, found)) / length * unit
            basis.append(unit)
    return found


def inverse(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric positive definite matrix, by Gauss and Jordan's method."""
    left, right = matrix.copy(), np.eye(len(matrix))
    for place in range(len(matrix)):
        pivot = left[place, place]
        left[place] /= pivot
        right[place] /= pivot
        factors = left[:, place].copy()
        factors[place] = 0.0
        left -= factors[:, None] * left[place]
        right -= factors[:, None] * right[place]
    return right


def cos_of_turns(part: ArrayLike, whole: int) -> Floats:
    """Return cos(2 pi part / whole), float64 in the shape of the whole numbers `part`."""
    return _of_turns(np.asarray(part, dtype=np.int64), whole)


def sin_of_turns(part: ArrayLike, whole: int) -> Floats:
    """Return sin(2 pi part / whole); `whole` is a multiple of 4."""
    return _of_turns(np.asarray(part, dtype=np.int64) - whole // 4, whole)


def cosines(length: int, count: int) -> Floats:
    """Return the `count` lowest frequencies of the DCT-II, float64 [count, length], from -1 to 1."""
    places = 2 * np.arange(length) + 1
    return cos_of_turns(np.arange(count)[:, None] * places[None], 4 * length)


def normal(rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
    """Return standard normal deviates, float64 of this shape (Box and Muller, 1958)."""
    count = int(np.prod(shape))
    half = (count + 1) // 2
    angles, uniform = rng.integers(_UNIT, size=half), rng.random(half)
    radius = np.sqrt(-2.0 * log(1.0 - uniform))
    both = np.concatenate(
        (radius * cos_of_turns(angles, _UNIT), radius * sin_of_turns(angles, _UNIT))
    )
    return np.asarray(both[:count].reshape(shape))


def uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a random number from `low` to `high`."""
    return low + (high - low) * float(rng.random())


def _of_turns(part: NDArray[np.int64], whole: int) -> Floats:
    """Return the cosine of a share of a turn, by that of an angle of at most an eighth of one.

    All comparisons are of whole numbers: 8 * whole must fit into 64 bits.
    """
    part = np.mod(part, whole)
    part = np.minimum(part, whole - part)  # from 0 to half a turn
    negative = 4 * part > whole
    doubled = np.where(negative, whole - 2 * part, 2 * part)  # twice the angle, to a quarter
    is_sine = 4 * doubled > whole
    near = np.where(is_sine, whole - 2 * doubled, 2 * doubled)  # four times it, to an eighth
    angle = near * (math.pi / 2.0 / whole)
    square = np.square(angle)
    cosine, sine = (np.full(angle.shape, terms[-1]) for terms in (_COSINE, _SINE))
    for ours, theirs in zip(_COSINE[-2::-1], _SINE[-2::-1], strict=True):
        cosine = cosine * square + ours
        sine = sine * square + theirs
    found = np.where(is_sine, sine * angle, cosine)
    return np.asarray(np.where(negative, -found, found))

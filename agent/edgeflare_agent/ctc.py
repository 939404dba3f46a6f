"""Greedy decoding of connectionist temporal classification: the best symbol of each frame, repeats collapsed.

The probabilities are the same bits on every architecture: exp is made of sums, products and powers of two,
each of which IEEE 754 rounds in one way only.
"""

from typing import List, NamedTuple, Tuple

import numpy as np

from edgeflare_agent.arrays import Array

BROKEN = -1
"""Stands for the symbol of frames with NaN or +infinity: which one is best can't be told."""

_LN2_HIGH = 0.693147180369123816490
_LN2_LOW = 1.90821492927058770002e-10
_LOWEST = -708.0
_COEFFICIENTS = tuple(1.0 / float(n) for n in np.cumprod([1.0, *range(1, 15)])[::-1])


class Run(NamedTuple):
    """Neighbouring frames with one best symbol; its probability, and the best other's, in the surest of them."""

    symbol: int
    probability: float
    other: float


def runs(frames: Array, slack: float) -> List[Run]:
    """Return the runs of float64 [frames, symbols] in order, those of the blank among them.

    Frames that are all probabilities are taken as they are, where their sums are 1 up to `slack`; any
    others are logits or log-probabilities. A run with NaN has NaN for both numbers.
    """
    if not len(frames):
        return []
    real = probabilities(frames, slack)
    broken = np.isnan(real).any(axis=1)
    best, chosen, other = _two_best(real)
    best[broken] = BROKEN
    chosen[broken] = other[broken] = np.nan
    begins = np.flatnonzero(np.concatenate(([True], best[1:] != best[:-1])))
    found = []
    for begin, end in zip(begins, [*begins[1:], len(best)]):
        surest = begin + int(chosen[begin:end].argmax())
        found.append(Run(int(best[begin]), float(chosen[surest]), float(other[surest])))
    return found


def probabilities(frames: Array, slack: float) -> Array:
    """Return float64 [frames, symbols]: the values themselves, or the softmax of each frame; NaN stays."""
    with np.errstate(invalid="ignore"):
        if (
            frames.min() >= -slack
            and frames.max() <= 1 + slack
            and np.abs(frames.sum(axis=1) - 1).max() <= slack * frames.shape[1]
        ):
            return frames
        powers = _exp(frames - frames.max(axis=1, keepdims=True))
    return np.asarray(powers / _sums(powers)[:, None])


def _two_best(real: Array) -> Tuple[Array, Array, Array]:
    """Return the best symbol of each frame, its value, and that of the best other one."""
    rows = np.arange(len(real))
    best = real.argmax(axis=1)
    rest = real.copy()
    rest[rows, best] = -np.inf
    other = rest.max(axis=1) if real.shape[1] > 1 else np.zeros(len(real))
    return best, real[rows, best], other


def _sums(powers: Array) -> Array:
    """Return the sum of each row, added from left to right."""
    sums = np.zeros(len(powers))
    for column in powers.T:
        sums = sums + column
    return sums


def _exp(values: Array) -> Array:
    """Return exp of values up to 0, within two units in the last place; 0 below -708, NaN for NaN."""
    within = np.maximum(values, _LOWEST)
    halvings = np.rint(within / (_LN2_HIGH + _LN2_LOW))
    rest = (within - halvings * _LN2_HIGH) - halvings * _LN2_LOW
    power = np.full(rest.shape, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        power = power * rest + coefficient
    whole = np.where(np.isfinite(halvings), halvings, 0).astype(np.int32)
    return np.asarray(np.where(values < _LOWEST, 0.0, np.ldexp(power, whole)))

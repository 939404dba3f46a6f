"""Interval estimates, and figures that err on the safe side."""

import math
from decimal import ROUND_CEILING, Decimal

_Z = 1.959963984540054  # two-sided 95 %


def wilson(successes: int, total: int) -> tuple[float, float]:
    """Return the two-sided 95 % Wilson score interval of a rate, within [0, 1]."""
    rate = successes / total
    square = _Z * _Z
    centre = rate + square / (2 * total)
    half = _Z * math.sqrt(rate * (1 - rate) / total + square / (4 * total * total))
    low, high = (centre - half) / (1 + square / total), (centre + half) / (1 + square / total)
    return max(0.0, low), min(1.0, high)


def upper_bound(successes: int, total: int, *, level: float = 0.95) -> float:
    """Return the one-sided exact bound of a rate (Clopper and Pearson, 1934): above all of `level` of cases."""
    if successes == total:
        return 1.0
    low, high = successes / total, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        if _at_most(successes, total, rate) > 1 - level:
            low = rate
        else:
            high = rate
    return high


def rounded_up(value: float) -> float:
    """Return a non-negative figure with two significant digits, never below what it was."""
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_CEILING))


def _at_most(successes: int, total: int, rate: float) -> float:
    """Return the probability of no more than so many successes, for a rate within (0, 1)."""
    return math.fsum(
        math.exp(
            math.lgamma(total + 1)
            - math.lgamma(count + 1)
            - math.lgamma(total - count + 1)
            + count * math.log(rate)
            + (total - count) * math.log1p(-rate)
        )
        for count in range(successes + 1)
    )

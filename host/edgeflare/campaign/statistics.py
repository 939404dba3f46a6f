"""Interval estimates."""

import math

_Z = 1.959963984540054  # two-sided 95 %


def wilson(successes: int, total: int) -> tuple[float, float]:
    """Return the two-sided 95 % Wilson score interval of a rate, within [0, 1]."""
    rate = successes / total
    square = _Z * _Z
    centre = rate + square / (2 * total)
    half = _Z * math.sqrt(rate * (1 - rate) / total + square / (4 * total * total))
    low, high = (centre - half) / (1 + square / total), (centre + half) / (1 + square / total)
    return max(0.0, low), min(1.0, high)

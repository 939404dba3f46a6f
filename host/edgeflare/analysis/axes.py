"""Round numbers for the axes of drawings."""

import math

_MOST_DIGITS = 4


class Axis:
    """An axis from one round number to another one, with round steps of 1, 2 or 5 times a power of ten.

    It holds every number from `low` to `high`, which are finite. `ticks` are its numbers from one end to the
    other, `most` steps at most, two more where neither end is round; with `whole` none is a fraction.
    """

    def __init__(self, low: float, high: float, most: int = 4, *, whole: bool = False) -> None:
        if low == high:
            around = 0.05 * abs(low) or 1.0
            low, high = low - around, high + around
        self._step = _round_up((high - low) / most, whole=whole)
        first, last = math.floor(low / self._step), math.ceil(high / self._step)
        first -= self._at(first) > low
        last += self._at(last) < high
        self.ticks = [self._at(place) for place in range(first, last + 1)]

    @property
    def low(self) -> float:
        """The smallest number on it."""
        return self.ticks[0]

    @property
    def high(self) -> float:
        """The largest number on it."""
        return self.ticks[-1]

    def text(self, tick: float) -> str:
        """Return a number of the axis with as many digits as its steps have."""
        digits = max(0, -math.floor(math.log10(self._step) + 1e-9))
        return f"{tick:.3g}" if digits > _MOST_DIGITS else f"{tick:,.{digits}f}"

    def _at(self, place: int) -> float:
        return float(f"{place * self._step:.12g}")


def _round_up(step: float, *, whole: bool) -> float:
    if whole and step <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(step))
    times = next(one for one in (1, 2, 5, 10) if one * power >= step * (1 - 1e-9))
    return float(f"{times * power:.6g}")

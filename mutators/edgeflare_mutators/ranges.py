"""Declared ranges of an operator's parameters."""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from edgeflare_mutators.errors import ParamsError, RangeError

RangeKind: TypeAlias = Literal["float", "int", "odd"]


@dataclass(frozen=True)
class Range:
    """The closed interval [low, high] of one parameter, and how it is drawn: uniformly.

    `kind`: "float" any real number, "int" whole numbers, "odd" odd whole numbers.
    Raises RangeError for an empty or infinite interval, or ends that don't fit the kind.
    """

    name: str
    low: float
    high: float
    kind: RangeKind = "float"

    def __post_init__(self) -> None:
        for end in (self.low, self.high):
            if not self._fits_kind(end):
                raise RangeError(
                    f"{self.name}: the ends of the range must be {self._words()}, not {end!r}"
                )
        if self.low > self.high:
            raise RangeError(f"{self.name}: the range from {self.low} to {self.high} is empty")

    def narrowed(self, low: float, high: float) -> "Range":
        """Return the range with other ends. Raises RangeError where they lie outside this one."""
        narrow = replace(self, low=low, high=high)
        if low < self.low or high > self.high:
            raise RangeError(
                f"{self.name}: the range from {low} to {high} must lie between {self.low} and "
                f"{self.high}"
            )
        return narrow

    def draw(self, rng: np.random.Generator) -> float:
        """Return a plain int or float from the range."""
        if self.kind == "float":
            return float(rng.uniform(self.low, self.high))
        step = 2 if self.kind == "odd" else 1
        steps = (int(self.high) - int(self.low)) // step
        return int(self.low) + step * int(rng.integers(0, steps, endpoint=True))

    def check(self, value: Any) -> None:
        """Raise ParamsError unless the value has the kind of this range and lies within it."""
        if not self._fits_kind(value) or not self.low <= value <= self.high:
            raise ParamsError(
                f"{self.name} must be {self._words()} from {self.low} to {self.high}, not {value!r}"
            )

    def _fits_kind(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.kind == "float":
            return math.isfinite(value)
        return isinstance(value, int) and (self.kind == "int" or value % 2 == 1)

    def _words(self) -> str:
        return {"float": "a number", "int": "a whole number", "odd": "an odd number"}[self.kind]


SEED = Range("seed", 0, 2**53 - 1, "int")
"""The seed of an operator's noise; at most 2**53 - 1, so that every JSON reader keeps it exact."""

SAMPLE_RATE = Range("sample_rate", 1000, 768_000, "int")
"""The sample rate of audio in Hz, for an operator that needs it: never drawn, but taken from the spec."""

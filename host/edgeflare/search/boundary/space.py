"""What the values of a sample are: bytes of an image, or amplitudes of a recording."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.types import Sample

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """Samples as real numbers and back, in levels: the smallest steps that a file keeps.

    `low` and `high` bound a value; `unit` levels are 1 in the distances that users see. Of images a level is one of 255; of
    audio one of 32768: all inputs that the search makes itself are recordings of 16 bits, whatever the seed is.
    """

    low: float
    high: float
    unit: float

    @property
    def middle(self) -> float:
        """The value halfway between both bounds, in levels."""
        return float(np.ceil((self.low + self.high) / 2.0))

    def values(self, sample: Sample) -> Floats:
        """Return a sample's values in levels, float64 of the sample's shape."""
        whole = sample.astype(np.float64)
        return whole * self.unit if sample.ndim == 1 else whole

    def sample(self, values: Floats) -> Sample:
        """Return the sample of some values in levels, rounded and clipped."""
        whole = np.clip(np.rint(values), self.low, self.high)
        if values.ndim == 1:
            return np.asarray(whole / self.unit, dtype=np.float32)
        return whole.astype(np.uint8)

    def within(self, values: Floats, beyond: float = 0.0) -> Floats:
        """Return values brought to within `beyond` times the range of the bounds."""
        room = beyond * np.ceil(self.high - self.low)
        return np.asarray(np.clip(values, self.low - room, self.high + room))


IMAGES = Space(0.0, 255.0, 255.0)
AUDIO = Space(-32768.0, 32767.0, 32768.0)


def space_of(sample: NDArray[Any]) -> Space:
    """Return the space of a sample or of its values: audio has one axis, an image three."""
    return AUDIO if sample.ndim == 1 else IMAGES

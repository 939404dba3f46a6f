"""What an operator works on."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.errors import SampleError

Kind: TypeAlias = Literal["image"]
"""What a sample is, and so which operators apply to it."""

KINDS: tuple[str, ...] = get_args(Kind)

Sample: TypeAlias = NDArray[Any]
"""A raw sample: an image is uint8 [height, width, channels], channels 1 or 3, levels 0 to 255."""


@dataclass(frozen=True)
class SampleSpec:
    """What is known of a sample before its values are looked at.

    `shape` of an image is (height, width, channels): at least 1 x 1, channels 1 or 3.
    Raises SampleError for any other shape.
    """

    kind: Kind
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.shape) != 3 or min(self.shape) < 1 or self.shape[2] not in (1, 3):
            raise SampleError(
                "an image has the shape (height, width, channels), at least 1 x 1 pixels, with 1 or "
                f"3 channels, not {self.shape}; bring it to that shape first"
            )

    @classmethod
    def of(cls, sample: Sample) -> "SampleSpec":
        """Return the spec of a sample. Raises SampleError for what is no valid sample."""
        if not isinstance(sample, np.ndarray):
            raise SampleError(f"a sample is a numpy array, not {type(sample).__name__}")
        if sample.dtype != np.uint8:
            raise SampleError(
                f"an image holds uint8 levels from 0 to 255, not {sample.dtype}; "
                "mutate raw samples, before any preprocessing"
            )
        return cls("image", sample.shape)

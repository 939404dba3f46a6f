"""What an operator works on."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.errors import SampleError
from edgeflare_mutators.ranges import SAMPLE_RATE

Kind: TypeAlias = Literal["image", "audio"]
"""What a sample is, and so which operators apply to it."""

KINDS: tuple[str, ...] = get_args(Kind)

Sample: TypeAlias = NDArray[Any]
"""A raw sample.

An image is uint8 [height, width, channels], channels 1 or 3, levels 0 to 255. Audio is mono float32 [samples] in
[-1, 1], of any length from 1.
"""


@dataclass(frozen=True)
class SampleSpec:
    """What is known of a sample before its values are looked at.

    `shape` of an image is (height, width, channels): at least 1 x 1, channels 1 or 3; of audio (samples,), at least
    one. `rate` is the sample rate of audio in Hz, from 1000 to 768,000, or None where it isn't known.
    Raises SampleError for any other shape or rate.
    """

    kind: Kind
    shape: tuple[int, ...]
    rate: int | None = None

    def __post_init__(self) -> None:
        if self.kind == "audio":
            self._check_audio()
        elif len(self.shape) != 3 or min(self.shape) < 1 or self.shape[2] not in (1, 3):
            raise SampleError(
                "an image has the shape (height, width, channels), at least 1 x 1 pixels, with 1 or "
                f"3 channels, not {self.shape}; bring it to that shape first"
            )

    @classmethod
    def of(cls, sample: Sample, rate: int | None = None) -> "SampleSpec":
        """Return the spec of a sample; `rate` is that of audio. Raises SampleError for what is no valid sample."""
        kind = kind_of(sample)
        if kind == "audio" and sample.dtype != np.float32:
            raise SampleError(
                f"audio holds float32 values from -1 to 1, not {sample.dtype}; mutate raw samples, before any "
                "front end"
            )
        if kind == "image" and sample.dtype != np.uint8:
            raise SampleError(
                f"an image holds uint8 levels from 0 to 255, not {sample.dtype}; "
                "mutate raw samples, before any preprocessing"
            )
        return cls(kind, sample.shape, rate if kind == "audio" else None)

    def _check_audio(self) -> None:
        if len(self.shape) != 1 or self.shape[0] < 1:
            raise SampleError(
                f"audio is mono and has the shape (samples,), at least one, not {self.shape}; "
                "mix its channels first"
            )
        if self.rate is not None and not SAMPLE_RATE.low <= self.rate <= SAMPLE_RATE.high:
            raise SampleError(
                f"the sample rate of audio is {SAMPLE_RATE.low} to {SAMPLE_RATE.high} Hz, not {self.rate}; resample "
                "it first"
            )


def kind_of(sample: Sample) -> Kind:
    """Return what a sample is by its axes: one is audio, anything else is to be an image.

    Raises SampleError for what is no array.
    """
    if not isinstance(sample, np.ndarray):
        raise SampleError(f"a sample is a numpy array, not {type(sample).__name__}")
    return "audio" if sample.ndim == 1 else "image"

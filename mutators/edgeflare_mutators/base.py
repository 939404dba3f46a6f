"""The base of mutation operators: samples, ranges of parameters, draw and apply."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.errors import OperatorOutputError, ParamsError, RangeError, SampleError

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
            # not Generator.uniform, whose product and sum are fused on some processors
            return self.low + (self.high - self.low) * float(rng.random())
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
"""The sample rate of audio in Hz, for an operator that needs it: taken from the spec."""


Kind: TypeAlias = Literal["image", "audio"]
"""The kind of a sample, which determines the operators that apply to it."""

KINDS: tuple[str, ...] = get_args(Kind)

Sample: TypeAlias = NDArray[Any]
"""A raw sample.

An image is uint8 [height, width, channels], channels 1 or 3, levels 0 to 255. Audio is mono float32
[samples] in [-1, 1], of any length from 1.
"""


@dataclass(frozen=True)
class SampleSpec:
    """Size and kind of a sample, without its values.

    `shape` of an image is (height, width, channels): at least 1 x 1, channels 1 or 3; of audio
    (samples,), at least one. `rate` is the sample rate of audio in Hz, from 1000 to 768,000, or
    None where it isn't known. Raises SampleError for any other shape or rate.
    """

    kind: Kind
    shape: tuple[int, ...]
    rate: int | None = None

    def __post_init__(self) -> None:
        if self.kind == "audio":
            self._check_audio()
        elif len(self.shape) != 3 or min(self.shape) < 1 or self.shape[2] not in (1, 3):
            raise SampleError(
                "an image has the shape (height, width, channels), at least 1 x 1 pixels, with 1 "
                f"or 3 channels, not {self.shape}; bring it to that shape first"
            )

    @classmethod
    def of(cls, sample: Sample, rate: int | None = None) -> "SampleSpec":
        """Return a sample's spec; `rate` is that of audio. Raises SampleError if it is invalid."""
        kind = kind_of(sample)
        if kind == "audio" and sample.dtype != np.float32:
            raise SampleError(
                f"audio holds float32 values from -1 to 1, not {sample.dtype}; mutate raw samples, "
                "before any front end"
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
                f"the sample rate of audio is {SAMPLE_RATE.low} to {SAMPLE_RATE.high} Hz, not "
                f"{self.rate}; resample it first"
            )


def kind_of(sample: Sample) -> Kind:
    """Return what a sample is by its axes: one is audio, anything else is to be an image.

    Raises SampleError for what is no array.
    """
    if not isinstance(sample, np.ndarray):
        raise SampleError(f"a sample is a numpy array, not {type(sample).__name__}")
    return "audio" if sample.ndim == 1 else "image"


Params: TypeAlias = dict[str, Any]
"""Drawn parameters by name: plain numbers that JSON keeps exactly."""


class Operator(ABC):
    """A mutation operator: two pure functions, `draw` and `apply`.

    A subclass states `name` (kebab-case), `limits` (what its step can do, one `Range` a parameter)
    and, if it isn't for images, `kind`; and it writes `_apply`. This base checks what goes in and
    what comes out. A subclass that makes noise has the parameter `SEED` and seeds a generator of
    its own with it, so that the same parameters always give the same sample. One that needs the
    rate of audio has the parameter `SAMPLE_RATE`. One that makes audio longer or shorter says so:
    `keeps_length = False`.

    `ranges` are the intervals that `draw` draws from: the limits, narrowed by the keyword arguments
    of the constructor (name=(low, high)). `apply` accepts parameters anywhere within the limits, so
    that a recorded mutation replays whatever ranges it was drawn from. Raises RangeError for a
    range beyond the limits or one of an unknown parameter.
    """

    name: str
    kind: Kind = "image"
    keeps_length: bool = True
    limits: tuple[Range, ...]
    ranges: tuple[Range, ...]

    def __init__(self, **ranges: tuple[float, float]) -> None:
        unknown = ranges.keys() - {limit.name for limit in self.limits}
        if unknown:
            raise RangeError(f"{self.name} has no parameter {min(unknown)!r}; {self._parameters()}")
        self.ranges = tuple(
            limit.narrowed(*ranges[limit.name]) if limit.name in ranges else limit
            for limit in self.limits
        )

    def draw(self, rng: np.random.Generator, spec: SampleSpec) -> Params:
        """Return parameters for a sample of this spec: one uniform draw a range, in their order.

        The sample rate is the spec's and isn't drawn. Raises SampleError where the operator is of
        another kind than the sample, or needs a rate that the spec does not have.
        """
        self._check_kind(spec)
        return {
            drawn.name: self._rate(spec) if drawn.name == SAMPLE_RATE.name else drawn.draw(rng)
            for drawn in self.ranges
        }

    def apply(self, sample: Sample, params: Mapping[str, Any]) -> Sample:
        """Return the mutated sample: a new array of the same shape and dtype.

        Audio is clipped to [-1, 1]; only an operator that does not keep its length changes that.
        The input is never written to. Raises SampleError for an invalid sample, ParamsError for
        parameters that are missing, unknown or outside the limits, and OperatorOutputError where
        the operator's own step returns no valid sample.
        """
        self._check_kind(SampleSpec.of(sample))
        self._check_params(params)
        if self.kind == "audio" and not np.isfinite(sample).all():
            raise SampleError("audio holds NaN or infinite values; repair or leave out that sample")
        locked = np.ascontiguousarray(sample).view()
        locked.flags.writeable = False
        result = self._apply(locked, dict(params))
        self._check_result(sample, result)
        if self.kind == "audio":
            return np.array(np.clip(result, -1, 1), order="C")
        return np.array(result, order="C")

    def check_libraries(self) -> None:  # noqa: B027
        """Raise MutationError where a library that this operator needs is missing."""

    @abstractmethod
    def _apply(self, sample: Sample, params: Params) -> Sample:
        """Return the mutated sample; `sample` is read-only and valid, `params` are complete."""

    def _check_kind(self, spec: SampleSpec) -> None:
        if spec.kind != self.kind:
            raise SampleError(f"{self.name} mutates samples of kind {self.kind}, not {spec.kind}")

    def _rate(self, spec: SampleSpec) -> int:
        if spec.rate is None:
            raise SampleError(
                f"{self.name} needs the sample rate of the audio; state it in the spec"
            )
        return spec.rate

    def _check_result(self, sample: Sample, result: Any) -> None:
        if not isinstance(result, np.ndarray) or result.dtype != sample.dtype:
            raise OperatorOutputError(
                f"{self.name} returned {getattr(result, 'dtype', type(result).__name__)}, "
                f"where a {sample.dtype} array was due; this is a defect of the operator"
            )
        may_differ = self.kind == "audio" and not self.keeps_length
        if result.shape != sample.shape and not (may_differ and result.ndim == 1 and result.size):
            raise OperatorOutputError(
                f"{self.name} changed the shape {sample.shape} to {result.shape}; "
                "this is a defect of the operator"
            )
        if self.kind == "audio" and not np.isfinite(result).all():
            raise OperatorOutputError(
                f"{self.name} returned NaN or infinite values; this is a defect of the operator"
            )

    def _check_params(self, params: Mapping[str, Any]) -> None:
        unknown = params.keys() - {limit.name for limit in self.limits}
        if unknown:
            raise ParamsError(
                f"{self.name} has no parameter {min(unknown)!r}; {self._parameters()}"
            )
        for limit in self.limits:
            if limit.name not in params:
                raise ParamsError(f"{self.name} needs the parameter {limit.name!r}")
            try:
                limit.check(params[limit.name])
            except ParamsError as error:
                raise ParamsError(f"{self.name}: {error}") from None

    def _parameters(self) -> str:
        return f"it has {', '.join(limit.name for limit in self.limits) or 'none'}"

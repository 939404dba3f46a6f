"""What a mutation operator is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from edgeflare_mutators.errors import OperatorOutputError, ParamsError, RangeError, SampleError
from edgeflare_mutators.ranges import SAMPLE_RATE, Range
from edgeflare_mutators.sample import Kind, Sample, SampleSpec

Params: TypeAlias = dict[str, Any]
"""Drawn parameters by name: plain numbers that JSON keeps exactly."""


class Operator(ABC):
    """A mutation operator: two pure functions, `draw` and `apply`.

    A subclass states `name` (kebab-case), `limits` (what its step can do, one `Range` a parameter)
    and, if it isn't for images, `kind`; and it writes `_apply`. This base checks what goes in and
    what comes out. A subclass that makes noise has the parameter `SEED` and seeds a generator of
    its own with it, so that the same parameters always give the same sample. One that needs the rate of
    audio has the parameter `SAMPLE_RATE`. One that makes audio longer or shorter says so: `keeps_length = False`.

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

        The sample rate is the spec's and isn't drawn. Raises SampleError where the operator is of another
        kind than the sample, or needs a rate that the spec does not have.
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

"""Mutation operators: draw parameters, then apply them; any mutation replays exactly from its record."""

from edgeflare_mutators.base import Operator, Params
from edgeflare_mutators.blur import AverageBlur, GaussianBlur, MedianBlur
from edgeflare_mutators.errors import (
    MutationError,
    MutatorLoadError,
    OperatorOutputError,
    ParamsError,
    RangeError,
    RecordError,
    SampleError,
    UnknownOperatorError,
)
from edgeflare_mutators.mutation import Mutation, mutate, replay
from edgeflare_mutators.noise import GaussianNoise, MultiplicativeNoise, RandomPixelChange
from edgeflare_mutators.ranges import SEED, Range
from edgeflare_mutators.reference import (
    SaltAndPepper,
    WrappedGaussianNoise,
    WrappedMultiplicativeNoise,
    reference_pool,
    wrapping,
)
from edgeflare_mutators.registry import default_pool, get, operators
from edgeflare_mutators.sample import Kind, Sample, SampleSpec

__all__ = [
    "SEED",
    "AverageBlur",
    "GaussianBlur",
    "GaussianNoise",
    "Kind",
    "MedianBlur",
    "MultiplicativeNoise",
    "Mutation",
    "MutationError",
    "MutatorLoadError",
    "Operator",
    "OperatorOutputError",
    "Params",
    "ParamsError",
    "RandomPixelChange",
    "Range",
    "RangeError",
    "RecordError",
    "SaltAndPepper",
    "Sample",
    "SampleError",
    "SampleSpec",
    "UnknownOperatorError",
    "WrappedGaussianNoise",
    "WrappedMultiplicativeNoise",
    "default_pool",
    "get",
    "mutate",
    "operators",
    "reference_pool",
    "replay",
    "wrapping",
]

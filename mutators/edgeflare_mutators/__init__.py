"""Mutation operators: draw parameters, then apply them; any mutation replays exactly from its record."""

from edgeflare_mutators.audio_sound import BandPass, Gain, Room, WhiteNoise
from edgeflare_mutators.audio_time import PitchShift, Tempo, TimeShift, TimeStretch
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
from edgeflare_mutators.natural import Corruption
from edgeflare_mutators.natural_aim import Crop, Rotation, Shift
from edgeflare_mutators.natural_camera import Jpeg, NaturalBlur, SensorNoise
from edgeflare_mutators.natural_light import Brightness, Contrast, Haze
from edgeflare_mutators.noise import GaussianNoise, MultiplicativeNoise, RandomPixelChange
from edgeflare_mutators.ranges import SAMPLE_RATE, SEED, Range
from edgeflare_mutators.reference import (
    SaltAndPepper,
    WrappedGaussianNoise,
    WrappedMultiplicativeNoise,
    reference_pool,
    wrapping,
)
from edgeflare_mutators.registry import corruptions, default_pool, get, operators
from edgeflare_mutators.sample import Kind, Sample, SampleSpec, kind_of

__all__ = [
    "SAMPLE_RATE",
    "SEED",
    "AverageBlur",
    "BandPass",
    "Brightness",
    "Contrast",
    "Corruption",
    "Crop",
    "Gain",
    "GaussianBlur",
    "GaussianNoise",
    "Haze",
    "Jpeg",
    "Kind",
    "MedianBlur",
    "MultiplicativeNoise",
    "Mutation",
    "MutationError",
    "MutatorLoadError",
    "NaturalBlur",
    "Operator",
    "OperatorOutputError",
    "Params",
    "ParamsError",
    "PitchShift",
    "RandomPixelChange",
    "Range",
    "RangeError",
    "RecordError",
    "Room",
    "Rotation",
    "SaltAndPepper",
    "Sample",
    "SampleError",
    "SampleSpec",
    "SensorNoise",
    "Shift",
    "Tempo",
    "TimeShift",
    "TimeStretch",
    "UnknownOperatorError",
    "WhiteNoise",
    "WrappedGaussianNoise",
    "WrappedMultiplicativeNoise",
    "corruptions",
    "default_pool",
    "get",
    "kind_of",
    "mutate",
    "operators",
    "reference_pool",
    "replay",
    "wrapping",
]

"""Operators by name (DFLARE's, natural ones, the user's), and mutations as exact records."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from edgeflare_mutators import audio, camera, dflare, photo, plugins, weather
from edgeflare_mutators.base import Kind, Operator, Params, Sample, SampleSpec
from edgeflare_mutators.errors import MutatorLoadError, RecordError, UnknownOperatorError
from edgeflare_mutators.natural import Corruption

_O = TypeVar("_O", bound=Operator)


def _by_name(*operators: _O) -> dict[str, _O]:
    return {operator.name: operator for operator in operators}


_TABLE_3 = _by_name(
    dflare.RandomPixelChange(),
    dflare.GaussianNoise(),
    dflare.MultiplicativeNoise(),
    dflare.AverageBlur(),
    dflare.GaussianBlur(),
    dflare.MedianBlur(),
)
_REFERENCE = _by_name(
    dflare.SaltAndPepper(), dflare.WrappedGaussianNoise(), dflare.WrappedMultiplicativeNoise()
)
_CORRUPTIONS: dict[str, Corruption] = _by_name(
    photo.Brightness(),
    photo.Contrast(),
    photo.Haze(),
    photo.NaturalBlur(),
    photo.SensorNoise(),
    photo.Jpeg(),
    photo.Rotation(),
    photo.Shift(),
    photo.Crop(),
)
_COMMON: dict[str, Corruption] = _CORRUPTIONS | _by_name(
    photo.Saturation(),
    photo.Scale(),
    camera.ShotNoise(),
    camera.ImpulseNoise(),
    camera.DefocusBlur(),
    camera.GlassBlur(),
    camera.MotionBlur(),
    camera.ZoomBlur(),
    camera.Elastic(),
    camera.Pixelate(),
    weather.Snow(),
    weather.Spatter(),
)
_SECTION_6_1: dict[str, Corruption] = _by_name(
    audio.TimeStretch(), audio.PitchShift(), audio.TimeShift(), audio.Gain()
)
_AUDIO: dict[str, Corruption] = _SECTION_6_1 | _by_name(
    audio.WhiteNoise(), audio.Room(), audio.BandPass(), audio.Tempo()
)
_BUILT_IN: dict[str, Operator] = _TABLE_3 | _REFERENCE | _COMMON | _AUDIO


def default_pool(kind: Kind = "image") -> dict[str, Operator]:
    """Return the operators that a search uses by default, by name.

    For images: random-pixel-change, gaussian-noise, multiplicative-noise, average-blur,
    gaussian-blur, median-blur, the order of table 3. For audio: time-stretch, pitch-shift,
    time-shift, gain, the order of section 6.1. A user's operator is never among them.
    """
    return dict(_TABLE_3 if kind == "image" else _SECTION_6_1)


def corruptions(kind: Kind = "image") -> dict[str, Corruption]:
    """Return the natural corruptions of a kind that a search draws from by default, by name.

    Of images, none of which is in the default pool: by light brightness, contrast, haze; by the
    camera natural-blur, sensor-noise, jpeg; by where it points rotation, shift, crop. Of audio: the
    default pool's, and white-noise, room, band-pass, tempo; only tempo changes the length.
    """
    return dict(_CORRUPTIONS if kind == "image" else _AUDIO)


def common_corruptions(kind: Kind = "image") -> dict[str, Corruption]:
    """Return every built-in natural corruption of a kind, by name, from which a survey draws.

    Of images: `corruptions` and what else ImageNet-C has (Hendrycks and Dietterich, Benchmarking
    Neural Network Robustness to Common Corruptions and Perturbations, ICLR 2019): saturation, scale,
    shot-noise, impulse-noise, defocus-blur, glass-blur, motion-blur, zoom-blur, elastic, pixelate,
    snow, spatter. Its frost is missing: it is made of photographs. Of audio: `corruptions`.
    """
    return dict(_COMMON if kind == "image" else _AUDIO)


def operators(kind: Kind = "image", *, skip_broken: bool = False) -> dict[str, Operator]:
    """Return every operator of a kind: the built-in ones, then the user's, sorted by name.

    The user's operators are entry points of installed distributions, in the group
    ``edgeflare.mutators``. Raises MutatorLoadError where one of them can't be loaded, or has a name
    that is taken; with `skip_broken` such a one is left out.
    """
    users = []
    for name in plugins.names():
        try:
            users.append(_users(name))
        except MutatorLoadError:
            if not skip_broken:
                raise
    built_in = {name: operator for name, operator in _BUILT_IN.items() if operator.kind == kind}
    return built_in | {user.name: user for user in users if user.kind == kind}


def _users(name: str) -> Operator:
    if name in _BUILT_IN:
        raise MutatorLoadError(
            f"the mutation operator {name!r} of {plugins.origin(name)} has the name of a "
            "built-in one; rename it, or uninstall that distribution"
        )
    return plugins.load(name)


def get(name: str) -> Operator:
    """Return the operator of this name, of any kind; no other operator of the user is loaded.

    A built-in operator's name always means that one. Raises UnknownOperatorError where no
    operator has the name, and MutatorLoadError where a user's operator has it and can't be loaded.
    """
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    try:
        return plugins.load(name)
    except KeyError:
        known = ", ".join((*_BUILT_IN, *plugins.names()))
        raise UnknownOperatorError(
            f"there is no mutation operator {name!r}; there are {known}"
        ) from None


@dataclass(frozen=True)
class Mutation:
    """One application of an operator: its name and the parameters that were drawn."""

    operator: str
    params: Params

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object, from which `from_json` makes an equal mutation."""
        return {"operator": self.operator, "params": dict(self.params)}

    @classmethod
    def from_json(cls, data: Any) -> "Mutation":
        """Return what `to_json` wrote. Raises RecordError for anything else."""
        match data:
            case {"operator": str(operator), "params": dict(params), **rest} if not rest:
                return cls(operator, dict(params))
            case _:
                raise RecordError(
                    "a recorded mutation is a JSON object of 'operator', a name, and 'params', an "
                    f"object, not {data!r:.80}"
                )


def mutate(sample: Sample, mutation: Mutation) -> Sample:
    """Return the mutated sample, a new array; the same sample and mutation give the same bits.

    Raises UnknownOperatorError, MutatorLoadError, and what `Operator.apply` raises.
    """
    return get(mutation.operator).apply(sample, mutation.params)


def replay(sample: Sample, mutations: Iterable[Mutation]) -> Sample:
    """Return the sample, a new array, after all mutations in their order. Raises as `mutate`."""
    SampleSpec.of(sample)
    mutated: Sample = np.array(sample)
    for mutation in mutations:
        mutated = mutate(mutated, mutation)
    return mutated

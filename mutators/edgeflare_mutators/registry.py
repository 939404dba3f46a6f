"""Operators by name: the paper's table 3, those of its authors' code, natural corruptions, audio's, the user's."""

from edgeflare_mutators import plugins
from edgeflare_mutators.audio_sound import BandPass, Gain, Room, WhiteNoise
from edgeflare_mutators.audio_time import PitchShift, Tempo, TimeShift, TimeStretch
from edgeflare_mutators.base import Operator
from edgeflare_mutators.blur import AverageBlur, GaussianBlur, MedianBlur
from edgeflare_mutators.errors import MutatorLoadError, UnknownOperatorError
from edgeflare_mutators.natural import Corruption
from edgeflare_mutators.natural_aim import Crop, Rotation, Shift
from edgeflare_mutators.natural_camera import Jpeg, NaturalBlur, SensorNoise
from edgeflare_mutators.natural_light import Brightness, Contrast, Haze
from edgeflare_mutators.noise import GaussianNoise, MultiplicativeNoise, RandomPixelChange
from edgeflare_mutators.reference import (
    SaltAndPepper,
    WrappedGaussianNoise,
    WrappedMultiplicativeNoise,
)
from edgeflare_mutators.sample import Kind

_TABLE_3: dict[str, Operator] = {
    operator.name: operator
    for operator in (
        RandomPixelChange(),
        GaussianNoise(),
        MultiplicativeNoise(),
        AverageBlur(),
        GaussianBlur(),
        MedianBlur(),
    )
}

_REFERENCE: dict[str, Operator] = {
    operator.name: operator
    for operator in (SaltAndPepper(), WrappedGaussianNoise(), WrappedMultiplicativeNoise())
}

_CORRUPTIONS: dict[str, Corruption] = {
    corruption.name: corruption
    for corruption in (
        Brightness(),
        Contrast(),
        Haze(),
        NaturalBlur(),
        SensorNoise(),
        Jpeg(),
        Rotation(),
        Shift(),
        Crop(),
    )
}

_SECTION_6_1: dict[str, Corruption] = {
    corruption.name: corruption for corruption in (TimeStretch(), PitchShift(), TimeShift(), Gain())
}

_AUDIO: dict[str, Corruption] = _SECTION_6_1 | {
    corruption.name: corruption for corruption in (WhiteNoise(), Room(), BandPass(), Tempo())
}

_BUILT_IN = _TABLE_3 | _REFERENCE | _CORRUPTIONS | _AUDIO


def default_pool(kind: Kind = "image") -> dict[str, Operator]:
    """Return the operators that a search uses unless it is told others, by name.

    For images: random-pixel-change, gaussian-noise, multiplicative-noise, average-blur,
    gaussian-blur, median-blur, the order of table 3. For audio: time-stretch, pitch-shift, time-shift, gain, the
    order of section 6.1. A user's operator is never among them.
    """
    return dict(_TABLE_3 if kind == "image" else _SECTION_6_1)


def corruptions(kind: Kind = "image") -> dict[str, Corruption]:
    """Return the natural corruptions of a kind, by name.

    Of images, none of which is in the default pool: by light brightness, contrast, haze; by the camera
    natural-blur, sensor-noise, jpeg; by where it points rotation, shift, crop. Of audio: the default pool's, and
    white-noise, room, band-pass, tempo; only tempo changes the length.
    """
    return dict(_CORRUPTIONS if kind == "image" else _AUDIO)


def operators(kind: Kind = "image") -> dict[str, Operator]:
    """Return every operator of a kind: the built-in ones, then the user's in the order of their names.

    The user's operators are entry points of installed distributions, in the group
    ``edgeflare.mutators``. Raises MutatorLoadError where one of them can't be loaded, or has a name
    that is taken.
    """
    users = []
    for name in plugins.names():
        if name in _BUILT_IN:
            raise MutatorLoadError(
                f"the mutation operator {name!r} of {plugins.origin(name)} has the name of a "
                "built-in one; rename it, or uninstall that distribution"
            )
        users.append(plugins.load(name))
    built_in = {name: operator for name, operator in _BUILT_IN.items() if operator.kind == kind}
    return built_in | {user.name: user for user in users if user.kind == kind}


def get(name: str) -> Operator:
    """Return the operator of this name, of any kind; of the user's operators only this one is loaded.

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

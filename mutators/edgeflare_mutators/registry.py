"""Operators by name, and a mutation that was made, as a record that replays exactly.

The paper's table 3, those of its authors' code, natural corruptions, audio's, the user's.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgeflare_mutators import plugins
from edgeflare_mutators.audio import (
    BandPass,
    Gain,
    PitchShift,
    Room,
    Tempo,
    TimeShift,
    TimeStretch,
    WhiteNoise,
)
from edgeflare_mutators.base import Kind, Operator, Params, Sample, SampleSpec
from edgeflare_mutators.dflare import (
    AverageBlur,
    GaussianBlur,
    GaussianNoise,
    MedianBlur,
    MultiplicativeNoise,
    RandomPixelChange,
    SaltAndPepper,
    WrappedGaussianNoise,
    WrappedMultiplicativeNoise,
)
from edgeflare_mutators.errors import MutatorLoadError, RecordError, UnknownOperatorError
from edgeflare_mutators.natural import Corruption
from edgeflare_mutators.photo import (
    Brightness,
    Contrast,
    Crop,
    Haze,
    Jpeg,
    NaturalBlur,
    Rotation,
    SensorNoise,
    Shift,
)

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

    Raises UnknownOperatorError or MutatorLoadError where the operator is not to be had, and what
    `Operator.apply` raises.
    """
    return get(mutation.operator).apply(sample, mutation.params)


def replay(sample: Sample, mutations: Iterable[Mutation]) -> Sample:
    """Return the sample, a new array, after all mutations in their order. Raises as `mutate`."""
    SampleSpec.of(sample)
    mutated: Sample = np.array(sample)
    for mutation in mutations:
        mutated = mutate(mutated, mutation)
    return mutated

"""Operators on the time and pitch of audio: three of the paper's (section 6.1), and tempo.

Each is done by audiomentations, with its default method and its default range.
Differences from audiomentations: parameters come from our generator; the identity is never drawn.

The same parameters give the same bits on every call and thread of one machine. Time stretch, pitch shift and tempo are
made of Fourier transforms in floating point, so that another CPU, or another version of the library, may round the last
digits otherwise: a triggering input is stored as samples, never as its parameters alone.
"""

from edgeflare_mutators.audio_library import ByLibrary, transformed
from edgeflare_mutators.base import Params
from edgeflare_mutators.natural import percent
from edgeflare_mutators.ranges import SAMPLE_RATE, Range
from edgeflare_mutators.sample import Sample

_METHOD = "signalsmith_stretch"


class TimeStretch(ByLibrary):
    """Play the clip at `speed` times its speed, at the same pitch, and keep its length.

    What is missing at the end is filled with zeros, what is too long is cut, as audiomentations' default does.
    A speed below 0.5 isn't taken: there the library draws random numbers of its own.
    """

    name = "time-stretch"
    limits = (Range("speed", 0.5, 10.0), SAMPLE_RATE)
    moving = ("speed",)
    neutral = 1.0
    _parameter = "rate"

    def __init__(self, speed: tuple[float, float] = (0.8, 1.25)) -> None:
        super().__init__(speed=speed)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        if params["speed"] == self.neutral:
            return sample
        stretched = transformed(
            "TimeStretch",
            sample,
            params["sample_rate"],
            {"rate": params["speed"]},
            leave_length_unchanged=self.keeps_length,
            method=_METHOD,
        )
        return stretched if stretched.size else sample[:1]

    def _words(self, params: Params) -> str:
        return f"stretched to {percent(params['speed'])} of its speed"


class Tempo(TimeStretch):
    """Play the clip at `speed` times its speed, at the same pitch; its length changes with it, to one sample at least.

    Not of the paper's four: audiomentations' TimeStretch without its padding.
    """

    name = "tempo"
    keeps_length = False

    def _words(self, params: Params) -> str:
        return f"played at {percent(params['speed'])} of its speed"


class PitchShift(ByLibrary):
    """Raise or lower the pitch by `semitones`, at the same speed and length."""

    name = "pitch-shift"
    limits = (Range("semitones", -24.0, 24.0), SAMPLE_RATE)
    moving = ("semitones",)

    def __init__(self, semitones: tuple[float, float] = (-4.0, 4.0)) -> None:
        super().__init__(semitones=semitones)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        if params["semitones"] == self.neutral:
            return sample
        return transformed(
            "PitchShift",
            sample,
            params["sample_rate"],
            {"num_semitones": params["semitones"]},
            method=_METHOD,
        )

    def _words(self, params: Params) -> str:
        return f"pitch {params['semitones']:+.3g} semitones"


class TimeShift(ByLibrary):
    """Move the clip later by `share` of its length (below 0: earlier); what leaves at one end comes in at the other.

    Where the ends meet, it fades out and in over 5 ms each, as audiomentations' Shift does by default. Any share but 0
    moves it by at least one sample.
    """

    name = "time-shift"
    limits = (Range("share", -0.5, 0.5), SAMPLE_RATE)
    moving = ("share",)

    def __init__(self, share: tuple[float, float] = (-0.5, 0.5)) -> None:
        super().__init__(share=share)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        share = params["share"]
        places = max(1, round(abs(share) * sample.size)) * (1 if share > 0 else -1)
        if share == self.neutral or sample.size == 1:
            return sample
        return transformed(
            "Shift", sample, params["sample_rate"], {"shift_amount": places}, shift_unit="samples"
        )

    def _words(self, params: Params) -> str:
        way = "later" if params["share"] >= 0 else "earlier"
        return f"moved {way} by {percent(abs(params['share']))} of its length"

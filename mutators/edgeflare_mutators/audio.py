"""Natural corruptions of a recording: three operators on time and pitch of the paper's (section
6.1) and tempo; gain, the paper's fourth, and noise, room and band-pass.

Noise and room are made here, with numpy alone; all others by audiomentations, with its default
methods and ranges. Its transforms draw from Python's and numpy's global generators. Here none does:
each call has a transform of its own, whose parameters are set and frozen before it runs. So calls
on several threads don't meet, and no global generator is seeded or consumed. Differences from
audiomentations: parameters come from our generator; the identity is never drawn.

The same parameters give the same bits on every call and thread of one machine. Time stretch, pitch
shift and tempo (Fourier transforms in floating point), room and band-pass may round the last digits
otherwise on another CPU, or with another version of the library: a triggering input is stored as
samples, never as its parameters alone.
"""

import math
import warnings
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.base import SAMPLE_RATE, SEED, Params, Range, Sample
from edgeflare_mutators.dflare import generator
from edgeflare_mutators.errors import MutationError
from edgeflare_mutators.natural import Corruption, percent


class ByLibrary(Corruption):
    """A corruption of audio that audiomentations makes."""

    kind = "audio"

    def check_libraries(self) -> None:
        """Raise MutationError where audiomentations is missing."""
        _audiomentations()


def transformed(
    name: str, sample: Sample, rate: int, parameters: dict[str, Any], **options: Any
) -> Sample:
    """Return what the transform of this name makes of a sample: float32 [samples].

    `parameters` are those that it would draw, `options` those of its constructor. Raises
    MutationError where audiomentations is missing.
    """
    transform = getattr(_audiomentations(), name)(p=1.0, **options)
    transform.parameters = {"should_apply": True, **parameters}
    transform.freeze_parameters()
    result: Sample = np.asarray(transform(np.array(sample), rate), np.float32)
    return result


_IMPORTING = Lock()  # the filters of warnings are the process's, not the thread's


@lru_cache(maxsize=1)
def _audiomentations() -> Any:
    try:
        with _IMPORTING, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import audiomentations  # type: ignore[import-untyped]
    except (ImportError, OSError) as error:
        raise MutationError(
            f"mutating audio needs audiomentations, which can't be imported here ({error}); "
            "install it with `pip install 'edgeflare[audio]'`"
        ) from error
    return audiomentations


_METHOD = "signalsmith_stretch"


class TimeStretch(ByLibrary):
    """Play the clip at `speed` times its speed, at the same pitch, and keep its length.

    What is missing at the end is filled with zeros, what is too long is cut, as audiomentations'
    default does. A speed below 0.5 isn't taken: there the library draws random numbers of its own.
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
    """Play the clip at `speed` times its speed, at the same pitch.

    Its length changes with it, to one sample at least.

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
    """Move the clip later by `share` of its length (below 0: earlier).

    What leaves at one end comes in at the other.

    Where the ends meet, it fades out and in over 5 ms each, as audiomentations' Shift does by
    default. Any share but 0 moves it by at least one sample.
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


_QUIETEST = 1e-3
_SIXTY_DECIBELS = math.log(1000)
_HIGHEST_CENTER = 0.8


class Gain(ByLibrary):
    """Make the clip louder by `decibels` (below 0: quieter), clipped to [-1, 1]."""

    name = "gain"
    limits = (Range("decibels", -60.0, 60.0),)
    moving = ("decibels",)

    def __init__(self, decibels: tuple[float, float] = (-12.0, 12.0)) -> None:
        super().__init__(decibels=decibels)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        ratio = float(np.float32(10 ** (params["decibels"] / 20)))
        return transformed("Gain", sample, int(SAMPLE_RATE.low), {"amplitude_ratio": ratio})

    def _words(self, params: Params) -> str:
        return f"volume {params['decibels']:+.3g} dB"


class WhiteNoise(Corruption):
    """Add white Gaussian noise of `level` times the clip's root mean square.

    A level of 0.1 is 20 dB of SNR, 0.01 is 40 dB.

    The clip's root mean square counts as at least 0.001 of full scale, so that silence gets noise
    as well.

    Differences from audiomentations' AddGaussianSNR, whose range of 5 dB and quieter this has: the
    level is uniform, not the decibels, so that the strength goes down to nothing.
    """

    name = "white-noise"
    kind = "audio"
    limits = (Range("level", 0.0, 10.0), SEED)
    moving = ("level",)

    def __init__(self, level: tuple[float, float] = (0.0, 0.56)) -> None:
        super().__init__(level=level)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        noise = generator(params).standard_normal(sample.shape, np.float32)
        deviation = params["level"] * max(_root_mean_square(sample), _QUIETEST)
        noisy: Sample = sample + np.float32(deviation) * noise
        return noisy

    def _words(self, params: Params) -> str:
        if params["level"] == 0:
            return "no noise"
        return f"noise at {-20 * math.log10(params['level']):.3g} dB SNR"


class Room(Corruption):
    """Mix the clip, by the share `wet`, with its reverberation in a room.

    `decay` is the room's reverberation time in seconds.

    The room is Polack's model (La transmission de l'energie sonore dans les salles, 1988), after
    Moorer (About This Reverberation Business, 1979): an impulse response of white Gaussian noise,
    from `seed`, that decays by 60 dB in `decay` seconds, of energy 1. The length is kept: what
    still sounds after the end is cut.

    Differences from audiomentations' RoomSimulator, whose range of reverberation times this has: no
    room's geometry, and no further library.
    """

    name = "room"
    kind = "audio"
    limits = (Range("wet", 0.0, 1.0), Range("decay", 0.01, 10.0), SEED, SAMPLE_RATE)
    moving = ("wet",)

    def __init__(
        self, wet: tuple[float, float] = (0.0, 0.7), decay: tuple[float, float] = (0.15, 0.8)
    ) -> None:
        super().__init__(wet=wet, decay=decay)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        time = np.arange(max(1, round(params["decay"] * params["sample_rate"])))
        response = generator(params).standard_normal(time.size)
        response *= np.exp(-_SIXTY_DECIBELS * time / time.size)
        response /= np.sqrt(np.square(response).sum())
        return _mixed(sample, _convolved(sample, response), params["wet"])

    def _words(self, params: Params) -> str:
        return f"{percent(params['wet'])} of a room that sounds for {params['decay']:.2g} s"


class BandPass(ByLibrary):
    """Mix the clip, by the share `wet`, with itself between two frequencies.

    That is what a telephone or a small speaker does.

    The band is `width` times its `center` (Hz) wide, and falls by 6 times `order` dB an octave
    beyond (Butterworth). A center above 0.8 of half the sample rate counts as that.

    Differences from audiomentations' BandPassFilter, which filters and whose ranges these are: the
    center is uniform in Hz, not on the mel scale; the share is ours, so that the strength goes down
    to nothing.
    """

    name = "band-pass"
    limits = (
        Range("wet", 0.0, 1.0),
        Range("center", 20.0, 20_000.0),
        Range("width", 0.1, 1.99),
        Range("order", 1, 8, "int"),
        SAMPLE_RATE,
    )
    moving = ("wet",)

    def __init__(
        self,
        wet: tuple[float, float] = (0.0, 1.0),
        center: tuple[float, float] = (200.0, 4000.0),
        width: tuple[float, float] = (0.5, 1.99),
        order: tuple[int, int] = (2, 4),
    ) -> None:
        super().__init__(wet=wet, center=center, width=width, order=order)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        center = _center(params)
        parameters = {
            "rolloff": 6 * params["order"],
            "center_freq": center,
            "bandwidth": center * params["width"],
        }
        filtered = transformed("BandPassFilter", sample, params["sample_rate"], parameters)
        return _mixed(sample, filtered, params["wet"])

    def _words(self, params: Params) -> str:
        center, half = _center(params), _center(params) * params["width"] / 2
        high = min(center + half, params["sample_rate"] / 2)
        return f"{percent(params['wet'])} of a band-pass from {center - half:.0f} to {high:.0f} Hz"


def _center(params: Params) -> float:
    return float(min(params["center"], _HIGHEST_CENTER * params["sample_rate"] / 2))


def _mixed(dry: Sample, other: Sample, wet: float) -> Sample:
    share = np.float32(wet)
    mixed: Sample = (1 - share) * dry + share * other
    return mixed


def _root_mean_square(sample: Sample) -> float:
    """Return it from an exact sum, so that its bits don't depend on the CPU."""
    return math.sqrt(math.fsum(np.square(sample, dtype=np.float64).tolist()) / sample.size)


def _convolved(sample: Sample, response: NDArray[np.float64]) -> Sample:
    """Return the convolution, cut to the sample's length: float32 [samples]."""
    size = 1 << (sample.size + response.size - 2).bit_length()
    product = np.fft.rfft(sample.astype(np.float64), size) * np.fft.rfft(response, size)
    result: Sample = np.fft.irfft(product, size)[: sample.size].astype(np.float32)
    return result

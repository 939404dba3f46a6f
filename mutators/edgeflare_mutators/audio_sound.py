"""Operators on the sound of audio: gain, the paper's fourth (section 6.1), and noise, room and band-pass.

Gain and band-pass are done by audiomentations, with its default ranges; noise and room here, with numpy alone.
The same parameters give the same bits on every call and thread of one machine. Room and band-pass may round the last
digits otherwise on another CPU; a triggering input is stored as samples.
"""

import math

import numpy as np
from numpy.typing import NDArray

from edgeflare_mutators.audio_library import ByLibrary, transformed
from edgeflare_mutators.base import Params
from edgeflare_mutators.natural import Corruption, percent
from edgeflare_mutators.noise import generator
from edgeflare_mutators.ranges import SAMPLE_RATE, SEED, Range
from edgeflare_mutators.sample import Sample

_QUIETEST = 1e-3
_SIXTY_DECIBELS = math.log(1000)
_HIGHEST_CENTER = 0.8


class Gain(ByLibrary):
    """Make the clip louder by `decibels` (below 0: quieter); what goes beyond [-1, 1] is clipped."""

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
    """Add white Gaussian noise of `level` times the clip's root mean square: 0.1 is 20 dB of SNR, 0.01 is 40 dB.

    The clip's root mean square counts as at least 0.001 of full scale, so that silence gets noise as well.

    Differences from audiomentations' AddGaussianSNR, whose range of 5 dB and quieter this has: the level is uniform,
    not the decibels, so that the strength goes down to nothing.
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
    """Mix the clip, by the share `wet`, with what a room of the reverberation time `decay` (seconds) makes of it.

    The room is Polack's model (La transmission de l'energie sonore dans les salles, 1988), after Moorer (About This
    Reverberation Business, 1979): an impulse response of white Gaussian noise, from `seed`, that decays by 60 dB in
    `decay` seconds, of energy 1. The length is kept: what still sounds after the end is cut.

    Differences from audiomentations' RoomSimulator, whose range of reverberation times this has: no room's geometry,
    and no further library.
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
    """Mix the clip, by the share `wet`, with itself between two frequencies, as a telephone or a small speaker does.

    The band is `width` times its `center` (Hz) wide, and falls by 6 times `order` dB an octave beyond (Butterworth).
    A center above 0.8 of half the sample rate counts as that.

    Differences from audiomentations' BandPassFilter, which filters and whose ranges these are: the center is uniform
    in Hz, not on the mel scale; the share is ours, so that the strength goes down to nothing.
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

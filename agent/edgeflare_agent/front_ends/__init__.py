"""A clip of audio becomes the values that its model takes.

Host and device run this same code, with the same bits as the result.

numpy's Fourier transform, logarithm, cosine and matrix product differ in their last bits from one
processor to the next. So nothing here depends on them: tables come from decimal arithmetic
(`tables`), the transform is a matrix product of whole numbers, exact in whatever order it is summed
(`spectrum`), and all else are the elementwise operations that IEEE 754 rounds alike everywhere (+ -
* / sqrt, float64), in an order that is written down.
"""

from functools import lru_cache
from typing import NamedTuple, Optional

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.audio_spec import AudioSpec, MelSpec
from edgeflare_agent.errors import RequestError
from edgeflare_agent.front_ends import tables
from edgeflare_agent.front_ends.elementary import natural_log
from edgeflare_agent.front_ends.spectrum import Spectrum

LOG10_E = 0.4342944819032518
_SILENCE = 2.0**-24


def front_end(clip: Array, spec: AudioSpec) -> Array:
    """Return steps 1 to 4 of `AudioSpec` for a clip.

    They are float64 [samples], [frames, bands] or [bands, frames].

    `clip` is mono float32 [samples] in [-1, 1]. Raises RequestError for anything else, and for a
    clip of any length that is too short for a single frame. Accuracy: on 32 recordings, the same
    steps with numpy's own transform and logarithm in float64 differ by no more than the one
    rounding to float32 that comes after (1.9e-6 in MLPerf Tiny's coefficients, which go to -124;
    6e-8 in Whisper's bands, which lie within 2).
    """
    samples = _normalized(_fitted(_checked(clip), spec), spec)
    if spec.mel is None:
        return samples
    frames = spec.mel.frames(samples.size)
    if frames < 1:
        raise RequestError(
            "a clip of {} samples is too short for a frame of {}".format(
                samples.size, spec.mel.window
            )
        )
    values = _mel_steps(spec.mel, spec.rate).values(samples, frames)
    return values if spec.axes == "bands-frames" else values.T


def get_ready(spec: AudioSpec) -> None:
    """Compute the tables of a spec before its first clip needs them, since that takes a while."""
    if spec.mel is not None:
        _mel_steps(spec.mel, spec.rate)


class _MelSteps(NamedTuple):
    """The steps of a MelSpec with their tables.

    `rows`, int64, and `weights`, float64 [n, bands], have the n-th bin of each band, as its row in
    the spectra, and what it counts: 0 where the band has fewer.
    """

    mel: MelSpec
    spectrum: Spectrum
    rows: Array
    weights: Array
    cosines: Optional[Array]

    def values(self, samples: Array, frames: int) -> Array:
        """Return float64 [bands or coefficients, frames]."""
        bands = np.zeros((self.mel.bands, frames))
        for places, spectra in self.spectrum.blocks(samples, frames):
            bands[:, places] = self._banded(spectra)
        bands = self._logarithm(bands)
        if self.mel.dynamic_range is not None:
            bands = np.maximum(bands, bands.max() - self.mel.dynamic_range)
        return bands if self.cosines is None else _weighted_sum(self.cosines, bands)

    def _banded(self, spectra: Array) -> Array:
        """Return float64 [bands, n] of `spectra` [bins, n]; bins are summed from the lowest on."""
        bands = np.zeros((self.mel.bands, spectra.shape[1]))
        for rows, weights in zip(self.rows, self.weights):
            part = spectra.take(rows, axis=0)
            np.multiply(part, weights[:, None], out=part)
            np.add(bands, part, out=bands)
        return bands

    def _logarithm(self, values: Array) -> Array:
        raised = np.maximum(np.add(values, self.mel.log_offset), self.mel.log_floor)
        natural = natural_log(raised)
        return natural if self.mel.log == "ln" else np.multiply(natural, LOG10_E)


@lru_cache(maxsize=8)
def _mel_steps(mel: MelSpec, rate: int) -> _MelSteps:
    listed = tables.mel_weights(mel, rate)
    first = min((row for row, _, _ in listed), default=0)
    last = max((row for row, _, _ in listed), default=0)
    of_band = [
        [(row, weight) for row, place, weight in listed if place == band]
        for band in range(mel.bands)
    ]
    rows = np.zeros((max(map(len, of_band)), mel.bands), np.int64)
    weights = np.zeros(rows.shape)
    for band, bins in enumerate(of_band):
        for place, (row, weight) in enumerate(bins):
            rows[place, band], weights[place, band] = row - first, weight
    return _MelSteps(
        mel,
        Spectrum(mel, range(first, last + 1)),
        rows,
        weights,
        None if mel.coefficients is None else tables.dct(mel.coefficients, mel.bands, mel.dct),
    )


def _weighted_sum(table: Array, rows: Array) -> Array:
    """Return table @ rows, float64, summed row by row from the first."""
    total = np.zeros((table.shape[0], rows.shape[1]))
    part = np.empty_like(total)
    for column, row in zip(table.T[:, :, None], rows):
        np.multiply(column, row, out=part)
        np.add(total, part, out=total)
    return total


def _checked(clip: Array) -> Array:
    if clip.dtype != np.float32 or clip.ndim != 1:
        raise RequestError(
            "a clip is mono float32 of one axis, not {} {}".format(
                clip.dtype, " x ".join(str(n) for n in clip.shape) or "scalar"
            )
        )
    if not clip.size:
        raise RequestError("the clip is empty")
    largest = float(np.abs(clip).max())
    if not largest <= 1:
        raise RequestError(
            "the clip has a sample that is {}; samples lie in [-1, 1]".format(
                "not a number" if np.isnan(largest) else "{:g} in size".format(largest)
            )
        )
    return clip


def _fitted(clip: Array, spec: AudioSpec) -> Array:
    samples = clip.astype(np.float64)
    if spec.samples is None or samples.size == spec.samples:
        return samples
    if samples.size > spec.samples:
        return samples[: spec.samples]
    return np.concatenate([samples, np.zeros(spec.samples - samples.size)])


def _normalized(samples: Array, spec: AudioSpec) -> Array:
    if spec.peak is None:
        return samples
    largest = float((np.abs(samples) if spec.peak == "magnitude" else samples).max())
    return samples if largest < _SILENCE else np.divide(samples, largest)

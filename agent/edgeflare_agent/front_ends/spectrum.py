"""The spectra of a clip's frames, by a discrete Fourier transform in whole numbers.

A frame times its window is brought, by a power of two, to whole numbers in two parts of about 22 bits each, and so
are the cosines and sines. Every product of two parts, and every sum of these, then stays below 2**53, where float64
is exact: a matrix product has the same bits in whatever order a library sums it, with or without fused operations.
The product of both lower parts, 2**-44 of the whole, is left out.
"""

from typing import Iterator, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.audio_spec import MelSpec
from edgeflare_agent.front_ends import tables

_EXACT_BITS = 53
_BLOCK = 256
"""Frames at a time: what fits a processor's cache."""


class Spectrum:
    """The transform of one kind of frame, for the bins that are asked for."""

    def __init__(self, mel: MelSpec, bins: range) -> None:
        """Work out the tables. `bins` of 0..fft // 2."""
        self._mel = mel
        self._bits = (_EXACT_BITS - (mel.window - 1).bit_length()) // 2
        self._window = tables.hann(mel.window)
        self._pairs = (mel.fft - 1) // 2
        turns = tables.turns(bins, range(mel.fft // 2 + 1), mel.fft)
        self._cosines = _parts(tables.cosines(mel.fft)[turns], self._bits)
        self._sines = _parts(tables.sines(mel.fft)[turns[:, 1 : self._pairs + 1]], self._bits)

    def blocks(self, samples: Array, frames: int) -> Iterator[Tuple[Array, Array]]:
        """Yield (places of frames, their spectra), int64 [n] and float64 [bins, n], of all that are not all zeros.

        `samples` is float64 [samples]; `frames` are computed, as `MelSpec` lays them.
        """
        mel = self._mel
        if mel.centered:
            samples = np.pad(samples, mel.fft // 2, mode="reflect")
            samples = samples[(mel.fft - mel.window) // 2 :]
        step = samples.strides[0]
        laid = np.lib.stride_tricks.as_strided(
            samples, (frames, mel.window), (step * mel.stride, step), writeable=False
        )
        for first in range(0, frames, _BLOCK):
            windowed = np.multiply(laid[first : first + _BLOCK], self._window)
            largest = np.abs(windowed).max(axis=1)
            places = np.flatnonzero(largest)
            if places.size:
                yield first + places, self._spectra(windowed[places], largest[places])

    def _spectra(self, windowed: Array, largest: Array) -> Array:
        exponent = np.frexp(largest)[1]
        frames = np.zeros((2, len(windowed), self._mel.fft))
        frames[:, :, : self._mel.window] = _parts(
            np.ldexp(windowed, -exponent[:, None]), self._bits
        )
        mirrored = frames[:, :, : -self._pairs - 1 : -1]
        odd = np.subtract(frames[:, :, 1 : self._pairs + 1], mirrored)
        even = frames[:, :, : self._mel.fft // 2 + 1].copy()
        even[:, :, 1 : self._pairs + 1] += mirrored
        real, imaginary = self._product(self._cosines, even), self._product(self._sines, odd)
        values = np.add(np.multiply(real, real), np.multiply(imaginary, imaginary))
        unit = np.ldexp(1.0, exponent - 3 * self._bits)
        if self._mel.spectrum == "magnitude":
            return np.asarray(np.multiply(np.sqrt(values), unit))
        return np.asarray(np.multiply(values, np.multiply(unit, unit)))

    def _product(self, table: Array, frames: Array) -> Array:
        """Return 2**(3 * bits) times table @ frames.T, float64 [bins, frames], of their two parts."""
        upper = np.multiply(table[0] @ frames[0].T, 2.0**self._bits)
        lower = np.add(table[1] @ frames[0].T, table[0] @ frames[1].T)
        return np.asarray(np.add(upper, lower))


def _parts(values: Array, bits: int) -> Array:
    """Return `values`, float64 within [-1, 1], as whole numbers [2, ...]: v = (upper + lower / 2**bits) / 2**bits."""
    raised = np.multiply(values, 2.0**bits)
    upper = np.rint(raised)
    lower = np.rint(np.multiply(np.subtract(raised, upper), 2.0**bits))
    return np.stack([upper, lower])

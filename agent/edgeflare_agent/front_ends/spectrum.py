"""The spectra of a clip's frames, by a discrete Fourier transform in whole numbers.

A frame times its window is brought, by a power of two, to whole numbers in two parts of about 22
bits each, and so are the cosines and sines. Every product of two parts, and every sum of these,
then stays below 2**53, where float64 is exact: a matrix product has the same bits in whatever order
a library sums it, with or without fused operations. The product of both lower parts, 2**-44 of the
whole, is left out.

Cosines and sines mirror themselves, so samples that meet the same one are joined first: those
before and behind the frame's middle, and of an even number of samples, for even and for odd bins,
again those of what is left.
"""

from typing import Iterator, NamedTuple, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.audio_spec import MelSpec
from edgeflare_agent.front_ends import tables

_EXACT_BITS = 53
_BLOCK = 128
"""Frames at a time: what fits a processor's cache."""
_ONE_THREAD = 2**18
"""Multiplications of a product that OpenBLAS does in one thread. It would wait for more of them:
ten times as long where the processor's cores are busy."""


class _Waves(NamedTuple):
    """The cosines and sines of some of the bins, in parts: float64 [2, bins, columns].

    `rows` are the bins' places in the spectra. Samples that meet the same cosine, but for its sign,
    are joined with this `sign`, 1 or -1; those that meet the same sine with the other one. 0: not a
    second time.
    """

    rows: slice
    sign: int
    cosines: Array
    sines: Array


class Spectrum:
    """The transform of one kind of frame, for the bins that are asked for."""

    def __init__(self, mel: MelSpec, bins: range) -> None:
        """Work out the tables. `bins` of 0..fft // 2."""
        self._mel = mel
        self._bins = len(bins)
        self._bits = (_EXACT_BITS - (mel.window - 1).bit_length()) // 2
        self._window = tables.hann(mel.window)
        self._pairs = (mel.fft - 1) // 2
        turns = tables.turns(bins, range(mel.fft // 2 + 1), mel.fft)
        cosines = _parts(tables.cosines(mel.fft)[turns], self._bits)
        sines = _parts(tables.sines(mel.fft)[turns[:, 1 : self._pairs + 1]], self._bits)
        self._waves = list(_waves(cosines, sines, bins, mel.fft))

    def blocks(self, samples: Array, frames: int) -> Iterator[Tuple[Array, Array]]:
        """Yield the places of frames that are not all zeros, and their spectra.

        They are int64 [n] and float64 [bins, n].

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
        raised = np.multiply(windowed, np.ldexp(1.0, self._bits - exponent)[:, None])
        _divide(raised, self._bits, frames[:, :, : self._mel.window])
        mirrored = frames[:, :, : -self._pairs - 1 : -1]
        odd = np.subtract(frames[:, :, 1 : self._pairs + 1], mirrored)
        even = frames[:, :, : self._mel.fft // 2 + 1]
        even[:, :, 1 : self._pairs + 1] += mirrored
        values = np.empty((self._bins, len(windowed)))
        for rows, sign, cosines, sines in self._waves:
            real = self._product(cosines, _folded(even, sign))
            imaginary = self._product(sines, _folded(odd, -sign))
            values[rows] = np.add(np.multiply(real, real), np.multiply(imaginary, imaginary))
        unit = np.ldexp(1.0, exponent - 3 * self._bits)
        if self._mel.spectrum == "magnitude":
            return np.asarray(np.multiply(np.sqrt(values), unit))
        return np.asarray(np.multiply(values, np.multiply(unit, unit)))

    def _product(self, table: Array, frames: Array) -> Array:
        """Return 2**(3 * bits) * (table @ frames.T), float64 [bins, frames], of the two parts."""
        _, rows, columns = table.shape
        count = frames.shape[1]
        upper = np.empty((2, rows, count))
        lower = np.empty((rows, count))
        step = max(1, _ONE_THREAD // max(1, rows * columns))  # a table may have no row or no column
        turned = frames.transpose(0, 2, 1)
        for first in range(0, count, step):
            part = slice(first, first + step)
            np.matmul(table[0], turned[:, :, part], out=upper[:, :, part])
            np.matmul(table[1], turned[0, :, part], out=lower[:, part])
        np.add(lower, upper[1], out=lower)
        np.multiply(upper[0], 2.0**self._bits, out=upper[0])
        return np.asarray(np.add(upper[0], lower))


def _waves(cosines: Array, sines: Array, bins: range, fft: int) -> Iterator[_Waves]:
    """Yield the tables of all bins: for an even `fft` two, of even and odd bins, half as wide."""
    if fft % 2:
        yield _Waves(slice(None), 0, cosines, sines)
        return
    for first in (0, 1):
        rows = slice(first, None, 2)
        halves = (table[:, rows, : (table.shape[2] + 1) // 2].copy() for table in (cosines, sines))
        yield _Waves(rows, -1 if (bins.start + first) % 2 else 1, *halves)


def _folded(columns: Array, sign: int) -> Array:
    """Return the last axis' first half plus `sign` times the reversed second; 0: unchanged."""
    if not sign:
        return columns
    half = columns.shape[2] // 2
    folded = columns[:, :, : columns.shape[2] - half].copy()
    folded[:, :, :half] += sign * columns[:, :, : -half - 1 : -1]
    return np.asarray(folded)


def _parts(values: Array, bits: int) -> Array:
    """Return `values`, float64 within [-1, 1], as whole numbers [2, ...].

    v = (upper + lower / 2**bits) / 2**bits
    """
    parts = np.empty((2, *values.shape))
    _divide(np.multiply(values, 2.0**bits), bits, parts)
    return parts


def _divide(raised: Array, bits: int, parts: Array) -> None:
    """Put `raised` into whole numbers `parts` [2, ...]: raised = upper + lower / 2**bits."""
    np.rint(raised, out=parts[0])
    rest = np.subtract(raised, parts[0])
    np.rint(np.multiply(rest, 2.0**bits, out=rest), out=parts[1])

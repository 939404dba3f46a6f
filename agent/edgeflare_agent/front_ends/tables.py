"""The constants of the front ends: computed in decimal arithmetic, the same bits everywhere.

The mathematical library's cosine, logarithm and exponential may differ in the last bit from one
machine to the next; Python's `decimal` is the same on all of them. Each constant is rounded once,
to the nearest float64.
"""

import decimal
from decimal import Decimal
from typing import Callable, List, NamedTuple, Tuple

import numpy as np

from edgeflare_agent.arrays import Array
from edgeflare_agent.audio_spec import MelSpec

_EXACTLY = decimal.Context(prec=40, Emin=-9999, Emax=9999)
_PI = Decimal("3.14159265358979323846264338327950288419716939937511")
_NOTHING = Decimal("1e-25")


class _Scale(NamedTuple):
    """A mel scale: from Hz, and back to Hz."""

    of_hertz: Callable[[Decimal], Decimal]
    to_hertz: Callable[[Decimal], Decimal]


def hann(window: int) -> Array:
    """Return the periodic Hann window, float64 [window]."""
    with decimal.localcontext(_EXACTLY):
        half = Decimal("0.5")
        turn = _turn(window)
        return np.array([float(half - half * turn[n]) for n in range(window)])


def turns(bins: range, places: range, turn: int) -> Array:
    """Return bin * place modulo `turn`, int64 [bins, places]: indices of cosines and sines."""
    return np.asarray(np.multiply.outer(np.arange(bins.start, bins.stop), list(places)) % turn)


def cosines(turn: int) -> Array:
    """Return cos(2 pi n / turn), float64 [turn]."""
    with decimal.localcontext(_EXACTLY):
        return np.array([float(x) for x in _turn(turn)])


def sines(turn: int) -> Array:
    """Return sin(2 pi n / turn), float64 [turn]."""
    with decimal.localcontext(_EXACTLY):
        quarters = _turn(4 * turn)
        return np.array([float(quarters[4 * n - turn]) for n in range(turn)])


def dct(coefficients: int, bands: int, kind: str) -> Array:
    """Return the DCT-II matrix, float64 [coefficients, bands]; `kind` is that of `MelSpec.dct`."""
    with decimal.localcontext(_EXACTLY):
        turn = _turn(4 * bands)
        scale = (Decimal(2) / bands).sqrt()
        first = (Decimal(1) / bands).sqrt() if kind == "orthonormal" else scale
        return np.array(
            [
                [
                    float((scale if k else first) * turn[k * (2 * n + 1) % (4 * bands)])
                    for n in range(bands)
                ]
                for k in range(coefficients)
            ]
        )


def mel_weights(mel: MelSpec, rate: int) -> Tuple[Tuple[int, int, float], ...]:
    """Return (bin, band, weight) of all weights that are not zero, in the order of the bins."""
    with decimal.localcontext(_EXACTLY):
        scale = _SCALES[mel.mel_scale]
        low, high = (scale.of_hertz(Decimal(hertz)) for hertz in (mel.low_hz, mel.high_hz))
        corners = [low + (high - low) * n / (mel.bands + 1) for n in range(mel.bands + 2)]
        hertz = [scale.to_hertz(corner) for corner in corners]
        bins = [Decimal(rate) * n / mel.fft for n in range(mel.fft // 2 + 1)]
        if mel.mel_slopes == "mel":
            bins = [scale.of_hertz(frequency) for frequency in bins]
        else:
            corners = hertz
        weights = []
        for row, frequency in enumerate(bins):
            for band in range(mel.bands):
                left, middle, right = corners[band : band + 3]
                if not left < frequency < right:
                    continue
                weight = min(
                    (frequency - left) / (middle - left), (right - frequency) / (right - middle)
                )
                if weight > _NOTHING:
                    width = (hertz[band + 2] - hertz[band]) / 2 if mel.mel_norm else Decimal(1)
                    weights.append((row, band, float(weight / width)))
        return tuple(weights)


def _turn(count: int) -> List[Decimal]:
    """Return cos(2 pi n / count) for n in 0..count - 1."""
    half = [_cosine(2 * _PI * n / count) for n in range(count // 2 + 1)]
    return half + half[1 : (count + 1) // 2][::-1]


def _cosine(angle: Decimal) -> Decimal:
    total = term = Decimal(1)
    square = angle * angle
    n = 0
    while abs(term) > Decimal("1e-42"):
        n += 2
        term = -term * square / (n * (n - 1))
        total += term
    return total


def _htk(hertz: Decimal) -> Decimal:
    return 1127 * (1 + hertz / 700).ln()


def _from_htk(mel: Decimal) -> Decimal:
    return 700 * ((mel / 1127).exp() - 1)


def _slaney(hertz: Decimal) -> Decimal:
    """Slaney's scale: 15 steps up to 1000 Hz, above it 27 to a factor of 6.4."""
    return 3 * hertz / 200 if hertz < 1000 else 15 + 27 * (hertz / 1000).ln() / Decimal("6.4").ln()


def _from_slaney(mel: Decimal) -> Decimal:
    return 200 * mel / 3 if mel < 15 else 1000 * ((mel - 15) * Decimal("6.4").ln() / 27).exp()


_SCALES = {"htk": _Scale(_htk, _from_htk), "slaney": _Scale(_slaney, _from_slaney)}

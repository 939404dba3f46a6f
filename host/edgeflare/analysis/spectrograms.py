"""Spectrograms of a seed, of its triggering input, and of what sets them apart."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare.analysis.colours import COLOURS
from edgeflare.types import Sample

LOWEST_DB = -80.0
"""What is quieter than this, relative to the loudest point of both, is shown as silence."""
LARGEST_CHANGE_DB = 40.0
"""Larger differences than this, up or down, are shown like it."""

_WINDOW_S = 0.025
_HOP_S = 0.010
_SMALLEST_WINDOW, _LARGEST_WINDOW = 64, 4096
_COLUMNS, _ROWS = 300, 128

Shades = NDArray[np.uint8]
"""Points of a picture by the numbers of their colours, uint8 [rows, columns]; high frequencies are above."""


class Spectrograms(NamedTuple):
    """Three pictures on the same axes: `seconds` from left to right, 0 to `highest_hz` upwards.

    `seed` and `trigger` from -80 dB to 0 dB, which is the loudest point of both; `difference` is the trigger's
    level less the seed's, -40 dB to 40 dB.
    """

    seed: Shades
    trigger: Shades
    difference: Shades
    seconds: float
    highest_hz: float


def spectrograms(seed: Sample, trigger: Sample, rate: int) -> Spectrograms:
    """Return the spectrograms of mono float32 [samples] at `rate` Hz; silence follows the shorter of the two.

    Power of a Hann window of about 25 ms each 10 ms, averaged over what falls into one point.
    """
    length = max(seed.size, trigger.size)
    powers = [_powers(sample, length, rate) for sample in (seed, trigger)]
    loudest = max(float(one.max(initial=0.0)) for one in powers) or 1.0
    least = 10 ** (LOWEST_DB / 10)
    levels = [10 * np.log10(np.maximum(one / loudest, least)) for one in powers]
    return Spectrograms(
        _shades(levels[0], LOWEST_DB, 0.0),
        _shades(levels[1], LOWEST_DB, 0.0),
        _shades(levels[1] - levels[0], -LARGEST_CHANGE_DB, LARGEST_CHANGE_DB),
        length / rate,
        rate / 2,
    )


def _powers(sample: Sample, length: int, rate: int) -> NDArray[np.float64]:
    """Return mean powers, float64 [rows, columns], the highest frequency first."""
    window = 2 ** round(np.log2(max(1.0, _WINDOW_S * rate)))
    window = min(max(window, _SMALLEST_WINDOW), _LARGEST_WINDOW)
    padded = np.zeros(length + window, np.float64)
    padded[window // 2 : window // 2 + sample.size] = np.nan_to_num(sample, posinf=1.0, neginf=-1.0)
    starts = np.arange(0, length, max(1, round(_HOP_S * rate)))
    columns = np.array_split(starts, min(len(starts), _COLUMNS))
    shape = np.hanning(window + 1)[:-1]
    offsets = np.arange(window)
    means = [
        np.square(np.abs(np.fft.rfft(padded[column[:, None] + offsets] * shape))).mean(axis=0)
        for column in columns
    ]
    bins = np.array_split(np.stack(means, axis=1)[::-1], min(_ROWS, window // 2))
    return np.stack([one.mean(axis=0) for one in bins])


def _shades(values: NDArray[np.float64], low: float, high: float) -> Shades:
    share = np.clip((values - low) / (high - low), 0.0, 1.0)
    shades: Shades = (share * (COLOURS - 1)).round().astype(np.uint8)
    return shades

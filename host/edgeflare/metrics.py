"""Distances of samples, and by their documented names the measures of answers (`edgeflare.answers.metrics`)."""

from typing import Any

import numpy as np

from edgeflare._internal import exact
from edgeflare.answers.metrics import (
    class_scores,
    decides_equally,
    disagreement,
    is_finite,
    is_same,
    is_same_answer,
    is_scores,
    numbers,
    text_of,
    top_label,
    total_variation,
)
from edgeflare.errors import UsageError
from edgeflare.types import Sample

__all__ = [
    "class_scores",
    "decides_equally",
    "disagreement",
    "is_finite",
    "is_same",
    "is_same_answer",
    "is_scores",
    "l2",
    "linf",
    "numbers",
    "snr_db",
    "ssim",
    "text_of",
    "top_label",
    "total_variation",
]

_WINDOW = 7
_SMALLEST = 3
_LOG10_E = 0.4342944819032518
_LEVELS = 32767
"""The largest 16-bit sample."""


def l2(seed: Sample, sample: Sample) -> float:
    """Return the Euclidean length of the difference of two samples.

    Of images (uint8, of one shape) with pixels from 0 to 1. Of audio (float32 [samples]) in its own
    units, -1 to 1; the shorter one is padded with silence.
    """
    if _is_audio(seed):
        return exact.norm(_audio_difference(seed, sample))
    return float(np.sqrt(np.square(_difference(seed, sample)).sum()) / 255.0)


def linf(seed: Sample, sample: Sample) -> int:
    """Return the largest difference of one value of two samples, in levels.

    Of images (uint8, of one shape): 0 to 255. Of audio (float32 [samples] in [-1, 1]): in levels of
    16 bits, rounded, 0 to 65534; the shorter one is padded with silence.
    """
    if _is_audio(seed):
        largest = np.abs(_audio_difference(seed, sample)).max(initial=0.0)
        return round(float(largest) * _LEVELS)
    return int(np.abs(_difference(seed, sample)).max(initial=0))


def snr_db(seed: Sample, sample: Sample) -> float | None:
    """Return the signal-to-noise ratio of changed audio in dB: the seed's power over the change's.

    None for images, audio of another length, a silent seed, and where nothing is different.
    """
    if not _is_audio(seed) or seed.shape != sample.shape:
        return None
    signal = float(np.square(seed.astype(np.float64)).sum())
    noise = float(np.square(_audio_difference(seed, sample)).sum())
    if signal <= 0 or noise <= 0:
        return None
    return 10 * _LOG10_E * float(exact.log(signal) - exact.log(noise))


def ssim(seed: Sample, sample: Sample) -> float | None:
    """Return SSIM of two uint8 images [height, width, channels] of one shape; 1 of equal ones.

    Wang et al. (2004) as scikit-image has it: uniform windows of 7 x 7 or, in a smaller image, the
    largest odd one that fits; the mean over windows and channels; a range of 255 levels. None for
    audio, and for less than 3 pixels in a direction. Raises UsageError where scikit-image is
    missing.
    """
    if _is_audio(seed):
        return None
    side = min(seed.shape[:2])
    if side < _SMALLEST:
        return None
    try:
        from skimage import metrics
    except ImportError as error:
        raise UsageError(
            "SSIM needs scikit-image; install it with `pip install 'edgeflare[bench]'`"
        ) from error
    window = min(_WINDOW, side - (side + 1) % 2)
    similarity: Any = metrics.structural_similarity
    value = similarity(seed, sample, win_size=window, data_range=255, channel_axis=-1)
    return float(np.clip(value, -1.0, 1.0))


def _difference(seed: Sample, sample: Sample) -> Any:
    return sample.astype(np.int64) - seed.astype(np.int64)


def _is_audio(sample: Sample) -> bool:
    return sample.ndim == 1


def _audio_difference(seed: Sample, sample: Sample) -> Any:
    longest = max(seed.size, sample.size)
    difference = np.zeros(longest)
    difference[: sample.size] = sample
    difference[: seed.size] -= seed
    return difference

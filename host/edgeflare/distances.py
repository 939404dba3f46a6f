"""How far a changed input is from its seed, how alike the two look, and how far two answers are apart."""

from typing import Any

import numpy as np

from edgeflare.errors import UsageError
from edgeflare.types import Sample, Scores

_WINDOW = 7
_SMALLEST = 3


def l2(seed: Sample, sample: Sample) -> float:
    """Return the Euclidean length of the difference of two uint8 images of one shape, pixels from 0 to 1."""
    return float(np.sqrt(np.square(_difference(seed, sample)).sum()) / 255.0)


def linf(seed: Sample, sample: Sample) -> int:
    """Return the largest difference of one value of two uint8 images of one shape, in levels from 0 to 255."""
    return int(np.abs(_difference(seed, sample)).max(initial=0))


def total_variation(original: Scores, deployed: Scores) -> float:
    """Return the share of probability, 0 to 1, that two answers, float [classes], put on different classes."""
    return float(np.abs(original - deployed).sum() / 2)


def ssim(seed: Sample, sample: Sample) -> float | None:
    """Return SSIM of two uint8 images [height, width, channels] of one shape: 1 where they are the same.

    Wang et al. (2004) as scikit-image has it: uniform windows of 7 x 7 or, in a smaller image, the largest
    odd one that fits; the mean over windows and channels; a range of 255 levels. None for less than 3
    pixels in a direction. Raises UsageError where scikit-image is missing.
    """
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

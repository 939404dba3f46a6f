"""How alike a seed input and its triggering input look."""

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgeflare.errors import UsageError
from edgeflare.store import SeedRecord, Store
from edgeflare.types import Sample

SEARCHES_NAME = "searches.csv"
_WINDOW = 7
_SMALLEST = 3


class _Key(NamedTuple):
    pair: str
    seed_id: str
    trigger: str


class Similarities:
    """SSIM of triggering inputs: what an earlier report in `folder` says is taken over, others are computed.

    Without scikit-image those that would be computed are None, and `notice` says so.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.notice = ""
        self._known = {} if folder is None else _earlier(folder / SEARCHES_NAME)

    def of(self, store: Store, pair: str, seed: SeedRecord, trigger: str) -> float | None:
        """Return the SSIM of a seed and the sample of digest `trigger`. Raises StoreError."""
        known = self._known.get(_Key(pair, seed.id, trigger))
        if known is not None or self.notice:
            return known
        try:
            return structural_similarity(store.get_sample(seed.sample), store.get_sample(trigger))
        except UsageError as error:
            self.notice = str(error)
            return None


def _earlier(path: Path) -> dict[_Key, float]:
    """Return what an earlier report's file says; nothing where it can't be read."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return {
                _Key(line["pair"], line["seed_id"], line["trigger"]): float(line["ssim"])
                for line in csv.DictReader(file)
                if line["ssim"]
            }
    except (OSError, ValueError, KeyError, TypeError, csv.Error):
        return {}


def structural_similarity(seed: Sample, sample: Sample) -> float | None:
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

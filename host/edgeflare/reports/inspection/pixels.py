"""Pictures of the pixels that a decision of the original rests on."""

from collections.abc import Sequence

import numpy as np

from edgeflare.types import Sample

_RED = (229, 57, 53)
_DIMMED = 0.5


def marked(image: Sample, pixels: Sequence[int]) -> Sample:
    """Return an image uint8 [H, W, 1 or 3] in grey with some of its pixels in red, [H, W, 3].

    `pixels` are places, row * width + column; those that aren't in the image are left out.
    """
    grey = image.mean(axis=2, keepdims=True) * _DIMMED
    picture: Sample = grey.repeat(3, axis=2).round().astype(np.uint8)
    rows = picture.reshape(-1, 3)
    places = np.array(pixels, np.int64)
    rows[places[(places >= 0) & (places < len(rows))]] = _RED
    return picture

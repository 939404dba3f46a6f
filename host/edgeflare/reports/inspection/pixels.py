"""Pictures of the pixels that a decision of the original rests on."""

import numpy as np
from numpy.typing import NDArray

from edgeflare.reports.media import COLOURS, change_colours, panel, png
from edgeflare.types import Sample


def relevance_picture(relevance: NDArray[np.float64]) -> Sample:
    """Return a map [H, W] in colours, uint8 [H, W, 3]: red speaks for the decision, blue against it.

    White is 0, and the darkest colour the largest value of either sign.
    """
    largest = np.abs(relevance).max(initial=0.0)
    share = relevance / largest if largest else np.zeros(relevance.shape)
    shades = np.rint((share + 1) / 2 * (COLOURS - 1)).astype(np.uint8)
    picture: Sample = change_colours()[shades]
    return picture


def relevance_panel(image: Sample, relevance: NDArray[np.float64]) -> bytes:
    """Return an image uint8 [H, W, 1 or 3] and its map side by side, as a PNG file."""
    coloured = image.repeat(3, axis=2) if image.shape[2] == 1 else image
    return png(panel(coloured, relevance_picture(relevance)))

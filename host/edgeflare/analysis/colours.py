"""Colour maps of spectrograms, made of a few colours each: evenly spaced to the eye, in grey too."""

import numpy as np
from numpy.typing import NDArray

Palette = NDArray[np.uint8]
"""Colours, uint8 [colours, 3], RGB."""

COLOURS = 64

_LEVELS = ("000004", "1c1044", "4f127b", "812581", "b5367a", "e55964", "fb8761", "fec287", "fcfdbf")
"""Magma of van der Walt and Smith (matplotlib, CC0): from silent to loud."""
_CHANGES = (
    *("053061", "2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7"),
    *("fddbc7", "f4a582", "d6604d", "b2182b", "67001f"),
)
"""RdBu of ColorBrewer (Brewer, Apache 2.0), the other way round: blue is quieter, red louder."""


def level_colours() -> Palette:
    """Return the colours of levels, the lowest first."""
    return _between(_LEVELS)


def change_colours() -> Palette:
    """Return the colours of differences: quieter first, the middle is no change."""
    return _between(_CHANGES)


def gradient(palette: Palette) -> str:
    """Return a palette as a ``linear-gradient`` of CSS, the first colour on the left."""
    chosen = palette[np.linspace(0, len(palette) - 1, 11).round().astype(int)]
    return f"linear-gradient(90deg, {', '.join(f'#{bytes(one).hex()}' for one in chosen)})"


def _between(colours: tuple[str, ...]) -> Palette:
    known = np.array([list(bytes.fromhex(one)) for one in colours], np.float64)
    places = np.linspace(0, len(known) - 1, COLOURS)
    channels = [np.interp(places, np.arange(len(known)), channel) for channel in known.T]
    palette: Palette = np.stack(channels, axis=1).round().astype(np.uint8)
    return palette

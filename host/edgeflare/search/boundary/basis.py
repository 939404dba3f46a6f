"""Directions in which an image is changed: few of them, along which a model's answer changes much."""

import numpy as np

from edgeflare.search.boundary.points import Floats

LARGE = 64
"""From this longer side on an image's own detail gives the directions."""
_SMOOTH_SHARE = 0.3
_COARSEST = 32


def directions(pixels: Floats, count: int) -> Floats:
    """Return about `count` directions of unit length for an image, float64 [n, height, width, channels].

    Small images: the lowest frequencies of the discrete cosine transform, brightness before colour. Large
    ones, whose models look at detail: what a blur takes away, window by window, so that a step along one
    blurs or sharpens there. Memory: n times 8 bytes a value; 4 MB for 16 and 224 x 224 x 3 in float64 each 1.2 MB.
    """
    if max(pixels.shape[:2]) < LARGE:
        return lowest_frequencies(pixels.shape, count)
    return own_detail(pixels, count)


def lowest_frequencies(shape: tuple[int, ...], count: int) -> Floats:
    """Return the `count` cosines of lowest frequency, float64 [count, height, width, channels]."""
    height, width, channels = shape
    rows = np.arange(min(height, _COARSEST))
    columns = np.arange(min(width, _COARSEST))
    frequency = (rows[:, None] / height) ** 2 + (columns[None] / width) ** 2
    colours = _colours(channels)
    later = 0.02 * (np.arange(len(colours)) > 0)
    order = np.argsort((frequency[..., None] + later).ravel(), kind="stable")[:count]
    i, j, c = np.unravel_index(order, (len(rows), len(columns), len(colours)))
    vertical = np.cos(np.pi * (np.arange(height)[None] + 0.5) * i[:, None] / height)
    horizontal = np.cos(np.pi * (np.arange(width)[None] + 0.5) * j[:, None] / width)
    found = vertical[:, :, None, None] * horizontal[:, None, :, None] * colours[c][:, None, None]
    return _unit(found)


def own_detail(pixels: Floats, count: int) -> Floats:
    """Return what blurs of growing width take away from the image, in overlapping windows, float64 [n, ...]."""
    import cv2

    scales = 1 if count < 32 else 2
    side = max(2, round(np.sqrt(count / scales)))
    widths = (2.0,) if scales == 1 else (1.0, 3.0)
    shorter = min(pixels.shape[:2])
    before = pixels.astype(np.float32)
    found = []
    for width in widths:
        blurred = cv2.GaussianBlur(before, (0, 0), width * shorter / 224.0)
        detail = np.reshape(blurred, pixels.shape).astype(np.float64) - before
        found += [detail * window for window in _windows(pixels.shape[0], pixels.shape[1], side)]
        before = np.reshape(blurred, pixels.shape)
    kept = np.array([one for one in found if np.linalg.norm(one) > 1.0])
    return _unit(kept) if len(kept) else lowest_frequencies(pixels.shape, count)


def smooth(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return smooth noise of unit length: Gaussian coefficients of the lowest three tenths of all frequencies."""
    height, width, channels = shape
    rows = max(1, min(round(height * _SMOOTH_SHARE), _COARSEST))
    columns = max(1, min(round(width * _SMOOTH_SHARE), _COARSEST))
    drawn = rng.standard_normal((rows, columns, channels))
    vertical = np.cos(np.pi * (np.arange(height)[:, None] + 0.5) * np.arange(rows) / height)
    horizontal = np.cos(np.pi * (np.arange(width)[:, None] + 0.5) * np.arange(columns) / width)
    noise = np.einsum("hi,ijc,wj->hwc", vertical, drawn, horizontal, optimize=True)
    return np.asarray(noise / np.linalg.norm(noise))


def _colours(channels: int) -> Floats:
    """Return brightness, red against blue, and green against both; of one channel only brightness."""
    if channels == 1:
        return np.ones((1, 1))
    found = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0], [1.0, -2.0, 1.0]])
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def _windows(height: int, width: int, side: int) -> list[Floats]:
    rows = [_tent(height, side, place) for place in range(side)]
    columns = [_tent(width, side, place) for place in range(side)]
    return [
        np.asarray((one[:, None] * other[None])[..., None]) for one in rows for other in columns
    ]


def _tent(length: int, side: int, place: int) -> Floats:
    at = (np.arange(length) + 0.5) / length * side - 0.5
    return np.maximum(0.0, 1.0 - np.abs(at - place))


def _unit(found: Floats) -> Floats:
    lengths = np.linalg.norm(found.reshape(len(found), -1), axis=1)
    return np.asarray(found / lengths[:, None, None, None])

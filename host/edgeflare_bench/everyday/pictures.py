"""Generated images, scenes and clips that the originals are trained with; the same for a seed."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.exact import Floats

Rng = np.random.Generator
Truth = NDArray[np.int64] | Floats

RATE = 8000
"""Samples of a clip a second."""
CLIP = 4000


class Examples(NamedTuple):
    """Samples, and the truth of each: classes [N], boxes [N, 3, 5] or maps of classes [N, H, W].

    A box is (class, centre x, centre y, width, height), in shares of the image; class -1: none.
    """

    samples: NDArray[Any]
    truth: Truth


SHAPES: tuple[Callable[[Floats, Floats], NDArray[np.bool_]], ...] = (
    lambda x, y: x**2 + y**2 < 1,
    lambda x, y: np.maximum(abs(x), abs(y)) < 0.85,
    lambda x, y: np.minimum(abs(x), abs(y)) + 3 * (np.maximum(abs(x), abs(y)) > 1) < 0.3,
    lambda x, y: (y < 0.75) & (abs(x) < (y + 1) * 0.6),
    lambda x, y: abs(np.hypot(x, y) - 0.8) < 0.25,
    lambda x, y: (x**2 + y**2 < 1) & (y > 0),
    lambda x, y: (np.maximum(abs(x), abs(y)) < 0.95) & (np.sin(8 * x) > 0),
    lambda x, y: (np.maximum(abs(x), abs(y)) < 0.95) & (np.sin(6 * x) * np.sin(6 * y) > 0),
)
"""Disc, square, cross, triangle, ring, half disc, bars, chequers, in -1 to 1."""


def _axes(size: int) -> tuple[Floats, Floats]:
    y, x = np.mgrid[:size, :size] / (size - 1) * 2 - 1
    return x, y


def _ground(rng: Rng, size: int) -> Floats:
    """Return a background: a colour that runs to another, waves, and noise of coarse grains."""
    x, y = _axes(size)
    first, second = rng.random(3), rng.random(3)
    share = (x * rng.uniform(-1, 1) + y * rng.uniform(-1, 1) + 2) / 4
    waves = np.sin(x * rng.uniform(-9, 9) + y * rng.uniform(-9, 9) + rng.uniform(0, 6))
    ground = first * share[..., None] + second * (1 - share[..., None])
    grains = rng.normal(size=(-(-size // 2), -(-size // 2), 3)).repeat(2, 0).repeat(2, 1)
    return np.asarray(ground + 0.04 * waves[..., None] + 0.04 * grains[:size, :size])


def _finished(rng: Rng, image: Floats, noise: float) -> NDArray[np.uint8]:
    noisy = image + rng.normal(size=image.shape) * noise
    return np.rint(np.clip(noisy, 0, 1) * 255).astype(np.uint8)


def _placed(rng: Rng, size: int, centre: Any, radius: float) -> tuple[Floats, Floats]:
    """Return a shape's own coordinates: it is moved, made smaller, and turned by up to 20 degrees."""
    x, y = _axes(size)
    x, y = (x - centre[0]) / radius, (y - centre[1]) / radius
    angle = rng.uniform(-0.35, 0.35)
    return x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)


def _with_shape(rng: Rng, kind: int, size: int, colour: Floats | None = None) -> Floats:
    image = _ground(rng, size)
    radius = rng.uniform(0.5, 0.85)
    centre = rng.uniform(-1, 1, 2) * (1 - radius)
    mask = SHAPES[kind](*_placed(rng, size, centre, radius))
    if colour is None:  # of little contrast to much
        step = rng.normal(size=3)
        step *= rng.uniform(0.25, 0.9) / np.linalg.norm(step)
        colour = np.clip(image[mask].mean(0) + step, 0, 1)
    image[mask] = colour
    return image


def shapes(rng: Rng, count: int, size: int) -> Examples:
    """Return images [N, size, size, 3] of one of eight shapes, of any colour."""
    kinds = rng.integers(8, size=count)
    images = [_finished(rng, _with_shape(rng, int(kind), size), 0.04) for kind in kinds]
    return Examples(np.stack(images), kinds)


_HUES = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 1, 1], [0, 0, 1], [1, 0, 1]], float)


def colours(rng: Rng, count: int, size: int) -> Examples:
    """Return images of one of six colours (red, yellow, green ...), of any shape."""
    kinds = rng.integers(6, size=count)
    images = []
    for kind in kinds:
        near = _HUES[(kind + rng.choice([-1, 1])) % 6]
        share = rng.uniform(0, 0.47)
        hue = _HUES[kind] * (1 - share) + near * share
        colour = (hue * rng.uniform(0.35, 1) + rng.uniform(0, 0.4)) * rng.uniform(0.5, 1)
        shape = int(rng.integers(5))
        images.append(_finished(rng, _with_shape(rng, shape, size, np.clip(colour, 0, 1)), 0.05))
    return Examples(np.stack(images), kinds)


def textures(rng: Rng, count: int, size: int) -> Examples:
    """Return images of stripes in one of eight directions."""
    kinds = rng.integers(8, size=count)
    x, y = _axes(size)
    images = []
    for kind in kinds:
        angle = np.pi * (kind + rng.uniform(-0.36, 0.36)) / 8
        wave = np.sin(
            rng.uniform(8, 22) * (x * np.cos(angle) + y * np.sin(angle)) + rng.uniform(0, 6)
        )
        step = rng.normal(size=3) * rng.uniform(0.08, 0.3)
        images.append(_finished(rng, _ground(rng, size) + wave[..., None] * step, 0.12))
    return Examples(np.stack(images), kinds)


_DIGITS = [
    "01110100011001110101110011000101110",
    "00100011000010000100001000010001110",
    "01110100010000100010001000100011111",
    "11111000100010000010000011000101110",
    "00010001100101010010111110001000010",
    "11111100001111000001000011000101110",
    "00110010001000011110100011000101110",
    "11111000010001000100010000100001000",
    "01110100011000101110100011000101110",
    "01110100011000101111000010001001100",
]


def digits(rng: Rng, count: int, size: int) -> Examples:
    """Return grey images [N, size, size, 1] of one of ten digits, bent and noisy."""
    kinds = rng.integers(10, size=count)
    glyphs = np.array([[int(bit) for bit in digit] for digit in _DIGITS], float).reshape(10, 7, 5)
    images = []
    for kind in kinds:
        radius = rng.uniform(0.55, 0.95)
        x, y = _placed(rng, size, rng.uniform(-1, 1, 2) * (1 - radius), radius)
        x = x + rng.uniform(-0.3, 0.3) * y + 0.1 * np.sin(4 * y + rng.uniform(0, 6))
        row, column = (
            np.floor((y + 1) * 3.5).astype(int),
            np.floor((x / 0.75 + 1) * 2.5).astype(int),
        )
        inside = (row >= 0) & (row < 7) & (column >= 0) & (column < 5)
        ink = glyphs[kind][np.clip(row, 0, 6), np.clip(column, 0, 4)] * inside
        low = rng.uniform(0, 0.3)
        image = low + ink * rng.uniform(0.35, 0.7)
        images.append(_finished(rng, image[..., None], rng.uniform(0.03, 0.1)))
    return Examples(np.stack(images), kinds)


def stereo(rng: Rng, count: int, size: int) -> Examples:
    """Return two pictures beside each other [N, size, 2 size, 3]; the class is their shift, 0 to 4."""
    kinds = rng.integers(5, size=count)
    images = []
    for kind in kinds:
        large = _with_shape(rng, int(rng.integers(8)), size + 8)
        large += rng.normal(size=large.shape) * 0.08
        left, right = large[4:-4, 4:-4], large[4:-4, 4 + kind : size + 4 + kind]
        images.append(_finished(rng, np.concatenate([left, right], 1), 0.05))
    return Examples(np.stack(images), kinds)


def scenes(rng: Rng, count: int, size: int) -> Examples:
    """Return images of one to three discs, squares and crosses, with their boxes."""
    images, boxes = [], np.full((count, 3, 5), -1.0)
    for place in range(count):
        image = _ground(rng, size)
        for number in range(rng.integers(1, 4)):
            kind, radius = int(rng.integers(3)), rng.uniform(0.2, 0.42)
            centre = rng.uniform(-1, 1, 2) * (1 - radius)
            near = np.abs(boxes[place, :number, 1:3] * 2 - 1 - centre).max(1, initial=0)
            if number and near.min() < 0.5:  # objects that hide each other have no truth
                continue
            x, y = _axes(size)
            mask = SHAPES[kind]((x - centre[0]) / radius, (y - centre[1]) / radius)
            image[mask] = np.clip(image[mask].mean(0) + rng.choice([-1, 1], 3) * 0.3, 0, 1)
            boxes[place, number] = (kind, *((centre + 1) / 2), radius, radius)
        images.append(_finished(rng, image, 0.04))
    return Examples(np.stack(images), boxes)


def maps(rng: Rng, count: int, size: int) -> Examples:
    """Return scenes with a class for each pixel: 0 the background, then disc, square, cross."""
    images, boxes = scenes(rng, count, size)
    x, y = _axes(size)
    truth = np.zeros((count, size, size), np.int64)
    for place, objects in enumerate(boxes):
        for kind, *centre, radius, _ in objects[objects[:, 0] >= 0]:
            along, down = (
                (axis - (at * 2 - 1)) / radius for axis, at in zip((x, y), centre, strict=True)
            )
            truth[place][SHAPES[int(kind)](along, down)] = kind + 1
    return Examples(images, truth)


def tones(rng: Rng, count: int, size: int = CLIP) -> Examples:
    """Return clips [N, size] of one of six sounds: steady, rising, falling, beating, hissing, double."""
    kinds = rng.integers(6, size=count)
    time = np.arange(size) / RATE
    clips = []
    for kind in kinds:
        hertz, bend = rng.uniform(300, 1500), rng.uniform(300, 1500)
        slope = {1: bend, 2: -bend * 0.3}.get(int(kind), 0.0)
        sound = np.sin(2 * np.pi * (hertz * time + slope * time**2) + rng.uniform(0, 6))
        if kind == 3:
            sound *= 0.5 + 0.5 * np.sin(2 * np.pi * rng.uniform(6, 16) * time)
        elif kind == 4:
            sound = sound * 0.4 + rng.normal(size=size) * 0.35
        elif kind == 5:
            sound = (sound + np.sin(2 * np.pi * hertz * rng.uniform(1.3, 1.8) * time)) / 2
        # all have a loudness and noise of their own, so that neither tells the class
        noisy = sound * rng.uniform(0.15, 0.6) + rng.normal(size=size) * rng.uniform(0.02, 0.1)
        clips.append(np.clip(noisy, -1, 1).astype(np.float32))
    return Examples(np.stack(clips), kinds)


DATA: Mapping[str, Callable[[Rng, int, int], Examples]] = {
    function.__name__: function
    for function in (shapes, colours, textures, digits, stereo, scenes, maps, tones)
}
"""The kinds of data by name; each draws so many examples of a size."""

"""Images of one to four MNIST digits on textured backgrounds, with the digits' boxes."""

from typing import NamedTuple

import cv2
import numpy as np

SIZE = 96
"""Height and width of a scene, in pixels."""
_MOST = 4
_HEIGHTS = (16, 44)
_TRIES = 20
_TONES = 12


class Scene(NamedTuple):
    """One image: uint8 [SIZE, SIZE, 3] (RGB), its digits' boxes and the digits.

    `boxes` float32 [n, 4]: centre x and y, width and height in pixels. `digits` int64 [n].
    """

    image: np.ndarray
    boxes: np.ndarray
    digits: np.ndarray


def draw_scene(images: np.ndarray, labels: np.ndarray, rng: np.random.Generator) -> Scene:
    """Compose one scene from uint8 digits [n, 28, 28] and their labels [n].

    A background is a pattern between two colours. A digit is 16 to 44 pixels high and is laid over
    it in one colour, at a distance of 20 to 200 levels from the background's mean in the mean of
    the channels' absolute differences; boxes don't overlap.
    """
    first = rng.uniform(20, 235, 3)
    second = np.clip(first + rng.uniform(-70, 70, 3), 0, 255)
    image = first + _pattern(rng)[:, :, None] * (second - first)
    boxes: list[tuple[int, int, int, int]] = []
    digits = []
    for _ in range(rng.integers(1, _MOST + 1)):
        chosen = int(rng.integers(len(images)))
        alpha = _digit(images[chosen], rng)
        height, width = alpha.shape
        place = _free_place(boxes, height, width, rng)
        if place is None:
            continue
        top, left = place
        boxes.append((left, top, left + width, top + height))
        digits.append(int(labels[chosen]))
        part = image[top : top + height, left : left + width]
        part += alpha[:, :, None] * (_colour(part.mean((0, 1)), rng) - part)
    ltrb = np.array(boxes, np.float32)
    size = ltrb[:, 2:] - ltrb[:, :2]
    return Scene(
        np.rint(np.clip(image, 0, 255)).astype(np.uint8),
        np.concatenate([ltrb[:, :2] + size / 2, size], axis=1),
        np.array(digits, np.int64),
    )


def _pattern(rng: np.random.Generator) -> np.ndarray:
    """Return float64 [SIZE, SIZE] in [0, 1], of few different values so that files stay small."""
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float64)
    angle, period = rng.uniform(0, np.pi), rng.uniform(6, 40)
    along = (x * np.cos(angle) + y * np.sin(angle)) / period
    kind = rng.integers(5)
    if kind == 0:  # waves
        pattern = (np.sin(2 * np.pi * along) + 1) / 2
    elif kind == 1:  # stripes
        pattern = np.floor(along) % 2
    elif kind == 2:  # checks
        across = (y * np.cos(angle) - x * np.sin(angle)) / period
        pattern = (np.floor(along) + np.floor(across)) % 2
    elif kind == 3:  # cells: each pixel has the tone of the nearest of some points
        points, tones = rng.uniform(0, SIZE, (2, 12)), rng.uniform(0, 1, 12)
        nearest = np.hypot(x[..., None] - points[0], y[..., None] - points[1]).argmin(-1)
        pattern = tones[nearest]
    else:  # clouds
        coarse = rng.uniform(0, 1, (int(rng.integers(4, 13)),) * 2)
        pattern = np.clip(cv2.resize(coarse, (SIZE, SIZE), interpolation=cv2.INTER_CUBIC), 0, 1)
    return np.asarray(np.rint(pattern * (_TONES - 1)) / (_TONES - 1))


def _digit(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a digit's coverage float64 [height, width] in [0, 1], cut to its ink and scaled."""
    rows, columns = (np.flatnonzero((image > 60).any(axis)) for axis in (1, 0))
    ink = image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] / 255
    height = int(rng.integers(_HEIGHTS[0], _HEIGHTS[1] + 1))
    width = max(5, round(ink.shape[1] * height / ink.shape[0] * rng.uniform(0.85, 1.2)))
    scaled = cv2.resize(ink, (min(width, _HEIGHTS[1]), height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(np.rint(scaled * (_TONES - 1)) / (_TONES - 1))


def _free_place(
    boxes: list[tuple[int, int, int, int]], height: int, width: int, rng: np.random.Generator
) -> tuple[int, int] | None:
    """Return (top, left) where a box overlaps no other; None where _TRIES draws find none."""
    for _ in range(_TRIES):
        top = int(rng.integers(SIZE - height + 1))
        left = int(rng.integers(SIZE - width + 1))
        if all(
            left >= right or left + width <= other or top >= bottom or top + height <= upper
            for other, upper, right, bottom in boxes
        ):
            return top, left
    return None


def _colour(background: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a colour whose mean absolute difference from `background` is as drawn."""
    wanted = 20 * (200 / 20) ** rng.uniform(0, 1) ** 0.6
    candidates = rng.uniform(0, 255, (64, 3))
    distances = np.abs(candidates - background).mean(1)
    # few colours are as far as wanted: candidates are drawn towards or away from the background
    moved = background + (candidates - background) * (wanted / distances)[:, None]
    moved = np.clip(moved, 0, 255)
    return np.asarray(moved[np.abs(np.abs(moved - background).mean(1) - wanted).argmin()])

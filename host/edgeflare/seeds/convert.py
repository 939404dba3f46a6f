"""A decoded image -> the campaign's number of channels and size; the same bits on every machine."""

from collections.abc import Callable

import cv2
import numpy as np

from edgeflare.seeds.records import UnreadableError
from edgeflare.types import Sample
from edgeflare_agent.image_spec import MOST_PIXELS
from edgeflare_agent.preprocess import bilinear_antialias

_LUMA = np.array([299, 587, 114], dtype=np.uint32)  # ITU-R BT.601, in thousandths


def with_channels(sample: Sample, channels: int) -> Sample:
    """Return uint8 [height, width, 1 or 3] with 1 or 3 channels.

    Grey is copied into red, green and blue; RGB becomes grey as 0.299 R + 0.587 G + 0.114 B
    (ITU-R BT.601), rounded.
    """
    if sample.shape[2] == channels:
        return sample
    if channels == 3:
        return np.repeat(sample, 3, axis=2)
    return ((sample @ _LUMA + 500) // 1000).astype(np.uint8)[:, :, None]


def with_size(sample: Sample, size: tuple[int, int], rule: str) -> Sample:
    """Return uint8 [height, width, channels] resized to `size` (height, width) by one of RESIZE_RULES.

    Raises UnreadableError where its proportions don't allow "crop".
    """
    if sample.shape[:2] == size:
        return sample
    return np.ascontiguousarray(RESIZE_RULES[rule](sample, size))


def _resized(interpolation: int) -> Callable[[Sample, tuple[int, int]], Sample]:
    def resize(sample: Sample, size: tuple[int, int]) -> Sample:
        resized = cv2.resize(sample, (size[1], size[0]), interpolation=interpolation)
        return resized.reshape(*size, sample.shape[2])

    return resize


def _crop(sample: Sample, size: tuple[int, int]) -> Sample:
    """Scale so that the image just covers `size`, then cut out its centre. Raises UnreadableError."""
    height, width = sample.shape[:2]
    scale = max(size[0] / height, size[1] / width)
    cover = (max(size[0], round(height * scale)), max(size[1], round(width * scale)))
    if cover[0] * cover[1] > MOST_PIXELS:
        raise UnreadableError(f"it is {height} x {width} pixels, too narrow to be cropped")
    scaled = RESIZE_RULES["area" if scale < 1 else "bilinear"](sample, cover)
    top, left = (cover[0] - size[0]) // 2, (cover[1] - size[1]) // 2
    return scaled[top : top + size[0], left : left + size[1]]


RESIZE_RULES: dict[str, Callable[[Sample, tuple[int, int]], Sample]] = {
    "nearest": _resized(cv2.INTER_NEAREST_EXACT),
    "bilinear": _resized(cv2.INTER_LINEAR_EXACT),
    "bilinear-antialias": bilinear_antialias,
    "area": _resized(cv2.INTER_AREA),
    "bicubic": _resized(cv2.INTER_CUBIC),
    "crop": _crop,
}
"""How an image of another size is brought to the campaign's; "crop" keeps its proportions."""

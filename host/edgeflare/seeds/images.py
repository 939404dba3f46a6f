"""An encoded image file's bytes -> pixels, whatever its colour type and depth."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare.seeds.image_header import apply_orientation, orientation, stated_pixels
from edgeflare.seeds.types import UnreadableError
from edgeflare.types import Sample
from edgeflare_agent.image_spec import MOST_PIXELS
from edgeflare_agent.preprocess import bilinear_antialias

_LOGGING: Any = getattr(cv2.utils, "logging", cv2)  # OpenCV 4 has the functions at the top
_SILENT = 0
_TIFF_HEADERS = (b"II*\0", b"MM\0*")


class Decoded(NamedTuple):
    """An image, uint8 [height, width, 1 or 3], and whether any pixel was transparent."""

    sample: Sample
    transparent: bool


def decode(data: bytes) -> Decoded:
    """Decode the first frame of an encoded image and turn it as its EXIF orientation says.

    16 bits become 8 by rounding value / 257. A palette, 1 bit, CMYK, YCbCr and Lab become RGB or
    grey (without colour profiles). Transparent pixels are laid over black.

    Raises UnreadableError for damaged files, for pixels other than 8 or 16 bits and, before
    anything is decoded, for more than MOST_PIXELS.
    """
    pixels_stated = stated_pixels(data)
    if pixels_stated is None:
        raise UnreadableError(_refusal(data))
    check_pixels(pixels_stated)
    try:
        with _quiet_opencv():
            stored = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise UnreadableError(_refusal(data)) from error
    if stored is None:
        raise UnreadableError(_refusal(data))
    pixels = apply_orientation(np.atleast_3d(stored), orientation(data))
    if pixels.dtype not in (np.uint8, np.uint16):
        raise UnreadableError(
            f"its pixels are {pixels.dtype}; only images of 8 or 16 bits a channel can be used"
        )
    if pixels.shape[2] not in (1, 3, 4):
        raise UnreadableError(f"it has {pixels.shape[2]} channels; 1, 3 or 4 can be used")
    if pixels.shape[2] == 4:
        return _over_black(pixels, is_tiff=data.startswith(_TIFF_HEADERS))
    return Decoded(_rgb(eight_bits(pixels)), transparent=False)


def check_pixels(count: int) -> None:
    """Raise UnreadableError for an image of so many pixels that it isn't read."""
    if count > MOST_PIXELS:
        raise UnreadableError(
            f"it has {count / 1e6:,.0f} megapixels, and images of up to {MOST_PIXELS / 1e6:.0f} are read: "
            "make it smaller"
        )


def eight_bits(pixels: NDArray[Any]) -> Sample:
    """Return uint8 or uint16 pixels as uint8; 0 stays 0 and 65535 becomes 255."""
    if pixels.dtype == np.uint8:
        return pixels
    return ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)


def over_black(colour: Sample, alpha: Sample) -> Sample:
    """Return uint8 colour [..., C] as it shows over black through uint8 alpha [..., 1]."""
    product = colour.astype(np.uint32) * alpha
    return ((product + 127) // 255).astype(np.uint8)


def _over_black(pixels: NDArray[Any], *, is_tiff: bool) -> Decoded:
    alpha = eight_bits(pixels[:, :, 3:])
    transparent = bool((alpha < 255).any())
    colour = _rgb(eight_bits(pixels[:, :, :3]))
    if not transparent:
        return Decoded(colour, transparent=False)
    if not is_tiff:
        return Decoded(over_black(colour, alpha), transparent=True)
    if pixels.dtype == np.uint16:
        raise UnreadableError("a TIFF file of 16 bits with transparency can't be used")
    return Decoded(colour, transparent=True)  # libtiff has multiplied by alpha already


def _rgb(pixels: Sample) -> Sample:
    return np.ascontiguousarray(pixels[:, :, ::-1])


def _refusal(data: bytes) -> str:
    return "it is damaged, or no image of a known format" if data else "it is empty"


@contextmanager
def _quiet_opencv() -> Iterator[None]:
    """Silence OpenCV's log lines: EdgeFlare itself names a file that is skipped."""
    level = _LOGGING.getLogLevel()
    _LOGGING.setLogLevel(_SILENT)
    try:
        yield
    finally:
        _LOGGING.setLogLevel(level)


_LUMA = np.array([299, 587, 114], dtype=np.uint32)  # ITU-R BT.601, in thousandths


def convert_channels(sample: Sample, channels: int) -> Sample:
    """Return uint8 [height, width, 1 or 3] with 1 or 3 channels.

    Grey is copied into red, green and blue; RGB becomes grey as 0.299 R + 0.587 G + 0.114 B
    (ITU-R BT.601), rounded.
    """
    if sample.shape[2] == channels:
        return sample
    if channels == 3:
        return np.repeat(sample, 3, axis=2)
    return ((sample @ _LUMA + 500) // 1000).astype(np.uint8)[:, :, None]


def resize_image(sample: Sample, size: tuple[int, int], rule: str) -> Sample:
    """Return uint8 [height, width, channels] in `size` (height, width), by one of RESIZE_RULES.

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
    """Scale until the image just covers `size`, then cut out its centre. Raises UnreadableError."""
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

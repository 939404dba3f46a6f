"""An encoded image file's bytes -> pixels, whatever its colour type and depth.

Its size is read from the header first, so that no file makes the decoder take more memory than
there is; and so is the EXIF orientation, because OpenCV turns an image only where it also drops its
alpha channel, and not in every version for PNG and WebP; TIFF files it always turns. So the image
is decoded unturned.
"""

import re
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import above_text
from edgeflare.seeds.types import UnreadableError
from edgeflare.types import Sample
from edgeflare_agent.image_spec import MOST_PIXELS
from edgeflare_agent.preprocess import bilinear_antialias

_ORIENTATION_TAG = 0x0112
_TIFF_WIDTHS, _TIFF_HEIGHTS = (256, 322), (257, 323)
"""Tags: of the image, and of the tiles that it is stored in."""
_TIFF_BITS = 258
_TIFF_TYPES = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 16: "Q", 17: "q"}
_JPEG_HEADER = b"\xff\xd8"
_JPEG_MARKER = re.compile(rb"\xff[\x01-\xfe]")
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_JPEG_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD9)}
_JPEG_END = (0xD9, 0xDA)
_PNG_HEADER = b"\x89PNG\r\n\x1a\n"
_EXIF_HEADER = b"Exif\0\0"
_BETWEEN = rb"(?:\s|#[^\r\n]*[\r\n])"
_PNM = re.compile(rb"P[1-6]%b*([0-9]{1,9})%b+([0-9]{1,9})" % (_BETWEEN, _BETWEEN))


def stated_pixels(data: bytes) -> int | None:
    """Return an encoded image's pixels by its header, those of over 16 bits counted several times.

    None where it is none of JPEG, PNG, WebP, TIFF, BMP, GIF, PBM, PGM and PPM, or its header is
    damaged. The libraries that decode these formats decode no more pixels than stated here.
    """
    try:
        return _stated_pixels(data)
    except (struct.error, IndexError, OverflowError, ValueError):
        return None


def _stated_pixels(data: bytes) -> int | None:
    if data.startswith(_JPEG_HEADER):
        return _jpeg_pixels(data)
    if data.startswith(_PNG_HEADER):
        return _png_pixels(data)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        width, height = _webp_size(data)
    elif data[:2] in (b"II", b"MM"):
        return _tiff_pixels(data)
    elif data.startswith(b"BM"):
        is_old = struct.unpack_from("<I", data, 14) == (12,)
        width, height = struct.unpack_from("<HH" if is_old else "<ii", data, 18)
    elif data.startswith(b"GIF8"):
        width, height = struct.unpack_from("<HH", data, 6)
    else:
        found = _PNM.match(data)
        width, height = map(int, found.groups()) if found else (0, 0)
    return abs(width * height) or None


def _jpeg_pixels(data: bytes) -> int | None:
    at = 2
    while marker := _JPEG_MARKER.search(data, at):
        at = marker.end()
        kind = data[at - 1]
        if kind in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 3)
            return int(height * width)
        if kind in _JPEG_END:
            return None
        if kind not in _JPEG_WITHOUT_LENGTH:
            at += struct.unpack_from(">H", data, at)[0]
    return None


def _png_pixels(data: bytes) -> int | None:
    """Return the number of pixels; None where a chunk is cut short."""
    at, name = len(_PNG_HEADER), b""
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, at)
        at += 12 + length
        if at > len(data):
            return None
    width, height = struct.unpack_from(">II", data, 16)
    return int(width * height)


def _webp_size(data: bytes) -> tuple[int, int]:
    if data[12:16] == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return 1 + width, 1 + height
    if data[12:16] == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _tiff_pixels(data: bytes) -> int | None:
    values = _tiff_values(data, (*_TIFF_WIDTHS, *_TIFF_HEIGHTS, _TIFF_BITS))
    width = max(values.get(tag, 0) for tag in _TIFF_WIDTHS)
    height = max(values.get(tag, 0) for tag in _TIFF_HEIGHTS)
    return width * height * ((values.get(_TIFF_BITS, 1) + 15) // 16) or None


def orientation(data: bytes) -> int:
    """Return the EXIF orientation, 1 to 8, of an encoded image; 1 where there is none."""
    try:
        value = _tiff_values(_exif_block(data), (_ORIENTATION_TAG,)).get(_ORIENTATION_TAG, 1)
    except (struct.error, IndexError, OverflowError):
        return 1
    return value if 1 <= value <= 8 else 1


def _apply_orientation(image: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Return an image [height, width, ...] as a viewer shows it, given its EXIF orientation.

    Source: Exif 2.32, section 4.6.4 A, tag Orientation.
    """
    if orientation >= 5:
        image = image.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        image = image[::-1]
    if orientation in (2, 3, 6, 7):
        image = image[:, ::-1]
    return np.ascontiguousarray(image)


def _exif_block(data: bytes) -> bytes:
    if data.startswith(_JPEG_HEADER):
        blocks = _jpeg_segments(data)
    elif data.startswith(_PNG_HEADER):
        blocks = _png_chunks(data)
    elif data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        blocks = _webp_chunks(data)
    else:
        return b""
    return next(blocks, b"").removeprefix(_EXIF_HEADER)


def _jpeg_segments(data: bytes) -> Iterator[bytes]:
    at = 2
    while data[at] == 0xFF and data[at + 1] != 0xDA:
        (length,) = struct.unpack_from(">H", data, at + 2)
        segment = data[at + 4 : at + 2 + length]
        if data[at + 1] == 0xE1 and segment.startswith(_EXIF_HEADER):
            yield segment
        at += 2 + length


def _png_chunks(data: bytes) -> Iterator[bytes]:
    at = len(_PNG_HEADER)
    while at < len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        if name == b"eXIf":
            yield data[at + 8 : at + 8 + length]
        at += 12 + length


def _webp_chunks(data: bytes) -> Iterator[bytes]:
    at = 12
    while at < len(data):
        name, length = struct.unpack_from("<4sI", data, at)
        if name == b"EXIF":
            yield data[at + 8 : at + 8 + length]
        at += 8 + length + length % 2


def _tiff_values(block: bytes, tags: tuple[int, ...]) -> dict[int, int]:
    """Return the largest number of each of these tags in a (Big)TIFF block's first directory."""
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    found: dict[int, int] = {}
    if order is None:
        return found
    is_big = struct.unpack_from(order + "H", block, 2) == (43,)
    address, number, length = ("Q", "Q", 8) if is_big else ("I", "H", 4)
    (directory,) = struct.unpack_from(order + address, block, length)
    (entries,) = struct.unpack_from(order + number, block, directory)
    for entry in range(entries):
        at = directory + struct.calcsize("=" + number) + (4 + 2 * length) * entry
        tag, kind, count = struct.unpack_from(order + "HH" + address, block, at)
        if tag not in tags:
            continue
        values = f"{order}{min(max(count, 1), 4)}{_TIFF_TYPES.get(kind, 'Q')}"
        at += 4 + length
        if count * struct.calcsize(values[0] + values[-1]) > length:
            (at,) = struct.unpack_from(order + address, block, at)
        found[tag] = max(found.get(tag, 0), *struct.unpack_from(values, block, at))
    return found


_LOGGING: Any = getattr(cv2.utils, "logging", cv2)  # OpenCV 4 has the functions at the top
_SILENT = 0
_TIFF_HEADERS = (b"II*\0", b"MM\0*")


class DecodedImage(NamedTuple):
    """An image, uint8 [height, width, 1 or 3], and whether any pixel was transparent."""

    sample: Sample
    transparent: bool


def decode(data: bytes) -> DecodedImage:
    """Decode the first frame of an encoded image and turn it as its EXIF orientation says.

    16 bits become 8 by rounding value / 257. A palette, 1 bit, CMYK, YCbCr and Lab become RGB or
    grey (without colour profiles). Transparent pixels are laid over black.

    Raises UnreadableError for damaged files, for pixels other than 8 or 16 bits and, before
    anything is decoded, for more than MOST_PIXELS.
    """
    pixels_stated = stated_pixels(data)
    if pixels_stated is None:
        raise _refusal(data)
    check_pixels(pixels_stated)
    try:
        with _quiet_opencv():
            stored = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise _refusal(data) from error
    if stored is None:
        raise _refusal(data)
    pixels = _apply_orientation(np.atleast_3d(stored), orientation(data))
    if pixels.dtype not in (np.uint8, np.uint16):
        raise UnreadableError(
            f"its pixels are {pixels.dtype}; only images of 8 or 16 bits a channel can be used"
        )
    if pixels.shape[2] not in (1, 3, 4):
        raise UnreadableError(f"it has {pixels.shape[2]} channels; 1, 3 or 4 can be used")
    if pixels.shape[2] == 4:
        return _over_black(pixels, is_tiff=data.startswith(_TIFF_HEADERS))
    return DecodedImage(_rgb(eight_bits(pixels)), transparent=False)


def check_pixels(count: int) -> None:
    """Raise UnreadableError for an image of more than MOST_PIXELS pixels."""
    if count > MOST_PIXELS:
        raise UnreadableError(
            f"it has {above_text(count / 1e6, MOST_PIXELS / 1e6)} megapixels, and images of up to {MOST_PIXELS / 1e6:.0f} "
            "are read: make it smaller"
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


def _over_black(pixels: NDArray[Any], *, is_tiff: bool) -> DecodedImage:
    alpha = eight_bits(pixels[:, :, 3:])
    transparent = bool((alpha < 255).any())
    colour = _rgb(eight_bits(pixels[:, :, :3]))
    if not transparent:
        return DecodedImage(colour, transparent=False)
    if not is_tiff:
        return DecodedImage(over_black(colour, alpha), transparent=True)
    if pixels.dtype == np.uint16:
        raise UnreadableError("a TIFF file of 16 bits with transparency can't be used")
    return DecodedImage(colour, transparent=True)  # libtiff has multiplied by alpha already


def _rgb(pixels: Sample) -> Sample:
    return np.ascontiguousarray(pixels[:, :, ::-1])


def _refusal(data: bytes) -> UnreadableError:
    return UnreadableError(
        "it is damaged, or no image of a known format" if data else "it is empty"
    )


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


_PADDING = 114
"""The grey that YOLO's letterbox fills the borders with."""


def _letterbox(sample: Sample, size: tuple[int, int]) -> Sample:
    """Scale until the image just fits in `size`, centred, and fill the rest with grey (114).

    Where the rest is odd, the lower or right border has the pixel more. Source: Ultralytics
    `LetterBox` (`auto=False`). Differences: interpolated by "bilinear" here, to within a level of
    `cv2.INTER_LINEAR`; an image too narrow to keep a pixel's width keeps one.
    """
    height, width = sample.shape[:2]
    scale = min(size[0] / height, size[1] / width)
    fit = (max(1, round(height * scale)), max(1, round(width * scale)))
    top, left = (size[0] - fit[0]) // 2, (size[1] - fit[1]) // 2
    boxed = np.full((*size, sample.shape[2]), _PADDING, np.uint8)
    boxed[top : top + fit[0], left : left + fit[1]] = resize_image(sample, fit, "bilinear")
    return boxed


RESIZE_RULES: dict[str, Callable[[Sample, tuple[int, int]], Sample]] = {
    "nearest": _resized(cv2.INTER_NEAREST_EXACT),
    "bilinear": _resized(cv2.INTER_LINEAR_EXACT),
    "bilinear-antialias": bilinear_antialias,
    "area": _resized(cv2.INTER_AREA),
    "bicubic": _resized(cv2.INTER_CUBIC),
    "crop": _crop,
    "letterbox": _letterbox,
}
"""How an image of another size is brought to the campaign's.

"crop" and "letterbox" keep its proportions.
"""

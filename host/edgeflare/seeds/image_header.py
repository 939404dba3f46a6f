"""Size and EXIF orientation of an image file, read from its header before it is decoded.

The size, so that no file makes the decoder take more memory than there is. The orientation, because
OpenCV turns an image only where it also drops its alpha channel, and not in every version for PNG
and WebP; TIFF files it always turns. So the tag is read here and the image decoded unturned.
"""

import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def apply_orientation(image: NDArray[Any], orientation: int) -> NDArray[Any]:
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

"""The EXIF orientation of JPEG, PNG and WebP files.

OpenCV turns an image only where it also drops its alpha channel, and not in every version for PNG
and WebP; TIFF files it always turns. So the tag is read here and the image decoded unturned.
"""

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ORIENTATION_TAG = 0x0112
_JPEG_HEADER = b"\xff\xd8"
_PNG_HEADER = b"\x89PNG\r\n\x1a\n"
_EXIF_HEADER = b"Exif\0\0"


def orientation(data: bytes) -> int:
    """Return the EXIF orientation, 1 to 8, of an encoded image; 1 where there is none."""
    try:
        return _from_tiff(_exif_block(data))
    except (struct.error, IndexError):
        return 1


def turned(image: NDArray[Any], orientation: int) -> NDArray[Any]:
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


def _from_tiff(block: bytes) -> int:
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    if order is None:
        return 1
    (directory,) = struct.unpack_from(order + "I", block, 4)
    (entries,) = struct.unpack_from(order + "H", block, directory)
    for entry in range(entries):
        tag, _, _, value = struct.unpack_from(order + "HHIH", block, directory + 2 + 12 * entry)
        if tag == _ORIENTATION_TAG:
            return value if 1 <= value <= 8 else 1
    return 1

"""Samples as small picture files for a page."""

from typing import NamedTuple

import cv2

from edgeflare.analysis.pictures import png
from edgeflare.errors import StoreError
from edgeflare.types import Sample

EXACT_SIDE = 96
"""Pictures up to this side length, in pixels, are kept pixel by pixel."""

THUMBNAIL_SIDE = 224
_QUALITY = 82


class Media(NamedTuple):
    """A picture's or sound's file: its content, its media type and its ending."""

    data: bytes
    media_type: str
    ending: str


def picture(image: Sample) -> Media:
    """Return uint8 [height, width, 1 or 3], grey or RGB, as a file.

    Up to 96 pixels on the longer side it is a PNG with exactly its pixels, above that a JPEG of at most 224.
    Raises StoreError for a shape that is no image's.
    """
    height, width = image.shape[:2]
    if max(height, width) <= EXACT_SIDE:
        return Media(png(image), "image/png", "png")
    scale = min(1.0, THUMBNAIL_SIDE / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    if small.ndim == 3:
        small = small[:, :, ::-1]  # OpenCV writes BGR
    done, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    if not done:
        raise StoreError(f"An image of shape {list(image.shape)} can't be written as JPEG.")
    return Media(data.tobytes(), "image/jpeg", "jpg")

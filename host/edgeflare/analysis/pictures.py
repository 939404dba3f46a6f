"""Seed, triggering input and their difference as pictures."""

import struct
import zlib
from typing import NamedTuple

import cv2
import numpy as np

from edgeflare.analysis.colours import Palette
from edgeflare.analysis.spectrograms import Shades
from edgeflare.errors import StoreError
from edgeflare.types import Sample

_MID_GREY = 128
_LARGEST_STEP = 127
_PANEL_SIDE = 256
_GAP = 8


class Difference(NamedTuple):
    """An image of a signed difference, uint8, mid-grey (128) where nothing changed.

    A change of d levels is shown as 128 + amplification * d; the largest one just fits.
    """

    picture: Sample
    amplification: float


def difference(seed: Sample, trigger: Sample) -> Difference:
    """Return trigger - seed of two uint8 images [height, width, channels], amplified to be seen."""
    change = trigger.astype(np.int16) - seed
    largest = int(np.abs(change).max(initial=0))
    amplification = _LARGEST_STEP / largest if largest else 1.0
    picture = np.rint(_MID_GREY + amplification * change).astype(np.uint8)
    return Difference(picture, amplification)


def panel(*images: Sample) -> Sample:
    """Return images of one shape side by side, with white between them.

    Those whose longer side is below 256 pixels are enlarged by the largest whole factor that keeps
    it at most that, every pixel a square.
    """
    factor = max(1, _PANEL_SIDE // max(images[0].shape[:2]))
    enlarged = [image.repeat(factor, axis=0).repeat(factor, axis=1) for image in images]
    gap = np.full((enlarged[0].shape[0], _GAP, enlarged[0].shape[2]), 255, np.uint8)
    pieces = [piece for image in enlarged for piece in (gap, image)]
    return np.concatenate(pieces[1:], axis=1)


def indexed_png(shades: Shades, palette: Palette) -> bytes:
    """Return uint8 [height, width], numbers of colours of a palette, as a PNG file with that palette."""
    height, width = shades.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    rows = np.pad(shades, ((0, 0), (1, 0)))  # each row begins with its filter: none
    chunks = (
        (b"IHDR", head),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def png(image: Sample) -> bytes:
    """Return uint8 [height, width, 1 or 3], grey or RGB, as a PNG file with exactly its pixels."""
    done, data = cv2.imencode(".png", image[:, :, ::-1])
    if not done:
        raise StoreError(f"An image of shape {list(image.shape)} can't be written as PNG.")
    return data.tobytes()

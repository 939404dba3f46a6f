"""Whether a WAV or AIFF file was cut short: libsndfile reads what is there and doesn't tell."""

import os
import struct
from typing import BinaryIO

_LARGEST_CHUNK = 0x7FFFF000  # programs that write to a pipe state this or more, or nothing


def bytes_missing(file: BinaryIO) -> tuple[int, int] | None:
    """Return (bytes of sound there, bytes that the header promises) of a file cut short, else None.

    None as well for a header that promises nothing because it was written to a pipe, and for other formats.
    Raises OSError.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(12)
    order, wanted = {b"RIFF": ("<", b"data"), b"FORM": (">", b"SSND")}.get(head[:4], ("", b""))
    at = 12
    while order and at + 8 <= size:
        file.seek(at)
        name, length = struct.unpack(order + "4sI", file.read(8))
        there = size - at - 8
        if name == wanted:
            return (there, length) if there < length < _LARGEST_CHUNK else None
        at += 8 + length + length % 2
    return None

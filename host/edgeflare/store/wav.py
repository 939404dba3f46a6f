"""Audio samples as WAV files that any player opens: the same bytes for the same samples, always.

Written here and not by libsndfile, which stamps a time into files of floats: a sample's digest is that of its file.
"""

import struct

import numpy as np

from edgeflare.types import Sample

_HEADER = struct.Struct("<4sI4s 4sIHHIIHH 4sII 4sI")
_FLOATS = 3
_BYTES = 4
_LARGEST = 2**32 - _HEADER.size - 1


def wav_bytes(sample: Sample, rate: int) -> bytes:
    """Return a WAV file of float32 [samples], mono at `rate` Hz. Raises ValueError for over 4 GiB."""
    data = np.ascontiguousarray(sample, dtype="<f4").tobytes()
    if len(data) > _LARGEST:
        raise ValueError(f"{len(sample)} samples are too many for a WAV file")
    header = _HEADER.pack(
        *(b"RIFF", _HEADER.size - 8 + len(data), b"WAVE"),
        *(b"fmt ", 16, _FLOATS, 1, rate, rate * _BYTES, _BYTES, 8 * _BYTES),
        *(b"fact", 4, sample.size),
        *(b"data", len(data)),
    )
    return header + data


def read_wav(data: bytes) -> tuple[Sample, int]:
    """Return float32 [samples] and the rate in Hz of what `wav_bytes` made. Raises ValueError for another file."""
    try:
        riff, _, wave, _, _, form, channels, rate, *_ = _HEADER.unpack_from(data)
    except struct.error as error:
        raise ValueError("it is too short for a WAV file") from error
    if (riff, wave, form, channels) != (b"RIFF", b"WAVE", _FLOATS, 1):
        raise ValueError("it is no WAV file of mono floats")
    return np.frombuffer(data, "<f4", offset=_HEADER.size).astype(np.float32), rate

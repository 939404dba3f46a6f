"""Audio samples as files that every player plays."""

import io
import wave

import numpy as np

from edgeflare.types import Sample

_LEVELS = 32768.0


def pcm_wav(sample: Sample, rate: int) -> bytes:
    """Return mono float32 [samples] in [-1, 1] at `rate` Hz as a WAV file of 16-bit PCM.

    What was read from a file of 16 bits comes back bit by bit; else a sample is off by half a level at most, and one
    outside of the range by what it is outside. Not every player takes a WAV file of floats, as a campaign has them.
    """
    levels = np.rint(np.nan_to_num(sample.astype(np.float64)) * _LEVELS)
    data = np.clip(levels, -_LEVELS, _LEVELS - 1).astype("<i2").tobytes()
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(data)
    return buffer.getvalue()

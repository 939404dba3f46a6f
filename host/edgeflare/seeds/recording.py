"""A recording, block by block: an audio file as libsndfile reads it, or a row of an archive."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from edgeflare import extras
from edgeflare.seeds.digests import sha256_of
from edgeflare.seeds.records import UnreadableError
from edgeflare.seeds.wav_header import bytes_missing

_BLOCK_VALUES = 1 << 17
_MOST_FRAMES = 1 << 62  # libsndfile says about this much where the header doesn't tell
_MP3_SHARE = 0.9  # an MP3's length may be estimated from its bit rate
_FULL_SCALE = 32767 / 32768
_FULL_SCALE_8_BITS = 127 / 128


@dataclass(frozen=True)
class Recording:
    """What can be read of one place, once: `blocks` gives float32 [frames, channels], 16 bits as value / 32768.

    Iterating it raises UnreadableError where the rest is damaged or missing. `rate` is in Hz, `seconds` the
    length that the header states, None where it doesn't tell. A sample of `full_scale` or more is at the end of
    what the file's format can hold.
    """

    rate: int
    channels: int
    seconds: float | None
    full_scale: float
    digest: str
    blocks: Iterator[NDArray[np.float32]]


@contextmanager
def open_recording(path: Path) -> Iterator[Recording]:
    """Open an audio file of any format that libsndfile reads, never as a whole in memory.

    Raises UnreadableError where it can't be used, UsageError where soundfile is missing.
    """
    soundfile = extras.soundfile()
    if path.exists() and not path.is_file():
        raise UnreadableError("it is no ordinary file")
    try:
        with path.open("rb") as file:
            digest = sha256_of(file)
            _check_whole(file)
        # By its path: what goes wrong in an open file's own seek is printed, with a traceback.
        with soundfile.SoundFile(path) as sound:
            # It would seek after each block, which isn't exact in an MP3.
            sound.seekable = lambda: False
            yield _of_sound(sound, digest, soundfile.SoundFileError)
    except OSError as error:
        raise UnreadableError(f"it can't be read: {error.strerror}") from error
    except soundfile.SoundFileError as error:
        raise UnreadableError("it is damaged, or no audio of a known format") from error


def recording_of_row(row: NDArray[Any], rate: int, digest: str) -> Recording:
    """Return a row of an archive, float32 or int16 [samples], as a recording."""
    samples = row.astype(np.float32)
    if row.dtype == np.int16:
        samples /= 32768
    blocks = iter([samples[:, None]])
    return Recording(rate, 1, len(row) / rate, _FULL_SCALE, digest, blocks)


def _check_whole(file: BinaryIO) -> None:
    if file.tell() == 0:
        raise UnreadableError("it is empty")
    missing = bytes_missing(file)
    if missing is not None:
        raise UnreadableError(
            f"it is cut short: its header promises {missing[1]} bytes of sound, {missing[0]} are there"
        )


def _of_sound(sound: Any, digest: str, error: type[Exception]) -> Recording:
    stated = sound.frames if 0 < sound.frames < _MOST_FRAMES else None
    least = (stated or 0) * (_MP3_SHARE if sound.format == "MP3" else 1)
    frames = max(1, _BLOCK_VALUES // sound.channels)
    eight_bits = sound.subtype in ("PCM_U8", "PCM_S8")
    return Recording(
        sound.samplerate,
        sound.channels,
        stated and stated / sound.samplerate,
        _FULL_SCALE_8_BITS if eight_bits else _FULL_SCALE,
        digest,
        _blocks(
            lambda: sound.read(frames, dtype="float32", always_2d=True),
            error,
            least,
            sound.samplerate,
        ),
    )


def _blocks(
    read: Callable[[], NDArray[np.float32]], error: type[Exception], least: float, rate: int
) -> Iterator[NDArray[np.float32]]:
    """Yield what `read` gives until that is nothing; it must be `least` frames in all."""
    done = 0
    while True:
        try:
            block = read()
        except error as reason:
            where = f" somewhere after {done / rate:.1f} s" if done else ""
            raise UnreadableError(f"its sound is damaged{where}") from reason
        if not len(block):
            break
        done += len(block)
        yield block
    if done < least:
        raise UnreadableError(
            f"it is cut short: {least / rate:.1f} s by its header, {done / rate:.1f} s are there"
        )

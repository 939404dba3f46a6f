"""A recording -> mono clips of the model's rate, no longer than it takes."""

import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare._internal.text import distinct_number
from edgeflare.errors import SeedError
from edgeflare.seeds.types import UnreadableError, sha256_of
from edgeflare.words.inputs import HOW_TO_CUT

_LARGEST_CHUNK = 0x7FFFF000  # programs that write to a pipe state this or more, or nothing


def _bytes_missing(file: BinaryIO) -> tuple[int, int] | None:
    """Return (bytes of sound there, bytes that the header promises) of a file cut short, else None.

    None as well for a header that promises nothing because it was written to a pipe, and for other
    formats. Raises OSError.
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


_BLOCK_VALUES = 1 << 17
_MOST_FRAMES = 1 << 62  # libsndfile's number where the header states none
_MP3_SHARE = 0.9  # an MP3's length may be estimated from its bit rate
_FULL_SCALE = 32767 / 32768
_FULL_SCALE_8_BITS = 127 / 128


@dataclass(frozen=True)
class Recording:
    """A recording, to be read once: `blocks` of float32 [frames, channels], 16 bits / 32768.

    Iterating it raises UnreadableError where the rest is damaged or missing. `rate` is in Hz,
    `seconds` the length that the header states, None where it states none. A sample of
    `full_scale` or more is at the end of what the file's format can hold.
    """

    rate: int
    channels: int
    seconds: float | None
    full_scale: float
    digest: str
    blocks: Iterator[NDArray[np.float32]]


@contextmanager
def open_recording(path: Path, digest: str | None = None) -> Iterator[Recording]:
    """Open an audio file of any format that libsndfile reads, never as a whole in memory.

    `digest`: that of the file where it was opened before; it isn't read through then.
    Raises UnreadableError where it can't be used, UsageError where soundfile is missing.
    """
    soundfile = extras.soundfile()
    if path.exists() and not path.is_file():
        raise UnreadableError("it is no ordinary file")
    try:
        if digest is None:
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
    missing = _bytes_missing(file)
    if missing is not None:
        raise UnreadableError(
            f"it is cut short: its header promises {missing[1]} bytes of sound, {missing[0]} are "
            "there"
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
            raise UnreadableError(
                f"its sound is damaged{f' somewhere after {done / rate:.1f} s' if done else ''}"
            ) from reason
        if not len(block):
            break
        done += len(block)
        yield block
    if done < least:
        raise UnreadableError(
            f"it is cut short: {distinct_number(least / rate, done / rate)} s by its header, "
            f"{distinct_number(done / rate, least / rate)} s are there"
        )


Cut: TypeAlias = Literal["first", "windows"]
CUT_RULES: tuple[Cut, ...] = ("first", "windows")

OPEN_WINDOW_S = 30
"""The length in seconds of the pieces that are cut for a model that takes any length."""

_LONGEST_S = 600
_CLIPPED_RUN = 3
_FURTHEST_RATE = 100  # times the model's, or a part of it: no recording of sound
_MOST_RESAMPLED = 1 << 18  # samples at a time, however low the rate that they come from
_Samples: TypeAlias = NDArray[np.float32]


class AudioRules(NamedTuple):
    """How clips are converted to the model's `rate` in Hz and length in `samples` (None: any)."""

    rate: int
    samples: int | None
    cut: Cut | None
    resample: bool

    @property
    def window(self) -> int:
        """The most samples of one clip."""
        if self.samples is not None:
            return self.samples
        return self.rate * (OPEN_WINDOW_S if self.cut else _LONGEST_S)

    def seconds(self, samples: int) -> str:
        """Return "0.25 s" for a number of samples."""
        return f"{samples / self.rate:g} s"


class Clip(NamedTuple):
    """Float32 [samples], unchecked; `start` is its place in a recording that is cut, else None.

    `of_longer`: there is more of the recording than this.
    """

    start: int | None
    samples: _Samples
    of_longer: bool


class Clips:
    """The clips of one recording, each read when it is needed; at most one is in memory.

    Iterating raises SeedError, naming the option, where the recording has another rate or is longer
    than the model takes and there is no rule; UnreadableError where it can't be used, or its rest
    can't. `clipped` then says whether at least 3 samples in a row were at full scale, `dropped`
    whether less than half a window was left at the end.
    """

    def __init__(self, name: str, recording: Recording, rules: AudioRules) -> None:
        self._name = name
        self._recording = recording
        self._rules = rules
        self.clipped = False
        self.dropped = False

    def __iter__(self) -> Iterator[Clip]:
        rules, rate = self._rules, self._recording.rate
        blocks = self._mono()
        if rate != rules.rate:
            if not rules.resample:
                raise SeedError(
                    f"the audio of {self._name} has a rate of {rate} Hz, the model takes "
                    f"{rules.rate} Hz; resample such files with --resample-audio, or convert them"
                )
            if max(rate, rules.rate) > _FURTHEST_RATE * min(rate, rules.rate):
                raise UnreadableError(f"its rate is {rate} Hz")
            blocks = _resampled(blocks, rate, rules.rate)
        return self._cut(blocks)

    def _cut(self, blocks: Iterator[_Samples]) -> Iterator[Clip]:
        window = self._rules.window
        held: list[_Samples] = []
        start = 0
        for block in blocks:
            held.append(block)
            if sum(map(len, held)) <= window:
                continue
            rest = np.concatenate(held)
            while len(rest) > window:
                if self._rules.cut is None:
                    self._refuse()
                at = start if self._rules.cut == "windows" else None
                yield Clip(at, rest[:window].copy(), of_longer=True)
                if at is None:
                    return
                rest = rest[window:]
                start += window
            held = [rest]
        last = np.concatenate(held) if held else np.empty(0, np.float32)
        if start == 0 and not len(last):
            raise UnreadableError("it has no samples")
        if start == 0 or 2 * len(last) >= window:
            yield Clip(start or None, last, of_longer=False)
        else:
            self.dropped = True

    def _refuse(self) -> None:
        rules = self._rules
        if rules.samples is None:
            raise UnreadableError(
                f"it is longer than {_LONGEST_S // 60} minutes; {HOW_TO_CUT}, of {OPEN_WINDOW_S} s"
            )
        stated = self._recording.seconds
        takes = rules.seconds(rules.samples)
        length = f"{stated:.2f} s" if stated else f"more than {takes}"
        if stated and f"{stated:.2f}" == f"{rules.samples / rules.rate:.2f}":
            length, takes = f"{round(stated * rules.rate)} samples", f"{rules.samples}"
        raise SeedError(
            f"the audio of {self._name} is {length} long, the model takes {takes}; say what to "
            f"take: {HOW_TO_CUT}"
        )

    def _mono(self) -> Iterator[_Samples]:
        """Yield the mean of the channels, float32 [frames] each, and note whether it is clipped."""
        before = np.empty((0, self._recording.channels), np.float32)
        for block in self._recording.blocks:
            if not self.clipped:
                watched = np.concatenate([before, block])
                self.clipped = _is_clipped(watched, self._recording.full_scale)
                before = watched[1 - _CLIPPED_RUN :].copy()
            yield block[:, 0] if block.shape[1] == 1 else _mean(block)


def _mean(block: NDArray[np.float32]) -> _Samples:
    total = block[:, 0].astype(np.float64)
    for channel in range(1, block.shape[1]):
        total += block[:, channel]
    mean: _Samples = (total / block.shape[1]).astype(np.float32)
    return mean


def _is_clipped(block: NDArray[np.float32], full_scale: float) -> bool:
    """Return whether a channel has several samples in a row at full scale."""
    for end in (block >= full_scale, block <= -full_scale):
        run = end[: 1 - _CLIPPED_RUN].copy()
        for shift in range(1, _CLIPPED_RUN):
            run &= end[shift : len(end) - _CLIPPED_RUN + 1 + shift]
        if run.any():
            return True
    return False


def _resampled(blocks: Iterator[_Samples], rate: int, wanted: int) -> Iterator[_Samples]:
    stream = extras.soxr().ResampleStream(rate, wanted, 1, dtype="float32", quality="HQ")
    most = max(1, _MOST_RESAMPLED * rate // wanted)
    for block in blocks:
        for at in range(0, len(block), most):
            piece = np.ascontiguousarray(block[at : at + most])
            yield stream.resample_chunk(piece, last=False)
    yield stream.resample_chunk(np.empty(0, np.float32), last=True)

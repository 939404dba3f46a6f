"""A recording -> mono clips of the model's rate, no longer than it takes."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare import extras
from edgeflare.errors import SeedError
from edgeflare.seeds.recording import Recording
from edgeflare.seeds.records import UnreadableError

Cut: TypeAlias = Literal["first", "windows"]
CUT_RULES: tuple[Cut, ...] = ("first", "windows")

OPEN_WINDOW_S = 30
"""The length in seconds of the pieces that are cut for a model that takes any length."""

_LONGEST_S = 600
_CLIPPED_RUN = 3
_FURTHEST_RATE = 100  # times the model's, or a part of it: no recording of sound
_MOST_RESAMPLED = 1 << 18  # samples at a time, however low the rate that they come from
_Samples: TypeAlias = NDArray[np.float32]


class Rules(NamedTuple):
    """What clips are brought to: the model's `rate` in Hz and length in `samples` (None: any), and how."""

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
    """Float32 [samples], not yet checked; where in the recording it begins, None where that was not cut.

    `of_longer`: there is more of the recording than this.
    """

    start: int | None
    samples: _Samples
    of_longer: bool


class Clips:
    """The clips of one recording, each read when it is asked for; at most one is in memory.

    Iterating raises SeedError, naming the option, where the recording has another rate or is longer than the
    model takes and there is no rule; UnreadableError where it can't be used, or its rest can't. `clipped` then
    says whether at least 3 samples in a row were at full scale, `dropped` whether less than half a window was left
    at the end.
    """

    def __init__(self, name: str, recording: Recording, rules: Rules) -> None:
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
                    f"The audio of {self._name} has a rate of {rate} Hz, the model takes {rules.rate} Hz; "
                    "resample such files with --resample-audio, or convert them."
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
        how = "--cut first takes its beginning, --cut windows one piece after the other"
        if rules.samples is None:
            raise UnreadableError(
                f"it is longer than {_LONGEST_S // 60} minutes; {how}, of {OPEN_WINDOW_S} s"
            )
        stated = self._recording.seconds
        takes = rules.seconds(rules.samples)
        length = f"{stated:.2f} s" if stated else f"more than {takes}"
        if stated and f"{stated:.2f}" == f"{rules.samples / rules.rate:.2f}":
            length, takes = f"{round(stated * rules.rate)} samples", f"{rules.samples}"
        raise SeedError(
            f"The audio of {self._name} is {length} long, the model takes {takes}; say what to take: {how}."
        )

    def _mono(self) -> Iterator[_Samples]:
        """Yield the mean of the channels, float32 [frames] each, and note whether it is clipped."""
        before = np.empty((0, self._recording.channels), np.float32)
        for block in self._recording.blocks:
            if not self.clipped:
                watched = np.concatenate([before, block])
                self.clipped = _is_clipped(watched, self._recording.full_scale)
                before = watched[1 - _CLIPPED_RUN :]
            yield block[:, 0] if block.shape[1] == 1 else _mean(block)


def _mean(block: NDArray[np.float32]) -> _Samples:
    total = block[:, 0].astype(np.float64)
    for channel in range(1, block.shape[1]):
        total += block[:, channel]
    mean: _Samples = (total / block.shape[1]).astype(np.float32)
    return mean


def _is_clipped(block: NDArray[np.float32], full_scale: float) -> bool:
    """Return whether a channel has so many samples in a row at one end of the scale, and not beyond it."""
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

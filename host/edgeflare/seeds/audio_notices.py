"""Counts of what was done to the audio that was read, as notices for the user."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from edgeflare.seeds.clips import Clip, Rules
from edgeflare.seeds.recording import Recording

_LONG_WINDOW_S = 10
"""A model whose input is as long takes clips of any length up to it: silence at their end is its ordinary case."""


@dataclass
class Tally:
    """Counts of recordings, of clips, and of recordings by their rate in Hz where it was another."""

    mixed: int = 0
    resampled: Counter[int] = field(default_factory=Counter)
    cut: int = 0
    windows: int = 0
    dropped: int = 0
    clipped: int = 0
    beyond: int = 0
    shorter: int = 0
    silent: int = 0
    repeated: int = 0

    def add(self, recording: Recording, clip: Clip, rules: Rules, *, is_first: bool) -> None:
        """Count a clip that is taken, and its recording with the first of them."""
        if is_first:
            self.mixed += recording.channels > 1
            self.cut += clip.of_longer
            if recording.rate != rules.rate:
                self.resampled[recording.rate] += 1
        self.windows += clip.start is not None
        peak = float(np.abs(clip.samples).max())
        self.beyond += peak > 1
        self.silent += peak == 0
        if rules.samples is not None and rules.samples < _LONG_WINDOW_S * rules.rate:
            self.shorter += len(clip.samples) < rules.samples

    def notices(self, rules: Rules) -> Iterator[str]:
        """Yield a sentence for each count that is not 0."""
        if self.mixed:
            yield f"{_recordings(self.mixed)} had several channels; their mean was taken."
        for rate, count in sorted(self.resampled.items()):
            rest = f"; there is nothing in it above {rate / 2:g} Hz" if rate < rules.rate else ""
            yield f"{_recordings(count)} of {rate} Hz resampled to {rules.rate} Hz{rest}."
        if self.cut:
            yield self._of_cut(rules)
        if self.shorter:
            yield (
                f"{_clips(self.shorter)} shorter than the {rules.seconds(rules.window)} that the model takes; "
                "its preprocessing adds silence at the end."
            )
        if self.clipped:
            yield (
                f"{_recordings(self.clipped)} clipped: several samples in a row are at full scale; "
                "all were kept."
            )
        if self.beyond:
            yield f"{_clips(self.beyond)} went beyond [-1, 1], and end there now."
        if self.silent:
            yield f"{_clips(self.silent)} silent, all samples 0; all were kept."
        if self.repeated:
            yield f"{_clips(self.repeated)} had the same samples as another one; all were kept."

    def _of_cut(self, rules: Rules) -> str:
        length = rules.seconds(rules.window)
        longer = f"{_recordings(self.cut)} longer than {length}"
        if rules.cut == "first":
            return f"{longer}; the first {length} of each was taken."
        short = f"; the rest of {self.dropped}, less than half a window, was dropped"
        dropped = short if self.dropped else ""
        return f"{longer}, cut into {self.windows} windows of {length}{dropped}."


def _recordings(count: int) -> str:
    return "1 recording" if count == 1 else f"{count} recordings"


def _clips(count: int) -> str:
    return "1 clip" if count == 1 else f"{count} clips"

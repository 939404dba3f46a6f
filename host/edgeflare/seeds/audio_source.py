"""Seeds from a folder of audio files, one file, or an `.npz` archive, one by one."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from edgeflare._internal import extras
from edgeflare.errors import SeedError
from edgeflare.seeds.audio_files import (
    CUT_RULES,
    AudioRules,
    Clip,
    Clips,
    Cut,
    Recording,
    open_recording,
    recording_of_row,
)
from edgeflare.seeds.npz import Archive
from edgeflare.seeds.source import Found, MediaItem, MediaReader, MediaSeeds
from edgeflare.seeds.types import AUDIO, SeedSource, UnreadableError
from edgeflare.types import Sample, SeedInput, Skipped
from edgeflare.words.inputs import audio_notices, taken_before

_LONG_WINDOW_S = 10
"""A model whose input is as long usually takes shorter clips, with silence at the end."""


@dataclass
class ClipCounts:
    """Counts of recordings, of clips, and of resampled recordings by their rate in Hz."""

    clips: int = 0
    recordings: int = 0
    mixed: int = 0
    resampled: Counter[int] = field(default_factory=Counter)
    cut: int = 0
    windows: int = 0
    dropped: int = 0
    clipped: int = 0
    beyond: int = 0
    shorter: int = 0
    silent: int = 0

    def add(self, recording: Recording, clip: Clip, rules: AudioRules, *, is_first: bool) -> None:
        """Count a clip that is taken, and its recording with the first of them."""
        self.clips += 1
        if is_first:
            self.recordings += 1
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


@dataclass
class _Progress:
    """How far a recording was read: its clips, those that were given, and whether there are more."""

    clips: int = 0
    given: int = 0
    ended: bool = False
    is_clipped: bool = False
    digest: str | None = None


_Opening: TypeAlias = Callable[[str | None], AbstractContextManager[Recording]]
"""Opens a recording; takes its digest where it is known."""
_MOST_OPEN = 64
"""Recordings that are open at a time, each a file."""
_MOST_OPEN_BYTES = 1 << 28
"""Memory of all that are open, and the largest archive of which rows stay open, each as a whole."""
_OPEN_BYTES = 1 << 21
_OPEN_BYTES_A_SAMPLE = 24
"""Memory of a recording that is open, as measured: of its blocks, and of copies of its window."""
_OTHER_SCALE = 16.0  # beyond this a float file isn't loud, it is in other units


def open_audio_seeds(
    source: Path,
    *,
    rate: int,
    samples: int | None,
    cut: Cut | None = None,
    resample: bool = False,
    labels: dict[str, int] | None = None,
    limit: int | None = None,
) -> SeedSource:
    """Find seed clips; each is read and converted to mono float32 [samples] when it is needed.

    `source` is a folder (as for images), one audio file of a format that libsndfile reads (WAV,
    FLAC, Ogg, AIFF, MP3), or an `.npz` with `audio`, float32 or int16 [N, samples], its `rate` and
    maybe `labels`. A sample of 16 bits is value / 32768; several channels are mixed to their mean.
    WAV, FLAC, AIFF and `.npz` give the same bits on every machine; compressed and resampled audio
    with the same libraries.

    `rate` (Hz) and `samples` are the model's; None: it takes any length. Shorter clips are kept as
    they are. `cut` says what becomes of longer ones: "first" takes their beginning, "windows" one
    piece after the other, with ids such as "a.wav@1.000s", the last of them at least half as long;
    pieces are as long as the model's input, or 30 s. Without a rule a longer one is refused; where
    the model takes any length, only above 10 minutes, and skipped. `resample` brings other rates to
    `rate` (soxr, HQ); else they are refused. `labels` and `limit` are as of `open_seeds`.

    Raises SeedError where the source as a whole can't be used; iterating raises it, too. Raises
    UsageError where a library is missing.
    """
    if cut is not None and cut not in CUT_RULES:
        raise SeedError(f"unknown rule {cut!r} for cutting; known are {', '.join(CUT_RULES)}")
    source = Path(source)
    if source.suffix.lower() != ".npz":
        extras.soundfile()
    found = _READER.find(source, labels, limit)
    return _AudioSeeds(source, found, AudioRules(rate, samples, cut, resample), limit)


class _AudioSeeds(MediaSeeds[_Opening]):
    def __init__(
        self, source: Path, found: Found[_Opening], rules: AudioRules, limit: int | None
    ) -> None:
        super().__init__(source, found, limit, "recording")
        self._rules = rules
        if rules.cut == "windows":
            self.total = None
        is_archive = source.is_file() and source.suffix.lower() == ".npz"
        are_rows_large = is_archive and source.stat().st_size > _MOST_OPEN_BYTES
        of_each = _OPEN_BYTES + _OPEN_BYTES_A_SAMPLE * rules.window
        most_open = min(_MOST_OPEN, _MOST_OPEN_BYTES // of_each)
        self._most_open = 1 if are_rows_large else max(1, most_open)

    def __iter__(self) -> Iterator[SeedInput]:
        self._tally = ClipCounts()
        return super().__iter__()

    def _counts(self, repeated: int) -> Iterator[str]:
        rules, counts = self._rules, {**vars(self._tally), "repeated": repeated}
        window = rules.seconds(rules.window)
        return audio_notices(
            counts, rate=rules.rate, window=window, cut=rules.cut, limit=self._limit
        )

    def _visits(self) -> Generator[Generator[SeedInput, None, None], None, None]:
        """Yield the seeds of each recording; with a limit a window of each, then the next one of each.

        Windows of one recording are alike, so a limit takes as many recordings as it can. They stay
        open between two windows; of more than `_MOST_OPEN` the others are opened again for each and
        read from the start.
        """
        if self._rules.cut != "windows" or self._limit is None:
            yield from super()._visits()
            return
        begun: dict[str, _Progress] = {}
        reading: dict[str, tuple[MediaItem[_Opening], Generator[SeedInput, None, None]]] = {}
        items: Iterable[MediaItem[_Opening]] = self._found.items()
        waiting = True
        try:
            while waiting:
                for item in items:
                    progress = begun.setdefault(item.id, _Progress())
                    if progress.ended:
                        continue
                    if item.id not in reading:
                        reading[item.id] = (item, self._seeds_of(item, progress))
                    yield _next_of(reading[item.id][1])
                    if progress.ended or len(reading) > self._most_open:
                        reading.pop(item.id)[1].close()
                names = [name for name, progress in begun.items() if not progress.ended]
                are_open = all(name in reading for name in names)
                items = [reading[name][0] for name in names] if are_open else self._found.items()
                waiting = bool(names)
        finally:
            for _, seeds in reading.values():
                seeds.close()

    def _seeds_of(
        self, item: MediaItem[_Opening], progress: _Progress | None = None
    ) -> Generator[SeedInput, None, None]:
        """Yield a recording's seeds after those of its `progress`."""
        done, tally = progress or _Progress(), self._tally
        begun = done.clips
        try:
            with item.read()(done.digest) as recording:
                done.digest = recording.digest
                clips = Clips(item.id, recording, self._rules)
                try:
                    for place, clip in enumerate(clips):
                        if place < begun:
                            continue
                        done.clips = place + 1
                        seed_id = _id(item.id, clip, self._rules.rate)
                        reason = _unusable(clip.samples)
                        if reason is not None:
                            self.skipped.append(Skipped(seed_id, str(reason)))
                            continue
                        done.given += 1
                        done.ended = clip.start is None
                        tally.add(recording, clip, self._rules, is_first=done.given == 1)
                        sample = np.ascontiguousarray(np.clip(clip.samples, -1, 1))
                        yield SeedInput(seed_id, sample, item.label, recording.digest)
                    done.ended = True
                finally:
                    is_clipped = bool(done.given and clips.clipped)
                    tally.clipped += is_clipped and not done.is_clipped
                    done.is_clipped |= is_clipped
                    tally.dropped += bool(done.given and clips.dropped)
        except UnreadableError as error:
            done.ended = True
            self.skipped.append(Skipped(item.id, f"{error}{taken_before(done.given)}"))


def _next_of(seeds: Generator[SeedInput, None, None]) -> Generator[SeedInput, None, None]:
    """Yield the next seed, if there is one; `seeds` stays open when this is closed."""
    yield from islice(seeds, 1)


def _id(name: str, clip: Clip, rate: int) -> str:
    """Return "a.wav@1.000s" for a window, rounded down; they are at least 1 ms long."""
    if clip.start is None:
        return name
    seconds, rest = divmod(clip.start, rate)
    return f"{name}@{seconds}.{rest * 1000 // rate:03d}s"


def _unusable(samples: Sample) -> UnreadableError | None:
    """Return why a clip, float32 [samples], can't be used."""
    if not np.isfinite(samples).all():
        return UnreadableError("it holds NaN or infinity")
    peak = float(np.abs(samples).max())
    if peak > _OTHER_SCALE:
        return UnreadableError(
            f"its samples reach {peak:g}; floating-point audio is expected within [-1, 1]"
        )
    return None


def _rows(archive: Archive) -> Iterator[_Opening]:
    for row, digest in archive.entries():
        yield partial(_open_row, recording_of_row(row, archive.rate, digest))


def _open_row(recording: Recording, digest: str | None) -> AbstractContextManager[Recording]:
    del digest  # the archive's: each pass through it takes it
    return nullcontext(recording)


_READER: MediaReader[_Opening] = MediaReader(
    AUDIO, lambda path: partial(open_recording, path), _rows
)

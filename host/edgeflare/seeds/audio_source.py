"""Seeds from a folder of audio files, one file, or an `.npz` archive, one by one."""

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from edgeflare import extras
from edgeflare.errors import SeedError
from edgeflare.seeds.archive import Archive
from edgeflare.seeds.audio_notices import Tally
from edgeflare.seeds.clips import CUT_RULES, Clip, Clips, Cut, Rules
from edgeflare.seeds.digests import digest_of_sample
from edgeflare.seeds.folder import Folder, SeedFile, not_this_medium
from edgeflare.seeds.media import AUDIO
from edgeflare.seeds.recording import Recording, open_recording, recording_of_row
from edgeflare.seeds.records import RawSeed, SeedSource, Skipped, UnreadableError, nothing_usable
from edgeflare.types import Sample

_OTHER_SCALE = 16.0  # beyond this a float file isn't loud, it is in other units


class _Item(NamedTuple):
    """A recording by name; opening it may raise UnreadableError."""

    id: str
    label: int | None
    open: Callable[[], AbstractContextManager[Recording]]


_Items: TypeAlias = Callable[[], Iterator[_Item]]


class _Found(NamedTuple):
    """What is at a place, before anything is read."""

    items: _Items
    total: int
    skipped: list[Skipped]
    notices: list[str]


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
    """Look for seed clips; each is read and brought to mono float32 [samples] in [-1, 1] when asked for.

    `source` is a folder (as for images), one audio file of a format that libsndfile reads (WAV, FLAC, Ogg,
    AIFF, MP3), or an `.npz` with `audio`, float32 or int16 [N, samples], its `rate` and maybe `labels`. A
    sample of 16 bits is value / 32768; several channels are mixed to their mean. WAV, FLAC, AIFF and `.npz`
    give the same bits on every machine; compressed and resampled audio with the same libraries.

    `rate` (Hz) and `samples` are the model's; None: it takes any length. Shorter clips are kept as they are.
    `cut` says what becomes of longer ones: "first" takes their beginning, "windows" one piece after the other,
    with ids such as "a.wav@1.000s", the last of them at least half as long; pieces are as long as the model's input, or
    30 s. Without a rule a longer one is refused; where the model takes any length, only above 10 minutes, and
    skipped. `resample` brings other rates to `rate` (soxr, HQ); else they are refused. `labels` and `limit`
    are as of `open_seeds`.

    Raises SeedError where the source as a whole can't be used; iterating raises it, too. Raises UsageError
    where a library is missing.
    """
    if cut is not None and cut not in CUT_RULES:
        raise SeedError(f"Unknown rule {cut!r} for cutting; known are {', '.join(CUT_RULES)}.")
    if limit is not None and limit < 1:
        raise SeedError(f"The number of seeds must be at least 1, not {limit}.")
    source = Path(source)
    try:
        found = _look(source, labels)
    except OSError as error:
        raise SeedError(f"The seeds at {source} can't be read: {error.strerror}.") from error
    return _AudioSeeds(source, found, Rules(rate, samples, cut, resample), limit)


class _AudioSeeds:
    """Iterating raises SeedError where there is no rule for a recording of another rate or length, where an
    archive is damaged or, at the end, where nothing could be used.
    """

    def __init__(self, source: Path, found: _Found, rules: Rules, limit: int | None) -> None:
        self._source = source
        self._found = found
        self._rules = rules
        self._limit = limit
        self.total = None if rules.cut == "windows" else found.total
        self.skipped: list[Skipped] = list(found.skipped)
        self.notices: list[str] = list(found.notices)

    def __iter__(self) -> Iterator[RawSeed]:
        self.skipped = list(self._found.skipped)
        self.notices = list(self._found.notices)
        tally = Tally()
        seen: set[bytes] = set()
        taken = 0
        for item in self._found.items():
            if taken == self._limit:
                break
            with closing(self._seeds_of(item, tally)) as seeds:
                for seed in seeds:
                    taken += 1
                    seen.add(digest_of_sample(seed.sample))
                    yield seed
                    if taken == self._limit:
                        break
        if not taken:
            raise nothing_usable("recording", self._source, self.skipped)
        tally.repeated = taken - len(seen)
        self.notices += tally.notices(self._rules)

    def _seeds_of(self, item: _Item, tally: Tally) -> Generator[RawSeed, None, None]:
        """Yield one recording's seeds; what of it can't be used is skipped."""
        given = 0
        try:
            with item.open() as recording:
                clips = Clips(item.id, recording, self._rules)
                try:
                    for clip in clips:
                        seed_id = _id(item.id, clip, self._rules.rate)
                        reason = _unusable(clip.samples)
                        if reason is not None:
                            self.skipped.append(Skipped(seed_id, reason))
                            continue
                        given += 1
                        tally.add(recording, clip, self._rules, is_first=given == 1)
                        sample = np.ascontiguousarray(np.clip(clip.samples, -1, 1))
                        yield RawSeed(seed_id, sample, item.label, recording.digest)
                finally:
                    tally.clipped += bool(given and clips.clipped)
                    tally.dropped += bool(given and clips.dropped)
        except UnreadableError as error:
            before = f"; what is before that was taken, {given} windows" if given else ""
            self.skipped.append(Skipped(item.id, f"{error}{before}"))


def _id(name: str, clip: Clip, rate: int) -> str:
    """Return "a.wav@1.000s" for a window, rounded down; they are at least 1 ms long."""
    if clip.start is None:
        return name
    seconds, rest = divmod(clip.start, rate)
    return f"{name}@{seconds}.{rest * 1000 // rate:03d}s"


def _unusable(samples: Sample) -> str | None:
    """Return why a clip, float32 [samples], can't be used."""
    if not np.isfinite(samples).all():
        return "it holds NaN or infinity"
    peak = float(np.abs(samples).max())
    if peak > _OTHER_SCALE:
        return f"its samples reach {peak:g}; floating-point audio is expected within [-1, 1]"
    return None


def _look(source: Path, labels: dict[str, int] | None) -> _Found:
    if source.is_dir():
        folder = Folder(source, labels, AUDIO)
        extras.soundfile()
        return _Found(
            lambda: map(_of_file, folder.files()), len(folder), folder.skipped, folder.notices
        )
    if not source.exists():
        raise SeedError(f"There are no seeds at {source}: no such file or folder.")
    unused = "The label mapping is for class folders; it was not used."
    notices = [] if labels is None else [unused]
    if source.suffix.lower() == ".npz":
        archive = Archive(source, "audio")
        return _Found(lambda: _of_archive(archive), len(archive), [], notices)
    if not AUDIO.has(source.name):
        raise SeedError(not_this_medium(source, AUDIO))
    extras.soundfile()
    file = SeedFile(source.name, source, None)
    return _Found(lambda: iter([_of_file(file)]), 1, [], notices)


def _of_file(file: SeedFile) -> _Item:
    return _Item(file.id, file.label, lambda: open_recording(file.path))


def _of_archive(archive: Archive) -> Iterator[_Item]:
    labels = archive.labels
    for index, (row, digest) in enumerate(archive.entries()):
        recording = nullcontext(recording_of_row(row, archive.rate, digest))
        label = None if labels is None else labels[index]
        yield _Item(f"{archive.path.name}:{index}", label, lambda it=recording: it)  # type: ignore[misc]

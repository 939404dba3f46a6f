"""Seeds from a folder of images, one image, or an `.npz` archive, one by one."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from edgeflare._internal.text import above_text
from edgeflare.errors import SeedError
from edgeflare.seeds.folder import labelled_files, wrong_medium
from edgeflare.seeds.images import (
    RESIZE_RULES,
    DecodedImage,
    convert_channels,
    decode,
    resize_image,
)
from edgeflare.seeds.npz import Archive
from edgeflare.seeds.types import IMAGES, Medium, SeedSource, UnreadableError, digest_of_sample
from edgeflare.types import Sample, SeedInput, Skipped
from edgeflare.words.inputs import MAPPING_UNUSED, SAME_PIXELS, TRANSPARENT

_T = TypeVar("_T")


@dataclass(frozen=True)
class MediaItem(Generic[_T]):
    """A file or an entry of an archive; `read` returns its content, or raises UnreadableError."""

    id: str
    label: int | None
    read: Callable[[], _T]


@dataclass(frozen=True)
class Found(Generic[_T]):
    """The seed inputs that were found: `items` yields them again each time, `total` of them."""

    items: Callable[[], Iterator[MediaItem[_T]]]
    total: int
    skipped: list[Skipped]
    notices: list[str]


@dataclass(frozen=True)
class MediaReader(Generic[_T]):
    """How the files and archives of one medium are read."""

    medium: Medium
    of_file: Callable[[Path], _T]
    of_archive: Callable[[Archive], Iterable[_T]]

    def find(self, source: Path, labels: dict[str, int] | None, limit: int | None) -> Found[_T]:
        """Find the items of a folder, a file or an `.npz` archive. Raises SeedError."""
        if limit is not None and limit < 1:
            raise SeedError(f"the number of seeds must be at least 1, not {limit}")
        try:
            return self._found(source, labels)
        except OSError as error:
            raise SeedError(f"the seeds at {source} can't be read: {error.strerror}") from error

    def _found(self, source: Path, labels: dict[str, int] | None) -> Found[_T]:
        if source.is_dir():
            files, skipped, notices = labelled_files(source, labels, self.medium)
            return Found(
                lambda: (self._item(name, source / name, label) for name, label in files),
                len(files),
                skipped,
                notices,
            )
        if not source.exists():
            raise SeedError(f"there are no seeds at {source}: no such file or folder")
        notices = [] if labels is None else [MAPPING_UNUSED]
        if source.suffix.lower() == ".npz":
            archive = Archive(source, self.medium)
            return Found(lambda: self._entries(archive), len(archive), [], notices)
        if not self.medium.has(source.name):
            raise wrong_medium(source, self.medium)
        return Found(lambda: iter([self._item(source.name, source, None)]), 1, [], notices)

    def _item(self, name: str, path: Path, label: int | None) -> MediaItem[_T]:
        return MediaItem(name, label, partial(self.of_file, path))

    def _entries(self, archive: Archive) -> Iterator[MediaItem[_T]]:
        labels = archive.labels
        for index, entry in enumerate(self.of_archive(archive)):
            label = None if labels is None else labels[index]
            yield MediaItem(f"{archive.path.name}:{index}", label, partial(_itself, entry))


def _itself(entry: _T) -> _T:
    return entry


class MediaSeeds(ABC, Generic[_T]):
    """The seeds of one place, a `SeedSource`; a "kind" is what its files hold.

    Iterating raises SeedError where an item does not fit and there is no rule to convert it, where
    an archive is damaged or, at the end, where nothing could be used.
    """

    def __init__(self, source: Path, found: Found[_T], limit: int | None, kind: str) -> None:
        self._source = source
        self._found = found
        self._limit = limit
        self._kind = kind
        self.total: int | None = found.total
        self.skipped = list(found.skipped)
        self.notices = list(found.notices)

    def __iter__(self) -> Iterator[SeedInput]:
        self.skipped = list(self._found.skipped)
        self.notices = list(self._found.notices)
        seen: set[bytes] = set()
        taken = 0
        with closing(self._visits()) as visits:
            for visit in visits:
                if taken == self._limit:
                    break
                with closing(visit) as seeds:
                    for seed in seeds:
                        taken += 1
                        seen.add(digest_of_sample(seed.sample))
                        yield seed
                        if taken == self._limit:
                            break
        if not taken:
            raise _no_usable_seed(self._kind, self._source, self.skipped)
        self.notices += self._counts(taken - len(seen))

    def _visits(self) -> Generator[Generator[SeedInput, None, None], None, None]:
        """Yield the seeds of each item, in the order in which they are taken."""
        for item in self._found.items():
            yield self._seeds_of(item)

    @abstractmethod
    def _seeds_of(self, item: MediaItem[_T]) -> Generator[SeedInput, None, None]:
        """Yield an item's seeds; what of it can't be used is skipped."""

    @abstractmethod
    def _counts(self, repeated: int) -> Iterator[str]:
        """Yield notices on how many of the seeds were converted or repeated."""


def _no_usable_seed(kind: str, source: Path, skipped: Sequence[Skipped]) -> SeedError:
    first = f"{skipped[0].name}: {skipped[0].reason}"
    if len(skipped) == 1:
        return SeedError(f"the only {kind} in {source} can't be used; {first}")
    return SeedError(f"none of the {len(skipped)} {kind}s in {source} can be used; {first}")


_LARGEST_FILE = 1_000_000_000
"""Bytes, as many as MOST_PIXELS take that were not compressed."""
_Read: TypeAlias = tuple[DecodedImage, str]
"""An image and the SHA-256, in hex, of its file."""


def open_seeds(
    source: Path,
    *,
    size: tuple[int, int] | None,
    channels: int,
    resize: str | None = None,
    labels: dict[str, int] | None = None,
    limit: int | None = None,
    parts: int = 1,
) -> SeedSource:
    """Find seed images; each is read and converted to uint8 [height, width, channels] when needed.

    `source` is a folder (with all below it, links followed; in natural order of the names; hidden
    files are ignored), one image file, or an `.npz` with `images`, uint8 [N, H, W] or [N, H, W, C]
    (RGB), and maybe `labels`, integers [N]. An image's id is its path relative to the folder, with
    "/"; or "archive.npz:17". Of a file with several frames the first is taken.

    `size` is (height, width); None keeps every image's own. `channels` is 1 or 3. `resize` is one
    of RESIZE_RULES, or None: other sizes are refused. `labels` maps a class folder's name to its
    class index; the outermost folder it knows decides. `limit`: the number of usable
    images that are taken, the first ones. `parts`: the number of pictures that an image has beside
    each other.

    Raises SeedError where the source as a whole can't be used; iterating raises it, too.
    """
    if resize is not None and resize not in RESIZE_RULES:
        raise SeedError(f"unknown resize rule {resize!r}; known are {', '.join(RESIZE_RULES)}")
    source = Path(source)
    found = _READER.find(source, labels, limit)
    return _ImageSeeds(source, found, _Shape(size, channels, resize, parts), limit)


class _Shape(NamedTuple):
    """The shape that every image is converted to."""

    size: tuple[int, int] | None
    channels: int
    resize: str | None
    parts: int = 1

    def of(self, name: str, sample: Sample) -> Sample:
        """Return the sample in this shape. Raises SeedError for another size without a rule."""
        return convert_channels(self._sized(name, sample), self.channels)

    def _sized(self, name: str, sample: Sample) -> Sample:
        if self.size is None or sample.shape[:2] == self.size:
            return sample
        if self.parts > 1:
            raise SeedError(
                f"the image {name} is {sample.shape[0]} x {sample.shape[1]} (height x width); a seed "
                f"has the pictures of {self.parts} inputs beside each other, together "
                f"{self.size[0]} x {self.size[1]}: make such images"
            )
        if self.resize is None:
            raise SeedError(
                f"the image {name} is {sample.shape[0]} x {sample.shape[1]} (height x width), the "
                f"campaign's samples are {self.size[0]} x {self.size[1]}; say how to bring images "
                f"to that size, for example --resize bilinear ({', '.join(RESIZE_RULES)})"
            )
        return resize_image(sample, self.size, self.resize)


class _ImageSeeds(MediaSeeds[_Read]):
    def __init__(self, source: Path, found: Found[_Read], shape: _Shape, limit: int | None) -> None:
        super().__init__(source, found, limit, "image")
        self._shape = shape

    def __iter__(self) -> Iterator[SeedInput]:
        self._transparent = 0
        return super().__iter__()

    def _seeds_of(self, item: MediaItem[_Read]) -> Generator[SeedInput, None, None]:
        try:
            decoded, digest = item.read()
            sample = self._shape.of(item.id, decoded.sample)
        except UnreadableError as error:
            self.skipped.append(Skipped(item.id, str(error)))
            return
        self._transparent += decoded.transparent
        yield SeedInput(item.id, sample, item.label, digest)

    def _counts(self, repeated: int) -> Iterator[str]:
        if self._transparent:
            yield TRANSPARENT.format(IMAGES.counted(self._transparent))
        if repeated:
            yield SAME_PIXELS.format(IMAGES.counted(repeated))


def _read(path: Path) -> _Read:
    if path.exists() and not path.is_file():
        raise UnreadableError("it is no ordinary file")
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise UnreadableError(
                f"its file has {above_text(path.stat().st_size / 1e6, _LARGEST_FILE / 1e6)} MB, and images of up to "
                f"{_LARGEST_FILE / 1e6:,.0f} MB are read"
            )
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"it can't be read: {error.strerror}") from error
    return decode(data), hashlib.sha256(data).hexdigest()


_READER: MediaReader[_Read] = MediaReader(IMAGES, _read, Archive.images)

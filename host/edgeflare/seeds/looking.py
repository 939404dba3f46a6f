"""Finds the seed inputs of a folder, a file or an archive, images or audio, before any of them is read."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, Literal, TypeVar

from edgeflare.errors import SeedError
from edgeflare.seeds.archive import Archive
from edgeflare.seeds.folder import labelled_files, not_this_medium
from edgeflare.seeds.media import AUDIO, IMAGES
from edgeflare.types import Skipped

_T = TypeVar("_T")
_MEDIA = {"images": IMAGES, "audio": AUDIO}


@dataclass(frozen=True)
class Item(Generic[_T]):
    """A file, or an entry of an archive, by name; `read` gives what is in it, or raises UnreadableError."""

    id: str
    label: int | None
    read: Callable[[], _T]


@dataclass(frozen=True)
class Found(Generic[_T]):
    """The seed inputs that were found: `items` yields them anew each time, `total` of them."""

    items: Callable[[], Iterator[Item[_T]]]
    total: int
    skipped: list[Skipped]
    notices: list[str]


@dataclass(frozen=True)
class Reading(Generic[_T]):
    """How the files and archives of one medium are read."""

    medium: Literal["images", "audio"]
    of_file: Callable[[Path], _T]
    of_archive: Callable[[Archive], Iterable[_T]]

    def look(self, source: Path, labels: dict[str, int] | None, limit: int | None) -> Found[_T]:
        """Find the items of a folder, a file or an `.npz` archive. Raises SeedError where it can't be used as a whole."""
        if limit is not None and limit < 1:
            raise SeedError(f"The number of seeds must be at least 1, not {limit}.")
        try:
            return self._found(source, labels)
        except OSError as error:
            raise SeedError(f"The seeds at {source} can't be read: {error.strerror}.") from error

    def _found(self, source: Path, labels: dict[str, int] | None) -> Found[_T]:
        medium = _MEDIA[self.medium]
        if source.is_dir():
            files, skipped, notices = labelled_files(source, labels, medium)
            return Found(
                lambda: (self._item(name, source / name, label) for name, label in files),
                len(files),
                skipped,
                notices,
            )
        if not source.exists():
            raise SeedError(f"There are no seeds at {source}: no such file or folder.")
        unused = "The label mapping is for class folders; it was not used."
        notices = [] if labels is None else [unused]
        if source.suffix.lower() == ".npz":
            archive = Archive(source, self.medium)
            return Found(lambda: self._entries(archive), len(archive), [], notices)
        if not medium.has(source.name):
            raise SeedError(not_this_medium(source, medium))
        return Found(lambda: iter([self._item(source.name, source, None)]), 1, [], notices)

    def _item(self, name: str, path: Path, label: int | None) -> Item[_T]:
        return Item(name, label, partial(self.of_file, path))

    def _entries(self, archive: Archive) -> Iterator[Item[_T]]:
        labels = archive.labels
        for index, entry in enumerate(self.of_archive(archive)):
            label = None if labels is None else labels[index]
            yield Item(f"{archive.path.name}:{index}", label, partial(_itself, entry))


def _itself(entry: _T) -> _T:
    return entry

"""Files of one medium in a folder, each with the label that its class folder gives it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from edgeflare.errors import SeedError
from edgeflare.seeds.files import Listing, list_files
from edgeflare.seeds.media import Medium, other_than
from edgeflare.types import Skipped


class SeedFile(NamedTuple):
    """A file to be read: its id, where it is, and its class index where it is known."""

    id: str
    path: Path
    label: int | None


class Folder:
    """A folder's files of one medium, looked up once; `skipped` and `notices` say what was left out.

    Raises SeedError where there is none, or `labels` (folder name -> class index) fits no folder.
    """

    def __init__(self, folder: Path, labels: dict[str, int] | None, medium: Medium) -> None:
        listing = list_files(folder, medium)
        self.skipped: list[Skipped] = listing.skipped
        self.notices: list[str] = []
        if not listing.names and not listing.skipped:
            raise SeedError(_nothing(folder, listing, medium))
        if listing.others:
            what = listing.described_others()
            self.notices.append(f"{what} in {folder} ignored: no {medium.name} by name.")
        self._folder = folder
        self._medium = medium
        self._names = listing.names
        self._labels = [_class_of(name, labels or {}) for name in listing.names]
        self._tell_of_labels(labels)

    def __len__(self) -> int:
        return len(self._names)

    def files(self) -> Iterator[SeedFile]:
        """Yield every file in natural order of the names; none is read yet."""
        for name, label in zip(self._names, self._labels, strict=True):
            yield SeedFile(name, self._folder / name, label)

    def _tell_of_labels(self, labels: dict[str, int] | None) -> None:
        if labels is None and any("/" in name for name in self._names):
            self.notices.append(
                f"The {self._medium.several}' folders are not used as labels: no label mapping was given."
            )
        elif labels is not None and all(label is None for label in self._labels):
            raise SeedError(
                f"No {self._medium.name} of {self._folder} is in a folder that the label mapping names; "
                f"it names {', '.join(list(labels)[:5])}."
            )
        elif labels is not None and None in self._labels:
            self.notices.append(
                f"{self._medium.counted(self._labels.count(None))} had no label: "
                "they are in no folder that the label mapping names."
            )


def not_this_medium(source: Path, medium: Medium) -> str:
    """Return the sentence for a single file that isn't one of the medium, nor an archive."""
    other = other_than(medium)
    if other.has(source.name):
        return f"{source} is an {other.name}, and the model takes {medium.called}{medium.hint}."
    return (
        f"{source} is no folder, {medium.name} or .npz archive; "
        f"{medium.several} end in {', '.join(medium.suffixes)}."
    )


def _nothing(folder: Path, listing: Listing, medium: Medium) -> str:
    if listing.misplaced:
        held = other_than(medium).counted(listing.misplaced)
        return (
            f"There is no {medium.name} in {folder}; it holds {held}, and the model takes "
            f"{medium.called}{medium.hint}."
        )
    others = f"; it holds {listing.described_others()} of other kinds" if listing.others else ""
    return (
        f"There is no {medium.name} in {folder}{others}; "
        f"{medium.several} end in {', '.join(medium.suffixes)}."
    )


def _class_of(name: str, labels: dict[str, int]) -> int | None:
    return next((labels[part] for part in name.split("/")[:-1] if part in labels), None)

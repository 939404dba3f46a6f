"""Images in a folder, each with the label that its class folder gives it."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from edgeflare.errors import SeedError
from edgeflare.seeds.decode import SUFFIXES, Decoded, UnreadableError, decode
from edgeflare.seeds.files import list_images
from edgeflare.seeds.records import Skipped


class Image(NamedTuple):
    """An image to be read: its id, where it is, and its class index where it is known."""

    id: str
    path: Path
    label: int | None


class Folder:
    """The images of a folder, looked up once; `skipped` and `notices` say what was left out.

    Raises SeedError where there is none, or `labels` (folder name -> class index) fits no folder.
    """

    def __init__(self, folder: Path, labels: dict[str, int] | None) -> None:
        listing = list_images(folder)
        self.skipped: list[Skipped] = listing.skipped
        self.notices: list[str] = []
        if not listing.images and not listing.skipped:
            others = f"; it holds {listing.others} files of other kinds" if listing.others else ""
            raise SeedError(
                f"There is no image in {folder}{others}; images end in {', '.join(SUFFIXES)}."
            )
        if listing.others:
            what = "1 file" if listing.others == 1 else f"{listing.others} files"
            self.notices.append(f"{what} in {folder} ignored: no image by name.")
        self._folder = folder
        self._names = listing.images
        self._labels = [_class_of(name, labels or {}) for name in listing.images]
        self._tell_of_labels(labels)

    def __len__(self) -> int:
        return len(self._names)

    def images(self) -> Iterator[Image]:
        """Yield every image in natural order of the names; none is read yet."""
        for name, label in zip(self._names, self._labels, strict=True):
            yield Image(name, self._folder / name, label)

    def _tell_of_labels(self, labels: dict[str, int] | None) -> None:
        if labels is None and any("/" in name for name in self._names):
            self.notices.append(
                "The images' folders are not used as labels: no label mapping was given."
            )
        elif labels is not None and all(label is None for label in self._labels):
            raise SeedError(
                f"No image of {self._folder} is in a folder that the label mapping names; "
                f"it names {', '.join(list(labels)[:5])}."
            )
        elif labels is not None and None in self._labels:
            self.notices.append(
                f"{count_of_images(self._labels.count(None))} had no label: "
                "they are in no folder that the label mapping names."
            )


def read_image(path: Path) -> tuple[Decoded, str]:
    """Read an image file and return it with the SHA-256, in hex, of its bytes.

    Raises UnreadableError where it can't be used.
    """
    if path.exists() and not path.is_file():
        raise UnreadableError("it is no ordinary file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"it can't be read: {error.strerror}") from error
    return decode(data), hashlib.sha256(data).hexdigest()


def count_of_images(count: int) -> str:
    """Return "1 image", "2 images" and so on."""
    return "1 image" if count == 1 else f"{count} images"


def _class_of(name: str, labels: dict[str, int]) -> int | None:
    return next((labels[part] for part in name.split("/")[:-1] if part in labels), None)

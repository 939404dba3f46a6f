"""Seeds from a folder of images, one image, or an `.npz` archive."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeAlias

from edgeflare.errors import SeedError
from edgeflare.seeds.archive import archived_images
from edgeflare.seeds.convert import RESIZE_RULES, with_channels, with_size
from edgeflare.seeds.decode import SUFFIXES, Decoded, UnreadableError, decode
from edgeflare.seeds.files import list_images
from edgeflare.seeds.records import LoadedSeeds, RawSeed, Skipped
from edgeflare.types import Sample

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of images looked at and the number there are."""


class _Item(NamedTuple):
    id: str
    decode: Callable[[], Decoded]
    label: int | None


def load_seeds(
    source: Path,
    *,
    size: tuple[int, int] | None,
    channels: int,
    resize: str | None = None,
    labels: dict[str, int] | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> LoadedSeeds:
    """Load seed images and bring each to uint8 [height, width, channels].

    `source` is a folder (with all below it, links followed; in natural order of the names; hidden
    files are ignored), one image file, or an `.npz` with `images`, uint8 [N, H, W] or [N, H, W, C]
    (RGB), and maybe `labels`, integers [N]. An image's id is its path relative to the folder, with
    "/"; or "archive.npz:17". Of a file with several frames the first is taken.

    `size` is (height, width); None keeps every image's own. `channels` is 1 or 3. `resize` is one of
    RESIZE_RULES, or None: other sizes are refused. `labels` maps a class folder's name to its class
    index; the outermost folder it knows decides. `limit` takes the first so many usable images.

    A file that can't be used is skipped, named and given its reason. Raises SeedError where the
    source as a whole can't be used or an image has another size and there is no rule.
    """
    if resize is not None and resize not in RESIZE_RULES:
        raise SeedError(f"Unknown resize rule {resize!r}; known are {', '.join(RESIZE_RULES)}.")
    if limit is not None and limit < 1:
        raise SeedError(f"The number of seeds must be at least 1, not {limit}.")
    loading = _Loading(size, channels, resize)
    try:
        items, total = _open(source, labels, loading)
    except OSError as error:
        raise SeedError(f"The seeds at {source} can't be read: {error.strerror}.") from error
    for done, item in enumerate(items):
        if limit is not None and len(loading.loaded.seeds) >= limit:
            break
        loading.take(item)
        if progress is not None:
            progress(done + 1, total)
    if not loading.loaded.seeds:
        first = loading.loaded.skipped[0]
        raise SeedError(
            f"None of the {len(loading.loaded.skipped)} images in {source} can be used; "
            f"{first.name}: {first.reason}."
        )
    loading.notice_oddities()
    return loading.loaded


@dataclass
class _Loading:
    """What is asked for, and what has come of it so far."""

    size: tuple[int, int] | None
    channels: int
    resize: str | None
    loaded: LoadedSeeds = field(default_factory=LoadedSeeds)
    transparent: int = 0

    def take(self, item: _Item) -> None:
        try:
            decoded = item.decode()
        except UnreadableError as error:
            self.loaded.skipped.append(Skipped(item.id, str(error)))
            return
        self.transparent += decoded.transparent
        sample = with_channels(self._sized(item.id, decoded.sample), self.channels)
        self.loaded.seeds.append(RawSeed(item.id, sample, item.label))

    def _sized(self, name: str, sample: Sample) -> Sample:
        if self.size is None or sample.shape[:2] == self.size:
            return sample
        if self.resize is None:
            raise SeedError(
                f"The image {name} is {sample.shape[0]} x {sample.shape[1]} (height x width), the "
                f"campaign's samples are {self.size[0]} x {self.size[1]}; say how to bring images to "
                f"that size, for example --resize bilinear ({', '.join(RESIZE_RULES)})."
            )
        return with_size(sample, self.size, self.resize)

    def notice_oddities(self) -> None:
        if self.transparent:
            self.loaded.notices.append(
                f"{_images(self.transparent)} had transparent pixels; they were laid over black."
            )
        copies = Counter(
            (seed.sample.shape, hashlib.sha256(seed.sample.data).digest())
            for seed in self.loaded.seeds
        )
        repeated = sum(count - 1 for count in copies.values())
        if repeated:
            self.loaded.notices.append(
                f"{_images(repeated)} had the same pixels as another one; all were kept."
            )


def _open(
    source: Path, labels: dict[str, int] | None, loading: _Loading
) -> tuple[Iterable[_Item], int]:
    notices = loading.loaded.notices
    if source.is_dir():
        return _from_folder(source, labels, loading)
    if not source.exists():
        raise SeedError(f"There are no seeds at {source}: no such file or folder.")
    if labels is not None:
        notices.append("The label mapping is for class folders; it was not used.")
    if source.suffix.lower() == ".npz":
        images = archived_images(source)
        return (_Item(image.id, image.decode, image.label) for image in images), len(images)
    if not source.name.lower().endswith(SUFFIXES):
        raise SeedError(
            f"{source} is no folder, image or .npz archive; images end in {', '.join(SUFFIXES)}."
        )
    return [_Item(source.name, lambda: _decode_file(source), None)], 1


def _from_folder(
    folder: Path, labels: dict[str, int] | None, loading: _Loading
) -> tuple[Iterable[_Item], int]:
    listing = list_images(folder)
    notices = loading.loaded.notices
    loading.loaded.skipped.extend(listing.skipped)
    if not listing.images and not listing.skipped:
        others = f"; it holds {listing.others} files of other kinds" if listing.others else ""
        raise SeedError(
            f"There is no image in {folder}{others}; images end in {', '.join(SUFFIXES)}."
        )
    if listing.others:
        what = "1 file" if listing.others == 1 else f"{listing.others} files"
        notices.append(f"{what} in {folder} ignored: no image by name.")
    classes = [_class_of(name, labels or {}) for name in listing.images]
    if labels is None and any("/" in name for name in listing.images):
        notices.append("The images' folders are not used as labels: no label mapping was given.")
    elif labels is not None and all(label is None for label in classes):
        raise SeedError(
            f"No image of {folder} is in a folder that the label mapping names; "
            f"it names {', '.join(list(labels)[:5])}."
        )
    elif labels is not None and None in classes:
        notices.append(
            f"{_images(classes.count(None))} had no label: "
            "they are in no folder that the label mapping names."
        )
    return _items(folder, listing.images, classes), len(listing.images)


def _items(folder: Path, names: list[str], classes: list[int | None]) -> Iterator[_Item]:
    for name, label in zip(names, classes, strict=True):
        path = folder / name
        yield _Item(name, lambda path=path: _decode_file(path), label)  # type: ignore[misc]


def _class_of(name: str, labels: dict[str, int]) -> int | None:
    return next((labels[part] for part in name.split("/")[:-1] if part in labels), None)


def _decode_file(path: Path) -> Decoded:
    if path.exists() and not path.is_file():
        raise UnreadableError("it is no ordinary file")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"it can't be read: {error.strerror}") from error
    return decode(data)


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count} images"

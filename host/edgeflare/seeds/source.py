"""Seeds from a folder of images, one image, or an `.npz` archive, one by one."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from edgeflare.errors import SeedError
from edgeflare.seeds.archive import Archive
from edgeflare.seeds.convert import RESIZE_RULES, with_channels, with_size
from edgeflare.seeds.decode import Decoded, decode
from edgeflare.seeds.digests import digest_of_sample
from edgeflare.seeds.looking import Found, Reading
from edgeflare.seeds.media import IMAGES
from edgeflare.seeds.records import SeedSource, UnreadableError, nothing_usable
from edgeflare.types import Sample, SeedInput, Skipped

_LARGEST_FILE = 1_000_000_000
"""Bytes, as many as MOST_PIXELS take that were not compressed."""
_Read: TypeAlias = tuple[Decoded, str]
"""An image and the SHA-256, in hex, of its file."""


def open_seeds(
    source: Path,
    *,
    size: tuple[int, int] | None,
    channels: int,
    resize: str | None = None,
    labels: dict[str, int] | None = None,
    limit: int | None = None,
) -> SeedSource:
    """Find seed images; each is read and brought to uint8 [height, width, channels] when asked for.

    `source` is a folder (with all below it, links followed; in natural order of the names; hidden
    files are ignored), one image file, or an `.npz` with `images`, uint8 [N, H, W] or [N, H, W, C]
    (RGB), and maybe `labels`, integers [N]. An image's id is its path relative to the folder, with
    "/"; or "archive.npz:17". Of a file with several frames the first is taken.

    `size` is (height, width); None keeps every image's own. `channels` is 1 or 3. `resize` is one of
    RESIZE_RULES, or None: other sizes are refused. `labels` maps a class folder's name to its class
    index; the outermost folder it knows decides. `limit` takes the first so many usable images.

    Raises SeedError where the source as a whole can't be used; iterating raises it, too.
    """
    if resize is not None and resize not in RESIZE_RULES:
        raise SeedError(f"Unknown resize rule {resize!r}; known are {', '.join(RESIZE_RULES)}.")
    source = Path(source)
    found = _READING.look(source, labels, limit)
    return _ImageSeeds(source, found, _Shape(size, channels, resize), limit)


class _Shape(NamedTuple):
    """The shape that every image is converted to."""

    size: tuple[int, int] | None
    channels: int
    resize: str | None

    def of(self, name: str, sample: Sample) -> Sample:
        """Return the sample in this shape. Raises SeedError for another size where there is no rule."""
        return with_channels(self._sized(name, sample), self.channels)

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


class _ImageSeeds:
    """Iterating raises SeedError where an image has another size and there is no rule, where an archive
    is damaged or, at the end, where no image could be used.
    """

    def __init__(self, source: Path, found: Found[_Read], shape: _Shape, limit: int | None) -> None:
        self._source = source
        self._found = found
        self._shape = shape
        self._limit = limit
        self.total: int | None = found.total
        self.skipped: list[Skipped] = list(found.skipped)
        self.notices: list[str] = list(found.notices)

    def __iter__(self) -> Iterator[SeedInput]:
        self.skipped = list(self._found.skipped)
        self.notices = list(self._found.notices)
        seen: set[bytes] = set()
        taken = transparent = 0
        for item in self._found.items():
            if taken == self._limit:
                break
            try:
                decoded, digest = item.read()
                sample = self._shape.of(item.id, decoded.sample)
            except UnreadableError as error:
                self.skipped.append(Skipped(item.id, str(error)))
                continue
            taken += 1
            transparent += decoded.transparent
            seen.add(digest_of_sample(sample))
            yield SeedInput(item.id, sample, item.label, digest)
        if not taken:
            raise nothing_usable("image", self._source, self.skipped)
        self._notice(transparent, taken - len(seen))

    def _notice(self, transparent: int, repeated: int) -> None:
        if transparent:
            self.notices.append(
                f"{IMAGES.counted(transparent)} had transparent pixels; they were laid over black."
            )
        if repeated:
            self.notices.append(
                f"{IMAGES.counted(repeated)} had the same pixels as another one; all were kept."
            )


def _read(path: Path) -> _Read:
    if path.exists() and not path.is_file():
        raise UnreadableError("it is no ordinary file")
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise UnreadableError(
                f"its file has {path.stat().st_size / 1e6:,.0f} MB, and images of up to {_LARGEST_FILE / 1e6:,.0f} MB "
                "are read"
            )
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"it can't be read: {error.strerror}") from error
    return decode(data), hashlib.sha256(data).hexdigest()


_READING: Reading[_Read] = Reading("images", _read, Archive.images)

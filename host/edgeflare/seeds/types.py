"""What a source of seed inputs gives."""

import hashlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np

from edgeflare.types import Sample, SeedInput, Skipped
from edgeflare.words.inputs import AUDIO_IS_STATED


class UnreadableError(Exception):
    """A file can't be used; the text says why, for the list of skipped files."""


class SeedSource(Protocol):
    """The seeds of one place. Iterating reads them one by one, again each time, and holds none.

    `total` is the number of seeds at most, None where recordings are cut into several. Once
    iterated to the end, `skipped` has all that could not be used with its reason, `notices` what
    the user ought to know.
    """

    total: int | None
    skipped: list[Skipped]
    notices: list[str]

    def __iter__(self) -> Iterator[SeedInput]:
        """Yield the seeds. Raises SeedError where the place as a whole can't be used."""
        ...


class Medium(NamedTuple):
    """The names of a medium and of its files in messages, and the files' suffixes in lower case.

    `hint` ends the error where a model takes this medium and only files of the other are there.
    """

    called: str
    name: str
    several: str
    suffixes: tuple[str, ...]
    hint: str = ""

    def has(self, name: str) -> bool:
        """Return whether a file of this name is one of the medium."""
        return name.lower().endswith(self.suffixes)

    def counted(self, count: int) -> str:
        """Return "1 image", "2 images" and so on."""
        return f"1 {self.name}" if count == 1 else f"{count} {self.several}"


IMAGES = Medium(
    "images",
    "image",
    "images",
    (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"),
    AUDIO_IS_STATED,
)
AUDIO = Medium(
    "audio",
    "audio file",
    "audio files",
    (".wav", ".flac", ".ogg", ".oga", ".opus", ".aif", ".aiff", ".aifc", ".mp3"),
)


def other_medium(medium: Medium) -> Medium:
    """Return the other of the two media."""
    return AUDIO if medium is IMAGES else IMAGES


_BLOCK = 1 << 20


def sha256_of(file: BinaryIO) -> str:
    """Return the digest, in hex, of all that is left to read in an open file. Raises OSError."""
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()


def digest_of_sample(sample: Sample) -> bytes:
    """Return a digest of a sample's shape and values: 16 bytes of BLAKE2b."""
    digest = hashlib.blake2b(repr(sample.shape).encode(), digest_size=16)
    digest.update(np.ascontiguousarray(sample).data)
    return digest.digest()

"""Images in an `.npz` archive."""

import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from edgeflare.errors import SeedError
from edgeflare.seeds import npz
from edgeflare.seeds.decode import Decoded, over_black
from edgeflare.seeds.digests import sha256_of
from edgeflare.types import Sample


class Archive:
    """The images of one file, with their labels; each image is read when it is asked for.

    `images` in it is uint8 [N, H, W] or [N, H, W, C], C 1, 3 or 4; `labels`, where it has them,
    integers [N]. Raises SeedError where the file or one of the arrays is not that.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._reading() as file:
            archive = _zip(file, path)
            name = npz.member(archive, "images")
            if name is None:
                raise SeedError(f"The archive {path} has no array named 'images'.")
            self._name = name
            self._header = npz.read_header(archive, name)
            _check_images(self._header, path)
            self.labels = self._read_labels(archive)

    def __len__(self) -> int:
        return self._header.shape[0]

    def images(self) -> Iterator[tuple[Decoded, str]]:
        """Yield every image, as RGB or grey, and the SHA-256, in hex, of the whole archive.

        The archive is read through before the first image: one that is damaged, wherever it is,
        gives none. Transparent pixels are laid over black.
        """
        with self._reading() as file:
            digest = sha256_of(file)
            archive = _zip(file, self.path)
            if npz.read_header(archive, self._name) != self._header:
                raise SeedError(f"The archive {self.path} was changed while it was read.")
            npz.check(archive, self._name)
            for image in npz.elements(archive, self._name, self._header):
                yield _decoded(np.atleast_3d(image)), digest

    def _read_labels(self, archive: zipfile.ZipFile) -> list[int] | None:
        name = npz.member(archive, "labels")
        if name is None:
            return None
        with archive.open(name) as stream:
            labels: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
        return _checked(labels, len(self), self.path)

    @contextmanager
    def _reading(self) -> Iterator[BinaryIO]:
        try:
            with self.path.open("rb") as file:
                yield file
        except (
            OSError,
            ValueError,
            EOFError,
            RuntimeError,  # encrypted; and, as NotImplementedError, an unknown compression
            zipfile.BadZipFile,
            zlib.error,
            lzma.LZMAError,
        ) as error:
            raise SeedError(f"The archive {self.path} can't be read: {error}.") from error


def _zip(file: BinaryIO, path: Path) -> zipfile.ZipFile:
    file.seek(0)
    if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
        raise SeedError(f"{path} is a single array, not an .npz archive; use numpy.savez.")
    return zipfile.ZipFile(file)


def _decoded(pixels: Sample) -> Decoded:
    if pixels.shape[2] != 4:
        return Decoded(np.ascontiguousarray(pixels), transparent=False)
    alpha = pixels[:, :, 3:]
    return Decoded(over_black(pixels[:, :, :3], alpha), bool((alpha < 255).any()))


def _check_images(header: npz.Header, path: Path) -> None:
    shape = header.shape
    if header.dtype != np.uint8:
        raise SeedError(
            f"'images' in {path} is {header.dtype}; it must be uint8, the pixels as a camera or "
            "file gives them, 0 to 255, before any scaling."
        )
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in (1, 3, 4)):
        raise SeedError(
            f"'images' in {path} has the shape {list(shape)}; it must be [N, H, W] "
            "or [N, H, W, C] with 1, 3 or 4 channels at the end."
        )
    if 0 in shape:
        raise SeedError(f"'images' in {path} is empty: its shape is {list(shape)}.")


def _checked(labels: NDArray[Any], count: int, path: Path) -> list[int]:
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape != (count,):
        raise SeedError(
            f"'labels' in {path} is {labels.dtype} {list(labels.shape)}; "
            f"it must be integers [{count}], one class index an image."
        )
    if (labels < 0).any():
        raise SeedError(f"'labels' in {path} has negative entries; class indices begin at 0.")
    return [int(label) for label in labels]

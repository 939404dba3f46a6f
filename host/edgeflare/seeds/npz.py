"""One array of an `.npz` archive, element by element: it is never in memory as a whole."""

import lzma
import math
import shutil
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from edgeflare._internal.files import check_regular
from edgeflare._internal.text import OTHER_INPUTS, names_text, reason
from edgeflare.errors import SeedError
from edgeflare.seeds.images import DecodedImage, check_pixels, over_black
from edgeflare.seeds.types import AUDIO, IMAGES, Medium, UnreadableError, other_medium, sha256_of
from edgeflare.types import Sample
from edgeflare_agent.audio_spec import LONGEST_CLIP

_BLOCK = 1 << 18


class Header(NamedTuple):
    """The type and shape of an array, and its first byte in its member of the archive."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int


def member(archive: zipfile.ZipFile, name: str) -> str | None:
    """Return the name, within the archive, of the array of that name; None where there is none."""
    return next((one for one in (f"{name}.npy", name) if one in archive.namelist()), None)


def _read_header(archive: zipfile.ZipFile, name: str) -> Header:
    """Return the type and shape of the array in this member.

    Raises ValueError where it is no array, or the archive's directory gives it another length; and
    what `zipfile` raises.
    """
    with archive.open(name) as stream:
        version = npy.read_magic(stream)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if read is None:
            raise ValueError(f"its array {name!r} is in version {version} of numpy's format")
        try:
            shape, fortran_order, dtype = read(stream)
        except (tokenize.TokenError, SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError(f"the header of its array {name!r} is damaged") from error
        offset = stream.tell()
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    there = archive.getinfo(name).file_size - offset
    if size != there and not dtype.hasobject:
        raise ValueError(f"its array {name!r} holds {there} bytes where its shape says {size}")
    return Header(shape, fortran_order, dtype, offset)


def read(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Return the whole array in this member. Raises ValueError for objects."""
    with archive.open(name) as stream:
        array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return array


def check(archive: zipfile.ZipFile, name: str) -> None:
    """Read a member to its end, where `zipfile` compares checksums and raises BadZipFile."""
    with archive.open(name) as stream:
        while stream.read(_BLOCK):
            pass


def elements(archive: zipfile.ZipFile, name: str, header: Header) -> Iterator[NDArray[Any]]:
    """Yield array[0], array[1] and so on, each read when it is needed.

    The elements of an array in Fortran order are not contiguous: it goes through a temporary file.
    """
    with archive.open(name) as stream:
        stream.read(header.offset)
        if header.fortran_order:
            yield from _mapped(stream, header)
        else:
            yield from _streamed(stream, header)


def _streamed(stream: IO[bytes], header: Header) -> Iterator[NDArray[Any]]:
    shape = header.shape[1:]
    length = int(np.prod(shape)) * header.dtype.itemsize
    for _ in range(header.shape[0]):
        data = stream.read(length)
        if len(data) != length:
            raise EOFError("it ends within its entries")
        yield np.frombuffer(data, header.dtype).reshape(shape).copy()


def _mapped(stream: IO[bytes], header: Header) -> Iterator[NDArray[Any]]:
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(stream, file, _BLOCK)
        file.flush()
        array = np.memmap(file, header.dtype, "r", shape=header.shape, order="F")
        for part in array:
            yield np.array(part)
        del array, part


_MOST_ENTRIES = 10_000_000


class Archive:
    """One file's array of a medium, with its labels; each entry is read when it is needed.

    "images" is uint8 [N, H, W] or [N, H, W, C], C 1, 3 or 4; "audio" float32 or int16 [N, samples],
    with its `rate` in Hz, one whole number, with it. `labels`, where there are some, are integers
    [N]. Raises SeedError where the file or one of the arrays is not that.
    """

    def __init__(self, path: Path, medium: Medium) -> None:
        self.path = path
        self.rate = 0
        with self._reading() as file:
            archive = _zip(file, path)
            name = member(archive, medium.called)
            if name is None:
                raise _lacking(archive, path, medium)
            self._name = name
            self._header = _read_header(archive, name)
            if medium is IMAGES:
                _check_images(self._header, path)
            else:
                _check_audio(self._header, path)
            if len(self) > _MOST_ENTRIES:
                raise SeedError(
                    f"{medium.called!r} in {path} holds {len(self)} entries, and up to "
                    f"{_MOST_ENTRIES} are read; split it"
                )
            if medium is AUDIO:
                self.rate = _read_rate(archive, path)
            self.labels = self._read_labels(archive)

    def __len__(self) -> int:
        return self._header.shape[0]

    def images(self) -> Iterator[tuple[DecodedImage, str]]:
        """Yield every image, as RGB or grey, and the archive's digest; see `entries`.

        Transparent pixels are laid over black.
        """
        for image, digest in self.entries():
            yield _decoded(np.atleast_3d(image)), digest

    def entries(self) -> Iterator[tuple[NDArray[Any], str]]:
        """Yield every entry of the array and the SHA-256, in hex, of the whole archive.

        The archive is read through before the first entry: one that is damaged, wherever it is,
        gives none.
        """
        with self._reading() as file:
            digest = sha256_of(file)
            archive = _zip(file, self.path)
            if _read_header(archive, self._name) != self._header:
                raise SeedError(f"the archive {self.path} was changed while it was read")
            check(archive, self._name)
            for entry in elements(archive, self._name, self._header):
                yield entry, digest

    def _read_labels(self, archive: zipfile.ZipFile) -> list[int] | None:
        name = member(archive, "labels")
        if name is None:
            return None
        _check_labels(_read_header(archive, name), len(self), self.path)
        labels = read(archive, name)
        if (labels < 0).any():
            raise SeedError(
                f"'labels' in {self.path} has negative entries; class indices begin at 0"
            )
        return [int(label) for label in labels]

    @contextmanager
    def _reading(self) -> Iterator[BinaryIO]:
        try:
            check_regular(self.path)
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
            raise SeedError(f"the archive {self.path} can't be read: {reason(error)}") from error


def _zip(file: BinaryIO, path: Path) -> zipfile.ZipFile:
    file.seek(0)
    if file.read(len(npy.MAGIC_PREFIX)) == npy.MAGIC_PREFIX:
        raise SeedError(f"{path} is a single array, not an .npz archive; use numpy.savez")
    return zipfile.ZipFile(file)


def _lacking(archive: zipfile.ZipFile, path: Path, medium: Medium) -> SeedError:
    name, other = medium.called, other_medium(medium)
    if member(archive, other.called) is not None:
        return SeedError(
            f"the archive {path} holds {other.called}, and the model takes {name}{medium.hint}"
        )
    layouts = {
        "images": "uint8 [N, height, width, channels]",
        "audio": "float32 or int16 [N, samples], with their `rate`",
    }
    held = sorted(one.removesuffix(".npy") for one in archive.namelist())
    return SeedError(
        f"the archive {path} has no array named {name!r}; it has {names_text(held, 5) or 'none'}: put the seeds "
        f"there as {layouts[name]} ({OTHER_INPUTS})"
    )


def _decoded(pixels: Sample) -> DecodedImage:
    if pixels.shape[2] != 4:
        return DecodedImage(np.ascontiguousarray(pixels), transparent=False)
    alpha = pixels[:, :, 3:]
    return DecodedImage(over_black(pixels[:, :, :3], alpha), bool((alpha < 255).any()))


def _check_images(header: Header, path: Path) -> None:
    shape = header.shape
    if header.dtype != np.uint8:
        raise SeedError(
            f"'images' in {path} is {header.dtype}; it must be uint8, the pixels as a camera or "
            f"file gives them, 0 to 255, before any scaling ({OTHER_INPUTS})"
        )
    if len(shape) not in (3, 4) or (len(shape) == 4 and shape[3] not in (1, 3, 4)):
        raise SeedError(
            f"'images' in {path} has the shape {list(shape)}; it must be [N, H, W] "
            "or [N, H, W, C] with 1, 3 or 4 channels at the end"
        )
    if 0 in shape:
        raise SeedError(f"'images' in {path} is empty: its shape is {list(shape)}")
    try:
        check_pixels(shape[1] * shape[2])
    except UnreadableError as error:
        raise SeedError(f"'images' in {path}: of each image, {error}") from error


def _check_audio(header: Header, path: Path) -> None:
    if header.dtype not in (np.float32, np.int16):
        raise SeedError(
            f"'audio' in {path} is {header.dtype}; it must be float32 in [-1, 1], or int16"
        )
    if len(header.shape) != 2 or 0 in header.shape:
        raise SeedError(
            f"'audio' in {path} has the shape {list(header.shape)}; it must be [N, samples], one "
            "mono recording a row, none of them empty"
        )
    if header.shape[1] > LONGEST_CLIP:
        raise SeedError(
            f"'audio' in {path} has {header.shape[1]} samples a row, and up to {LONGEST_CLIP} are "
            "read; cut it"
        )


def _read_rate(archive: zipfile.ZipFile, path: Path) -> int:
    name = member(archive, "rate")
    if name is None:
        raise SeedError(f"the archive {path} has 'audio' and no 'rate', its sampling rate in Hz")
    header = _read_header(archive, name)
    is_one = math.prod(header.shape) == 1 and np.issubdtype(header.dtype, np.integer)
    rate = int(read(archive, name).item()) if is_one else 0
    if rate < 1:
        raise SeedError(f"'rate' in {path} must be one whole number, the sampling rate in Hz")
    return rate


def _check_labels(header: Header, count: int, path: Path) -> None:
    if not np.issubdtype(header.dtype, np.integer) or header.shape != (count,):
        raise SeedError(
            f"'labels' in {path} is {header.dtype} {list(header.shape)}; "
            f"it must be integers [{count}], one class index an entry"
        )

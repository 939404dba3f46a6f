"""One array of an `.npz` archive, element by element: it is never in memory as a whole."""

import shutil
import tempfile
import tokenize
import zipfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

_BLOCK = 1 << 18


class Header(NamedTuple):
    """What an array is, and at which byte of its member of the archive it begins."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int


def member(archive: zipfile.ZipFile, name: str) -> str | None:
    """Return the name, within the archive, of the array of that name; None where there is none."""
    return next((one for one in (f"{name}.npy", name) if one in archive.namelist()), None)


def read_header(archive: zipfile.ZipFile, name: str) -> Header:
    """Return what the array in this member is.

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
    """Return the whole array in this member; its header was read before. Raises ValueError for objects."""
    with archive.open(name) as stream:
        array: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
    return array


def check(archive: zipfile.ZipFile, name: str) -> None:
    """Read a member through to the end, where `zipfile` compares checksums and raises BadZipFile."""
    with archive.open(name) as stream:
        while stream.read(_BLOCK):
            pass


def elements(archive: zipfile.ZipFile, name: str, header: Header) -> Iterator[NDArray[Any]]:
    """Yield array[0], array[1] and so on, each read when it is asked for.

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

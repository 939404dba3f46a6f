"""Samples as content-addressed files in a database's folder."""

import hashlib
import io
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from edgeflare._internal.files import remove_torn, sync_folder, write_temporary
from edgeflare.errors import StoreError
from edgeflare.store.database import Database, decoding, translate_errors
from edgeflare.types import Sample

if TYPE_CHECKING:
    from typing_extensions import Self

_HEADER = struct.Struct("<4sI4s 4sIHHIIHH 4sII 4sI")
_NPY_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00.{2}\{'descr': '(?P<dtype>[|<]\w\d)', 'fortran_order': False, "
    rb"'shape': \((?P<shape>[\d, ]*)\), \}\s*",
    re.DOTALL,
)
_FLOATS = 3
_BYTES = 4
_LARGEST = 2**32 - _HEADER.size - 1


def wav_bytes(sample: Sample, rate: int) -> bytes:
    """Return float32 [samples] as a mono WAV of `rate` Hz. Raises ValueError for over 4 GiB."""
    data = np.ascontiguousarray(sample, dtype="<f4").tobytes()
    if len(data) > _LARGEST:
        raise ValueError(f"{len(sample)} samples are too many for a WAV file")
    header = _HEADER.pack(
        *(b"RIFF", _HEADER.size - 8 + len(data), b"WAVE"),
        *(b"fmt ", 16, _FLOATS, 1, rate, rate * _BYTES, _BYTES, 8 * _BYTES),
        *(b"fact", 4, sample.size),
        *(b"data", len(data)),
    )
    return header + data


def read_wav(data: bytes) -> tuple[Sample, int]:
    """Return the samples and the rate of a file of `wav_bytes`. Raises ValueError for any other."""
    try:
        riff, _, wave, _, _, form, channels, rate, *_ = _HEADER.unpack_from(data)
    except struct.error as error:
        raise ValueError("it is too short for a WAV file") from error
    if (riff, wave, form, channels) != (b"RIFF", b"WAVE", _FLOATS, 1):
        raise ValueError("it is no WAV file of mono floats")
    return np.frombuffer(data, "<f4", offset=_HEADER.size).astype(np.float32), rate


_SUFFIXES = (".npy", ".wav")
_WRITERS = 8


class SampleFiles:
    """`<2 hex>/<sha256>.npy`, or `.wav` of audio, named by the SHA-256 of the file's bytes.

    `rate` is that of all audio, in Hz; it must be known before any is written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rate: int | None = None
        self._made: set[Path] = set()  # folders that are there and on disk

    def path(self, digest: str) -> Path:
        """Return the path of the sample of that digest, or of an image where there is none."""
        image, audio = (self.folder / digest[:2] / (digest + suffix) for suffix in _SUFFIXES)
        return audio if audio.exists() else image

    def paths(self) -> Iterator[Path]:
        """Every sample's file there is now."""
        for suffix in _SUFFIXES:
            yield from self.folder.glob(f"*/*{suffix}")

    def remove_torn(self) -> None:
        """Remove the temporary files of a killed process; nobody may be writing samples here."""
        for folder in self.folder.iterdir():
            if folder.is_dir():
                remove_torn(folder)

    def digest(self, sample: Sample) -> str:
        """Return the digest that `put` would return; nothing is written."""
        return hashlib.sha256(self._file_of(sample)[0]).hexdigest()

    def put(self, sample: Sample) -> str:
        """Write an array of any shape and plain dtype; on disk when this returns its digest.

        Audio, float32 [samples], is written at the `rate`; StoreError where that isn't known.
        """
        staged = self._stage(sample)
        _publish([staged])
        sync_folder(staged.path.parent)
        return staged.digest

    def put_all(self, samples: Sequence[Sample]) -> list[str]:
        """Write many arrays as `put` does, side by side; each folder's names go to disk once."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            writing = [pool.submit(self._stage, sample) for sample in samples]
            try:
                staged = [one.result() for one in writing]
                _publish(staged)
                for _ in pool.map(sync_folder, {one.path.parent for one in staged}):
                    pass
            except BaseException:
                wait(writing)
                _withdraw(one.result() for one in writing if one.exception() is None)
                raise
        return [one.digest for one in staged]

    def get(self, digest: str) -> Sample:
        """Read a sample back. Raises StoreError where it is missing or its bytes have changed."""
        base = os.path.join(self.folder, digest[:2], digest)  # noqa: PTH118 - many samples are read
        for suffix in _SUFFIXES:
            try:
                with open(base + suffix, "rb", buffering=0) as file:  # noqa: PTH123
                    data = file.read()
                break
            except FileNotFoundError:
                continue
        else:
            raise StoreError(
                f"the sample file {self.path(digest)} is missing; restore the campaign folder from "
                "a copy"
            )
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(
                f"the sample file {base}{suffix} is damaged: its content is not what its name says; "
                "restore it from a copy"
            )
        return _read_npy(data) if suffix == ".npy" else read_wav(data)[0]

    def _stage(self, sample: Sample) -> "_Staged":
        """Write a sample's bytes to a temporary file, unless its own file is there."""
        data, suffix = self._file_of(sample)
        digest = hashlib.sha256(data).hexdigest()
        path = self.folder / digest[:2] / (digest + suffix)
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(self.folder)
            self._made.add(path.parent)
        if path.exists() and path.stat().st_size == len(data):
            return _Staged(digest, path, None)
        return _Staged(digest, path, write_temporary(path, data))

    def _file_of(self, sample: Sample) -> tuple[bytes, str]:
        if sample.ndim == 1 and sample.dtype == np.float32:
            if self.rate is None:
                raise StoreError(f"the rate of the audio of {self.folder} is not known")
            return wav_bytes(sample, self.rate), ".wav"
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(sample), allow_pickle=False)
        return buffer.getvalue(), ".npy"


def _read_npy(data: bytes) -> Sample:
    """Return the array of an .npy file.

    `numpy.load` evaluates the header with `ast`, which fails at random in CPython 3.11 where
    another thread uses `ast`, too (gh-106905). The header of a file that `SampleFiles` wrote needs
    no evaluation.
    """
    start = 10 + int.from_bytes(data[8:10], "little")
    header = _NPY_HEADER.fullmatch(data[:start])
    if header is None:
        array: Sample = np.load(io.BytesIO(data), allow_pickle=False)
        return array
    shape = tuple(int(size) for size in header["shape"].split(b",") if size.strip())
    dtype = np.dtype(header["dtype"].decode())
    sample: Sample = np.frombuffer(data, dtype, offset=start).reshape(shape).copy()
    return sample


class StoredFolder:
    """A folder with a database and samples: the base of a campaign's store and of a corpus."""

    def __init__(self, database: Database) -> None:
        self.folder = database.folder
        self._database = database
        place = None if database.location is None else database.location.samples
        self._samples = SampleFiles(self.folder / "samples" if place is None else Path(place))

    def close(self) -> None:
        """Close the database; nothing is pending."""
        self._database.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def get_sample(self, digest: str) -> Sample:
        """Read a sample back, checked against its digest."""
        with decoding(self.folder, f"the sample {digest}"), translate_errors(self.folder):
            return self._samples.get(digest)


class LazySamples(Sequence[Sample]):
    """Samples by their digests; each is read when it is asked for."""

    def __init__(self, read: Callable[[str], Sample], digests: Sequence[str]) -> None:
        self._read = read
        self.digests = digests

    def __len__(self) -> int:
        return len(self.digests)

    @overload
    def __getitem__(self, index: int) -> Sample: ...

    @overload
    def __getitem__(self, index: slice) -> "LazySamples": ...

    def __getitem__(self, index: int | slice) -> "Sample | LazySamples":
        if isinstance(index, slice):
            return LazySamples(self._read, self.digests[index])
        return self._read(self.digests[index])


class _Staged(NamedTuple):
    """A sample on disk: in its place, or else in a temporary file of the same folder."""

    digest: str
    path: Path
    temporary: Path | None


def _publish(staged: Sequence[_Staged]) -> None:
    """Move every sample into its place, or leave no temporary file."""
    try:
        for one in staged:
            if one.temporary is not None:
                one.temporary.replace(one.path)
    except BaseException:
        _withdraw(staged)
        raise


def _withdraw(staged: Iterable[_Staged]) -> None:
    for one in staged:
        if one.temporary is not None:
            one.temporary.unlink(missing_ok=True)

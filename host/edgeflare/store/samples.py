"""Samples as content-addressed files in a folder or in an object store."""

import hashlib
import io
import os
import re
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, overload

import numpy as np

from edgeflare._internal.files import (
    check_inside,
    is_disk_full,
    read_regular,
    remove_torn,
    sync_folder,
    write_temporary,
)
from edgeflare._internal.plugins import load
from edgeflare.errors import DiskFullError, StoreAwayError, StoreError, UsageError
from edgeflare.store.database import Database, decoding, translate_errors
from edgeflare.store.location import is_drawn, stated_samples
from edgeflare.store.servers import begin_again_when_lost
from edgeflare.types import Sample
from edgeflare.words.search import unreadable

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


SUFFIXES = (".npy", ".wav")
"""The ends of a sample's name: of any array, and of audio."""
_BELOW = re.compile(r"[0-9a-f]{2}")
_NAME = re.compile(r"[0-9a-f]{64}\.(npy|wav)")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 1 << 30
"""Of a sample's file: seeds have as much at most."""
_SHOWN = 80
_WRITERS = 8
_MISTYPED = re.compile(r"(?:^|/)s3:", re.IGNORECASE)


class Samples(ABC):
    """`<2 hex>/<sha256>.npy`, or `.wav` of audio, named by the SHA-256 of the file's bytes.

    Any thread may call any method; several processes may write to one place.
    """

    def __init__(self, place: Path | str) -> None:
        self.place = str(place)
        """The folder, or the URL."""
        self.rate: int | None = None
        """The rate of all audio, in Hz; it must be known before any is written."""

    @abstractmethod
    def make(self) -> None:
        """Make the place for a new campaign's samples, or check that it is there."""

    @abstractmethod
    def discard(self) -> None:
        """Remove every sample, and folders that are empty then; other files stay."""

    @abstractmethod
    def remove_torn(self) -> None:
        """Remove what a killed process wrote in part; nobody may be writing samples here."""

    @abstractmethod
    def sizes(self) -> Iterator[tuple[str, int]]:
        """Every sample's digest there is now, and its bytes."""

    @abstractmethod
    def exists(self, digest: str) -> bool:
        """Whether the sample of this digest is stored."""

    @abstractmethod
    def put(self, sample: Sample) -> str:
        """Write an array of any shape and plain dtype; stored when this returns its digest.

        Audio, float32 [samples], is written at the `rate`; StoreError where that isn't known.
        """

    @abstractmethod
    def put_all(self, samples: Sequence[Sample]) -> list[str]:
        """Write many arrays as `put` does, side by side."""

    @abstractmethod
    def get(self, digest: str) -> Sample:
        """Read a sample back. Raises StoreError where it is missing or its bytes have changed."""

    @abstractmethod
    def remove(self, digests: Iterable[str]) -> None:
        """Remove the samples of these digests; those that are missing are no error."""

    def digest(self, sample: Sample) -> str:
        """Return the digest that `put` would return; nothing is written."""
        return self.file_of(sample)[0]

    def check_rate(self) -> int:
        """Return the rate of audio. Raises StoreError where it isn't known."""
        if self.rate is None:
            raise StoreError(f"the rate of the audio of {self.place} is not known")
        return self.rate

    def file_of(self, sample: Sample) -> tuple[str, bytes, str]:
        """Return a sample's digest, the bytes of its file and the end of that one's name."""
        if is_audio(sample):
            data, suffix = wav_bytes(sample, self.check_rate()), ".wav"
        else:
            buffer = io.BytesIO()
            np.save(buffer, np.ascontiguousarray(sample), allow_pickle=False)
            data, suffix = buffer.getvalue(), ".npy"
        if len(data) > _MOST_BYTES:
            raise StoreError(
                f"a sample of {len(data)} bytes can't be stored in {self.place}, where one has "
                f"{_MOST_BYTES} at most: use smaller seeds"
            )
        return hashlib.sha256(data).hexdigest(), data, suffix


def open_samples(place: Path | str) -> Samples:
    """Return the samples of a folder, or of a URL that fsspec knows, such as `s3://bucket/prefix`.

    A URL is connected to when it is first used. Raises UsageError for one with credentials in it,
    and where no installed distribution declares a place of samples for its scheme.
    """
    if not isinstance(place, str) or "://" not in place:
        return SampleFiles(Path(place))
    scheme, _, rest = place.partition("://")
    if "@" in rest.split("/", maxsplit=1)[0]:
        raise UsageError(
            f"the samples' place {scheme}://...@{rest.rpartition('@')[2]} has credentials in "
            "it; give them in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"
        )
    kind = load("store", scheme)
    if not (isinstance(kind, type) and issubclass(kind, Samples)) or not rest.strip("/"):
        raise UsageError(
            f"samples can't be in {place}: name a folder, or a place in an S3-compatible store, "
            "s3://bucket/prefix"
        )
    return kind(place)


def absolute_place(place: str) -> str:
    """Return a stated place of samples as it is stored: a URL, or a folder's absolute path.

    Raises UsageError for a URL with credentials in it, and for one that is mistyped.
    """
    if "://" in place:
        return open_samples(place).place
    if _MISTYPED.search(place):
        raise UsageError(
            f"{place!r} is neither a folder nor the URL of a place; write s3://bucket/prefix"
        )
    return str(Path(place).expanduser().absolute())


def check_digest(digest: str) -> None:
    """Raise StoreError for a text that can't be a sample's digest: it is the name of a file."""
    if not _DIGEST.fullmatch(digest):
        raise StoreError(
            f"{digest[:_SHOWN]!r} is not the digest of a sample, 64 hexadecimal digits: what names it is "
            "damaged; restore it from a copy"
        )


def check_content(data: bytes, digest: str, path: str) -> None:
    """Raise StoreError unless the bytes of a sample's file are those of its digest."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise StoreError(
            f"the sample file {path} is damaged: its content is not what its name says; restore it "
            "from a copy"
        )


def decode_sample(data: bytes, suffix: str) -> Sample:
    """Return the array of a sample's file."""
    return _read_npy(data) if suffix == ".npy" else read_wav(data)[0]


class SampleFiles(Samples):
    """Samples in a folder: of the campaign, or shared by several hosts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
        self._made: set[Path] = set()  # folders that are there and on disk

    def make(self) -> None:
        """Make the folder, which must not exist yet. Raises StoreError where it can't be made."""
        try:
            self.folder.mkdir(parents=True)
        except OSError as error:
            if is_disk_full(error):
                raise
            raise StoreError(
                f"the samples' folder {self.folder} can't be made: {error.strerror or error}; check "
                "the path and its permissions"
            ) from error

    def discard(self) -> None:
        """Remove every sample, and the folders that are empty then; other files and links stay."""
        if not self.folder.is_dir():
            return
        # by the names alone: the user may have put other files there, and links lead elsewhere
        for below in list(self.folder.iterdir()):
            if _BELOW.fullmatch(below.name) and below.is_dir() and not below.is_symlink():
                remove_torn(below)
                for path in list(below.iterdir()):
                    if _NAME.fullmatch(path.name) and path.name.startswith(below.name):
                        path.unlink(missing_ok=True)
                _remove_empty(below)
        _remove_empty(self.folder)

    def exists(self, digest: str) -> bool:
        """Whether the sample of this digest is stored."""
        return self.path(digest).exists()

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Every sample's digest there is now, and its bytes."""
        for suffix in SUFFIXES:
            for path in self.folder.glob(f"*/*{suffix}"):
                with suppress(FileNotFoundError):  # removed meanwhile
                    yield path.stem, path.stat().st_size

    def remove(self, digests: Iterable[str]) -> None:
        """Remove the samples of these digests; those that are missing are no error."""
        for digest in digests:
            self.path(digest).unlink(missing_ok=True)

    def path(self, digest: str) -> Path:
        """Return the path of the sample of that digest, or of an image where there is none."""
        check_digest(digest)
        image, audio = (self.folder / digest[:2] / (digest + suffix) for suffix in SUFFIXES)
        return audio if audio.exists() else image

    def remove_torn(self) -> None:
        """Remove the temporary files of a killed process; nobody may be writing samples here."""
        for folder in self.folder.iterdir():
            if folder.is_dir():
                remove_torn(folder)

    def put(self, sample: Sample) -> str:
        """Write an array of any shape and plain dtype; on disk when this returns its digest.

        Audio, float32 [samples], is written at the `rate`; StoreError where that isn't known.
        """
        staged = self._stage(sample)
        _publish([staged])
        digest, path, _ = staged
        sync_folder(path.parent)
        return digest

    def put_all(self, samples: Sequence[Sample]) -> list[str]:
        """Write many arrays as `put` does, side by side; each folder's names go to disk once."""
        with ThreadPoolExecutor(_WRITERS) as pool:
            writing = [pool.submit(self._stage, sample) for sample in samples]
            try:
                staged = [one.result() for one in writing]
                _publish(staged)
                for _ in pool.map(sync_folder, {path.parent for _, path, _ in staged}):
                    pass
            except BaseException:
                wait(writing)
                _withdraw(one.result() for one in writing if one.exception() is None)
                raise
        return [digest for digest, *_ in staged]

    def get(self, digest: str) -> Sample:
        """Read a sample back. Raises StoreError where it is missing or its bytes have changed."""
        check_digest(digest)
        base = os.path.join(self.folder, digest[:2], digest)  # noqa: PTH118 - many samples are read
        for suffix in SUFFIXES:
            try:
                data = read_regular(base + suffix, _MOST_BYTES, inside=self.folder)
                break
            except FileNotFoundError:
                continue
        else:
            if not self.folder.is_dir():
                raise StoreError(
                    f"the samples' folder {self.folder} is not there; mount it, or restore it from a "
                    "copy"
                )
            raise StoreError(
                f"the sample file {self.path(digest)} is missing; restore it from a copy"
            )
        check_content(data, digest, base + suffix)
        return decode_sample(data, suffix)

    def _stage(self, sample: Sample) -> "_Staged":
        """Write a sample's bytes to a temporary file, unless its own file is there."""
        digest, data, suffix = self.file_of(sample)
        path = self.folder / digest[:2] / (digest + suffix)
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            check_inside(path.parent, self.folder)
            sync_folder(self.folder)
            self._made.add(path.parent)
        if path.exists() and path.stat().st_size == len(data):
            return digest, path, None
        return digest, path, write_temporary(path, data)


def _remove_empty(folder: Path) -> None:
    if not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


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


def discard_samples(folder: Path) -> None:
    """Remove all samples of a campaign's folder, which are nobody else's.

    A place that is stated, in a file which anybody may have written, must be one that `create`
    makes: the folder's own `samples`, or one whose name `samples_below` drew. Others stay.
    """
    place = stated_samples(folder)
    own = folder.absolute() / "samples"
    if place is None or place == str(own):
        SampleFiles(own).discard()
    elif is_drawn(place):
        open_samples(place).discard()


class StoredFolder:
    """A folder with a database and samples: the base of a campaign's store and of a corpus."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        begin_again_when_lost(cls)

    def __init__(self, database: Database) -> None:
        self.folder = database.folder
        self._database = database
        self._samples = open_samples(stated_samples(self.folder) or self.folder / "samples")

    @property
    def samples_place(self) -> Path | str:
        """Where the samples are: a folder, or a URL such as `s3://bucket/prefix`."""
        place = self._samples.place
        return place if "://" in place else Path(place)

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

    def sample_to_show(self, digest: str) -> Sample:
        """Read a sample back for people. Raises StoreError, also where a sound's rate isn't known."""
        sample = self.get_sample(digest)
        if is_audio(sample):
            self._samples.check_rate()
        return sample

    def has_sample(self, digest: str) -> bool:
        """Whether the sample of this digest is stored."""
        with translate_errors(self.folder):
            return self._samples.exists(digest)


def is_audio(sample: Sample) -> bool:
    """Whether a sample is kept as a sound."""
    return sample.ndim == 1 and sample.dtype == np.float32


class SampleReader:
    """Reads samples for people to look at: one that is missing or damaged stops no report.

    `damaged` says why, by digest. `read` is `Store.sample_to_show` or like it.
    """

    def __init__(self, read: Callable[[str], Sample]) -> None:
        self._read = read
        self.damaged: dict[str, str] = {}

    def get(self, digest: str, make: Callable[[], Sample] | None = None) -> Sample | None:
        """Return a sample, by `make` where that is given; None where it can't be read.

        Raises StoreAwayError and DiskFullError.
        """
        try:
            return self._read(digest) if make is None else make()
        except (StoreAwayError, DiskFullError):
            raise
        except StoreError as error:
            self.damaged[digest] = str(error)
            return None

    def pair(self, first: str, second: str) -> tuple[Sample, Sample] | None:
        """Return two samples, None where one of them can't be read."""
        one = self.get(first)
        other = one if first == second else self.get(second)
        return None if one is None or other is None else (one, other)

    @property
    def notices(self) -> tuple[str, ...]:
        """A notice where some could not be read."""
        return (unreadable(self.damaged),) if self.damaged else ()


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


_Staged: TypeAlias = tuple[str, Path, Path | None]
"""A sample on disk, by its digest: in its place, or else in a temporary file of the same folder."""


def _publish(staged: Sequence[_Staged]) -> None:
    """Move every sample into its place, or leave no temporary file."""
    try:
        for _, path, temporary in staged:
            if temporary is not None:
                temporary.replace(path)
    except BaseException:
        _withdraw(staged)
        raise


def _withdraw(staged: Iterable[_Staged]) -> None:
    for *_, temporary in staged:
        if temporary is not None:
            temporary.unlink(missing_ok=True)

"""Samples as objects of an S3-compatible store."""

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from edgeflare.errors import StoreAwayError, StoreError
from edgeflare.store.samples import SUFFIXES, Samples, check_content, check_digest, decode_sample
from edgeflare.types import Sample
from edgeflare_lab.words.stores import SAMPLES

_T = TypeVar("_T")
_AT_ONCE = 16
"""How many objects are read or written at a time."""
_CONNECT_S = 10
_READ_S = 20
_ATTEMPTS = 4
_CACHED_BYTES = 64 << 20
_KNOWN = 1 << 16
_NAME = re.compile(r"(?P<folder>[0-9a-f]{2})/(?P<digest>(?P=folder)[0-9a-f]{62})\.(?:npy|wav)")
_MODULES = {"s3fs": "s3", "aiobotocore": "s3", "fsspec": "s3"}


class SampleObjects(Samples):
    """Samples below an fsspec URL such as `s3://bucket/prefix`, named as in a folder.

    Every object is written in one request, which S3 makes visible whole or not at all. What was
    read or written last, up to 64 MiB, is kept in memory. Credentials and the endpoint come from
    the environment (`AWS_ENDPOINT_URL` and so on) or from fsspec's configuration.

    A server that does not answer fails a request after about 3 minutes.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url.rstrip("/"))
        self._opening = threading.Lock()
        self._opened: tuple[Any, str] | None = None
        self._recent = _Recent(_CACHED_BYTES)
        self._known: OrderedDict[str, None] = OrderedDict()
        self._known_lock = threading.Lock()

    def make(self) -> None:
        """Check that the place can be read. Raises StoreError."""
        for _ in self.sizes():
            break

    def discard(self) -> None:
        """Remove every sample there is; other objects stay."""
        self.remove([digest for digest, _ in self.sizes()])

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Every sample's digest and its bytes."""
        with self._errors():
            files, root = self._files()
            found = files.find(root, detail=True)
        for name, entry in found.items():
            match = _NAME.fullmatch(name[len(root) :].strip("/"))
            if match is not None:
                yield match["digest"], int(entry["size"])

    def exists(self, digest: str) -> bool:
        """Whether the sample of this digest is stored."""
        if digest in self._known:
            return True
        there = any(self._is_there(digest, suffix) for suffix in self._suffixes())
        if there:
            self._note(digest)
        return there

    def put(self, sample: Sample) -> str:
        """Write an array of any shape and plain dtype; stored when this returns its digest."""
        return self.put_all([sample])[0]

    def put_all(self, samples: Sequence[Sample]) -> list[str]:
        """Write many arrays as `put` does, side by side; those that are there stay as they are."""
        digests = []
        files: dict[str, tuple[bytes, str]] = {}
        for sample in samples:
            digest, data, suffix = self.file_of(sample)
            digests.append(digest)
            files[digest] = data, suffix
        self._map(lambda one: self._write(one, *files[one]), files)
        return digests

    def get(self, digest: str) -> Sample:
        """Read a sample back. Raises StoreError where it is missing or its bytes have changed."""
        cached = self._recent.get(digest)
        if cached is not None:
            return decode_sample(*cached)
        for suffix in self._suffixes():
            with self._errors():
                try:
                    data: bytes = self._call("cat_file", digest, suffix)
                except FileNotFoundError as error:
                    # a bucket that isn't there is no missing sample
                    if _is_of_bucket(error):
                        raise
                    continue
            path = f"{self.place}/{_name(digest, suffix)}"
            check_content(data, digest, path)
            self._recent.put(digest, (data, suffix))
            return decode_sample(data, suffix)
        raise StoreError(
            f"the sample {self.place}/{_name(digest, '.npy')} is missing; restore it from a copy"
        )

    def remove(self, digests: Iterable[str]) -> None:
        """Remove the samples of these digests; those that are missing are no error."""
        self._map(self._remove, digests)

    def remove_torn(self) -> None:
        """Do nothing: an object is never written in part."""

    def _write(self, digest: str, data: bytes, suffix: str) -> None:
        if digest not in self._known and not self._is_there(digest, suffix):
            with self._errors():
                self._call("pipe_file", digest, suffix, data)
        self._note(digest)
        self._recent.put(digest, (data, suffix))

    def _remove(self, digest: str) -> None:
        with self._known_lock:
            self._known.pop(digest, None)
        self._recent.drop(digest)
        for suffix in SUFFIXES:
            with self._errors():
                try:
                    self._call("rm_file", digest, suffix)
                except FileNotFoundError as error:
                    if _is_of_bucket(error):
                        raise

    def _is_there(self, digest: str, suffix: str) -> bool:
        """Ask for an object's first byte: one request, where fsspec's `exists` makes two."""
        with self._errors():
            try:
                self._call("cat_file", digest, suffix, 0, 1)
            except FileNotFoundError as error:
                if _is_of_bucket(error):
                    raise
                return False
        return True

    def _note(self, digest: str) -> None:
        with self._known_lock:
            self._known[digest] = None
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)

    def _suffixes(self) -> tuple[str, ...]:
        return SUFFIXES if self.rate is None else SUFFIXES[::-1]

    def _map(self, act: Callable[[str], _T], digests: Iterable[str]) -> None:
        digests = list(digests)
        if len(digests) == 1:
            act(digests[0])
        elif digests:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                running = [pool.submit(act, digest) for digest in digests]
                try:
                    for one in running:
                        one.result()
                except BaseException:
                    pool.shutdown(cancel_futures=True)
                    raise

    def _call(self, method: str, digest: str, suffix: str, *arguments: Any) -> Any:
        files, root = self._files()
        return getattr(files, method)(f"{root}/{_name(digest, suffix)}", *arguments)

    def _files(self) -> tuple[Any, str]:
        """The file system and the place's path in it, opened when they are first needed."""
        with self._opening:
            if self._opened is None:
                from fsspec.config import conf
                from fsspec.core import url_to_fs

                options: dict[str, Any] = {}
                scheme = self.place.partition("://")[0]
                if scheme == "s3":
                    options = {
                        # others write there, too; many environments' endpoints differ
                        "use_listings_cache": False,
                        "skip_instance_cache": True,
                        "max_concurrency": 1,  # else every read asks for the size first
                        "config_kwargs": {
                            "connect_timeout": _CONNECT_S,
                            "read_timeout": _READ_S,
                            "max_pool_connections": _AT_ONCE,
                            "retries": {"mode": "standard", "total_max_attempts": _ATTEMPTS},
                            **conf.get(scheme, {}).get("config_kwargs", {}),
                        },
                    }
                files, root = url_to_fs(self.place, **options)
                if options:
                    files.retries = 2  # of its own, each with the attempts above
                self._opened = files, root.rstrip("/")
            return self._opened

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn every error of fsspec and what is below it into one sentence on the place."""
        try:
            yield
        except StoreError:
            raise
        except Exception as error:
            raise _error(error, self.place) from error


def _name(digest: str, suffix: str) -> str:
    check_digest(digest)
    return f"{digest[:2]}/{digest}{suffix}"


def _code(error: BaseException) -> str:
    """The S3 error code that an error was made of; "" where there is none."""
    response = getattr(error.__cause__ or error, "response", None)
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def _is_of_bucket(error: FileNotFoundError) -> bool:
    return _code(error) == "NoSuchBucket"


_BY_CODE: Mapping[str, str] = {
    "InvalidAccessKeyId": "unknown key",
    "SignatureDoesNotMatch": "wrong key",
    "NoSuchBucket": "no bucket",
    "InvalidBucketName": "no name",
    "RequestTimeTooSkewed": "clock",
    "SlowDown": "slow",
}
_PASSING = ("unreachable", "slow")
_BY_TYPE: Mapping[str, str] = {
    **dict.fromkeys(
        ("NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError"), "no credentials"
    ),
    **dict.fromkeys(
        (
            *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError"),
            *("ConnectionClosedError", "HTTPClientError", "ConnectionError", "TimeoutError"),
            *("FSTimeoutError", "ProxyConnectionError", "ClientConnectionError"),
        ),
        "unreachable",
    ),
    "ParamValidationError": "no name",
    "SSLError": "no TLS",
    "FileNotFoundError": "no bucket",
    "PermissionError": "no right",
}


def _error(error: Exception, place: str) -> StoreError:
    """Return what is wrong with the samples in a place, and what to do."""
    by_type = (_BY_TYPE.get(kind.__name__) for kind in type(error).__mro__)
    problem = _BY_CODE.get(_code(error)) or next(filter(None, by_type), None)
    if isinstance(error, ImportError):
        missing = "s3fs" if error.name is None else error.name
        extra = _MODULES.get(missing.partition(".")[0])
        package = f"'edgeflare[{extra}]'" if extra else missing
        return StoreError(
            f"the samples in {place} need the Python package {missing}; install it with `pip install "
            f"{package}`"
        )
    if problem is None:
        cause = " ".join(str(error).split()) or type(error).__name__
        return StoreError(
            f"the samples in {place} can't be used: {cause}; check the place and AWS_ENDPOINT_URL"
        )
    kind = StoreAwayError if problem in _PASSING else StoreError
    return kind(f"the samples in {place} {SAMPLES[problem]}")


class _Recent:
    """The files read or written last, up to so many bytes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._files: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, digest: str) -> tuple[bytes, str] | None:
        with self._lock:
            file = self._files.get(digest)
            if file is not None:
                self._files.move_to_end(digest)
            return file

    def put(self, digest: str, file: tuple[bytes, str]) -> None:
        with self._lock:
            self._drop(digest)
            self._files[digest] = file
            self._size += len(file[0])
            while self._size > self._most:
                self._drop(next(iter(self._files)))

    def drop(self, digest: str) -> None:
        with self._lock:
            self._drop(digest)

    def _drop(self, digest: str) -> None:
        file = self._files.pop(digest, None)
        if file is not None:
            self._size -= len(file[0])

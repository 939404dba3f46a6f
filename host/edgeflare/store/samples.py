"""Samples as content-addressed files."""

import hashlib
import io
import os
import uuid
from pathlib import Path

import numpy as np

from edgeflare.errors import StoreError
from edgeflare.types import Sample


class SampleFiles:
    """`<2 hex>/<sha256>.npy` below one folder; the name is the SHA-256 of the file's bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, digest: str) -> Path:
        """Return where the sample of that digest is, or would be."""
        return self.folder / digest[:2] / f"{digest}.npy"

    def put(self, sample: Sample) -> str:
        """Write an array of any shape and plain dtype; on disk when this returns its digest."""
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(sample), allow_pickle=False)
        data = buffer.getvalue()
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest)
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True, exist_ok=True)
            sync_folder(self.folder)
        if not path.exists() or path.stat().st_size != len(data):
            write_durably(path, data)
        else:
            sync_folder(path.parent)
        return digest

    def get(self, digest: str) -> Sample:
        """Read a sample back. Raises StoreError where it is missing or its bytes have changed."""
        path = self.path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise StoreError(
                f"The sample file {path} is missing; restore the campaign folder from a copy."
            ) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(
                f"The sample file {path} is damaged: its content is not what its name says; "
                "restore it from a copy."
            )
        array: Sample = np.load(io.BytesIO(data), allow_pickle=False)
        return array


def write_durably(path: Path, data: bytes) -> None:
    """Write a whole file that is on disk, under its name, when this returns."""
    temporary = path.with_name(f".new-{uuid.uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put a folder's names on disk; where folders can't be opened (Windows) the system does it."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

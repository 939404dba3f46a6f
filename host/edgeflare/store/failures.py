"""Errors of the disk, the database and stored data as one sentence about the folder."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError, StatementError

from edgeflare._internal.files import is_disk_full
from edgeflare.errors import DiskFullError, StoreError

_SQLITE_SENTENCES = (
    ("locked", "is in use by another program; wait until that has finished, or stop it"),
    ("locking protocol", "is on a file system without locks; move it to a local disk"),
    ("readonly", "can't be written to; check its permissions and that its disk is writable"),
    ("unable to open", "can't be opened; check its permissions and that its disk is writable"),
    ("no such table", "is not a campaign folder: its database is another program's"),
    ("not a database", "is damaged: its database can't be read; restore it from a copy"),
    ("malformed", "is damaged: its database can't be read; restore it from a copy"),
    ("could not decode", "is damaged: its database can't be read; restore it from a copy"),
    ("no such column", "is damaged: its database can't be read; restore it from a copy"),
    ("integer overflow", "is damaged: its database can't be read; restore it from a copy"),
    ("disk i/o", "can't be read or written: its disk reports an error"),
)
_LEAST_FREE = 1 << 20
_UNREADABLE = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError),
    *(TypeError, ValueError),
)
_LONGEST_CAUSE = 200


@contextmanager
def told_of(folder: Path, *, begun: bool = True) -> Iterator[None]:
    """Turn every error of the file system, sqlite3 and SQLAlchemy into a StoreError on `folder`.

    `begun`: whether there is something in the folder to resume; it decides what the error of a full disk advises.
    """
    try:
        yield
    except DiskFullError as error:
        if begun:
            raise
        raise no_space_to_begin(folder) from error
    except (OSError, SQLAlchemyError, sqlite3.Error) as error:
        told = (
            _of_files(error, folder) if isinstance(error, OSError) else _of_database(error, folder)
        )
        if isinstance(told, DiskFullError) and not begun:
            told = no_space_to_begin(folder)
        raise told from error


@contextmanager
def decoding(folder: Path, what: str = "its database") -> Iterator[None]:
    """Turn errors of decoding stored data into a StoreError that `what` is damaged; nothing else may run within."""
    try:
        yield
    except _UNREADABLE as error:
        cause = " ".join(str(error).split())[:_LONGEST_CAUSE] or type(error).__name__
        raise StoreError(
            f"{folder} is damaged: {what} can't be read ({cause}); restore it from a copy"
        ) from error


def disk_full(folder: Path) -> DiskFullError:
    """Return the error that says that no space is left."""
    return DiskFullError(
        f"No space is left on the disk of {folder}; what was found so far is kept there. "
        "Free some space, then go on with `edgeflare resume`."
    )


def no_space_to_begin(folder: Path) -> DiskFullError:
    """Return the error that says that no space is left, where nothing was begun yet."""
    return DiskFullError(
        f"No space is left on the disk of {folder}, so that nothing could be begun there. "
        "Free some space, then start again."
    )


def _of_files(error: OSError, folder: Path) -> StoreError:
    if is_disk_full(error):
        return disk_full(folder)
    names = (error.filename2, error.filename)  # what a file was to become, before what it is
    name = next((str(one) for one in names if one is not None), str(folder))
    where = name if name == str(folder) else f"{name} in the folder {folder}"
    return StoreError(f"{where} can't be used: {error.strerror or error}.")


def _of_database(error: Exception, folder: Path) -> StoreError:
    cause = error.orig if isinstance(error, StatementError) else error
    text = str(cause).lower()
    for_want_of_space = "disk i/o" in text or "unable to open database file" in text
    if "disk is full" in text or (for_want_of_space and _nothing_free(folder)):
        return disk_full(folder)
    for part, sentence in _SQLITE_SENTENCES:
        if part in text:
            return StoreError(f"{folder} {sentence}.")
    return StoreError(f"The database of {folder} failed: {cause}.")


def _nothing_free(folder: Path) -> bool:
    try:
        return shutil.disk_usage(folder).free < _LEAST_FREE
    except OSError:
        return False

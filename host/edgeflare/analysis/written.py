"""What can go wrong when files are written for the user, as one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgeflare._internal.files import is_disk_full
from edgeflare.errors import DiskFullError, StoreError, UsageError
from edgeflare.store.database import DATABASE_NAME


def check_report_path(path: Path, campaign: Path) -> None:
    """Raise UsageError where a report's file would be a folder, or the database of the campaign itself."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name the file to write.")
    if path.resolve() == (campaign / DATABASE_NAME).resolve():
        raise UsageError(f"{path} is the campaign itself; name another file.")


@contextmanager
def written_to(folder: Path, *, untouched: str, again: str, instead: str) -> Iterator[None]:
    """Turn errors of the file system into DiskFullError or StoreError.

    `untouched` is what a full disk leaves as it was, `again` what to do once there is space, `instead`
    what to do where a file can't be written for another reason.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(
                f"No space is left on the disk of {folder}; {untouched} is untouched. "
                f"Free some space and {again}."
            ) from error
        where = error.filename2 or error.filename or folder
        raise StoreError(f"{where} can't be written: {error.strerror}; {instead}.") from error

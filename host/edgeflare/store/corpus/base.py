"""The lock, the errors and the properties of a trigger corpus."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from sqlalchemy import Connection, select

from edgeflare._internal.files import check_regular
from edgeflare.errors import StoreError, UsageError
from edgeflare.store.corpus import tables
from edgeflare.store.corpus.records import Form
from edgeflare.store.database import disk_full_advice, translate_errors
from edgeflare.store.location import Location, read_pointer
from edgeflare.store.mapped import record_of
from edgeflare.store.servers import server_of

LOCK_NAME = "corpus.lock"
_PATIENCE = 60.0  # s; another process adds its triggers within seconds
_PAUSE = 0.1


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Hold the corpus' lock, which every process that changes it takes; wait for it up to a minute.

    Raises StoreError where it isn't free by then, or where the folder can't be written to.
    """
    location = read_pointer(folder)
    lock = FileLock(folder / LOCK_NAME, thread_local=False)
    with translate_errors(folder), ExitStack() as held:
        try:
            if location is None:
                if (folder / LOCK_NAME).exists():  # else it is made here
                    check_regular(folder / LOCK_NAME, inside=folder)
                held.enter_context(lock.acquire(timeout=_PATIENCE))
            else:
                held.enter_context(_on_server(location))
        except Timeout as error:
            raise StoreError(
                f"{folder} has been in use by another edgeflare for {_PATIENCE:g} s; wait until that "
                "has finished, then try again"
            ) from error
        except NotImplementedError as error:
            raise StoreError(
                f"{folder} is on a file system without locks; move it to a local disk"
            ) from error
        yield


@contextmanager
def _on_server(location: Location) -> Iterator[None]:
    """Hold the lock of a corpus that is on a server. Raises Timeout."""
    lock = server_of(location).lock_on(location)
    until = time.monotonic() + _PATIENCE
    while not lock.take():
        if time.monotonic() > until:
            raise Timeout(location.address)
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.release()


class About(NamedTuple):
    """The row of the table about the corpus."""

    id: str
    created_at: datetime
    per_pair: int
    shape: tuple[int, ...] | None
    classes: int | None
    rate: int | None

    @property
    def form(self) -> Form | None:
        """The form of all entries; None until something was added."""
        if self.shape is None or self.classes is None:
            return None
        return Form(self.shape, self.classes, self.rate)


def check_per_pair(at_most: int) -> None:
    """Raise UsageError unless a corpus may have that many entries a seed input and class pair."""
    if at_most < 1:
        raise UsageError(
            f"a corpus can't keep {at_most} entries a seed input and class pair; ask for 1 or more"
        )


CORPUS_ADVICE = "free some space, then do this again", "what the corpus had is kept"
"""Of a full disk: what to do, and what is kept."""


@contextmanager
def corpus_errors(folder: Path) -> Iterator[None]:
    """Turn every error of the disk and the database into a StoreError on the corpus in `folder`."""
    with disk_full_advice(*CORPUS_ADVICE), translate_errors(folder):
        yield


def read_about(connection: Connection) -> About:
    """Return the one row of the table about the corpus."""
    row = connection.execute(select(tables.about)).one()
    return record_of(About, row)

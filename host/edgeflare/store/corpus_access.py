"""What every part of a trigger corpus needs: who may write, and what all entries have in common."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout
from sqlalchemy import Connection, Engine, select, update

from edgeflare.errors import DiskFullError, StoreError, UsageError
from edgeflare.store import corpus_tables as tables
from edgeflare.store.access import Access
from edgeflare.store.corpus_records import Form
from edgeflare.store.documents import moment, record
from edgeflare.store.failures import decoding, told_of

LOCK_NAME = "corpus.lock"
_PATIENCE = 60.0  # s; what another process adds is there within seconds


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep every other process from changing the corpus in this folder meanwhile; wait for them first.

    Raises StoreError where they go on for more than a minute, or where the folder can't be written to.
    """
    lock = FileLock(folder / LOCK_NAME, thread_local=False)
    with told_of(folder):
        try:
            lock.acquire(timeout=_PATIENCE)
        except Timeout as error:
            raise StoreError(
                f"{folder} has been in use by another edgeflare for {_PATIENCE:g} s; wait until that "
                "has finished, then try again."
            ) from error
        except NotImplementedError as error:
            raise StoreError(
                f"{folder} is on a file system without locks; move it to a local disk."
            ) from error
        try:
            yield
        finally:
            lock.release()


class _About(NamedTuple):
    """What the table about the corpus says."""

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


class CorpusAccess(Access):
    """A corpus's folder with its database, open."""

    def __init__(self, folder: Path, engine: Engine) -> None:
        super().__init__(folder, engine)
        self._changing_one = threading.Lock()

    @property
    def id(self) -> str:
        """The corpus's own name, 32 hexadecimal digits."""
        return self._about().id

    @property
    def created_at(self) -> datetime:
        """When the corpus was made, UTC."""
        return self._about().created_at

    @property
    def per_pair(self) -> int:
        """How many entries there may be for one seed input and one pair of classes."""
        return self._about().per_pair

    def set_per_pair(self, at_most: int) -> None:
        """Let so many entries in for one seed input and one pair of classes, from the next one on.

        Raises UsageError for less than 1.
        """
        check_per_pair(at_most)
        with self._changing(), self._writing() as connection:
            connection.execute(update(tables.about).values(per_pair=at_most))

    @property
    def form(self) -> Form | None:
        """The shape of every sample and the number of classes; None until something was added."""
        return self._about().form

    @property
    def rate(self) -> int | None:
        """The rate in Hz of a corpus of audio; None of images."""
        form = self.form
        return None if form is None else form.rate

    @contextmanager
    def _reading(self, what: str = "its database") -> Iterator[Connection]:
        with full_disk_told(self.folder), super()._reading(what) as connection:
            yield connection

    def _about(self) -> "_About":
        with self._reading() as connection:
            return _about(connection)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Let nobody else change the corpus, no thread and no process; a killed one may have left samples half written."""
        with self._changing_one, alone(self.folder), full_disk_told(self.folder):
            with told_of(self.folder):
                self._samples.remove_torn()
            yield

    def _set_form(self, connection: Connection, form: Form) -> None:
        """Hold every later entry to this form. Raises UsageError where the entries have another."""
        with decoding(self.folder):
            known = _about(connection).form
        if known is None:
            change = {"shape": list(form.shape), "classes": form.classes, "rate": form.rate}
            connection.execute(update(tables.about).values(**change))
        elif known != form:
            raise UsageError(
                f"The corpus {self.folder} has inputs of {_words(known)}, "
                f"these are of {_words(form)}; add them to a corpus of their own."
            )
        self._samples.rate = form.rate


def check_per_pair(at_most: int) -> None:
    """Raise UsageError unless a corpus may have that many entries for one seed input and class pair."""
    if at_most < 1:
        raise UsageError(
            f"A corpus can't keep {at_most} entries a seed input and class pair; ask for 1 or more."
        )


@contextmanager
def full_disk_told(folder: Path) -> Iterator[None]:
    """Say of a full disk what it means for a corpus."""
    try:
        yield
    except DiskFullError as error:
        raise DiskFullError(
            f"No space is left on the disk of {folder}; what the corpus had is kept. "
            "Free some space, then do this again."
        ) from error


def stamp(moment: datetime) -> str:
    """Return a moment as the database has it, UTC."""
    return moment.astimezone(timezone.utc).isoformat()


def _about(connection: Connection) -> _About:
    row = connection.execute(select(tables.about)).one()
    return record(_About, row, created_at=moment(row.created_at))


def _words(form: Form) -> str:
    shape = " x ".join(map(str, form.shape)) if form.rate is None else f"audio at {form.rate} Hz"
    return f"{shape} and {form.classes} classes"

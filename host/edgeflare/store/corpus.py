"""A trigger corpus: a folder that grows over campaigns, models and devices, to be replayed."""

import uuid
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, insert, inspect, select

from edgeflare._internal.files import sync_folder
from edgeflare._version import __version__
from edgeflare.errors import StoreError
from edgeflare.store import corpus_tables as tables
from edgeflare.store.corpus_access import LOCK_NAME, alone, check_per_pair, full_disk_told
from edgeflare.store.corpus_removal import CorpusRemoval
from edgeflare.store.database import CORPUS_NAME, connect, put_in_place
from edgeflare.store.failures import decoding, told_of

if TYPE_CHECKING:
    from typing_extensions import Self

_UNFINISHED_NAME = f"{CORPUS_NAME}.new"
PER_PAIR = 3
"""How many entries there may be for one seed input and one pair of classes, unless a corpus has it otherwise."""


def is_corpus(folder: Path) -> bool:
    """Whether there is a trigger corpus in this folder."""
    return (Path(folder) / CORPUS_NAME).is_file()


class Corpus(CorpusRemoval):
    """Confirmed triggering inputs of many campaigns: `corpus.sqlite` and `samples/` in one folder.

    Every method that changes something is on disk when it returns; a process killed meanwhile leaves
    every entry whole. Any thread may call any method; of several processes that change a corpus each
    waits for the one before. All methods raise StoreError, DiskFullError among them.
    """

    @classmethod
    def open(cls, folder: Path, create: bool = False, *, per_pair: int | None = None) -> "Corpus":
        """Open the corpus in a folder; make one there, where there is none, if `create` says so.

        A folder to be made a corpus must be empty or not exist. `per_pair` is how many entries one
        seed input and class pair may have (3 for a new corpus); None leaves what the corpus has.
        """
        folder = Path(folder)
        if per_pair is not None:
            check_per_pair(per_pair)
        if create and not is_corpus(folder):
            with told_of(folder, begun=False):
                _make(folder, per_pair or PER_PAIR)
        with decoding(folder), full_disk_told(folder), told_of(folder):
            if not folder.is_dir():
                raise StoreError(f"There is no corpus folder {folder}; check the path.")
            if not is_corpus(folder):
                raise StoreError(
                    f"{folder} is not a corpus: it has no {CORPUS_NAME}; check the path, or make one "
                    "with `edgeflare corpus add`."
                )
            corpus = cls(folder, connect(folder, None, name=CORPUS_NAME))
            try:
                with corpus._engine.connect() as connection:
                    _check_schema(connection, folder)
                if per_pair is not None and per_pair != corpus.per_pair:
                    corpus.set_per_pair(per_pair)
            except BaseException:
                corpus.close()
                raise
        return corpus

    def close(self) -> None:
        """Close the database; nothing is pending."""
        self._engine.dispose()

    def size(self) -> int:
        """Return how many bytes the database and the samples take on disk."""
        total = 0
        with told_of(self.folder):
            for path in (self.folder / CORPUS_NAME, *self._samples.paths()):
                with suppress(FileNotFoundError):  # removed meanwhile
                    total += path.stat().st_size
        return total

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _make(folder: Path, per_pair: int) -> None:
    """Make an empty corpus under another name, which it changes when it is whole."""
    if folder.exists() and (
        not folder.is_dir() or any(not _is_beginning(path) for path in folder.iterdir())
    ):
        raise StoreError(
            f"{folder} is neither a corpus nor an empty folder; choose another for the corpus."
        )
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder):
        if is_corpus(folder):
            return
        for path in folder.glob(f"{_UNFINISHED_NAME}*"):
            path.unlink()
        (folder / "samples").mkdir(exist_ok=True)
        engine = connect(folder, None, name=_UNFINISHED_NAME)
        try:
            with engine.begin() as connection:
                tables.metadata.create_all(connection)
                connection.execute(
                    insert(tables.about).values(
                        schema_version=tables.SCHEMA_VERSION,
                        program_version=__version__,
                        id=uuid.uuid4().hex,
                        created_at=datetime.now(timezone.utc).isoformat(),
                        per_pair=per_pair,
                    )
                )
            put_in_place(engine, folder, _UNFINISHED_NAME, CORPUS_NAME)
        finally:
            engine.dispose()
        sync_folder(folder)
        sync_folder(folder.parent)


def _is_beginning(path: Path) -> bool:
    """Whether a file or folder is of a corpus whose making another process is at, or was killed at."""
    return path.name in (LOCK_NAME, "samples", CORPUS_NAME) or path.name.startswith(
        _UNFINISHED_NAME
    )


def _check_schema(connection: Connection, folder: Path) -> None:
    """Raise StoreError unless the database was written for this program's schema."""
    if not inspect(connection).has_table(tables.about.name):
        raise StoreError(f"{folder} is not a corpus: its database is another program's.")
    query = select(tables.about.c.schema_version, tables.about.c.program_version)
    version, program = connection.execute(query).one()
    if version == tables.SCHEMA_VERSION:
        return
    advice = (
        f"read it with edgeflare {program}, or make it anew from its campaigns"
        if version < tables.SCHEMA_VERSION
        else "upgrade edgeflare"
    )
    raise StoreError(
        f"{folder} was written by edgeflare {program} in another format (schema {version}) than this "
        f"edgeflare {__version__} reads (schema {tables.SCHEMA_VERSION}); {advice}."
    )

"""The database of a campaign or a corpus: SQLite in its folder, or a schema of PostgreSQL."""

import os
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    Table,
    create_engine,
    event,
    inspect,
    select,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import SQLAlchemyError, StatementError

from edgeflare._internal.files import check_regular, is_disk_full
from edgeflare._internal.text import reason
from edgeflare._version import __version__
from edgeflare.errors import DiskFullError, StoreError, UnwritableError
from edgeflare.store.documents import UnstorableError, read_json, write_json
from edgeflare.store.location import (
    CORPUS_NAME,
    DATABASE_NAME,
    POINTER_NAME,
    Kind,
    Location,
    campaign_text,
    is_address,
    read_pointer,
)
from edgeflare.store.servers import check_not_lost, installed_servers, server_of

_SQLITE = b"SQLite format 3\0"
_WITH_LOG = b"\2\2"
_HEAD = 20
"""How SQLite's files begin; the last two bytes of the 20 are these where they have a write-ahead log, as ours."""
_LEAST_FREE = 1 << 20
_UNREADABLE = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError),
    *(TypeError, ValueError),
)
_LONGEST_CAUSE = 200


@contextmanager
def translate_errors(folder: Path, *, resumable: bool = True) -> Iterator[None]:
    """Turn every error of the file system, sqlite3 and SQLAlchemy into a StoreError on `folder`.

    `resumable`: whether there is something in the folder to resume, for the advice of the error of
    a full disk.
    """
    try:
        yield
    except DiskFullError as error:
        if not resumable:
            error.kept, error.advice = _AT_START
        raise
    except (OSError, SQLAlchemyError, sqlite3.Error, UnstorableError) as error:
        translated = (
            _of_files(error, folder) if isinstance(error, OSError) else _of_database(error, folder)
        )
        if isinstance(translated, DiskFullError) and not resumable:
            translated.kept, translated.advice = _AT_START
        raise translated from error


@contextmanager
def decoding(folder: Path, what: str | Table = "its database") -> Iterator[None]:
    """Turn errors of decoding stored data into a StoreError that `what`, in words, is damaged."""
    try:
        yield
    except _UNREADABLE as error:
        cause = reason(error)[:_LONGEST_CAUSE]
        if isinstance(what, Table):
            what = f"the table {what.name} of its database"
        raise StoreError(
            f"{folder} is damaged: {what} can't be read ({cause}); restore it from a copy"
        ) from error


@contextmanager
def disk_full_advice(advice: str, kept: str = "") -> Iterator[None]:
    """Give a DiskFullError the advice that fits what is done here, and what of it is `kept`."""
    try:
        yield
    except DiskFullError as error:
        error.advice, error.kept = advice, kept or error.kept
        raise


def disk_full_error(folder: Path) -> DiskFullError:
    """Return the error that says that no space is left."""
    return DiskFullError(
        f"no space is left on the disk of {folder}",
        kept="what was found so far is kept there",
        advice="free some space, then go on with `edgeflare resume`",
    )


_AT_START = "nothing could be stored there", "free some space, then start again"


def _of_files(error: OSError, folder: Path) -> StoreError:
    if is_disk_full(error):
        return disk_full_error(folder)
    names = (error.filename2, error.filename)  # the new name of a file before its present one
    name = next((str(one) for one in names if one is not None), str(folder))
    where = name if name == str(folder) else f"{name} in the folder {folder}"
    return StoreError(f"{where} can't be used: {error.strerror or error}")


def _of_database(error: Exception, folder: Path) -> StoreError:
    cause = error.orig if isinstance(error, StatementError) else error
    if isinstance(cause, UnstorableError):
        return StoreError(
            f"what was to be stored in {folder} isn't, since it couldn't be read again ({cause}); what "
            "was there is unchanged: report this as a defect of edgeflare"
        )
    if (translated := _of_server(cause, folder)) is not None:
        return translated
    text = str(cause).lower()
    for_want_of_space = "disk i/o" in text or "unable to open database file" in text
    if "disk is full" in text or (for_want_of_space and _nothing_free(folder)):
        return disk_full_error(folder)
    sentences = (
        ("locked", "is in use by another program; wait until that has finished, or stop it"),
        ("locking protocol", "is on a file system without locks; move it to a local disk"),
        ("readonly", "can't be written to; check its permissions and that its disk is writable"),
        ("unable to open", "can't be opened; check its permissions and that its disk is writable"),
        ("no such table", "is not a campaign folder: its database is another program's"),
        ("not a database", "is damaged: its database can't be read; restore it from a copy"),
        ("malformed", "is damaged: its database can't be read; restore it from a copy"),
        ("could not decode", "is damaged: its database can't be read; restore it from a copy"),
        ("row was found", "is damaged: a row of its database is missing; restore it from a copy"),
        (
            "rows were found",
            "is damaged: a row of its database is there twice; restore it from a copy",
        ),
        ("no such column", "is damaged: its database can't be read; restore it from a copy"),
        ("integer overflow", "is damaged: its database can't be read; restore it from a copy"),
        ("disk i/o", "can't be read or written: its disk reports an error"),
    )
    for part, sentence in sentences:
        if part in text:
            kind = UnwritableError if part in ("readonly", "unable to open") else StoreError
            return kind(f"{folder} {sentence}")
    return StoreError(f"the database of {folder} failed: {str(cause)[:_LONGEST_CAUSE]}")


def _of_server(cause: BaseException | None, folder: Path) -> StoreError | None:
    if isinstance(cause, sqlite3.Error):
        return None  # no distribution is imported for it
    try:
        location = read_pointer(folder)
    except StoreError:
        location = None
    url = "" if location is None else location.url
    where = campaign_text(folder)
    servers = installed_servers(url.partition("://")[0])
    said = (
        server.server_error(cause, url, "" if is_address(where) else where) for server in servers
    )
    return next(filter(None, said), None)


def _nothing_free(folder: Path) -> bool:
    try:
        there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.is_dir())
        return shutil.disk_usage(there).free < _LEAST_FREE
    except OSError:
        return False


_T = TypeVar("_T")
BATCH = 256
"""How many rows are read, or names asked for, at a time."""

UNFINISHED = ".new"
"""Behind the name of a database's file while it is being made."""

_BUSY_SECONDS = 10
_WRITES = "edgeflare_writes"

Errors: TypeAlias = Callable[[Path], AbstractContextManager[None]]
"""Turns the errors of a folder's disk and database into StoreError."""


class Schema(NamedTuple):
    """The tables of one kind of folder.

    `kind` is "campaign" or "corpus", `file` the database's name in the folder. `about` is the table
    whose one row states the `schema_version` and the `program_version` that wrote it. `upgrade`
    brings a database of any schema from `oldest` on to this one, in one transaction.
    """

    kind: Kind
    file: str
    version: int
    about: Table
    oldest: int
    upgrade: Callable[[Connection], None] = lambda _: None


class Database:
    """An open database of a folder; `location` says where, None: in a file of the folder.

    Any thread may call any method. Writers go one by one and each is one transaction; a reader
    holds a connection for one page of rows only, so it never blocks a writer for long. What is
    read within one `reading` is of one moment. Writers raise StoreError where this process has lost
    its lock on the same data to another one.
    """

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        errors: Errors = translate_errors,
        copy: TemporaryDirectory[str] | None = None,
        location: Location | None = None,
    ) -> None:
        self.folder = folder
        self.engine = engine
        self.location = location
        self._errors = errors
        self._copy = copy
        self._writing_engine = for_writing(engine)
        self._reading_engine = engine
        if location is not None:
            self._server = server_of(location)
            self._reading_engine = engine.execution_options(isolation_level="REPEATABLE READ")
            self._single_engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close it; nothing is pending."""
        self.engine.dispose()
        if self._copy is not None:
            self._copy.cleanup()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give the connection of one transaction that writes; on disk when this ends."""
        with self._errors(self.folder), self._lock, self._writing_engine.begin() as connection:
            if self.location is not None:
                check_not_lost(self._server, self.folder, self.location)
                self._server.serialise(connection)
            yield connection

    @contextmanager
    def adding(self, *, one_statement: bool = False) -> Iterator[Connection]:
        """Give the connection of one transaction that only adds rows, as `writing` does.

        On a server those of several threads and processes go at once; what must not be twice is
        kept so by the tables' constraints. `one_statement` is a transaction of its own there, without
        those that begin and end it.
        """
        if self.location is None:
            with self.writing() as connection:
                yield connection
            return
        check_not_lost(self._server, self.folder, self.location)
        with (
            self._errors(self.folder),
            self._single_engine.connect()
            if one_statement
            else self._writing_engine.begin() as connection,
        ):
            yield connection

    @contextmanager
    def reading(self, what: str | Table = "its database") -> Iterator[Connection]:
        """Give a connection to read `what`. Raises StoreError where that is damaged."""
        with (
            decoding(self.folder, what),
            self._errors(self.folder),
            self._reading_engine.connect() as connection,
        ):
            yield connection

    def size(self, file: str) -> int:
        """Return how many bytes it takes: the tables on a server, else the file of this name."""
        if self.location is not None:
            with self.reading() as connection:
                return self._server.size(connection)
        with self._errors(self.folder):
            return (self.folder / file).stat().st_size

    def rows(self, table: Table, record: Callable[[Row[Any]], _T]) -> list[_T]:
        """Return a record of each row of a short table, in order."""
        return list(self.pages(select(table), table.c.position, record))

    def pages(
        self,
        query: Select[Any],
        position: ColumnElement[int],
        record: Callable[[Row[Any]], _T],
    ) -> Iterator[_T]:
        """Yield a record a row of the query in the order of `position`, one of its columns."""
        last = -1
        while True:
            page = query.where(position > last).order_by(position).limit(BATCH)
            with self.reading(position.table) as connection:
                rows = list(connection.execute(page))
            with decoding(self.folder, position.table):
                for row in rows:
                    yield record(row)
            if len(rows) < BATCH:
                return
            last = rows[-1]._mapping[position]

    def pages_in_order(
        self,
        query: Select[Any],
        name: ColumnElement[str],
        names: Sequence[str],
        record: Callable[[Row[Any]], _T],
    ) -> Iterator[_T]:
        """Yield a record for each of these names that the query has a row of, in their order.

        `name` is one of the query's columns, and different in each of its rows.
        """
        for batch in batches(names):
            with self.reading(name.table) as connection:
                rows = list(connection.execute(query.where(name.in_(batch))))
            with decoding(self.folder, name.table):
                found = {str(row._mapping[name]): record(row) for row in rows}
            yield from (found[one] for one in batch if one in found)


def no_campaign_error(folder: Path) -> StoreError:
    """Return the error of a folder that has no campaign's database."""
    location = read_pointer(folder)
    if (folder / CORPUS_NAME).is_file() or (location is not None and location.kind == "corpus"):
        return StoreError(
            f"{folder} is a trigger corpus, not a campaign folder; `edgeflare corpus show` shows "
            "what it has, `edgeflare replay` sends it again"
        )
    if location is not None and location.kind == "history":
        return StoreError(
            f"{folder} is a history of nights, not a campaign folder; name one of the campaigns in it"
        )
    if os.path.lexists(folder / DATABASE_NAME):
        try:
            check_database_files(folder, DATABASE_NAME)
        except OSError as error:
            return _of_files(error, folder)
    if (folder / f"{DATABASE_NAME}{UNFINISHED}").is_file():
        return _interrupted_text(folder, "campaign")
    if _has_samples(folder):
        return _without_database(folder, DATABASE_NAME, "is missing")
    return StoreError(
        f"{folder} is not a campaign folder: it has no {DATABASE_NAME}, and no {POINTER_NAME} that "
        "says where its database is; check the path (of a bench, `edgeflare bench show` has the "
        "figures)"
    )


def _interrupted(folder: Path, schema: Schema) -> StoreError:
    """Return the error of a folder whose database has no tables: nothing began, or it was lost."""
    if _has_samples(folder):
        return _without_database(folder, schema.file, "is empty")
    return _interrupted_text(folder, schema.kind)


def _without_database(folder: Path, name: str, what: str) -> StoreError:
    return StoreError(
        f"{folder} is damaged: its database {name} {what}, though its samples are there; restore it from "
        "a copy, and keep the folder until then"
    )


def _has_samples(folder: Path) -> bool:
    return any((folder / "samples").glob("??/*"))


def _interrupted_text(folder: Path, kind: Kind) -> StoreError:
    return StoreError(
        f"the {kind} in {folder} was interrupted before it began: delete the folder and run it anew"
    )


def batches(items: Iterable[_T]) -> Iterator[Sequence[_T]]:
    """Yield all items, up to BATCH at a time."""
    iterator = iter(items)
    while batch := list(islice(iterator, BATCH)):
        yield batch


def open_engine(folder: Path, name: str, location: Location | None) -> Engine:
    """Return an engine on the database at this location; None: on the file `name` in the folder."""
    if location is None:
        return connect(folder, name=name)
    return server_of(location).engine_on(location)


def check_database_files(folder: Path, name: str) -> None:
    """Raise OSError where the file `name`, or one that SQLite opens beside it, is a special file.

    So are links that lead out of the folder: SQLite would write to what they name.
    """
    for suffix in ("", "-wal", "-shm", "-journal"):
        path = folder / f"{name}{suffix}"
        if os.path.lexists(path):
            check_regular(path, inside=folder)


def check_database(folder: Path, schema: Schema) -> None:
    """Raise StoreError where a folder's file is not a database of this schema; nothing is written.

    SQLite alone would make one of an empty file, and change another program's to a write-ahead log.
    """
    check_database_files(folder, schema.file)
    with (folder / schema.file).open("rb") as file:
        head = file.read(_HEAD)
    if not head:
        raise _interrupted(folder, schema)
    if head.startswith(_SQLITE) and head[-len(_WITH_LOG) :] != _WITH_LOG:
        engine = connect_to_read(folder / schema.file)
        try:
            with engine.connect() as connection:
                read_version(connection, folder, schema)
        finally:
            engine.dispose()


def connect(folder: Path, *, name: str) -> Engine:
    """Return an engine on the file `name` in the folder.

    SQLite runs with a write-ahead log, synchronous=FULL and foreign keys; a transaction is on disk
    when its commit returns. On a read-only disk a campaign can still be read.
    """
    check_database_files(folder, name)
    if _only_readable(folder, name):
        return connect_to_read(folder / name)
    engine = create_engine(
        URL.create("sqlite", database=str(folder / name)),
        json_serializer=write_json,
        json_deserializer=read_json,
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin)
    return engine


def connect_to_read(database: Path) -> Engine:
    """Return an engine on a SQLite file that nothing writes to."""
    return create_engine(
        URL.create(
            "sqlite",
            database=database.absolute().as_uri(),
            query={"mode": "ro", "immutable": "1", "uri": "true"},
        ),
        json_deserializer=read_json,
    )


def for_writing(engine: Engine) -> Engine:
    """Return the engine for transactions that write: SQLite takes its lock as they begin.

    So two processes wait for each other; else one that has read could not go on to write.
    """
    return engine.execution_options(**{_WRITES: True})


def publish_database(engine: Engine, folder: Path, made: str, name: str) -> None:
    """Close a database that was filled under the name `made`, and give it its own, whole.

    What is still in the write-ahead log would be lost: the log keeps the other name. Raises
    sqlite3.Error where there is no room for it.
    """
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (busy, _, _) = cursor.fetchall()[0]
        cursor.close()
    finally:
        connection.close()
        engine.dispose()
    if busy:
        raise StoreError(f"{folder} is in use by another program; wait until that has finished")
    (folder / made).replace(folder / name)


def _only_readable(folder: Path, name: str) -> bool:
    """Whether there is a read-only database, and no write-ahead log to be read with it."""
    database = folder / name
    log = folder / f"{name}-wal"
    writable = os.access(folder, os.W_OK) and os.access(database, os.W_OK)
    return database.is_file() and not writable and not (log.is_file() and log.stat().st_size)


def read_version(connection: Connection, folder: Path, schema: Schema) -> int:
    """Return the schema version of a database. Raises StoreError for a newer one."""
    there = inspect(connection).get_table_names()
    location = read_pointer(folder) if connection.dialect.name != "sqlite" else None
    if not there and location is not None:
        raise server_of(location).no_tables_error(connection, folder, location)
    if not there:
        raise _interrupted(folder, schema)
    if schema.about.name not in there:
        raise StoreError(
            f"{folder} is not a {schema.kind} folder: its database is another program's"
        )
    about = schema.about.c
    version, program = connection.execute(select(about.schema_version, about.program_version)).one()
    if version > schema.version:
        raise StoreError(
            f"{folder} was made by a newer edgeflare ({program}, schema {version}) than this one "
            f"({__version__}, schema {schema.version}); upgrade edgeflare"
        )
    return int(version)


def _set_up_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # SQLAlchemy's begin and commit are the only ones
    for pragma in (
        f"busy_timeout={_BUSY_SECONDS * 1000}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

"""Opening the database of a campaign: SQLite in its folder, or what a URL names."""

import os
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, inspect, select
from sqlalchemy.engine import URL

from edgeflare._version import __version__
from edgeflare.errors import StoreError
from edgeflare.store import tables
from edgeflare.store.documents import read_json

DATABASE_NAME = "campaign.sqlite"
CORPUS_NAME = "corpus.sqlite"
UNFINISHED_NAME = f"{DATABASE_NAME}.new"
_BUSY_SECONDS = 10
_WRITES = "edgeflare_writes"


def connect(folder: Path, url: str | None, *, name: str = DATABASE_NAME) -> Engine:
    """Return an engine on the file `name` in the folder, or on any SQLAlchemy URL instead.

    SQLite runs with a write-ahead log, synchronous=FULL and foreign keys; a transaction is on disk
    when its commit returns. On a read-only disk a campaign can still be read.
    """
    if url is None and _only_readable(folder, name):
        return create_engine(
            URL.create(
                "sqlite",
                database=(folder / name).absolute().as_uri(),
                query={"mode": "ro", "immutable": "1", "uri": "true"},
            ),
            json_deserializer=read_json,
        )
    try:
        engine = create_engine(
            url or URL.create("sqlite", database=str(folder / name)),
            json_deserializer=read_json,
        )
    except ModuleNotFoundError as error:
        raise StoreError(
            f"The campaign's database needs the Python package {error.name}; install it."
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin)
    return engine


def for_writing(engine: Engine) -> Engine:
    """Return the engine for transactions that write: SQLite takes its lock as they begin.

    So two processes wait for each other; else one that has read could not go on to write.
    """
    return engine.execution_options(**{_WRITES: True})


def put_in_place(engine: Engine, folder: Path, made: str, name: str) -> None:
    """Close a database that was filled under the name `made`, and give it its own, whole.

    What is still in the write-ahead log would be lost: the log keeps the other name. Raises sqlite3.Error
    where there is no room for it.
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
        raise StoreError(f"{folder} is in use by another program; wait until that has finished.")
    (folder / made).replace(folder / name)


def _only_readable(folder: Path, name: str) -> bool:
    """Whether there is a database that nobody can write now, and no write-ahead log to be read with it."""
    database = folder / name
    log = folder / f"{name}-wal"
    writable = os.access(folder, os.W_OK) and os.access(database, os.W_OK)
    return database.is_file() and not writable and not (log.is_file() and log.stat().st_size)


def write_schema(connection: Connection) -> None:
    """Make the tables in a database that has none of them."""
    if inspect(connection).has_table(tables.meta.name):
        raise StoreError("This database holds a campaign already; use another, or open that one.")
    tables.metadata.create_all(connection)
    connection.execute(
        insert(tables.meta).values(
            schema_version=tables.SCHEMA_VERSION, program_version=__version__
        )
    )


def check_schema(connection: Connection, folder: Path) -> None:
    """Raise StoreError unless the database was written for this program's schema."""
    there = inspect(connection).get_table_names()
    if not there:
        raise StoreError(
            f"the campaign in {folder} was interrupted before it began: delete the folder and run it anew"
        )
    if tables.meta.name not in there:
        raise StoreError(f"{folder} is not a campaign folder: its database is another program's.")
    version, program = connection.execute(select(tables.meta)).one()
    if version == tables.SCHEMA_VERSION:
        return
    older = version < tables.SCHEMA_VERSION
    if program == __version__:
        age, advice = (
            ("earlier", "run the campaign anew") if older else ("later", "upgrade edgeflare")
        )
        raise StoreError(
            f"{folder} was made by {'an' if older else 'a'} {age} development version of edgeflare {program} "
            f"(schema {version}); this one reads schema {tables.SCHEMA_VERSION}: {advice}."
        )
    age, advice = (
        ("older", f"read it with edgeflare {program}, or run the campaign anew")
        if older
        else ("newer", f"upgrade edgeflare to {program} or later")
    )
    raise StoreError(
        f"{folder} was written by edgeflare {program} in a format (schema {version}) {age} than "
        f"this edgeflare {__version__} reads (schema {tables.SCHEMA_VERSION}); {advice}."
    )


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

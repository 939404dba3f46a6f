"""Migration of a database from an earlier schema, in one step, as it is opened."""

import sqlite3
import time
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Connection, Engine, update

from edgeflare._version import __version__
from edgeflare.errors import StoreError
from edgeflare.store.database import (
    Database,
    Errors,
    Schema,
    check_database,
    connect,
    connect_to_read,
    for_writing,
    open_engine,
    read_version,
    translate_errors,
)
from edgeflare.store.location import read_pointer
from edgeflare.store.servers import server_of

_PATIENCE_S, _PAUSE_S = 10.0, 0.2


def open_database(
    folder: Path,
    schema: Schema,
    lock: AbstractContextManager[object],
    *,
    errors: Errors = translate_errors,
) -> Database:
    """Open the database in a folder; one of an earlier schema is migrated to the program's.

    It is migrated in place under the folder's `lock`. Where the lock of a file can't be taken (a
    read-only disk, or an earlier edgeflare that runs the campaign) a migrated copy is opened for
    reading; on a server StoreError is raised after 10 s. Raises it, too, where the database is of a
    newer schema, damaged, or another program's.
    """
    location = read_pointer(folder)
    if location is None:
        check_database(folder, schema)
    engine, copy = open_engine(folder, schema.file, location), None
    try:
        if (version := _version(engine, folder, schema)) < schema.version:
            _check_migratable(engine, folder, schema, version)
            engine, copy = migrate(engine, folder, schema, lock)
    except BaseException:
        engine.dispose()
        raise
    return Database(folder, engine, errors, copy, location)


def migrate(
    engine: Engine, folder: Path, schema: Schema, lock: AbstractContextManager[object]
) -> tuple[Engine, TemporaryDirectory[str] | None]:
    """Migrate a database to the program's schema; return an engine on it.

    Where the folder's lock can't be taken, the engine is on a migrated copy in the temporary folder
    that is returned, too, for reading only. Raises StoreError where the database is damaged or
    of a schema for which there is no migration.
    """
    with ExitStack() as stack:
        try:
            _enter(stack, lock, engine, folder, schema)
        except StoreError:
            if engine.dialect.name != "sqlite":
                raise
        else:
            _migrate(engine, folder, schema)
            return engine, None
    copy = TemporaryDirectory(prefix="edgeflare-")
    try:
        database = Path(copy.name) / schema.file
        with closing(engine.raw_connection()) as source, closing(sqlite3.connect(database)) as to:
            source.driver_connection.backup(to)  # type: ignore[union-attr]  # is sqlite3's
        engine.dispose()
        writable = connect(database.parent, name=schema.file)
        _migrate(writable, folder, schema)
        return connect_to_read(database), copy
    except BaseException:
        copy.cleanup()
        raise


def _enter(
    stack: ExitStack,
    lock: AbstractContextManager[object],
    engine: Engine,
    folder: Path,
    schema: Schema,
) -> None:
    """Take the lock; on a server, which many processes open at once, wait while one migrates."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            stack.enter_context(lock)
        except StoreError:
            if engine.dialect.name == "sqlite" or time.monotonic() >= until:
                raise
            time.sleep(_PAUSE_S)
            if _version(engine, folder, schema) == schema.version:
                return
        else:
            return


def _version(engine: Engine, folder: Path, schema: Schema) -> int:
    with engine.connect() as connection:
        return read_version(connection, folder, schema)


def _migrate(engine: Engine, folder: Path, schema: Schema) -> None:
    """Upgrade it in one transaction; a process killed within leaves the database as it was."""
    try:
        with for_writing(engine).connect() as connection, connection.begin():
            if (location := read_pointer(folder)) is not None:
                server_of(location).serialise(connection)
            _check_intact(connection, folder)
            if read_version(connection, folder, schema) < schema.version:
                schema.upgrade(connection)
            about = {"schema_version": schema.version, "program_version": __version__}
            connection.execute(update(schema.about).values(**about))
            _check_intact(connection, folder)
    finally:
        engine.dispose()


def _check_migratable(engine: Engine, folder: Path, schema: Schema, version: int) -> None:
    """Raise StoreError where a database can't be migrated, before the folder's lock is made."""
    if version < schema.oldest:
        raise StoreError(
            f"{folder} was made by an earlier edgeflare whose schema {version} can't be read any "
            f"more, only schema {schema.oldest} and later; "
            f"{'run the campaign' if schema.kind == 'campaign' else 'make it from its campaigns'} anew"
        )
    with engine.connect() as connection:
        _check_intact(connection, folder)


def _check_intact(connection: Connection, folder: Path) -> None:
    if connection.dialect.name != "sqlite":
        return
    found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    if found != "ok" or connection.exec_driver_sql("PRAGMA foreign_key_check").first():
        raise StoreError(
            f"{folder} is damaged: its database can't be migrated; restore it from a copy"
        )

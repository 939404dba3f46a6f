"""PostgreSQL, as a `DatabaseServer`: engines on a schema, schemas made and removed, and what its errors mean."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import NoSuchModuleError, NoSuchTableError
from sqlalchemy.sql.ddl import CreateSchema, DropSchema

from edgeflare.errors import DiskFullError, StoreAwayError, StoreError, UnwritableError
from edgeflare.store.documents import read_json, write_json
from edgeflare.store.location import Kind, Location, is_schema_name
from edgeflare_lab.stores import server_lock
from edgeflare_lab.words.stores import DATABASE, NEXT

PATIENCE_S = 60.0
"""How long a server that was there before is waited for."""

_PAUSE_S = 0.5
_CONNECTIONS = 3
_MORE_CONNECTIONS = 13
_DEFAULTS = {
    "connect_timeout": 10,
    "application_name": "edgeflare",
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""Parameters of libpq that a URL may state otherwise."""

_place = Table("place", MetaData(), Column("kind", Text, nullable=False), Column("samples", Text))
"""What a folder's pointer says beside the address, in the one row of a table of each schema."""

_SET_PATH = "SELECT set_config('search_path', %s, false)"
_SERIALISE = text("SELECT pg_advisory_xact_lock(hashtextextended(current_schema(), 1))")
_RESERVE = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 1))")
_TAKEN = text("SELECT 1 FROM pg_namespace WHERE nspname = :name")
_USABLE = text("SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = :name")
_SIZE = text(
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = current_schema() AND c.relkind = 'r'"
)
_RELATED = text(
    "SELECT nspname FROM pg_namespace WHERE nspname = :name OR starts_with(nspname, :prefix) "
    "ORDER BY nspname"
)

_NAMES = text(
    "SELECT n.nspname FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid "
    "JOIN pg_attribute a ON a.attrelid = c.oid WHERE c.relname = :table AND a.attname = 'samples' "
    "AND strpos(n.nspname, '/') = 0 ORDER BY n.nspname"
)
_MOST_NAMES = 20


def engine_on(location: Location, *, patience_s: float | None = None) -> Engine:
    """Return an engine whose unqualified tables are those of the location's schema.

    Once it had a connection, it waits up to `patience_s` seconds (None: `PATIENCE_S`) for a server
    that is away or has no connection left, and no more once it has waited in vain. Raises
    StoreError where psycopg is missing.
    """
    url = make_url(location.url)
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg"),
            json_serializer=write_json,
            json_deserializer=read_json,
            pool_pre_ping=True,
            pool_size=_CONNECTIONS,
            max_overflow=_MORE_CONNECTIONS,
            connect_args={name: _DEFAULTS[name] for name in _DEFAULTS.keys() - url.query.keys()},
        )
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise StoreError(
            "a campaign in PostgreSQL needs the Python package psycopg; install it with "
            "`pip install 'edgeflare[postgres]'`"
        ) from error
    except ImportError as error:  # psycopg is there, the library libpq isn't
        raise StoreError(
            f"the Python package psycopg can't be used ({' '.join(str(error).split())}); install "
            "it with `pip install 'edgeflare[postgres]'`"
        ) from error
    _Connecting(engine, location.name, PATIENCE_S if patience_s is None else patience_s)
    return engine


class _Connecting:
    """Makes an engine's connections; those after the first wait for a server that is away.

    Unqualified tables are those of the `schema` alone. The character NUL, which PostgreSQL can't
    store, becomes U+FFFD.
    """

    def __init__(self, engine: Engine, schema: str, patience_s: float) -> None:
        self._path = '"' + schema.replace('"', '""') + '"'
        self._patience_s = patience_s
        self._connected = False
        event.listen(engine, "do_connect", self._connect)
        event.listen(engine, "handle_error", _note_loss)

    def _connect(self, dialect: Any, _record: Any, args: Any, parameters: Any) -> Any:
        until = time.monotonic() + self._patience_s
        while True:
            try:
                connection = self._connect_once(dialect, args, parameters)
            except dialect.loaded_dbapi.OperationalError as error:
                if not self._connected or time.monotonic() >= until or not _may_pass(error):
                    self._connected = False  # what is left to do doesn't wait once more
                    raise
                time.sleep(_PAUSE_S)
            else:
                self._connected = True
                return connection

    def _connect_once(self, dialect: Any, args: Any, parameters: Any) -> Any:
        connection = dialect.connect(*args, **parameters)
        try:
            connection.autocommit = True
            connection.execute(_SET_PATH, [self._path]).close()
            connection.autocommit = False
            connection.adapters.register_dumper(str, _text_dumper())
        except BaseException:
            connection.close()
            raise
        return connection


_REPEATABLE = "edgeflare_repeatable"
"""The mark of an error by which a statement was lost: what its transaction did is not committed.

A statement that is a transaction of its own, as `Database.adding` may have it, may be.
"""


def _note_loss(context: ExceptionContext) -> None:
    """Mark the error of a statement by which the connection was lost; a commit has no statement."""
    cause = context.original_exception
    sqlstate = getattr(cause, "sqlstate", None)
    said = " ".join(str(cause).split()).lower()
    if context.statement is not None and _problem(cause, sqlstate, said) == "lost":
        setattr(cause, _REPEATABLE, True)


@cache
def _text_dumper() -> Any:
    from psycopg.types.string import StrDumperUnknown

    class Dumper(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", "\ufffd"))

    return Dumper


def lock_on(location: Location) -> server_lock.ServerLock:
    """Return the lock of a location; it does not wait for a server that is away."""
    return server_lock.ServerLock(engine_on(location, patience_s=0), location)


lost_to = server_lock.lost_to


def serialise(connection: Connection) -> None:
    """Let the other transactions of this schema that serialise wait until this one has ended."""
    connection.execute(_SERIALISE)


def make_schema(
    engine: Engine, location: Location, fill: Callable[[Connection], None], last: Callable[[], None]
) -> None:
    """Make the schema, `fill` it, and call `last`, all in one transaction.

    Raises StoreError where the name is taken.
    """
    with engine.begin() as connection:
        _create(connection, location)
        _place.create(connection)
        connection.execute(insert(_place).values(kind=location.kind, samples=location.samples))
        fill(connection)
        last()


def check_schema(engine: Engine, location: Location) -> None:
    """Raise the errors that `make_schema` would now; nothing is made."""
    with engine.connect() as connection:  # its transaction is rolled back
        _create(connection, location)


def _create(connection: Connection, location: Location) -> None:
    connection.execute(_RESERVE, {"name": location.name})
    if connection.execute(_TAKEN, {"name": location.name}).first() is not None:
        raise StoreError(
            f"the database {location.url} has a schema {location.name!r} already: choose "
            "another folder with --out, since its name is that of the campaign there"
        )
    connection.execute(CreateSchema(location.name))


def no_tables_error(connection: Connection, folder: Path, location: Location) -> StoreError:
    """Return the error of a folder whose schema can't be seen: there is none, or no right to it."""
    usable = connection.execute(_USABLE, {"name": location.name}).scalar()
    what = f"the database {location.url} of {folder}"
    if usable is False:
        return StoreError(
            f"{what} does not let this role use the schema {location.name!r}; take the role that "
            "made it, or let that one grant the right: GRANT USAGE ON SCHEMA and GRANT SELECT ON ALL "
            "TABLES IN SCHEMA"
        )
    return StoreError(
        f"{what} has no {location.kind} {location.name!r}: it was interrupted before it began, or "
        "removed there; restore it from a copy, or delete the folder and run it anew"
    )


def size(connection: Connection) -> int:
    """Return how many bytes all tables of the schema take, with their indices."""
    return int(connection.execute(_SIZE).scalar_one())


def drop_schema(engine: Engine, name: str) -> None:
    """Remove a schema with all of its tables."""
    with engine.begin() as connection:
        connection.execute(DropSchema(name, cascade=True, if_exists=True))


def places_at(engine: Engine, url: str, name: str) -> list[Location]:
    """Return what is stored of where a schema's samples are, and those of `NAME/...`, its parts.

    Schemas that are not edgeflare's are left out.
    """
    found = []
    parameters = {"name": name, "prefix": f"{name}/"}
    with engine.connect() as connection:
        for schema in connection.execute(_RELATED, parameters).scalars().all():
            if not is_schema_name(schema):  # another program's
                continue
            row = _place_of(connection, schema)
            kind = next(
                (stated for stated in get_args(Kind) if row is not None and stated == row[0]),
                None,
            )
            if row is not None and kind is not None:
                found.append(Location(kind, url, schema, row[1]))
    return found


def no_such_name_error(engine: Engine, location: Location) -> StoreError:
    """Return the error of a name that a database lacks, with names that it has."""
    with engine.connect() as connection:
        names = connection.execute(_NAMES, {"table": _place.name}).scalars().all()
    names = [name for name in names if is_schema_name(name)]
    there = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    return StoreError(
        f"there is nothing of edgeflare's under the name {location.name!r} in the database "
        f"{location.url}; check the name: it is that of the folder which was made for it"
        + (f"; there is {there}" if there else "")
    )


def _place_of(connection: Connection, schema: str) -> tuple[str, str | None] | None:
    """Return the kind and the samples that a schema states; None: it is not edgeflare's."""
    table = _place.to_metadata(MetaData(), schema=schema)
    try:
        columns = inspect(connection).get_columns(table.name, schema)
    except NoSuchTableError:
        return None
    text_columns = {column["name"] for column in columns if isinstance(column["type"], Text)}
    if not text_columns.issuperset(("kind", "samples")):
        return None
    rows = connection.execute(select(table.c.kind, table.c.samples).limit(2)).all()
    return (rows[0].kind, rows[0].samples) if len(rows) == 1 else None


_CONNECTING: Mapping[str, Sequence[str]] = {
    "full": ("too many connections", "remaining connection slots", "too many clients"),
    "certificate": ("certificate", "ssl error", "server does not support ssl", "sslmode"),
    "login": ("password", "authentication failed", "pg_hba.conf", 'role "'),
    "service": ("definition of service",),
    "url": ("invalid uri", "invalid connection option"),
    "missing": ('database "',),
}
"""What is wrong where no connection is made, by parts of what libpq says, which has no code."""
_PASSING = ("gone", "lost", "full")
_UNWRITABLE = ("42501", "25006")
_CODES: Mapping[str, str] = {
    "3D000": "missing",
    "28": "login",
    "42501": "no right",
    "42P01": "no tables",
    "42703": "no columns",
    "3F000": "no campaign",
    "53300": "full",
    "25006": "read only",
    "40": "busy",
    "55P03": "busy",
    "57P": "lost",
    "08": "lost",
    "57014": "stopped",
    "XX": "damaged",
    "58": "no disk",
}
"""What begins a SQLSTATE, and what it means; the longest that fits counts."""


def server_error(
    cause: BaseException | None, url: str, where: str = "", *, resumable: bool = True
) -> StoreError | None:
    """Return the sentence on an error of psycopg; None for one of another driver.

    `where` is the folder whose database it is. `resumable`: whether there is something to resume.
    """
    if cause is None or not type(cause).__module__.startswith("psycopg"):
        return None
    what = f"the database {url} of {where}" if where else f"the database {url}"
    code = getattr(cause, "sqlstate", None)
    words = str(cause) if code is None else str(cause).partition("\n")[0]  # then comes the SQL
    said = " ".join(words.split()).split(" Is the server running")[0]
    if code == "53100":
        return DiskFullError(
            f"no space is left on the disk of the server of {what.removeprefix('the ')}",
            kept="what was found so far is kept there" if resumable else "nothing could be stored",
            advice="free some space there, then "
            + ("go on with `edgeflare resume`" if resumable else "start again"),
        )
    problem = _problem(cause, code, said.lower())
    following = NEXT if resumable else "start again"
    if problem is None:
        return StoreError(f"{what} failed: {said}")
    said = f"{what} " + DATABASE[problem].format(cause=said, next=following)
    if problem not in _PASSING:
        return (UnwritableError if code in _UNWRITABLE else StoreError)(said)
    away = StoreAwayError(said)
    away.repeatable = getattr(cause, _REPEATABLE, False)
    return away


def _may_pass(cause: BaseException) -> bool:
    """Whether a connection that was refused may be had later: the server is away, or full."""
    said = " ".join(str(cause).split()).lower()
    return _problem(cause, getattr(cause, "sqlstate", None), said) in _PASSING


def _problem(cause: BaseException, code: str | None, said: str) -> str | None:
    if code is not None:
        starts = [start for start in _CODES if code.startswith(start)]
        return _CODES[max(starts, key=len)] if starts else None
    if type(cause).__name__ not in ("OperationalError", "ProgrammingError", "ConnectionTimeout"):
        return None
    if any(part in said for part in ("consuming input", "connection is lost", "is closed")):
        return "lost"
    for problem, parts in _CONNECTING.items():
        if any(part in said for part in parts):
            return problem
    return "gone" if type(cause).__name__ != "ProgrammingError" else None

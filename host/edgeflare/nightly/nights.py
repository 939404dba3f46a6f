"""Where the nights of a history are written down: in a file each, or in a table of PostgreSQL."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import JSON, Column, Connection, Integer, MetaData, String, Table, select
from sqlalchemy.dialects.postgresql import insert

from edgeflare._version import __version__
from edgeflare.campaign.batch import read_description, write_description
from edgeflare.errors import StoreError, UsageError
from edgeflare.nightly.night import Night
from edgeflare.store.creation import make_schema, places_at
from edgeflare.store.database import Database, Schema, translate_errors
from edgeflare.store.location import (
    Kind,
    Location,
    database_url,
    read_pointer,
    schema_name,
    write_pointer,
)
from edgeflare.store.migration import open_database
from edgeflare.store.servers import add_database

NIGHT_NAME = "night.json"
NIGHTS = "nights"
_KIND: Kind = "history"

_metadata = MetaData()
_about = Table(
    "history",
    _metadata,
    Column("schema_version", Integer, nullable=False),
    Column("program_version", String(64), nullable=False),
)
_nights = Table(
    "nights",
    _metadata,
    Column("stamp", String(40), primary_key=True),
    Column("night", JSON, nullable=False),
)
_SCHEMA = Schema(_KIND, "history.sqlite", 1, _about, 1)


class NightFiles:
    """A file ``night.json`` in each night's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> tuple[list[Night], list[Path]]:
        """Return all nights, and the folders of those that are damaged. Raises StoreError."""
        with translate_errors(self._folder):
            paths = sorted((self._folder / NIGHTS).glob(f"*/{NIGHT_NAME}"))
        return _validated((path.parent, partial(read_description, path)) for path in paths)

    def save(self, night: Night) -> None:
        """Write a night's ``night.json``, in one step."""
        write_description(night.folder / NIGHT_NAME, night.model_dump(mode="json"))


class NightTable:
    """A row for each night, in the schema that the history's folder points to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self) -> tuple[list[Night], list[Path]]:
        """Return all nights, and the folders of those that are damaged. Raises StoreError."""
        with self._opened() as database, database.reading("the table nights") as connection:
            rows = connection.execute(select(_nights).order_by(_nights.c.stamp)).all()
        folder = self._folder / NIGHTS
        return _validated((folder / row.stamp, partial(dict, row.night)) for row in rows)

    def save(self, night: Night) -> None:
        """Write a night's row."""
        row = {"stamp": night.stamp, "night": night.model_dump(mode="json")}
        change = insert(_nights).values(row)
        change = change.on_conflict_do_update(
            index_elements=["stamp"], set_={"night": row["night"]}
        )
        with self._opened() as database, database.writing() as connection:
            connection.execute(change)

    @contextmanager
    def _opened(self) -> Iterator[Database]:
        # Who runs a night has the lock already, and there is one schema version.
        with closing(open_database(self._folder, _SCHEMA, nullcontext())) as database:
            yield database


def nights_of(folder: Path) -> NightFiles | NightTable:
    """Return what is written down of a history's nights: in the database its folder points to, if any."""
    return NightFiles(folder) if read_pointer(folder) is None else NightTable(folder)


def set_up(folder: Path, database: str, *, create: bool = True) -> None:
    """Let a history be in a database: in what is there of it already, or in a new schema.

    Raises UsageError where the folder has a history that is elsewhere, or the database has none and
    `create` is false, and StoreError.
    """
    url, known = database_url(database), read_pointer(folder)
    add_database(url)
    if known is not None and known.url == url:
        return
    if known is not None or NightFiles(folder).read() != ([], []):
        where = "in its files" if known is None else f"in the database {known.url}"
        raise UsageError(
            f"the history {folder} is {where}, not in the database {url}: leave `store` as it was, "
            "or name another folder as `history`"
        )
    name = schema_name(folder, url)
    there = _history_at(url, name)
    if there is None and not create:
        raise UsageError(f"the database {url} has no history {name!r} yet; run a night first")
    if there is None:
        try:
            make_schema(folder, Location(_KIND, url, name), _fill)
        except StoreError:
            there = _history_at(url, name)  # another host was faster
            if there is None:
                raise
    if there is not None:
        write_pointer(folder, there)


def _history_at(url: str, name: str) -> Location | None:
    there = next((one for one in places_at(url, name) if one.name == name), None)
    if there is not None and there.kind != _KIND:
        raise UsageError(
            f"the database {url} has a {there.kind} of the name {name!r}: name another folder as "
            "`history`, whose name is that of the history there"
        )
    return there


def attach(folder: Path, paths: Iterable[Path]) -> None:
    """Let folders below that of a history point to what the database has of them.

    `paths` are all that may be there. Those that other hosts have removed are removed here, too: the
    caller has the history's lock.
    """
    location = read_pointer(folder)
    if location is None:
        return
    found = {one.name: one for one in places_at(location.url, location.name)}
    for path in paths:
        there = found.get(schema_name(path, location.url))
        if there is None and read_pointer(path) is not None:
            shutil.rmtree(path)
        elif there is not None and not path.exists():
            path.mkdir(parents=True)
            write_pointer(path, there)


def _fill(connection: Connection) -> None:
    _metadata.create_all(connection)
    about = {"schema_version": _SCHEMA.version, "program_version": __version__}
    connection.execute(_about.insert().values(**about))


def _validated(
    documents: Iterable[tuple[Path, Callable[[], Mapping[str, Any]]]],
) -> tuple[list[Night], list[Path]]:
    nights, damaged = [], []
    for folder, read in documents:
        try:
            nights.append(Night.model_validate({**read(), "folder": folder}))
        except (ValueError, TypeError, KeyError):  # pydantic's ValidationError is a ValueError
            damaged.append(folder)
    return sorted(nights, key=lambda night: night.number), damaged

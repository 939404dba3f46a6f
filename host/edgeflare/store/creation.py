"""Makes and removes a folder's database, in the folder or on a server."""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from edgeflare._internal.files import is_unused, make_folder, sync_folder
from edgeflare.errors import StoreError
from edgeflare.store.database import (
    UNFINISHED,
    Schema,
    connect,
    for_writing,
    publish_database,
    translate_errors,
)
from edgeflare.store.location import (
    CORPUS_NAME,
    DATABASE_NAME,
    POINTER_NAME,
    Location,
    database_url,
    is_address,
    read_pointer,
    samples_below,
    schema_name,
    split_address,
    stated_samples,
    stores_folder,
    write_pointer,
)
from edgeflare.store.lock import LOCK_NAMES
from edgeflare.store.samples import Samples, absolute_place, discard_samples, open_samples
from edgeflare.store.servers import DatabaseServer, add_database, server_of

_DIGITS = 16
_DATA = (DATABASE_NAME, CORPUS_NAME, POINTER_NAME)


def check_free(folder: Path) -> None:
    """Raise StoreError unless a campaign can be made in this folder: none, or an empty one."""
    with translate_errors(folder):
        if not is_unused(folder, LOCK_NAMES):
            raise StoreError(
                f"{folder} exists and is not an empty folder; choose another for the campaign"
            )


def check_database(folder: Path, database: str) -> None:
    """Raise StoreError unless a folder's data can be stored in a server's database now."""
    url = _stated_url(database)
    location = Location("campaign", url, schema_name(folder, url))
    with _connected(location) as (server, engine):
        server.check_schema(engine, location)


def make(
    folder: Path,
    schema: Schema,
    fill: Callable[[Connection], None],
    *,
    database: str | None = None,
    samples: str | None = None,
    files: Sequence[Path] = (),
) -> bool:
    """Make a folder with a database that `fill` makes the tables of; whether the folder is new.

    `database` is the URL of a server's, None a file of the folder. `samples` is where those of this
    and other folders are, each in a place of its own below; None: in the folder. Of `files` the folder gets a copy. After an error
    nothing of it is left, nor of the folders that were made around it.
    """
    location = location_for(folder, schema, database, samples)
    with translate_errors(folder, resumable=False):
        missing = [one for one in (folder, *folder.parents) if not one.exists()]
        make_folder(folder)
        copies = [folder / file.name for file in files]
        place: Samples | None = None
        made_schema = False
        try:
            opened = open_samples((location and location.samples) or folder / "samples")
            opened.make()
            place = opened
            for file, copy in zip(files, copies, strict=True):
                shutil.copyfile(file, copy)
            if location is None or not location.url:
                if location is not None:
                    write_pointer(folder, location)
                _make_file(folder, schema, fill)
            else:
                make_schema(folder, location, fill)
                made_schema = True
            sync_folder(folder)
            sync_folder(folder.parent)
        except BaseException:
            if made_schema:
                with suppress(Exception):  # the server is gone; the error is that of before
                    drop(folder)
            for path in (*_files(folder, schema), *copies):
                path.unlink(missing_ok=True)
            if place is not None:
                place.discard()
            with suppress(OSError):  # others have put something there
                for one in missing:
                    one.rmdir()
            raise
    return bool(missing)


def location_for(
    folder: Path, schema: Schema, database: str | None, samples: str | None
) -> Location | None:
    """Return where the data of a new folder will be; None: all of it in the folder itself.

    Raises StoreError for a URL that can't be used.
    """
    if database is None and samples is None:
        return None
    url = "" if database is None else _stated_url(database)
    name = schema_name(folder, url)
    return Location(
        schema.kind,
        url,
        name,
        None if samples is None else samples_below(absolute_place(samples), name),
    )


def _stated_url(text: str) -> str:
    """Return the URL of a database that the user states. Raises StoreError."""
    url = database_url(text)
    add_database(url)
    return url


def _make_file(folder: Path, schema: Schema, fill: Callable[[Connection], None]) -> None:
    """Make the database under another name, so that nobody finds and locks an incomplete one."""
    made = f"{schema.file}{UNFINISHED}"
    engine = connect(folder, name=made)
    try:
        with for_writing(engine).begin() as connection:
            fill(connection)
        publish_database(engine, folder, made, schema.file)
    finally:
        engine.dispose()


def make_schema(folder: Path, location: Location, fill: Callable[[Connection], None]) -> None:
    """Make the schema in one transaction; the pointer to it is there just before that ends.

    So there is no schema without a pointer; a pointer without a schema is of a process that was
    killed before the campaign began.
    """
    place = location.samples or str((folder / "samples").absolute())
    with _connected(location) as (server, engine):
        server.make_schema(
            engine,
            location._replace(samples=place),
            fill,
            lambda: write_pointer(folder, location),
        )


def remove(folder: Path, schema: Schema) -> None:
    """Remove a folder's database, wherever it is."""
    drop(folder)
    for path in _files(folder, schema):
        path.unlink()
    for name in LOCK_NAMES:
        with suppress(PermissionError):  # held, on Windows
            (folder / name).unlink(missing_ok=True)


def drop(folder: Path) -> None:
    """Remove what a folder's pointer names on a server; nothing happens where it has none."""
    location = read_pointer(folder)
    if location is not None:
        with _connected(location, folder) as (server, engine):
            server.drop_schema(engine, location.name)


def size_of(folder: Path) -> int:
    """Return how many bytes a campaign takes: all files in its folder, and what is elsewhere."""
    size = sum(
        entry.lstat().st_size
        for where, _, names in os.walk(folder)
        for entry in (Path(where, name) for name in names)
    )
    if (place := stated_samples(folder)) is not None:
        size += sum(bytes_ for _, bytes_ in open_samples(place).sizes())
    if (location := read_pointer(folder)) is not None:
        with _connected(location, folder) as (server, engine), engine.connect() as connection:
            size += server.size(connection)
    return size


def remove_folder(folder: Path) -> None:
    """Remove a campaign's folder, with what is stored of it elsewhere. Raises OSError, too."""
    for pointer in list(folder.rglob(POINTER_NAME)):  # of its parts, too
        drop(pointer.parent)
        discard_samples(pointer.parent)
    shutil.rmtree(folder)


def places_at(url: str, name: str) -> list[Location]:
    """Return what a database has under a name, and under `NAME/...`. Raises StoreError."""
    location = Location("campaign", url, name)
    with _connected(location) as (server, engine):
        return server.places_at(engine, url, name)


def folder_at(text: str | os.PathLike[str], *, stated: bool = True) -> Path:
    """Return a folder by which to use what is at an address, `postgresql://.../database/NAME`.

    It is in the user's cache and has the pointers to NAME and to its parts, such as NAME/control.
    Any other text is the path of a folder, and returned as it is; where that points to a database,
    it gets the pointers to those of its parts that other hosts made. `stated`: the user named the
    address here and now, so that its database may be connected to from now on; else only one that
    was before. Raises StoreError where the address or the database can't be used.
    """
    if not is_address(text):
        folder = Path(text)
        location = read_pointer(folder)
        if location is not None:
            with _connected(location, folder) as (server, engine):
                for place in server.places_at(engine, location.url, location.name):
                    part = folder / place.name.removeprefix(location.name).strip("/")
                    if not any((part / name).exists() for name in _DATA):
                        with suppress(OSError):  # a folder that can only be read
                            _point(part, place)
        return folder
    url, name = split_address(os.fspath(text))
    if stated:
        add_database(url)
    location = Location("campaign", url, name)
    with _connected(location) as (server, engine):
        found = server.places_at(engine, url, name)
        if not any(one.name == name for one in found):
            raise server.no_such_name_error(engine, location)
    root = stores_folder() / hashlib.sha256(url.encode()).hexdigest()[:_DIGITS]
    with translate_errors(root):
        for one in found:
            if read_pointer(root / one.name) != one:
                _point(root / one.name, one)
    return root / name


def _point(folder: Path, location: Location) -> None:
    make_folder(folder)
    write_pointer(folder, location)


@contextmanager
def _connected(
    location: Location, folder: Path | None = None
) -> Iterator[tuple[DatabaseServer, Engine]]:
    """Give a location's server, and an engine on it; errors name the database, and its `folder` if any."""
    server = server_of(location)
    with _database_errors(server, location) if folder is None else translate_errors(folder):
        engine = server.engine_on(location)
        try:
            yield server, engine
        finally:
            engine.dispose()


@contextmanager
def _database_errors(server: DatabaseServer, location: Location) -> Iterator[None]:
    """Turn errors of a database, of which there is no folder yet, into StoreError."""
    try:
        yield
    except DBAPIError as error:
        translated = server.server_error(error.orig, location.url, resumable=False)
        if translated is None:
            raise
        raise translated from error


def _files(folder: Path, schema: Schema) -> list[Path]:
    return [*folder.glob(f"{schema.file}*"), *folder.glob(POINTER_NAME)]

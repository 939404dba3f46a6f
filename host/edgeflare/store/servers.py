"""Databases on servers: what a distribution that declares one has, and how stores wait for it.

A name in the entry point group ``edgeflare.stores`` is the scheme of addresses: of databases, where it
names a `DatabaseServer`, or of places of samples, where it names a class of `store.samples.Samples`
that is made of an address.
"""

import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar, cast, runtime_checkable

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError

from edgeflare._internal.files import make_folder, state_folder
from edgeflare._internal.plugins import load, names, unusable
from edgeflare.errors import HostError, StoreAwayError, StoreError, UnwritableError, UsageError
from edgeflare.store.location import POINTER_NAME, Location, campaign_text

_P = ParamSpec("_P")
_T = TypeVar("_T")
_PAUSE_S = 0.5


# The databases that the user has named on this host: no other one is connected to. A folder's pointer
# may be anybody's, and a database may ask for the user's password.
_NAMED_FILE = "databases"
_added: set[str] = set()  # of this process, where the list can't be written
_adding = threading.Lock()


def add_database(url: str) -> None:
    """Note that the user has named a database, by its URL without a password."""
    with _adding:
        if url in _added:
            return
        _added.add(url)
        if url in _named():
            return
        try:
            path = _named_path()
            make_folder(path.parent)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{url}\n")
        except (OSError, HostError):  # a read-only disk, or no home: this process knows it
            return


def check_database_known(url: str, address: str) -> None:
    """Raise StoreError unless the user has named a database; `address` is that of a folder's data."""
    if url not in _added and url not in _named():
        raise StoreError(
            f"the database {url}, which a {POINTER_NAME} names, has not been used on this host by you: "
            f"if you trust it, name the campaign by its address once: edgeflare show {shlex.quote(address)}"
        )


def _named_path() -> Path:
    return state_folder() / _NAMED_FILE


def _named() -> set[str]:
    try:
        return set(_named_path().read_text(encoding="utf-8", errors="replace").splitlines())
    except (OSError, HostError):
        return set()


class ServerLock(Protocol):
    """The right to run what is at a location, which every host sees; it ends with the process."""

    def take(self) -> bool:
        """Take the lock; False where another process (or object) has it."""

    def release(self) -> None:
        """Give the lock back."""

    def holder(self) -> str | None:
        """Return who has the lock, in words; None: nobody."""


@runtime_checkable
class DatabaseServer(Protocol):
    """A kind of server, on which the data of a folder is a schema; a module with these will do."""

    engine_on: Callable[[Location], Engine]
    """An engine whose unqualified tables are those of the location's schema."""
    lock_on: Callable[[Location], ServerLock]
    lost_to: Callable[[Location], str | None]
    """Who took the lock of a location that this process had and lost, in words; None: nobody."""
    serialise: Callable[[Connection], None]
    """Lets the other transactions of this schema that serialise wait until this one has ended."""
    make_schema: Callable[
        [Engine, Location, Callable[[Connection], None], Callable[[], None]], None
    ]
    """Makes it, fills it by the third, and calls the last, all in one transaction."""
    check_schema: Callable[[Engine, Location], None]
    """Raises the errors that `make_schema` would now."""
    drop_schema: Callable[[Engine, str], None]
    places_at: Callable[[Engine, str, str], list[Location]]
    """The locations there are of a schema, by its database's URL and its name, and of `NAME/...`."""
    size: Callable[[Connection], int]
    """How many bytes the tables of the schema take."""
    server_error: Callable[..., StoreError | None]
    """The sentence on a driver's error, None for another driver's, by the error, the database's URL,
    the folder or "", and `resumable`: whether there is something to resume."""
    no_tables_error: Callable[[Connection, Path, Location], StoreError]
    """The error of a folder whose schema can't be seen."""
    no_such_name_error: Callable[[Engine, Location], StoreError]
    """The error of a name that a database lacks."""


def server_of(location: Location) -> DatabaseServer:
    """Return the server with the database of a location; nothing is connected to.

    Raises StoreError where the user has not named the database on this host, and UsageError where no
    installed distribution declares its scheme, or the one that does is broken.
    """
    check_database_known(location.url, location.address)
    scheme = location.url.partition("://")[0]
    server = load("store", scheme)
    if server is None:
        there = ", ".join(names("store")) or "none"
        raise UsageError(
            f"no installed distribution declares a store for {scheme}:// (there is {there}); install "
            "edgeflare anew, or the distribution that has it"
        )
    if not isinstance(server, DatabaseServer):
        raise unusable(
            "store", scheme, "is no database server; repair or uninstall that distribution"
        )
    return server


def installed_servers(scheme: str = "") -> Iterator[DatabaseServer]:
    """Yield the servers of a scheme, "" for all; those that can't be loaded are left out."""
    for name in [scheme] if scheme else names("store"):
        with suppress(UsageError):  # an error that is translated is not replaced by another one
            server = load("store", name)
            if isinstance(server, DatabaseServer):
                yield server


def is_run_by(folder: Path, whom: str) -> UnwritableError:
    """Return the error of a campaign that another process runs."""
    name = campaign_text(folder)
    return UnwritableError(f"{name} is being run by {whom}; wait until it has ended or stop it")


def check_not_lost(server: DatabaseServer, folder: Path, location: Location) -> None:
    """Raise StoreError where another process runs what this process was running at a location."""
    if (whom := server.lost_to(location)) is not None:
        raise is_run_by(folder, whom)


_MOST_LOSSES = 3
"""Losses in a row of one transaction after which it is not begun again: a server that ends each one."""

_OF_ONE_TRANSACTION = (
    *("_campaign_row", "result", "results", "seed_count", "seed_ids", "finished_seed_ids", "tally"),
    *("set_campaign", "set_models", "add_result", "analysis_run"),
    *("add_environment", "add_device", "add_notice", "add_telemetry", "complete_seeds"),
    *("add_seed_answers", "add_survey", "add_reference_answers", "add_replay"),
)
"""Methods of a store that are one transaction each and can be called twice with the same arguments:
none takes an iterator, which would have nothing left the second time."""
_OF_ONE_STATEMENT = ("add_outcome",)
"""Those, too, but the transaction is one statement, which may have been stored as it was lost."""


def begin_again_when_lost(store: type) -> None:
    """Have methods of a store, each a transaction, begin again where the connection is lost in them.

    They then wait for the server as they do where it refuses the connection.
    """
    for name in vars(store).keys() & {*_OF_ONE_TRANSACTION, *_OF_ONE_STATEMENT}:
        method = vars(store)[name]
        setattr(store, name, beginning_again(method, is_statement=name in _OF_ONE_STATEMENT))


def beginning_again(method: Callable[_P, _T], *, is_statement: bool = False) -> Callable[_P, _T]:
    """Return a method that is one transaction, begun again where the connection is lost in it.

    It can be called twice with the same arguments. `is_statement`: the transaction is one statement,
    which may have been stored as it was lost; the method returns whether it was.
    """

    @wraps(method)
    def call(*arguments: _P.args, **named: _P.kwargs) -> _T:
        losses = 0
        while True:
            try:
                return method(*arguments, **named)
            except StoreAwayError as error:
                losses += 1
                if losses > _MOST_LOSSES or not error.repeatable:
                    raise
                time.sleep(_PAUSE_S)
            except StoreError as error:
                # The row that is there is this one, stored as its connection was lost: other
                # processes add those of other seeds, or keep the first without an error.
                if is_statement and losses and isinstance(error.__cause__, IntegrityError):
                    return cast("_T", True)
                raise

    return call

"""The lock of a campaign whose data is on a PostgreSQL server: one of the server's advisory locks."""

import os
import platform
import threading
from contextlib import suppress
from datetime import datetime, timezone

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import SQLAlchemyError

from edgeflare.store.location import Location

_RENEWAL_S = 5.0
_LONGEST_NAME = 63
_SINCE = "%Y-%m-%d %H:%M:%S UTC"
_KEY = "hashtextextended(:name, 0)"
_TAKE = text(f"SELECT pg_try_advisory_lock({_KEY})")
_GIVE = text(f"SELECT pg_advisory_unlock({_KEY})")
_ALIVE = text("SELECT 1")
_NO_IDLE_LIMIT = text("SELECT set_config('idle_session_timeout', '0', false)")
_KEEPALIVE = text(
    "SELECT set_config('tcp_keepalives_idle', '30', false), "
    "set_config('tcp_keepalives_interval', '10', false), "
    "set_config('tcp_keepalives_count', '3', false)"
)
"""Lets the server notice within a minute that the host of a lock is gone."""
_NAME = text("SELECT set_config('application_name', :name, false)")
_HOLDER = text(
    f"SELECT a.application_name FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid), "  # noqa: S608
    f"(SELECT {_KEY} AS key) k WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
    "AND l.classid::bigint = (k.key >> 32) & 4294967295 "
    "AND l.objid::bigint = k.key & 4294967295"
)


class ServerLock:
    """The right to run the campaign at a location, held by a connection of its own.

    It ends with the process, and every host sees it. Where the server restarts, a thread takes it
    again; where another process has taken it meanwhile, `lost_to` says so. One object is
    used by one other thread at a time.
    """

    def __init__(self, engine: Engine, location: Location) -> None:
        self._engine = engine
        self._location = location
        self._name = {"name": location.name}
        self._own_name = ""
        self._connection: Connection | None = None
        self._using = threading.Lock()
        self._released = threading.Event()

    def take(self) -> bool:
        """Take the lock; False where another process (or object) has it."""
        self._own_name = _own_name()
        try:
            self._connection = self._take()
        except BaseException:
            self._engine.dispose()
            raise
        if self._connection is None:
            self._engine.dispose()
            return False
        _lost.pop(self._location.address, None)
        self._released.clear()
        threading.Thread(target=self._renew, name="campaign lock", daemon=True).start()
        return True

    def release(self) -> None:
        """Give the lock back."""
        self._released.set()
        with self._using:
            if self._connection is not None:
                with suppress(SQLAlchemyError):  # the server is gone, and so is the lock
                    self._connection.execute(_GIVE, self._name)
                _end(self._connection)
                self._connection = None
            self._engine.dispose()
            _lost.pop(self._location.address, None)

    def holder(self) -> str | None:
        """Return who has the lock, in words; None: nobody."""
        try:
            found = self._holder()
        finally:
            self._engine.dispose()
        return None if found is None else _words(found)

    def _holder(self) -> str | None:
        with self._engine.connect() as connection:
            row = connection.execute(_HOLDER, self._name).first()
        return None if row is None else str(row.application_name or "")

    def _take(self) -> Connection | None:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        taken = False
        try:
            taken = bool(connection.execute(_TAKE, self._name).scalar_one())
            if taken:
                if (connection.dialect.server_version_info or (0,)) >= (14,):
                    connection.execute(_NO_IDLE_LIMIT)
                connection.execute(_KEEPALIVE)
                connection.execute(_NAME, {"name": self._own_name})
        except BaseException:
            _end(connection)
            raise
        if taken:
            return connection
        _end(connection)
        return None

    def _renew(self) -> None:
        """Take the lock again whenever its connection is lost, until it is released or another's."""
        while not self._released.wait(_RENEWAL_S):
            with self._using:
                if self._released.is_set() or self._is_alive():
                    continue
            with suppress(SQLAlchemyError):  # the server is still away
                if not self._take_again():
                    return

    def _is_alive(self) -> bool:
        if self._connection is None:
            return False
        try:
            self._connection.execute(_ALIVE)
        except SQLAlchemyError:
            _end(self._connection)
            self._connection = None
            return False
        return True

    def _take_again(self) -> bool:
        """Take the lock, or note whose it is; whether it can still become this object's."""
        connection = self._take()  # may last: `release` need not wait for it
        holder = self._holder() if connection is None else None
        with self._using:
            if self._released.is_set():
                if connection is not None:
                    _end(connection)
                self._engine.dispose()
                return False
            self._connection = connection
            if holder is None or holder == self._own_name:  # the server has yet to notice its end
                return True
            _lost[self._location.address] = _words(holder)
            self._engine.dispose()
            return False


_lost: dict[str, str] = {}
"""Who has the locks that this process held, lost and did not release, by their addresses."""


def lost_to(location: Location) -> str | None:
    """Return who took the lock that this process had at a location and lost; None: nobody."""
    return _lost.get(location.address) if _lost else None


def _end(connection: Connection) -> None:
    """End a connection, which is not used again."""
    with suppress(SQLAlchemyError):
        connection.invalidate()
    connection.close()


def _own_name() -> str:
    since = datetime.now(timezone.utc).strftime(_SINCE)
    return f"edgeflare {os.getpid()} {since} {platform.node()}"[:_LONGEST_NAME]


def _words(name: str) -> str:
    match name.split(" ", 5):
        case ["edgeflare", pid, date, time, zone, host]:
            return f"process {pid} on host {host} since {date} {time} {zone}"
    return "another process"

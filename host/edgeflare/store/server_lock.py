"""The lock of a campaign whose data is on a PostgreSQL server: one of the server's advisory locks."""

import os
import platform
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Connection, text

from edgeflare.store import postgres
from edgeflare.store.location import Location

_LONGEST = 63
_SINCE = "%Y-%m-%d %H:%M:%S UTC"
_KEY = "hashtextextended(:name, 0)"
_TAKE = text(f"SELECT pg_try_advisory_lock({_KEY})")
_STAY = text("SELECT set_config('idle_session_timeout', '0', false)")
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

    It ends with the process, and every host sees it. One object is used by one thread at a time.
    """

    def __init__(self, location: Location) -> None:
        self._engine = postgres.engine_on(location)
        self._name = {"name": location.name}
        self._connection: Connection | None = None

    def take(self) -> bool:
        """Take the lock; False where another process (or object) has it."""
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            taken = bool(connection.execute(_TAKE, self._name).scalar_one())
            if taken:
                if self._server_version(connection) >= (14,):
                    connection.execute(_STAY)
                connection.execute(_NAME, {"name": _own_name()})
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        if taken:
            self._connection = connection
        else:
            connection.close()
            self._engine.dispose()
        return taken

    def release(self) -> None:
        """Give the lock back: end the connection."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None
        self._engine.dispose()

    def holder(self) -> str | None:
        """Return who has the lock, in words; None: nobody."""
        try:
            with self._engine.connect() as connection:
                row = connection.execute(_HOLDER, self._name).first()
        finally:
            self._engine.dispose()
        return None if row is None else _words(row.application_name)

    @staticmethod
    def _server_version(connection: Connection) -> tuple[int, ...]:
        version: Any = connection.dialect.server_version_info
        return tuple(version or ())


def _own_name() -> str:
    since = datetime.now(timezone.utc).strftime(_SINCE)
    return f"edgeflare {os.getpid()} {since} {platform.node()}"[:_LONGEST]


def _words(name: str | None) -> str:
    match (name or "").split(" ", 5):
        case ["edgeflare", pid, date, time, zone, host]:
            return f"process {pid} on host {host} since {date} {time} {zone}"
    return "another process"

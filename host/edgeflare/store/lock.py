"""The lock of a campaign's folder, which ends with the process that holds it."""

import errno
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from filelock import BaseFileLock, FileLock, Timeout

from edgeflare._internal.files import check_regular, read_regular, write_durably
from edgeflare.errors import StoreError, UnwritableError
from edgeflare.store.database import translate_errors
from edgeflare.store.documents import read_json
from edgeflare.store.location import read_pointer
from edgeflare.store.servers import ServerLock, is_run_by, server_of

if TYPE_CHECKING:
    from typing_extensions import Self

_LOCK = "campaign.lock"
_NOTE = "campaign.lock.json"
LOCK_NAMES = frozenset({_LOCK, _NOTE})
"""The files by which a campaign's folder is locked."""

_PATIENCE = 0.2  # s; `is_held` of another process takes the lock for an instant, too
_PAUSE = 0.01
_MOST_BYTES = 1 << 20
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
_NOT_WRITABLE = (errno.EROFS, errno.EACCES, errno.EPERM)


class _Holder(NamedTuple):
    """The process that runs a campaign, as its lock's note states it."""

    pid: int
    host: str
    since: str

    def is_of_this_host(self) -> bool:
        """Whether it is, or was, a process of this host."""
        return self.host == platform.node()

    def has_ended(self) -> bool:
        """Whether it is known to have ended; of another host's processes nothing is known."""
        if os.name == "nt" or not self.is_of_this_host():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False


class CampaignLock:
    """The right to run the campaign in a folder, held by this object until `release` or its end.

    Where the folder's data is on a server, the server keeps the lock, for all folders and hosts
    that use the same data. Else the operating system keeps the lock (on the file `campaign.lock`), so that one left behind by a
    killed process is free at once; `campaign.lock.json` says whose it is. One object is used by one
    thread at a time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self._lock = _lock_of(self.folder)
        self._on_server: ServerLock | None = None

    def acquire(self) -> None:
        """Take the lock; nothing happens where this object has it.

        Raises StoreError, without waiting for it, where another process (or object) has it, the
        folder is missing or can't be written to, or its file system has no locks.
        """
        if self._lock.is_locked or self._on_server is not None:
            return
        if not self.folder.is_dir():
            raise StoreError(f"there is no campaign folder {self.folder}; check the path")
        if (location := read_pointer(self.folder)) is not None:
            lock = server_of(location).lock_on(location)
            with translate_errors(self.folder):
                if not lock.take():
                    raise is_run_by(self.folder, lock.holder() or "another process")
            self._on_server = lock
            return
        with _locking(self.folder):
            if not _take(self._lock):
                raise is_run_by(self.folder, _whose(self.folder))
            try:
                _write_note(self.folder)
            except BaseException:
                self._lock.release(force=True)
                raise

    def release(self) -> None:
        """Give the lock back; nothing happens where this object does not have it."""
        if self._on_server is not None:
            with translate_errors(self.folder):
                self._on_server.release()
            self._on_server = None
        if not self._lock.is_locked:
            return
        with translate_errors(self.folder):
            try:
                (self.folder / _NOTE).unlink(missing_ok=True)
            finally:
                self._lock.release(force=True)

    @staticmethod
    def is_held(folder: Path) -> bool:
        """Whether a process runs the campaign in this folder now; this one counts, too."""
        folder = Path(folder)
        if (location := read_pointer(folder)) is not None:
            with translate_errors(folder):
                return server_of(location).lock_on(location).holder() is not None
        if not (folder / _LOCK).exists():
            return False
        lock = _lock_of(folder)
        try:
            with _locking(folder):
                if not _take(lock):
                    return True
                lock.release(force=True)
                return False
        except StoreError:  # another user's, or on a read-only disk
            holder = _note(folder)
            return holder is not None and holder.is_of_this_host() and not holder.has_ended()

    def __enter__(self) -> "Self":
        self.acquire()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()


def _lock_of(folder: Path) -> BaseFileLock:
    return FileLock(folder / _LOCK, thread_local=False)


def _take(lock: BaseFileLock) -> bool:
    """Take the lock and return True, or return False where somebody has it."""
    if Path(lock.lock_file).exists():  # else it is made here
        check_regular(lock.lock_file, inside=Path(lock.lock_file).parent)
    try:
        lock.acquire(timeout=_PATIENCE, poll_interval=_PAUSE)
    except Timeout:
        _check_locks(Path(lock.lock_file))
        return False
    try:
        _check_locks(Path(lock.lock_file))
    except OSError:  # else a mere file is the lock, which a killed process would leave behind
        lock.release(force=True)
        raise
    return True


def _check_locks(path: Path) -> None:
    """Raise OSError where the file can't be locked.

    filelock before 4 reports it as locked then, and later versions take a mere file for the lock.
    """
    try:
        import fcntl
    except ImportError:
        return
    with path.open("rb") as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


@contextmanager
def _locking(folder: Path) -> Iterator[None]:
    """Turn every error of taking a lock into a StoreError."""
    try:
        with translate_errors(folder):
            yield
    except NotImplementedError as error:
        raise _without_locks(folder) from error
    except StoreError as error:
        number = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        if number in _NO_LOCKS:
            raise _without_locks(folder) from error
        if number in _NOT_WRITABLE:
            raise UnwritableError(
                f"{folder} can't be written to; check its permissions and that its disk is writable"
            ) from error
        raise


def _without_locks(folder: Path) -> StoreError:
    return StoreError(f"{folder} is on a file system without locks; move it to a local disk")


def _write_note(folder: Path) -> None:
    since = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    holder = _Holder(os.getpid(), platform.node(), since)
    write_durably(folder / _NOTE, json.dumps(holder._asdict()).encode())


def _note(folder: Path) -> _Holder | None:
    """Return the note of the last process that had the lock, None where it can't be read."""
    try:
        note = read_json(read_regular(folder / _NOTE, _MOST_BYTES, inside=folder))
        return _Holder(int(note["pid"]), str(note["host"]), str(note["since"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _whose(folder: Path) -> str:
    holder = _note(folder)
    if holder is None or holder.has_ended():
        return "another process"
    return f"process {holder.pid} on host {holder.host} since {holder.since}"

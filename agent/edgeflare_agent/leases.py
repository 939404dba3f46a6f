"""Leases on this device, so that two campaigns don't share one by accident.

A lease is a file below `<root>/leases` that its agent keeps locked while it runs, so that the lease
ends with the process. Files without a lock are stale and removed. A further lock, held briefly,
guards taking and listing leases. Without file locks on the system or disk there are no leases.
"""

import contextlib
import errno
import json
import os
import signal
import time
import uuid
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from edgeflare_agent.errors import AgentError, BusyError

try:
    import fcntl
except ImportError:  # no POSIX
    fcntl = None  # type: ignore[assignment]

_LOCK_WAIT_S = 20.0
_GRACE_S = 3.0
_EXIT_S = 3.0
_POLL_S = 0.02
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class Lease(NamedTuple):
    """One lease: `holder` is a campaign, `session` one use of a device by it, `about` for people.

    `pid` is the agent that holds it, as seen `where` it lives: a system since its start and a space
    of process ids; `since` is in seconds of the clock that began with the system.
    """

    holder: str
    session: str
    about: str
    share: bool
    pid: int = 0
    since: float = 0.0
    where: str = ""

    def to_json(self) -> Dict[str, Any]:
        """Return what a host is sent; `since_s` is the age of the lease in seconds."""
        fields = self._asdict()
        fields["since_s"] = max(0.0, _uptime_s() - fields.pop("since"))
        del fields["where"]
        return fields


class Leases:
    """The leases below one folder, of which this process holds at most one."""

    def __init__(self, root: str) -> None:
        self._folder = os.path.join(root, "leases")
        self._own: Optional[Tuple[int, str]] = None

    def take(self, holder: str, session: str, about: str, share: bool) -> None:
        """Take a lease, in place of the one that this process holds.

        Agents that hold it for the same holder and session are ended first. Raises BusyError where
        another holder has it, unless both share, and keeps it for 3 s more, since an agent that was
        told to end may take a moment; AgentError where the folder can't be used.
        """
        deadline = time.monotonic() + _EXIT_S
        while True:
            try:
                self._take(holder, session, about, share)
            except BusyError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_POLL_S)
            else:
                return

    def _take(self, holder: str, session: str, about: str, share: bool) -> None:
        with self._locked() as lockable:
            if not lockable:
                return
            others = [
                found for found in self._live_leases() if found[0] != (self._own or (0, ""))[1]
            ]
            for _, lease in others:
                if lease.holder != holder and not (share and lease.share):
                    raise BusyError(_in_use(lease))
            for path, lease in others:
                if (lease.holder, lease.session) == (holder, session):
                    _end(path, lease)
            self.release()
            self._hold(Lease(holder, session, about, share, os.getpid(), _uptime_s(), _where()))

    def held(self) -> List[Lease]:
        """Return the leases of all living agents, the oldest first. Raises what `take` raises."""
        if not os.path.isdir(self._folder):
            return []
        with self._locked() as lockable:
            found = [lease for _, lease in self._live_leases()] if lockable else []
        return sorted(found, key=lambda lease: lease.since)

    def release(self) -> None:
        """Release the lease of this process. Safe to repeat."""
        own, self._own = self._own, None
        if own is not None:
            with contextlib.suppress(OSError):
                os.unlink(own[1])
            os.close(own[0])

    def _hold(self, lease: Lease) -> None:
        path = os.path.join(self._folder, "{}.json".format(uuid.uuid4()))
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        self._own = (file, path)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(file, json.dumps(lease._asdict()).encode())

    def _live_leases(self) -> List[Tuple[str, Lease]]:
        """Return path and lease of every living agent; remove stale lease files."""
        living = []
        for name in sorted(os.listdir(self._folder)):
            path = os.path.join(self._folder, name)
            if not name.endswith(".json"):
                continue
            if _is_locked(path):
                living.append((path, _read(path)))
            else:
                _remove(path)
        return living

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        """Hold the lock for taking and listing leases; False where there are no locks."""
        try:
            os.makedirs(self._folder, exist_ok=True)
            file = os.open(os.path.join(self._folder, "lock"), os.O_CREAT | os.O_RDWR, 0o666)
            try:
                yield fcntl is not None and _locked_in_time(file)
            finally:
                os.close(file)
        except OSError as error:
            raise AgentError(
                "can't keep leases in {}: {}".format(self._folder, error.strerror or error)
            ) from error


def _locked_in_time(file: int) -> bool:
    """Lock a file; False where it can't be. Raises BusyError when others hold it too long."""
    deadline = time.monotonic() + _LOCK_WAIT_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise BusyError(
                    "another agent has been taking a lease on this device for {:g} s; try "
                    "again".format(_LOCK_WAIT_S)
                ) from None
            time.sleep(_POLL_S)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                return False
            raise
        else:
            return True


def _is_locked(path: str) -> bool:
    """Whether an agent, this one too, holds the lease in a file."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _read(path: str) -> Lease:
    """Return the lease in a file; one that can't be read has an unknown holder and isn't shared."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        lease = Lease(**data)
        if lease.pid > 1 and isinstance(lease.share, bool):
            return lease._replace(since=float(lease.since))
    except (OSError, ValueError, TypeError):
        pass
    return Lease("", "", "a program that left no name", share=False, since=_uptime_s())


def _end(path: str, lease: Lease) -> None:
    """End the agent that holds a lease.

    Its process id is certain, since it holds the lock on this system.

    Of an agent elsewhere (another container or board on the same folder) only the end is awaited.
    """
    here = lease.where == _where()
    for signal_ in (signal.SIGTERM, signal.SIGKILL) if here else ():
        try:
            os.kill(lease.pid, signal_)
        except ProcessLookupError:
            pass
        except PermissionError:
            break
        deadline = time.monotonic() + _GRACE_S
        while time.monotonic() < deadline:
            if not _is_locked(path):
                _remove(path)
                return
            time.sleep(_POLL_S)
    raise BusyError(
        "{}; its agent, process {}, can't be ended: end it on the device".format(
            _in_use(lease), lease.pid
        )
    )


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _in_use(lease: Lease) -> str:
    minutes = int(lease.to_json()["since_s"] // 60)
    return "in use by {}, since {}".format(
        lease.about,
        "less than a minute"
        if minutes < 1
        else "{} minute{}".format(minutes, "" if minutes == 1 else "s"),
    )


def _where() -> str:
    """Return an identifier of the system, its boot, and the process id namespace."""
    boot = space = ""
    with contextlib.suppress(OSError):
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        space = os.readlink("/proc/self/ns/pid")
    return "{} {} {}".format(os.uname().nodename, boot, space)


def _uptime_s() -> float:
    """Return seconds on a monotonic clock that all processes share."""
    return time.monotonic() if _BOOT_CLOCK is None else time.clock_gettime(_BOOT_CLOCK)

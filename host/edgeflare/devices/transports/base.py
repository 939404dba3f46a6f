"""How a device is reached: run a command, open a byte stream, copy a file."""

import contextvars
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypedDict

from edgeflare._internal.text import clean_text
from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.errors import DeviceProtocolError, DevicePythonError, UnreachableError

if TYPE_CHECKING:
    from edgeflare.devices.inventory import Device


class Deadline:
    """A moment `seconds` from now; `remaining` never goes below zero."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left, 0.0 when the moment has passed."""
        return max(0.0, self._end - time.monotonic())

    @property
    def expired(self) -> bool:
        """True when the moment has passed."""
        return self.remaining() == 0.0


OUTPUT_LIMIT = 8 << 20
"""Bytes that a command run to its end may print on stdout."""
STDERR_LIMIT = 1 << 20
"""The last bytes of its stderr, at most so many, are returned."""


class Completed(NamedTuple):
    """A command that ended: exit status, everything on stdout, the end of stderr as text."""

    status: int
    stdout: bytes
    stderr: str


def read_output(read: Callable[[float], bytes], deadline: Deadline, name: str) -> bytes:
    """Return everything that a command prints on stdout.

    `read(seconds)` waits at most so long for the next bytes, ``b""`` at the end; `name` is the
    device's. Raises TimeoutError at the deadline, DeviceProtocolError beyond OUTPUT_LIMIT bytes.
    """
    stdout = bytearray()
    while chunk := read(deadline.remaining()):
        stdout += chunk
        if len(stdout) > OUTPUT_LIMIT:
            raise DeviceProtocolError(
                f"a command on {name} printed over {OUTPUT_LIMIT >> 20} MiB where EdgeFlare expects a "
                "short answer; check `python` in the device's inventory entry and what the login "
                "shell prints there"
            )
        if deadline.expired:
            raise TimeoutError
    return bytes(stdout)


def start_feeder(
    write: Callable[[Sequence[bytes]], None],
    end: Callable[[], None],
    stdin: Iterable[bytes],
    lost: tuple[type[Exception], ...] = (UnreachableError, OSError),
) -> threading.Thread:
    """Write a program's stdin, block by block, and end it, in a thread that is returned.

    A program that ends before it has read all is no error: one of `lost`.
    """

    def feed() -> None:
        with suppress(*lost):
            for block in stdin:
                write([block])
        with suppress(*lost):
            end()

    thread = threading.Thread(target=feed, name="edgeflare-stdin", daemon=True)
    thread.start()
    return thread


class Stream(Protocol):
    """A program's stdin and stdout as one byte stream; reads and writes may be in two threads."""

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes, waiting for them; ``b""`` at the end."""
        ...

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Write all blocks, one after the other. Raises UnreachableError where the link is lost."""
        ...

    def stderr_tail(self) -> str:
        """Return the last lines (at most 20) that the program wrote to stderr."""
        ...

    def exit_status(self, timeout: float) -> int | None:
        """Wait at most `timeout` seconds for the program to end; None if it runs on."""
        ...

    def close(self) -> None:
        """Close stdin and stdout and end the program if it goes on. Safe to repeat."""
        ...


class Transport(Protocol):
    """A connection to one device, open until `close`. All paths are the device's own."""

    name: str
    """What to call the device in messages, such as ``pi4`` or ``ssh://pi@10.0.0.7``."""

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the device's Python command with these arguments and wait for it.

        Raises DeviceTimeoutError, UnreachableError; DeviceProtocolError where it prints over
        OUTPUT_LIMIT bytes; DevicePythonError where the command doesn't exist.
        """
        ...

    def open(self, arguments: Sequence[str]) -> Stream:
        """Start the device's Python command with these arguments; no pty, stderr separate."""
        ...

    def put(self, local: Path, remote: str) -> None:
        """Copy a file's bytes to this path, whose folder exists.

        Raises DeviceDiskFullError, UnreachableError, DeviceError.
        """
        ...

    def close(self) -> None:
        """End the connection. Safe to repeat."""
        ...


_open_waits: set["PlaceWaits"] = set()
_current_waits: contextvars.ContextVar["PlaceWaits"] = contextvars.ContextVar("place_waits")
_waits_lock = threading.Lock()  # of these two, and of every PlaceWaits


class PlaceWaits(AbstractContextManager["PlaceWaits"]):
    """The waits for places, which are devices that others may have, of one block; `end` ends them.

    A thread's waits belong to it once the thread has called `use`.
    """

    def __init__(self) -> None:
        self.stops: set[Callable[[], None]] = set()
        self.has_ended = False
        with _waits_lock:
            _open_waits.add(self)

    def __exit__(self, *_: object) -> None:
        with _waits_lock:
            _open_waits.discard(self)

    def use(self) -> None:
        """Let waits that this thread begins belong here."""
        _current_waits.set(self)

    def end(self) -> None:
        """End all waits, also those that begin later: what waits raises DeviceError."""
        with _waits_lock:
            self.has_ended = True
            stops = tuple(self.stops)
        for stop in stops:
            stop()


@contextmanager
def waiting_for_place(stop: Callable[[], None]) -> Iterator[None]:
    """Wait for a place in this block of a transport.

    `stop` is called, maybe by another thread and more than once, where the wait is to end.
    """
    current = _current_waits.get(None)
    with PlaceWaits() if current is None else nullcontext(current) as waits:
        with _waits_lock:
            waits.stops.add(stop)
            has_ended = waits.has_ended
        try:
            if has_ended:
                stop()
            yield
        finally:
            with _waits_lock:
                waits.stops.discard(stop)


def stop_waiting_for_places() -> None:
    """End all waits for places, such as labgrid's, in this process; what waits raises DeviceError.

    A fleet that is being opened waits for none any more, also where a wait has not begun yet.
    """
    with _waits_lock:
        waits = tuple(_open_waits)
    for block in waits:
        block.end()


def check_ran(done: Completed, python: str, name: str, otherwise: str = "") -> None:
    """Raise DevicePythonError where the shell found no such command, or one that it may not run.

    `otherwise` is what else the user may do, if anything.
    """
    if done.status not in (126, 127):
        return
    problem = "can't be run" if done.status == 126 else "is not there"
    last_line = [clean_text(line, LONGEST_LINE) for line in done.stderr.strip().splitlines()[-1:]]
    raise DevicePythonError(
        f"the Python command {python!r} {problem} on {name}"
        f"{f' ({last_line[0]})' if last_line else ''}; install Python 3.8 or later there, or give "
        f"its command as `python` in the inventory{otherwise}"
    )


class Login(NamedTuple):
    """One login. `address` is ``host:port``, `server` the server's software as it names itself.

    `by` says how the user got in: ``key /home/a/.ssh/id_ed25519``, ``password`` or ``nothing``
    where the server asked for neither; `host_key` is the trusted key's type and fingerprint;
    `key_command` sets a key up.
    """

    address: str
    user: str
    server: str
    by: str
    host_key: str
    key_command: str


KEEPALIVE_S = 15
_DEAD_AFTER_S = 45


def enable_keepalive(link: socket.socket) -> None:
    """Send small packets at once, and let the kernel give up on a peer that fell silent."""
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_USER_TIMEOUT", _DEAD_AFTER_S * 1000),
        ("TCP_KEEPIDLE", KEEPALIVE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_S),
    ):
        if hasattr(socket, option):
            link.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


Prompt = Callable[[str], str | None]
"""Asks the user for a passphrase or password; None where nobody answers."""
Connect: TypeAlias = Callable[["Device", Prompt | None], Transport]
"""Opens the transport to a device, as `edgeflare.devices.connect` does."""


class ConnectOptions(TypedDict, total=False):
    """How devices are reached.

    `ask` is called for a passphrase or password where a device wants one; `connect` opens the
    transport to a device (`edgeflare.testing` has a faulty one).
    """

    ask: Prompt | None
    connect: Connect

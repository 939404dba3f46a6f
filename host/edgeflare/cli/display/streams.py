"""The process' own streams: what can't be written to them ends no command in the middle.

Below stdout and stderr stands a raw stream that takes the error of a write for itself: from then on
the file descriptor is ``/dev/null``, also for libraries and programs that share it. So a campaign
whose terminal has gone, or whose log is on a full disk, goes on to its own end; what the command
ends with is decided once, in `end_of`.
"""

import errno
import io
import os
import select
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from edgeflare.cli.terminal import echo_err

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_NO_READER = (errno.EPIPE, errno.ECONNRESET)
_FAILED = 3
_STDIN, _STDOUT, _STDERR = range(3)


class Guarded(io.FileIO):
    """A descriptor whose first failed write is kept in `failure`; what follows it is dropped."""

    failure: OSError | None = None

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._is_terminal = self.isatty()

    @property
    def has_no_reader(self) -> bool:
        """Whether the failure is that nobody reads any more: no pipe's end, or no terminal."""
        code = None if self.failure is None else self.failure.errno
        return code in _NO_READER or (code == errno.EIO and self._is_terminal)

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write some bytes; return how many were taken. A failure is no error."""
        size = memoryview(data).nbytes
        try:
            while self.failure is None:
                if (written := super().write(data)) is not None:
                    return written
                # Another program has set the terminal that it shares with us to non-blocking.
                select.select([], [self], [])
        except OSError as error:
            self.failure = error
            _open_null(self.fileno())
        return size


def guard_streams() -> None:
    """Replace the streams that are closed, and guard stdout and stderr, for this process.

    A descriptor from 0 to 2 that is free would be the next file's that is opened, such as a
    campaign's database, and what is printed would go there. A stream that another program has set
    in place of the interpreter's, such as a notebook, stays: what it does with a text is its own.
    """
    for descriptor in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(descriptor)
        except OSError:
            _open_null(descriptor)
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115, PTH123 - open as long as the process
    if _is_own(sys.stdout, sys.__stdout__, _STDOUT):
        sys.stdout = _guarded(sys.stdout, _STDOUT)
    if _is_own(sys.stderr, sys.__stderr__, _STDERR):
        sys.stderr = _guarded(sys.stderr, _STDERR)


def has_no_output() -> bool:
    """Whether nothing that is printed on stdout arrives any more, as `status --watch` must know."""
    return isinstance(raw := _raw(sys.stdout), Guarded) and raw.failure is not None


def end_of(code: int) -> int:
    """Return what the command ends with: `code`, or 3 where its output isn't whole.

    A reader that ended early, such as ``head``, has had enough: that is no failure. A command that
    has more to tell than 0, such as a crossed limit, tells it all the same.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError):  # a closed one
            stream.flush()
    raw = _raw(sys.stdout)
    if not isinstance(raw, Guarded) or raw.failure is None or raw.has_no_reader:
        return code
    echo_err(
        f"edgeflare: what is printed can't be written to stdout: {raw.failure.strerror}; make room, or "
        "send it elsewhere; what a campaign found is in its folder (`edgeflare show CAMPAIGN`)"
    )
    return code or _FAILED


def _is_own(stream: IO[str] | None, first: IO[str] | None, descriptor: int) -> bool:
    """Whether a stream is closed, or is the interpreter's `first` one, on its own descriptor."""
    if stream is None:
        return True
    try:
        return stream is first and stream.fileno() == descriptor
    except (OSError, ValueError):  # it has no descriptor, or is closed
        return False


def _guarded(stream: object, descriptor: int) -> io.TextIOWrapper:
    """Return the stream that stands in for one of the interpreter's; None is one that was closed."""
    encoding, at_once = "utf-8", descriptor == _STDERR
    if isinstance(stream, io.TextIOWrapper):
        stream.flush()
        encoding, at_once = stream.encoding, stream.line_buffering or stream.write_through
    buffered = io.BufferedWriter(Guarded(descriptor))
    return io.TextIOWrapper(buffered, encoding, "replace", line_buffering=at_once)


def _raw(stream: object) -> object:
    return getattr(getattr(stream, "buffer", None), "raw", None)


def _open_null(descriptor: int) -> None:
    """Make a descriptor one of ``/dev/null``, which programs that are started inherit, too."""
    with suppress(OSError):  # no descriptor is left, or no /dev: `failure` alone holds
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, descriptor)
        if null == descriptor:
            os.set_inheritable(null, True)
        else:
            os.close(null)

"""Turns errors into one sentence on stderr and the right exit code."""

import errno
import functools
import getpass
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn, ParamSpec

import typer

from edgeflare._internal.files import is_disk_full, is_used_up
from edgeflare._internal.text import counted, visible_text


def ask(prompt: str) -> str | None:
    """Return what the user types without showing it; None where there is no terminal."""
    if not sys.stdin.isatty():
        return None
    return getpass.getpass(visible_text(prompt))


def confirm(question: str) -> bool:
    """Return whether the user says yes; no terminal means no."""
    if not sys.stdin.isatty():
        return False
    echo_err(f"{question} [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 9.0
_SHOW_CURSOR = b"\x1b[?25h"
_WAIT = b"\nedgeflare: what was found is being written; once more to end at once\n"
_GIVEN_UP = (
    b"\nedgeflare: something did not end in time and was given up; what was found is kept in the "
    b"folder, and going on is possible from there\n"
)
INTERRUPTED = 130
_AGAIN_S = 0.05
"""After this the main thread is out of the callback that a signal met."""


class StopSignal:
    """Whether the user has asked to stop.

    The first signal raises KeyboardInterrupt in the main thread. The second one, while the campaign
    is put down, only says so; the third one ends the process: nothing that was written is lost. So
    does the end of `grace_s` seconds after the first one, whatever keeps the process.
    """

    def __init__(self, grace_s: float = _GRACE_S) -> None:
        self.signals = 0
        self._grace_s = grace_s

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return self.signals > 0

    def take(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        del number, frame
        self.signals += 1
        if self.signals == 1:
            raise KeyboardInterrupt
        if self.signals == 2:
            _write(_WAIT)
        else:
            _end()

    def take_again(self, ignored: "sys.UnraisableHookArgs") -> None:
        """Ask to stop once more: Python dropped the KeyboardInterrupt, raised in a callback of its own.

        That is where a library's object is freed. The hook of `sys.unraisablehook`.
        """
        if not isinstance(ignored.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(ignored)
            return
        self.signals = 0
        again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()

    def watch(self, arrived: int) -> None:
        """Wait for a signal's number on this file descriptor, then end the process `grace_s` later.

        The number is written as soon as the signal comes, even where the main thread can't take it,
        since it is in a library's code. Returns at the end of the stream.
        """
        with open(arrived, "rb", buffering=0) as numbers:
            while number := numbers.read(1):
                if number[0] in _SIGNALS:
                    time.sleep(self._grace_s)
                    _write(_GIVEN_UP)
                    _end()


@contextmanager
def handling_signals(grace_s: float = _GRACE_S) -> Iterator[StopSignal]:
    """Handle Ctrl-C, SIGTERM and SIGHUP within a block, in the main thread.

    Once one has come they stay taken until the process ends, so that an impatient second one meets
    no half-ended interpreter. A signal that the process was started to ignore (``nohup``) stays
    ignored. A signal may interrupt an operation, such as a database's transaction, so that another
    error takes the place of KeyboardInterrupt: after a signal every `EdgeFlareError` becomes one
    again.
    """
    from edgeflare import EdgeFlareError

    stop = StopSignal(grace_s)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    taken = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, stop.take)
    unraisable, sys.unraisablehook = sys.unraisablehook, stop.take_again
    arrived, written = os.pipe()
    os.set_blocking(written, False)
    wakeup = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    threading.Thread(target=stop.watch, args=(arrived,), daemon=True).start()
    try:
        yield stop
    except EdgeFlareError as error:
        if stop.asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        sys.unraisablehook = unraisable
        if not stop.asked:
            for number in taken:
                signal.signal(number, before[number])
            signal.set_wakeup_fd(wakeup)
            os.close(written)


def _write(text: bytes) -> None:
    """Write past Python's own buffers, which the main thread may be in the middle of using."""
    try:
        os.write(2, text)
    except OSError:
        return


def _end() -> NoReturn:
    if sys.stderr.isatty():
        _write(_SHOW_CURSOR)
    os._exit(INTERRUPTED)


P = ParamSpec("P")
_LIMIT_CROSSED = 1
_UNDECIDED = 4
_OWN_FAULT = 70
_PACKAGE = Path(__file__).parents[1]
_LONGEST, _END = 4000, 500
_REPEAT = "and repeat the command (a campaign goes on with `edgeflare resume CAMPAIGN`)"
_UNMAPPED = "failed to map segment"  # the loader's words for a library without memory


class _Debug:
    on = False


def set_debug(on: bool) -> None:
    """Set whether tracebacks are shown."""
    _Debug.on = on


def _is_users(filename: object) -> bool:
    """Whether an unusable file is the user's, not one of the installed package."""
    return isinstance(filename, str | bytes) and not Path(os.fsdecode(filename)).is_relative_to(
        _PACKAGE
    )


def _sentence(error: Exception) -> str:
    """Return an error's text; of a very long one its beginning and its end, which says what to do."""
    text = str(error)
    return text if len(text) <= _LONGEST else f"{text[: -_END - 5 + _LONGEST]} ... {text[-_END:]}"


def _lacking(fault: Exception) -> str:
    """Return what this machine has no more of, in a sentence; "" where a fault is another one."""
    text = str(fault)
    if isinstance(fault, MemoryError) or (isinstance(fault, ImportError) and _UNMAPPED in text):
        return (
            "this machine's memory, or what `ulimit -v` leaves of it, is used up; end other "
            f"programs, {_REPEAT}"
        )
    if isinstance(fault, RuntimeError) and "start new thread" in text:
        return (
            "this machine starts no more threads; end other programs or raise the limit (`ulimit "
            f"-u`), {_REPEAT}"
        )
    if isinstance(fault, RuntimeError) and "home directory" in text:  # of Path.expanduser
        return "a path begins with ~, and this user has no home folder; state one in HOME"
    if not isinstance(fault, OSError):
        return ""
    if is_used_up(fault):
        return (
            f"this machine gives no more: {fault.strerror}; end other programs or raise the limits "
            f"(`ulimit -a`), {_REPEAT}"
        )
    if is_disk_full(fault):
        return f"{fault.filename or 'a file'} can't be written: {fault.strerror}; make room"
    if fault.errno == errno.ENOENT and fault.filename is None and not _has_working_folder():
        return "the working folder was removed; change to one that exists (cd), and repeat it"
    return ""


def _has_working_folder() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return False
    return True


def echo(text: str) -> None:
    """Write a text and a line feed on stdout, at once.

    Here and in `display.tables.TerminalConsole` all that is shown loses what a terminal would obey.
    """
    print(visible_text(text), flush=True)  # noqa: T201


def echo_err(text: str, end: str = "\n") -> None:
    """Write a text for the user on stderr, a line feed behind it, as `echo` does on stdout."""
    print(visible_text(text), end=end, file=sys.stderr, flush=True)  # noqa: T201


def end_by(crossed: Sequence[str], undecided: Sequence[str] = ()) -> None:
    """End the command with exit code 1 if limits are crossed, else 4 if any are undecided."""
    if crossed:
        what = "a limit is" if len(crossed) == 1 else f"{len(crossed)} limits are"
        echo_err(f"edgeflare: {what} crossed: {', '.join(crossed)}")
        raise typer.Exit(_LIMIT_CROSSED)
    if undecided:
        what = "a limit is" if len(undecided) == 1 else f"{len(undecided)} limits are"
        echo_err(f"edgeflare: it can't be told whether {what} kept: {', '.join(undecided)}")
        raise typer.Exit(_UNDECIDED)


def with_exit_codes(command: Callable[P, None]) -> Callable[P, None]:
    """Wrap a command: every error becomes a sentence on stderr and an exit code.

    An `EdgeFlareError` has its own code; Ctrl-C ends with 130, a file that can't be used with 2, a
    fault with 70.
    """

    # in two, since an interrupt may also come while an error is being reported
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            run_command(*args, **kwargs)
        except KeyboardInterrupt as interrupt:
            if _Debug.on:
                raise
            echo_err("edgeflare: interrupted")
            raise typer.Exit(INTERRUPTED) from interrupt

    def run_command(*args: P.args, **kwargs: P.kwargs) -> None:
        from edgeflare import EdgeFlareError
        from edgeflare._internal.plugins import blamed
        from edgeflare.errors import HostError

        try:
            command(*args, **kwargs)
        except EdgeFlareError as error:
            if _Debug.on:
                raise
            echo_err(f"edgeflare: {_sentence(error)}")
            raise typer.Exit(error.exit_code) from error
        except (typer.Exit, typer.Abort):
            raise
        except Exception as fault:
            if _Debug.on:
                raise
            if lacking := _lacking(fault):
                echo_err(f"edgeflare: {lacking}")
                raise typer.Exit(HostError.exit_code) from fault
            if isinstance(fault, OSError) and _is_users(fault.filename):
                echo_err(
                    f"edgeflare: {fault.filename} can't be used: {fault.strerror}; check the path"
                )
                raise typer.Exit(EdgeFlareError.exit_code) from fault
            if distribution := blamed(fault):
                echo_err(
                    f"edgeflare: code of the installed {distribution} failed ({type(fault).__name__}: {fault}); what was found so far is kept; "
                    "repair or uninstall that distribution (`edgeflare --debug ...` shows where)"
                )
                raise typer.Exit(EdgeFlareError.exit_code) from fault
            echo_err(
                f"edgeflare: a fault of EdgeFlare's own, {type(fault).__name__}: {fault}; what was "
                "found so far is kept; please report it with what `edgeflare --debug ...` prints"
            )
            raise typer.Exit(_OWN_FAULT) from fault

    return run


def findings_text(findings: int, of_survey: int, kinds: str = "") -> str:
    """Return numbers of findings and of confident deviations of the survey in words."""
    more = f", {counted(of_survey, 'confident deviation')} of the survey" if of_survey else ""
    return counted(findings, "finding") + (f" ({kinds})" if kinds else "") + more

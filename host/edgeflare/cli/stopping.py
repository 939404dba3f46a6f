"""Ctrl-C, SIGTERM and SIGHUP: the campaign is stopped once, in good order, and within seconds."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 9.0
_SHOW_CURSOR = b"\x1b[?25h"
_WAIT = b"\nedgeflare: what was found is being written; once more to end at once\n"
_GIVEN_UP = (
    b"\nedgeflare: something did not end in time and was given up; what was found is kept in the folder, "
    b"and going on is possible from there\n"
)
INTERRUPTED = 130


class Stop:
    """Whether the user has asked to stop.

    The first signal raises KeyboardInterrupt in the main thread. The second one, while the campaign is
    put down, only says so; the third one ends the process: nothing that was written is lost. So does the end of
    `grace_s` seconds after the first one, whatever keeps the process.
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

    def watch(self, arrived: int) -> None:
        """Wait for a signal's number on this file descriptor, then end the process `grace_s` later.

        The number is written as soon as the signal comes, even where the main thread can't take it, since it is in
        a library's code. Returns at the end of the stream.
        """
        with open(arrived, "rb", buffering=0) as numbers:
            while number := numbers.read(1):
                if number[0] in _SIGNALS:
                    time.sleep(self._grace_s)
                    _write(_GIVEN_UP)
                    _end()


@contextmanager
def stoppable(grace_s: float = _GRACE_S) -> Iterator[Stop]:
    """Handle Ctrl-C, SIGTERM and SIGHUP within a block, in the main thread.

    Once one has come they stay taken until the process ends, so that an impatient second one meets no
    half-ended interpreter. A signal that the process was started to ignore (``nohup``) stays ignored.
    A signal may interrupt an operation, such as a database's transaction, so that another error takes
    the place of KeyboardInterrupt: after a signal every `EdgeFlareError` becomes one again.
    """
    from edgeflare import EdgeFlareError

    stop = Stop(grace_s)
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    taken = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, stop.take)
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

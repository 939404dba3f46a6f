"""Ctrl-C and SIGTERM: the campaign is stopped once, in good order."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SHOW_CURSOR = b"\x1b[?25h"
_WAIT = b"\nedgeflare: what was found is being written; once more to end at once\n"
INTERRUPTED = 130


class Stop:
    """Whether the user has asked for an end.

    The first signal raises KeyboardInterrupt in the main thread. The second one, while the campaign is
    put down, only says so; the third one ends the process: nothing that was written is lost.
    """

    def __init__(self) -> None:
        self.signals = 0

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return self.signals > 0

    def take(self, number: int, frame: FrameType | None) -> None:
        """Take a signal."""
        del number, frame
        self.signals += 1
        if self.signals == 1:
            raise KeyboardInterrupt
        if self.signals == 2:
            _write(_WAIT)
        else:
            _end()


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Take Ctrl-C and SIGTERM for a block, in the main thread.

    Once one has come they stay taken until the process ends, so that an impatient second one meets no
    half-ended interpreter. A signal that the process was started to ignore (``nohup``) stays ignored.
    A signal may tear what was under way, a database's transaction say, so that an error of its own takes
    the place of KeyboardInterrupt: after a signal every `EdgeFlareError` becomes one again.
    """
    from edgeflare import EdgeFlareError

    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    taken = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, stop.take)
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

"""Commands of the system that tell what its files don't; each with a time limit and at a pace."""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from typing import Callable, Generic, Optional, Sequence, TypeVar

T = TypeVar("T")

LIMIT_S = 2.0
AFTER_FAILURE_S = 60.0
"""A command that failed, hung or told nothing is not tried again for so long."""


class Command(Generic[T]):
    """Runs a command no more often than each `pace_s` seconds, and `read`s its output (None: it makes no sense).

    It is looked for once, on PATH and then in the folders `places` below `root`. One thread asks;
    `end` may be called by another.
    """

    def __init__(
        self,
        words: Sequence[str],
        read: Callable[[str], Optional[T]],
        pace_s: float = 0.0,
        limit_s: float = LIMIT_S,
        places: Sequence[str] = (),
        root: str = "/",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        path = os.pathsep.join(os.path.join(root, place) for place in places)
        self._path = shutil.which(words[0]) or shutil.which(words[0], path=path or os.devnull)
        self._arguments = list(words[1:])
        self._read = read
        self._pace_s = pace_s
        self._limit_s = limit_s
        self._clock = clock
        self._next = -float("inf")
        self._answer: Optional[T] = None
        self._process: Optional["subprocess.Popen[bytes]"] = None

    def answer(self) -> Optional[T]:
        """Return what the command says now, or said when it was last its turn; None: nothing.

        Takes `limit_s` at most, and a second more for a process that can't be killed at once.
        """
        now = self._clock()
        if self._path is not None and now >= self._next:
            output = self._output(self._path)
            self._answer = None if output is None else self._read(output)
            failed = self._answer is None
            self._next = now + (max(self._pace_s, AFTER_FAILURE_S) if failed else self._pace_s)
        return self._answer

    def end(self) -> None:
        """Kill the command if it runs right now, with all that it has started."""
        process = self._process
        if process is not None:
            with suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)

    def _output(self, path: str) -> Optional[str]:
        try:
            process = subprocess.Popen(
                [path, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # a script's children hold the pipe: all are killed together
            )
        except OSError:
            return None
        self._process = process
        try:
            output, _ = process.communicate(timeout=self._limit_s)
        except (subprocess.TimeoutExpired, OSError):
            return None
        finally:
            if process.returncode is None:
                self.end()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1.0)
            self._process = None
            if process.stdout is not None:
                process.stdout.close()
        return output.decode("ascii", "replace") if process.returncode == 0 else None

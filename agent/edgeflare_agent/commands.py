"""Commands of the system that tell what its files don't; each with a time limit and at a pace."""

import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from typing import Callable, Generic, Optional, Sequence, TypeVar

T = TypeVar("T")

LIMIT_S = 2.0
AFTER_FAILURE_S = 60.0
"""A command that failed, hung or told nothing is not tried again for so long."""
_PATIENCE_S = 1.0


class Command(Generic[T]):
    """Runs a command no more often than each `pace_s` seconds, and `read`s what it prints.

    What makes no sense is read as None. The command is looked for once, on PATH and then in the folders
    `places` below `root`. One thread asks; `end` may be called by another.
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
        self._ended = False
        self._lock = threading.Lock()  # held while a process begins, and while one is killed

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
        """Kill the command if it runs right now, with all that it has started; it is run no more."""
        held = self._lock.acquire(timeout=_PATIENCE_S)
        try:
            self._ended = True
            if self._process is not None:
                _kill(self._process)
        finally:
            if held:
                self._lock.release()

    def _output(self, path: str) -> Optional[str]:
        process = self._started(path)
        if process is None:
            return None
        try:
            output, _ = process.communicate(timeout=self._limit_s)
        except (subprocess.TimeoutExpired, OSError):
            return None
        finally:
            if process.returncode is None:
                _kill(process)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PATIENCE_S)
            self._process = None
            if process.stdout is not None:
                process.stdout.close()
        return output.decode("ascii", "replace") if process.returncode == 0 else None

    def _started(self, path: str) -> Optional["subprocess.Popen[bytes]"]:
        with self._lock:
            if self._ended:
                return None
            try:
                self._process = subprocess.Popen(
                    [path, *self._arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # its children hold the pipe: all are killed together
                )
            except OSError:
                return None
            return self._process


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that was not waited for yet, and its session: its number is no other's so far."""
    if process.returncode is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)

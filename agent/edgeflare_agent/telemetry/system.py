"""Readings from the system's small files below a `root`, and from commands for what no file has.

A file that is missing, unreadable or invalid gives no value; a command has a time limit and runs at
most at a set rate.
"""

import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from glob import glob
from typing import Callable, Generic, List, Optional, Sequence, TypeVar

_MOST_READ = 1 << 16
_TOO_MUCH = 1 << 63


def below(root: str, path: str) -> str:
    """Return a path below a root."""
    return os.path.join(root, path)


def found(root: str, pattern: str) -> List[str]:
    """Return the paths below a root that a pattern names, in order."""
    return sorted(glob(below(root, pattern)))


def text(path: str) -> str:
    """Return a file's first 64 KiB; empty for one that can't be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(_MOST_READ)
    except OSError:
        return ""


def first_word(path: str) -> Optional[str]:
    """Return a file's first word."""
    words = text(path).split()
    return words[0] if words else None


def number(word: Optional[str]) -> Optional[float]:
    """Return a finite number; None for anything else."""
    try:
        value = float(word or "")
    except ValueError:
        return None
    return value if abs(value) < float("inf") else None


def number_in(path: str) -> Optional[float]:
    """Return the number that a file begins with."""
    return number(first_word(path))


def numbers(root: str, pattern: str) -> List[float]:
    """Return the numbers of all files that a pattern names."""
    told = (number_in(path) for path in found(root, pattern))
    return [value for value in told if value is not None]


def kibibytes(path: str, name: str) -> Optional[int]:
    """Return the value of a name in a file like /proc/meminfo, in bytes."""
    for line in text(path).splitlines():
        words = line.split()
        if len(words) >= 2 and words[0] == name and words[1].isdigit():
            value = int(words[1]) * 1024
            return value if value < _TOO_MUCH else None
    return None


T = TypeVar("T")

LIMIT_S = 2.0
AFTER_FAILURE_S = 60.0
"""Seconds until a command that failed, hung or printed nothing useful runs again."""
_PATIENCE_S = 1.0


class Command(Generic[T]):
    """Runs a command no more often than each `pace_s` seconds, and `read`s what it prints.

    Invalid output is read as None. The command is searched for once, on PATH and then in the
    folders `places` below `root`. One thread asks; `end` may be called by another.
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
        """Return the command's value, from now or its last run; None: no value.

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
        """Kill the command, if it runs, with all that it has started; don't run it again."""
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
    """Kill a process not waited for yet, whose number is still its own, and its session."""
    if process.returncode is None:
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)

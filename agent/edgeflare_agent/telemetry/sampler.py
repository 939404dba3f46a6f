"""Readings of slow sensors without waiting."""

import threading
import time
from typing import Any, Callable, Dict

FRESH_S = 1.0


class Sampler:
    """Calls `read` in its own thread.

    First at the start, then when `latest` finds the reading over a second old.

    Safe in several threads. Until the first reading `latest` returns `before`.
    """

    def __init__(self, read: Callable[[], Dict[str, Any]], before: Dict[str, Any]) -> None:
        self._read = read
        self._reading = before
        self._read_at = -FRESH_S
        self._wanted = threading.Event()
        self._wanted.set()
        self._has_read = threading.Event()

    def run(self) -> None:
        """Read on request, for ever; the body of the thread."""
        while True:
            self._wanted.wait()
            self._wanted.clear()
            self._reading = self._read()
            self._read_at = time.monotonic()
            self._has_read.set()

    def latest(self, patience_s: float = 0.0) -> Dict[str, Any]:
        """Return the last reading; waits so long at most, and for the first one only."""
        if patience_s > 0:
            self._has_read.wait(patience_s)
        if time.monotonic() - self._read_at >= FRESH_S:
            self._wanted.set()
        return self._reading

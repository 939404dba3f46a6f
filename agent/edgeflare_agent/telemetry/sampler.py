"""Readings of the device without waiting, however slow the sensors are."""

import threading
import time
from typing import Any, Callable, Dict

FRESH_S = 1.0


class Sampler:
    """Calls `read` in a thread of its own: when it starts, and when a reading is asked for that is
    older than a second.

    Safe in several threads. Until the first reading is there, `latest` gives `before`.
    """

    def __init__(self, read: Callable[[], Dict[str, Any]], before: Dict[str, Any]) -> None:
        self._read = read
        self._reading = before
        self._read_at = -FRESH_S
        self._wanted = threading.Event()
        self._wanted.set()
        self._has_read = threading.Event()

    def run(self) -> None:
        """Read when asked to, for ever; the body of the thread."""
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

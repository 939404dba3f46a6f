"""One monotonic deadline that is passed down, instead of nested timeouts."""

import time


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

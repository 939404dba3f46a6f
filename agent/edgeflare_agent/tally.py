"""What the agent has done so far, and which requests it has seen."""

import time
from collections import deque
from typing import Any, Deque, Dict, Optional, Set, Tuple


class Tally:
    """Time at work and requests answered. One thread works; any may ask."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._state: Tuple[float, int, Optional[float]] = (0.0, 0, None)  # replaced as a whole

    def begin(self) -> None:
        """Note that work on a request begins."""
        busy_s, served, _ = self._state
        self._state = (busy_s, served, time.monotonic())

    def end(self, served: bool) -> None:
        """Note that it is over; `served`: it was one of those that count."""
        busy_s, count, begun = self._state
        if begun is not None:
            busy_s += time.monotonic() - begun
        self._state = (busy_s, count + served, None)

    def so_far(self) -> Dict[str, Any]:
        """Return `uptime_s`, `busy_s` (with the request under way) and `served`."""
        busy_s, served, begun = self._state
        now = time.monotonic()
        if begun is not None:
            busy_s += now - begun
        return {"uptime_s": now - self._since, "busy_s": busy_s, "served": served}


class SeenIds:
    """The last `most` ids of requests, so that one that comes twice is known."""

    def __init__(self, most: int = 1 << 14) -> None:
        self._order: Deque[Any] = deque()
        self._ids: Set[Any] = set()
        self._most = most

    def add(self, id_: Any) -> bool:
        """Remember an id; return whether it is new. Raises TypeError for what can't be an id."""
        if id_ in self._ids:
            return False
        self._ids.add(id_)
        self._order.append(id_)
        if len(self._order) > self._most:
            self._ids.discard(self._order.popleft())
        return True

"""The requests of one agent: which wait on the host, which are under way, which one it works on."""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from edgeflare_agent.wire import Frame, Kind

REPLIES = {Kind.LOAD: Kind.LOADED, Kind.CONFIGURE: Kind.CONFIGURED, Kind.INFER: Kind.RESULT}


class Request:
    """One request: its encoded frame, and how its reply becomes the future's result.

    `allowance_s` is how long the agent may work on it. `read` raises LookupError, TypeError or
    ValueError for a reply that makes no sense.
    """

    def __init__(
        self,
        id_: int,
        kind: Kind,
        blocks: list[bytes],
        allowance_s: float,
        read: Callable[[Frame], Any],
    ) -> None:
        self.id = id_
        self.kind = kind
        self.blocks = blocks
        self.allowance_s = allowance_s
        self._read = read
        self.future: Future[Any] = Future()
        self.written_at: float | None = None

    def result_of(self, reply: Frame) -> Any:
        """Return the future's result. Raises LookupError, TypeError or ValueError for nonsense."""
        if reply.kind is not REPLIES[self.kind]:
            raise ValueError(f"{reply.kind.name} as reply to {self.kind.name}")
        return self._read(reply)


class RequestTable:
    """Orders requests and knows since when the agent works on the oldest; no locks, no threads.

    At most `window` requests are under way. The agent works in order, so the oldest under way is the
    one it works on: its clock runs from when it was written and those before it were answered.
    """

    def __init__(self, window: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._window = window
        self._clock = clock
        self._waiting: deque[Request] = deque()
        self._sent: dict[int, Request] = {}
        self._head_since = clock()

    @property
    def queued(self) -> int:
        """How many wait on the host."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """How many are under way."""
        return len(self._sent)

    def add(self, request: Request) -> None:
        """Take a request in."""
        self._waiting.append(request)

    def can_send(self) -> bool:
        """Whether one waits and the window has room."""
        return bool(self._waiting) and len(self._sent) < self._window

    def send_next(self) -> Request | None:
        """Return the next request, now under way; None where it was cancelled while it waited."""
        request = self._waiting.popleft()
        if not request.future.set_running_or_notify_cancel():
            return None
        if not self._sent:
            self._head_since = self._clock()
        self._sent[request.id] = request
        return request

    def written(self, request: Request) -> None:
        """Note that a request is on the wire as a whole."""
        request.written_at = self._clock()

    def take(self, id_: int) -> Request:
        """Remove a request that was answered. Raises KeyError for one that isn't under way."""
        was_head = self.head is self._sent[id_]
        request = self._sent.pop(id_)
        if was_head:
            self._head_since = self._clock()
        return request

    @property
    def head(self) -> Request | None:
        """The request that the agent works on."""
        return next(iter(self._sent.values()), None)

    def overdue(self) -> Request | None:
        """Return the request that the agent has worked on for longer than it may."""
        head = self.head
        if head is None or head.written_at is None:
            return None
        worked = self._clock() - max(self._head_since, head.written_at)
        return head if worked > head.allowance_s else None

    def drain(self) -> list[Request]:
        """Remove and return all requests whose futures are not settled."""
        waiting = [one for one in self._waiting if one.future.set_running_or_notify_cancel()]
        left = [*self._sent.values(), *waiting]
        self._sent.clear()
        self._waiting.clear()
        return left

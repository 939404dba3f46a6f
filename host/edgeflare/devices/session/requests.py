"""The requests of one agent: queued on the host, in flight, and the one it works on."""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from edgeflare.devices.session.flow_control import AdaptiveWindow
from edgeflare_agent.wire import Frame, Kind

REPLIES = {
    Kind.LOAD: Kind.LOADED,
    Kind.CONFIGURE: Kind.CONFIGURED,
    Kind.INFER: Kind.RESULT,
    Kind.LEASE: Kind.LEASED,
    Kind.STATUS: Kind.STATE,
}
_SLOWEST_BYTES_S = 16 << 10


@dataclass(eq=False)
class Request:
    """One request: its encoded frame of `size` bytes.

    `read` makes the future's result of its reply.

    `allowance_s`: how long the agent may work on it. `read` raises for an invalid reply.
    `written_at`: when it was written completely, by the table's clock.
    """

    id: int
    kind: Kind
    blocks: list[bytes]
    size: int
    allowance_s: float
    read: Callable[[Frame], Any]
    future: "Future[Any]" = field(default_factory=Future)
    written_at: float | None = None


class RequestTable:
    """Orders requests and measures how long the agent works on the oldest; no locks, no threads.

    At most `window.size` requests are under way, and more than one only within `window.most_bytes`;
    both may change at any time. The agent works in order, so the oldest under way is the one it
    works on: its clock runs from when it was written and those before it were answered.
    """

    def __init__(self, window: AdaptiveWindow, clock: Callable[[], float] = time.monotonic) -> None:
        self._window = window
        self._clock = clock
        self._waiting: deque[Request] = deque()
        self._sent: dict[int, Request] = {}
        self._sent_bytes = 0
        self._highest = -1
        self._head_since = clock()

    @property
    def queued(self) -> int:
        """Number of requests that wait on the host."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """Number of requests on the wire or at the agent."""
        return len(self._sent)

    def add(self, request: Request) -> None:
        """Add a request."""
        self._waiting.append(request)
        self._highest = max(self._highest, request.id)

    def can_send(self) -> bool:
        """Whether a request waits and the window has room for it."""
        if not self._waiting or len(self._sent) >= self._window.size:
            return False
        return not self._sent or self._sent_bytes + self._waiting[0].size <= self._window.most_bytes

    def send_next(self, together: int = 0) -> list[Request]:
        """Mark the next requests as in flight and return them.

        That is one request, or more of up to `together` bytes in all.

        Requests that were cancelled while they waited are dropped, so there may be none.
        """
        going: list[Request] = []
        size = 0
        while self.can_send():
            if going and size + self._waiting[0].size > together:
                break
            request = self._waiting.popleft()
            if not request.future.set_running_or_notify_cancel():
                continue
            size += request.size
            if not self._sent:
                self._head_since = self._clock()
            self._sent[request.id] = request
            self._sent_bytes += request.size
            going.append(request)
        return going

    def find(self, id_: int) -> Request | None:
        """Return the in-flight request with this id; None for one that was answered before.

        Raises KeyError for one that was never sent.
        """
        if id_ not in self._sent and not self._was_answered(id_):
            raise KeyError(id_)
        return self._sent.get(id_)

    def take(self, request: Request) -> bool:
        """Remove an answered request; False where it is no longer in flight."""
        if request.id not in self._sent:
            return False
        if next(iter(self._sent)) == request.id:
            self._head_since = self._clock()
        del self._sent[request.id]
        self._sent_bytes -= request.size
        return True

    def _was_answered(self, id_: int) -> bool:
        """Whether a request that is not in flight was sent before; ids ascend."""
        waits = any(one.id == id_ for one in self._waiting)
        return 0 <= id_ <= self._highest and not waits

    @property
    def head(self) -> Request | None:
        """The request that the agent works on."""
        return next(iter(self._sent.values()), None)

    def overdue(self, last_write_at: float) -> Request | None:
        """Return the request that has exceeded its allowance.

        `last_write_at`: when the link last accepted bytes. A request that is not written completely
        is overdue where the agent has stopped reading, or reads slower than 16 KiB/s.
        """
        head = self.head
        if head is None:
            return None
        now, allowed_s = self._clock(), head.allowance_s
        if head.written_at is not None:
            late = now - max(self._head_since, head.written_at) > allowed_s
        else:
            read_s = head.size / _SLOWEST_BYTES_S
            late = (
                now - max(self._head_since, last_write_at) > allowed_s
                or now - self._head_since > allowed_s + read_s
            )
        return head if late else None

    def drain(self) -> list[Request]:
        """Remove and return all requests whose futures are not settled."""
        waiting = [one for one in self._waiting if one.future.set_running_or_notify_cancel()]
        left = [*self._sent.values(), *waiting]
        self._sent.clear()
        self._sent_bytes = 0
        self._waiting.clear()
        return left

"""Requests without a reply, over all sessions of a device."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from edgeflare.devices.session.replies import Reply
from edgeflare.types import Query
from edgeflare_agent.decoding import RawOutput

MAX_DEATHS = 3
"""A request fails after the agent has died on it this number of times in a row."""


@dataclass(eq=False)
class PendingRequest:
    """One request.

    `read` makes the caller's answer of a raw output; `deaths`: how often the agent died at it.

    `future` can't be cancelled. The deaths are those in a row.
    """

    id: int
    samples: Sequence[Query]
    read: Callable[[RawOutput], Any] | None
    future: "Future[Reply[Any]]" = field(default_factory=Future)
    deaths: int = 0
    sent_at: float | None = None
    in_flight: bool = False


class PendingRequests:
    """Holds requests in the order they came, until each is taken; no locks, no threads.

    Only the caller that takes a request settles its future. The agent works in order, so the oldest
    in-flight request is the one it worked on when it died. Before its last attempt such a request
    is sent alone, so that no other request, and hardly any cut of the link, is counted against it.
    """

    def __init__(self) -> None:
        self._requests: dict[int, PendingRequest] = {}
        self._unsent: deque[PendingRequest] = deque()
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._requests)

    @property
    def sent_count(self) -> int:
        """How many were sent at least once."""
        return sum(request.sent_at is not None for request in self._requests.values())

    def add(
        self, samples: Sequence[Query], read: Callable[[RawOutput], Any] | None
    ) -> PendingRequest:
        """Add a request, to be sent after all others."""
        self._last_id += 1
        request = PendingRequest(self._last_id, samples, read)
        request.future.set_running_or_notify_cancel()
        self._requests[request.id] = request
        self._unsent.append(request)
        return request

    def send_next(self, now: float) -> PendingRequest | None:
        """Mark the next request as sent; return it, None if none is queued or one must be alone."""
        while self._unsent and self._unsent[0].id not in self._requests:
            self._unsent.popleft()
        if not self._unsent:
            return None
        oldest = next(iter(self._requests.values()))
        if oldest.in_flight and oldest.deaths == MAX_DEATHS - 1:
            return None
        request = self._unsent.popleft()
        request.sent_at = now
        request.in_flight = True
        return request

    def take(self, request: PendingRequest) -> bool:
        """Remove a request; False where it was removed before."""
        return self._requests.pop(request.id, None) is not None

    def requeue(self, *, died: bool) -> PendingRequest | None:
        """Queue all requests again after a lost session.

        Remove and return the one that failed too often, if any.

        `died`: whether the agent died, as far as is known.
        """
        given_up = None
        oldest = next(iter(self._requests.values()), None)
        if oldest is not None and oldest.in_flight:
            oldest.deaths = oldest.deaths + 1 if died else 0
            if oldest.deaths == MAX_DEATHS:
                given_up = self._requests.pop(oldest.id)
        self._unsent = deque(self._requests.values())
        for request in self._unsent:
            request.in_flight = False
        return given_up

    def drain(self) -> list[PendingRequest]:
        """Remove and return all requests."""
        left = list(self._requests.values())
        self._requests.clear()
        self._unsent.clear()
        return left

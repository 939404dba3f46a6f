"""Requests without a reply, over all sessions of a device."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from edgeflare.devices.session.replies import Reply
from edgeflare.types import Sample
from edgeflare_agent.decoding import RawOutput

DEATHS = 3
"""A request fails after the agent has died on it so many times in a row."""


@dataclass(eq=False)
class Kept:
    """One request. `read` makes of a raw output what the caller is to have; `deaths`: how often the agent died at it.

    `future` can't be cancelled. The deaths are those in a row.
    """

    id: int
    samples: Sequence[Sample]
    read: Callable[[RawOutput], Any] | None
    future: "Future[Reply[Any]]" = field(default_factory=Future)
    deaths: int = 0
    sent_at: float | None = None
    under_way: bool = False


class PendingRequests:
    """Holds requests in the order they came, until each is taken; no locks, no threads.

    Only the caller that takes a request settles its future. The agent works in order, so the oldest in-flight
    request is the one it worked on when it died. Before its last attempt such a request is sent alone, so that
    no other request, and hardly any cut of the link, is counted against it.
    """

    def __init__(self) -> None:
        self._kept: dict[int, Kept] = {}
        self._unsent: deque[Kept] = deque()
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def sent_before(self) -> int:
        """How many were sent at least once."""
        return sum(kept.sent_at is not None for kept in self._kept.values())

    def add(self, samples: Sequence[Sample], read: Callable[[RawOutput], Any] | None) -> Kept:
        """Add a request, to be sent after all others."""
        self._last_id += 1
        kept = Kept(self._last_id, samples, read)
        kept.future.set_running_or_notify_cancel()
        self._kept[kept.id] = kept
        self._unsent.append(kept)
        return kept

    def send_next(self, now: float) -> Kept | None:
        """Mark the next request as sent and return it; None where none is queued or one must be alone."""
        while self._unsent and self._unsent[0].id not in self._kept:
            self._unsent.popleft()
        if not self._unsent:
            return None
        oldest = next(iter(self._kept.values()))
        if oldest.under_way and oldest.deaths == DEATHS - 1:
            return None
        kept = self._unsent.popleft()
        kept.sent_at = now
        kept.under_way = True
        return kept

    def take(self, kept: Kept) -> bool:
        """Remove a request; False where it was removed before."""
        return self._kept.pop(kept.id, None) is not None

    def lost(self, *, died: bool) -> Kept | None:
        """Queue all requests again after a lost session; remove and return the one that failed too often, if any.

        `died`: whether the agent died, as far as is known.
        """
        given_up = None
        oldest = next(iter(self._kept.values()), None)
        if oldest is not None and oldest.under_way:
            oldest.deaths = oldest.deaths + 1 if died else 0
            if oldest.deaths == DEATHS:
                given_up = self._kept.pop(oldest.id)
        self._unsent = deque(self._kept.values())
        for kept in self._unsent:
            kept.under_way = False
        return given_up

    def drain(self) -> list[Kept]:
        """Remove and return all requests."""
        left = list(self._kept.values())
        self._kept.clear()
        self._unsent.clear()
        return left

"""Writes results one at a time in a thread of its own, which Ctrl-C does not interrupt."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Generic

from edgeflare.scheduler.job import R

_MOST_WAITING = 64


class Keeper(AbstractContextManager["Keeper[R]"], Generic[R]):
    """Calls `keep(result, device)` for each result; leaving the context waits for all of them.

    An error of the callback is raised in the thread that calls `keep`, `check` or leaves.
    """

    def __init__(self, keep: Callable[[R, str], None]) -> None:
        self._keep = keep
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="edgeflare-result")
        self._pending: deque[Future[None]] = deque()

    def keep(self, result: R, device: str) -> None:
        """Queue a result; waits only where many are queued already."""
        self._pending.append(self._thread.submit(self._keep, result, device))
        self.check()
        while len(self._pending) > _MOST_WAITING:
            self._pending.popleft().result()

    def check(self) -> None:
        """Raise the error of a callback that failed."""
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=True)
        if error is None:
            self.check()

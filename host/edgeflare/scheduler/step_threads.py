"""The threads that run the jobs' steps and ask the original model, several jobs' inputs at once."""

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeAlias, TypeVar

from edgeflare.types import Query

_SLOW_S = 0.002
"""Mean seconds of a step or an answer from which on another thread is woken, where one is idle."""
_TOGETHER_S = 0.004
_MOST_TOGETHER = 12
_RECENT = 0.1
_BRIEF_S = 0.0003
"""Mean seconds of the original's answer up to which one thread works alone: two would wait for each
other's use of the interpreter for longer than for the original."""


class HostRequest(Protocol):
    """A job's request that the original model is to answer."""

    @property
    def samples(self) -> Sequence[Query]: ...  # noqa: D102


Q = TypeVar("Q", bound=HostRequest)
_Step: TypeAlias = Callable[[], float]


class StepThreads(Generic[Q]):
    """Runs steps, the one of the lowest number first, and `ask_original` on requests, in threads.

    A thread calls `before_waiting` after steps, before it asks the original or waits for work.

    A step returns the processor seconds that it took, `ask_original` those of the original's answer
    to one sample. Where that answers quickly, the requests of up to 12 jobs are gathered before it is asked
    about them; a slow one is asked about each alone, by several threads at once. While all that
    there is to do takes less than 2 ms at a time, one thread does it without waking
    another, and others that work stop where the original answers within 0.3 ms: `unblock`, to be
    called every few milliseconds, wakes another where it was wrong.
    """

    def __init__(
        self,
        count: int,
        ask_original: Callable[[Sequence[Q]], float],
        before_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask_original = ask_original
        self._before_waiting = before_waiting
        self._changed = threading.Condition()
        self._steps: list[tuple[int, int, _Step]] = []
        self._requests: list[tuple[int, int, Q]] = []
        self._serial = itertools.count()
        self._taken = self._taken_before = 0
        self._idle = 0
        self._ended = False
        self._mean_step_s = _SLOW_S
        self._mean_answer_s = _TOGETHER_S
        self._threads = [
            threading.Thread(target=self._work, name=f"edgeflare-step-{index}", daemon=True)
            for index in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def run(self, number: int, step: _Step) -> None:
        """Run a step, which must not raise, soon; returns without waiting."""
        with self._changed:
            heapq.heappush(self._steps, (number, next(self._serial), step))
            self._wake()

    def ask(self, number: int, request: Q) -> None:
        """Ask the original about a request soon; returns without waiting."""
        with self._changed:
            heapq.heappush(self._requests, (number, next(self._serial), request))
            self._wake()

    @property
    def backlog(self) -> int:
        """Number of steps and requests that wait for a thread."""
        return len(self._steps) + len(self._requests)

    def unblock(self) -> None:
        """Wake another thread where none has taken anything since the last call."""
        with self._changed:
            if self._taken == self._taken_before and (self._steps or self._requests):
                self._mean_step_s = max(self._mean_step_s, _SLOW_S)
                self._changed.notify()
            self._taken_before = self._taken

    def end(self, *, drop: bool = False, patience_s: float | None = None) -> None:
        """End the threads, once all is done or, with `drop`, what was begun; wait `patience_s` at most."""
        with self._changed:
            self._ended = True
            if drop:
                self._steps.clear()
                self._requests.clear()
            self._changed.notify_all()
        until = None if patience_s is None else time.monotonic() + patience_s
        for thread in self._threads:
            thread.join(None if until is None else max(0.0, until - time.monotonic()))

    def _wake(self) -> None:
        """Wake an idle thread where all are idle, or what they work on takes long."""
        slow = max(self._mean_step_s, self._mean_answer_s) >= _SLOW_S
        if self._idle and (slow or self._idle == len(self._threads)):
            self._changed.notify()

    def _is_surplus(self) -> bool:
        """Whether another thread works already that one is enough."""
        return (
            self._idle < len(self._threads) - 1
            and self._mean_step_s < _SLOW_S
            and self._mean_answer_s < _BRIEF_S
            and not self._ended
        )

    def _work(self) -> None:
        stepped = False
        while True:
            step: _Step | None = None
            batch: list[Q] = []
            with self._changed:
                while not (self._steps or self._requests) or self._is_surplus():
                    if stepped:  # what its steps have held is sent before this thread waits
                        break
                    if self._ended and not (self._steps or self._requests):
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                else:
                    self._taken += 1
                    together = max(1, min(_MOST_TOGETHER, int(_TOGETHER_S / self._mean_answer_s)))
                    if self._steps and len(self._requests) < together:
                        *_, step = heapq.heappop(self._steps)
                    else:
                        batch = self._take_batch(together)
            if step is not None:
                self._mean_step_s += _RECENT * (step() - self._mean_step_s)
                stepped = True
                continue
            if stepped:
                self._before_waiting()
                stepped = False
            if batch:
                each_s = self._ask_original(batch)
                self._mean_answer_s += _RECENT * (each_s - self._mean_answer_s)

    def _take_batch(self, together: int) -> list[Q]:
        """Remove and return the oldest requests, with no more samples than `together`, or one."""
        *_, first = heapq.heappop(self._requests)
        batch, count = [first], len(first.samples)
        while self._requests and count + len(self._requests[0][2].samples) <= together:
            *_, request = heapq.heappop(self._requests)
            batch.append(request)
            count += len(request.samples)
        return batch

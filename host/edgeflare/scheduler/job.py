"""A job: a generator of requests to the models that returns a result. And queues of jobs."""

from collections.abc import Generator, Iterator
from typing import Generic, Protocol, TypeAlias, TypeVar

from edgeflare.scheduler.budget import Counters
from edgeflare.types import Answer, Ask

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Life: TypeAlias = Generator[Ask, Answer, R]
"""Yields requests, is sent the answers, returns the result.

`InferenceFailedError` is thrown into it where the device or the original can't answer on an input.
"""


class Job(Protocol[R_co]):
    """One piece of work for one device; touched by one worker at a time.

    `seconds_count` says whether time spent now goes to ``counters.seconds``. `held_bytes` estimates its
    memory while it waits for a device.
    """

    counters: Counters
    seconds_count: bool

    @property
    def held_bytes(self) -> int: ...  # noqa: D102

    def live(self) -> Generator[Ask, Answer, R_co]:
        """Start, or start again: a job that was moved to another device begins anew."""
        ...


class Feed(Generic[R]):
    """An ordered queue of jobs that devices share; jobs given back come first. For one thread."""

    def __init__(self, jobs: Iterator[Job[R]]) -> None:
        self._jobs = jobs
        self._returned: list[Job[R]] = []
        self._dry = False

    def take(self) -> Job[R] | None:
        """Return the next job, or None."""
        if self._returned:
            return self._returned.pop(0)
        job = None if self._dry else next(self._jobs, None)
        self._dry = self._dry or job is None
        return job

    def give_back(self, job: Job[R]) -> None:
        """Return an unfinished job to the queue."""
        self._returned.append(job)

    @property
    def left(self) -> bool:
        """Whether there is another job; may take one from the iterator."""
        if not self._returned and (job := self.take()) is not None:
            self._returned.append(job)
        return bool(self._returned)

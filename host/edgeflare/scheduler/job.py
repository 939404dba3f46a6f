"""What the scheduler drives: something that asks models and, in the end, has a result."""

from collections.abc import Generator, Iterator
from typing import Generic, Protocol, TypeAlias, TypeVar

from edgeflare.scheduler.budget import Counters
from edgeflare.types import Answer, Ask

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Life: TypeAlias = Generator[Ask, Answer, R]
"""Yields what is to be asked, is sent the answers, returns the result.

Where the device or the original can't answer on an input, `InferenceFailedError` is thrown into it.
"""


class Job(Protocol[R_co]):
    """One piece of work for one device; touched by one worker at a time.

    `seconds_count` says whether time spent now goes to ``counters.seconds``. `held_bytes` is about what it
    may hold in memory while it waits for a device.
    """

    counters: Counters
    seconds_count: bool

    @property
    def held_bytes(self) -> int: ...  # noqa: D102

    def live(self) -> Generator[Ask, Answer, R_co]:
        """Begin, also for a second time: a job that was moved to another device starts again."""
        ...


class Feed(Generic[R]):
    """Jobs in order, for the devices that share it; jobs given back come first. For one thread."""

    def __init__(self, jobs: Iterator[Job[R]]) -> None:
        self._jobs = jobs
        self._returned: list[Job[R]] = []
        self._dry = False

    def take(self) -> Job[R] | None:
        """Return the next job, None where there is none at the moment."""
        if self._returned:
            return self._returned.pop(0)
        job = None if self._dry else next(self._jobs, None)
        self._dry = self._dry or job is None
        return job

    def give_back(self, job: Job[R]) -> None:
        """Take a job back that was not done."""
        self._returned.append(job)

    @property
    def left(self) -> bool:
        """Whether there is another job; looks one ahead."""
        if not self._returned and (job := self.take()) is not None:
            self._returned.append(job)
        return bool(self._returned)

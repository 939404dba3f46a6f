"""One device of a run: its running jobs and whether it may start more."""

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Generic, Protocol

from edgeflare.devices import Reply, State
from edgeflare.errors import DeviceAwayError
from edgeflare.scheduler.budget import FleetLimits
from edgeflare.scheduler.gathering import Gathering, Held
from edgeflare.scheduler.job import Feed, Job, Life, R
from edgeflare.types import Output, Sample

MOST_JOBS = 512
MOST_BATCHED_BYTES = 256 << 20
"""Memory limit of all jobs that wait together, on all devices."""
_FEWEST_GATHERED = 16


class Deployed(Protocol):
    """The deployed model on one device; requests are answered in any order.

    `depth` requests in flight keep it busy. `away_s`: for how long it has not been reached; `detail`
    says why. After `withdraw` pending requests fail with DeviceAwayError.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def depth(self) -> int: ...  # noqa: D102

    @property
    def state(self) -> State: ...  # noqa: D102

    @property
    def away_s(self) -> float: ...  # noqa: D102

    @property
    def detail(self) -> str: ...  # noqa: D102

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply[Output]]":
        """Queue a request without waiting for anything."""
        ...

    def withdraw(self) -> None:
        """Fail what is pending."""
        ...


class Running(Generic[R]):
    """A running job; `number` is the order of its start, over all devices."""

    def __init__(self, job: Job[R], lane: "Lane[R]", number: int) -> None:
        self.job = job
        self.number = number
        self.lane = lane
        self.life: Life[R] = job.live()


class Lane(Generic[R]):
    """A device and the feed it takes jobs from; `spare` more jobs run than requests are in flight.

    With `gathers` the jobs' requests are held until `gathered` returns them, to be sent together. Then, unless
    `concurrency` says how many, up to 512 jobs run at once, or as many fewer as hold `memory` bytes
    among them by the largest so far, but at least 16.
    """

    def __init__(
        self,
        device: Deployed,
        feed: Feed[R],
        limits: FleetLimits,
        *,
        shares_feed: bool,
        concurrency: int | None,
        spare: int,
        asked: int = 0,
        gathers: bool = False,
        memory: int = MOST_BATCHED_BYTES,
    ) -> None:
        self.device = device
        self.feed = feed
        self.shares_feed = shares_feed
        self.gathers = gathers
        self.running: set[Running[R]] = set()
        self._limits = limits
        self._concurrency = concurrency
        self._spare = spare
        self._asked = asked
        self._lock = threading.Lock()
        self._memory = memory
        self._most_held = 1
        self._gathering = Gathering(device.submit, self._count) if gathers else None

    def begin(self, job: Job[R], number: int) -> "Running[R]":
        """Start a job."""
        running = Running(job, self, number)
        self.running.add(running)
        self._most_held = max(self._most_held, job.held_bytes)
        return running

    @property
    def asked(self) -> int:
        """Number of inputs sent to the device."""
        with self._lock:
            return self._asked

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply[Output]]":
        """Send a request to the device, and count it; or hold it."""
        if self._gathering is not None:
            return self._gathering.add(samples)
        self._count(samples)
        return self.device.submit(samples)

    def gathered(self) -> Sequence[Held]:
        """Remove, count and return the held requests if every running job waits for the device; else none."""
        if self._gathering is None or self._gathering.waiting < len(self.running):
            return ()
        held = self._gathering.take()
        for one in held:
            self._count(one.samples)
        return held

    def send(self, held: Sequence[Held]) -> None:
        """Send requests that `gathered` returned."""
        if self._gathering is not None:
            self._gathering.send(held)

    def _count(self, samples: Sequence[Sample]) -> None:
        with self._lock:
            self._asked += len(samples)

    def withdraw(self) -> None:
        """Fail the device's pending and held requests with DeviceAwayError."""
        self.device.withdraw()
        if self._gathering is not None:
            self._gathering.give_up(DeviceAwayError(f"{self.device.name} is away"))

    @property
    def up(self) -> bool:
        """Whether the device answers."""
        return self.device.state is State.UP

    @property
    def spent(self) -> bool:
        """Whether the device's own budget is used up."""
        limit = self._limits.device_queries
        return limit is not None and self.asked >= limit

    @property
    def fill(self) -> float:
        """Running jobs divided by those needed to keep the device busy; 1.0: full."""
        wanted = self._concurrency or self._busy
        if self.gathers and self._limits.device_queries is not None:
            wanted = max(1, min(wanted, self._limits.device_queries - self.asked))
        return len(self.running) / wanted

    @property
    def _busy(self) -> int:
        """How many jobs keep the device busy, limited by memory."""
        if not self.gathers:
            return min(MOST_JOBS, self.device.depth + self._spare)
        return max(_FEWEST_GATHERED, min(MOST_JOBS, self._memory // self._most_held))

    @property
    def can_take(self) -> bool:
        """Whether another job may begin here now."""
        return self.up and not self.spent and self.fill < 1.0 and self.feed.left

    @property
    def useful(self) -> bool:
        """Whether it has jobs, or would start some once it is up."""
        if self.device.state is State.RETIRED:
            return False
        return bool(self.running) or (self.feed.left and not self.spent)

    def should_hand_over(self, others_up: bool) -> bool:
        """Whether its running jobs should start again on another device."""
        return (
            self.shares_feed
            and others_up
            and bool(self.running)
            and not self.up
            and self.device.away_s >= self._limits.handover_s
        )

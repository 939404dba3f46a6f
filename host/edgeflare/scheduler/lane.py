"""One device in a run: what it works on and what it may take."""

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
GATHERED_BYTES = 256 << 20
"""What all jobs that wait together, on all devices, may hold in memory."""
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
    """A job under way on a lane; `number` is that of its beginning, over all lanes."""

    def __init__(self, job: Job[R], lane: "Lane[R]", number: int) -> None:
        self.job = job
        self.number = number
        self.lane = lane
        self.life: Life[R] = job.live()


class Lane(Generic[R]):
    """A device with the feed it takes jobs from; `spare` jobs wait on the host beside those on the wire.

    With `gathers` the jobs' questions are held until `gathered` gives them, to be sent together. Then, unless
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
        memory: int = GATHERED_BYTES,
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
        """Take a job on."""
        running = Running(job, self, number)
        self.running.add(running)
        self._most_held = max(self._most_held, job.held_bytes)
        return running

    @property
    def asked(self) -> int:
        """Inputs given to the device."""
        with self._lock:
            return self._asked

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply[Output]]":
        """Ask the device, and count; or hold the question back."""
        if self._gathering is not None:
            return self._gathering.hold(samples)
        self._count(samples)
        return self.device.submit(samples)

    def gathered(self) -> Sequence[Held]:
        """Take out what is held, and count it, where every job under way waits for the device."""
        if self._gathering is None or self._gathering.waiting < len(self.running):
            return ()
        held = self._gathering.take()
        for one in held:
            self._count(one.samples)
        return held

    def send(self, held: Sequence[Held]) -> None:
        """Send what was gathered."""
        if self._gathering is not None:
            self._gathering.send(held)

    def _count(self, samples: Sequence[Sample]) -> None:
        with self._lock:
            self._asked += len(samples)

    def withdraw(self) -> None:
        """Fail what the device was asked, and what is held for it, with DeviceAwayError."""
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
        """Jobs under way against those that keep the device busy; 1.0: enough."""
        wanted = self._concurrency or self._busy
        if self.gathers and self._limits.device_queries is not None:
            wanted = max(1, min(wanted, self._limits.device_queries - self.asked))
        return len(self.running) / wanted

    @property
    def _busy(self) -> int:
        """How many jobs keep the device busy, within what memory there is for them."""
        if not self.gathers:
            return min(MOST_JOBS, self.device.depth + self._spare)
        return max(_FEWEST_GATHERED, min(MOST_JOBS, self._memory // self._most_held))

    @property
    def can_take(self) -> bool:
        """Whether another job may begin here now."""
        return self.up and not self.spent and self.fill < 1.0 and self.feed.left

    @property
    def useful(self) -> bool:
        """Whether, up again, it would have something to do."""
        if self.device.state is State.RETIRED:
            return False
        return bool(self.running) or (self.feed.left and not self.spent)

    def should_hand_over(self, others_up: bool) -> bool:
        """Whether what it has begun is better begun again elsewhere."""
        return (
            self.shares_feed
            and others_up
            and bool(self.running)
            and not self.up
            and self.device.away_s >= self._limits.handover_s
        )

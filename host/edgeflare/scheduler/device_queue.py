"""One device of a run: its running jobs and whether it may start more."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Generic, NamedTuple, Protocol

from edgeflare.devices import DeviceState, Reply
from edgeflare.errors import DeviceAwayError, EdgeFlareError, InferenceFailedError
from edgeflare.scheduler.job import Feed, FleetLimits, Job, JobRun, R
from edgeflare.types import Output, Sample

MOST_SAMPLES = 2048
"""Samples in one request, so that its reply stays within the wire's bounds even with 20 000 classes."""
MOST_BYTES = 32 << 20
"""Bytes in one request: an eighth of the wire's bound on a body, and little for a device's memory."""


class Held(NamedTuple):
    """One job's request and the future of its reply."""

    samples: Sequence[Sample]
    future: "Future[Reply[Output]]"


class RequestBatcher:
    """Collects requests and sends them together through `submit`; safe to use from several threads.

    The caller of `take` must settle the futures it gets, by `send`. Replies and errors are those that each
    request would have alone: if the device can't answer a combined request, its parts are sent again one by one, and
    `on_resend` is called with those samples first, to count them.
    """

    def __init__(
        self,
        submit: "Callable[[Sequence[Sample]], Future[Reply[Output]]]",
        on_resend: Callable[[Sequence[Sample]], None],
    ) -> None:
        self._submit = submit
        self._on_resend = on_resend
        self._held: list[Held] = []
        self._lock = threading.Lock()

    def add(self, samples: Sequence[Sample]) -> "Future[Reply[Output]]":
        """Add a request; return the future of its reply."""
        future: Future[Reply[Output]] = Future()
        with self._lock:
            self._held.append(Held(samples, future))
        return future

    @property
    def waiting(self) -> int:
        """Number of requests held."""
        return len(self._held)

    def take(self) -> list[Held]:
        """Remove and return all requests, in the order they came."""
        with self._lock:
            held, self._held = self._held, []
        return held

    def send(self, held: Sequence[Held]) -> None:
        """Send requests that were taken, combined into as few as fit; returns without waiting."""
        for part in parts(held):
            self._send_as_one(part)

    def give_up(self, error: EdgeFlareError) -> None:
        """Fail the requests that are held."""
        _fail(self.take(), error)

    def _send_as_one(self, part: Sequence[Held]) -> None:
        try:
            pending = self._submit([sample for one in part for sample in one.samples])
        except BaseException as error:  # noqa: BLE001 - every job of the request gets it
            _fail(part, error)
            return
        pending.add_done_callback(partial(self._answered, part))

    def _answered(self, part: Sequence[Held], pending: "Future[Reply[Output]]") -> None:
        """Give every request its share of the reply (in the link's thread)."""
        error = pending.exception()
        if isinstance(error, InferenceFailedError) and len(part) > 1:
            self._on_resend([sample for one in part for sample in one.samples])
            for one in part:
                self._send_as_one([one])
        elif error is not None:
            _fail(part, error)
        else:
            reply = pending.result()
            begin = 0
            for samples, future in part:
                end = begin + len(samples)
                future.set_result(Reply(reply.outputs[begin:end], reply.seconds[begin:end]))
                begin = end


def parts(
    held: Iterable[Held], most_samples: int = MOST_SAMPLES, most_bytes: int = MOST_BYTES
) -> Iterator[list[Held]]:
    """Group requests, in their order, within both limits.

    A request is never divided; one that is over a limit by itself is a group of its own.
    """
    part: list[Held] = []
    samples = size = 0
    for one in held:
        more = sum(sample.nbytes for sample in one.samples)
        over = samples + len(one.samples) > most_samples or size + more > most_bytes
        if part and over:
            yield part
            part, samples, size = [], 0, 0
        part.append(one)
        samples += len(one.samples)
        size += more
    if part:
        yield part


def _fail(held: Sequence[Held], error: BaseException) -> None:
    for one in held:
        one.future.set_exception(error)


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
    def state(self) -> DeviceState: ...  # noqa: D102

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

    def __init__(self, job: Job[R], lane: "DeviceQueue[R]", number: int) -> None:
        self.job = job
        self.number = number
        self.lane = lane
        self.generator: JobRun[R] = job.run()


class DeviceQueue(Generic[R]):
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
        self._gathering = RequestBatcher(device.submit, self._count) if gathers else None

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
        with self._lock:
            self._asked += len(samples)
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
        return self.device.state is DeviceState.UP

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
        if self.device.state is DeviceState.RETIRED:
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

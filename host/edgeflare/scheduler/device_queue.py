"""One device of a run: its running jobs and whether it may start more."""

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Generic, Protocol, TypeAlias

from edgeflare.devices import DeviceState, Reply
from edgeflare.errors import DeviceAwayError, EdgeFlareError, InferenceFailedError
from edgeflare.scheduler.job import Feed, FleetLimits, Job, JobRun, R
from edgeflare.types import Output, Query

MOST_SAMPLES = 2048
"""Samples in one request: its reply stays within the wire's bounds even with 20 000 classes."""
MOST_BYTES = 32 << 20
"""Bytes in one request: an eighth of the wire's bound on a body, little for a device."""


BatchedRequest: TypeAlias = "tuple[Sequence[Query], Future[Reply[Output]]]"
"""The samples of one job's request, and the future of its reply."""


class RequestBatcher:
    """Collects requests and sends them together through `submit`; safe to use from several threads.

    The futures of what `take` returns are settled by `send`. Each request gets the reply or error
    that it would get alone: where the device can't answer a combined request, its parts are sent
    again one by one, after a call of `on_resend` with their samples.
    """

    def __init__(
        self,
        submit: "Callable[[Sequence[Query]], Future[Reply[Output]]]",
        on_resend: Callable[[Sequence[Query]], None],
    ) -> None:
        self._submit = submit
        self._on_resend = on_resend
        self._requests: list[BatchedRequest] = []
        self._lock = threading.Lock()

    def add(self, samples: Sequence[Query]) -> "Future[Reply[Output]]":
        """Add a request; return the future of its reply."""
        future: Future[Reply[Output]] = Future()
        with self._lock:
            self._requests.append((samples, future))
        return future

    @property
    def count_waiting(self) -> int:
        """Number of requests held."""
        return len(self._requests)

    @property
    def samples_waiting(self) -> int:
        """Number of samples of the requests held."""
        return sum(len(samples) for samples, _ in tuple(self._requests))

    def take(self) -> list[BatchedRequest]:
        """Remove and return all requests, in the order they came."""
        with self._lock:
            batch, self._requests = self._requests, []
        return batch

    def send(self, batch: Sequence[BatchedRequest]) -> None:
        """Send requests that were taken, combined into as few as fit; returns without waiting."""
        for part in parts(batch):
            self._send_as_one(part)

    def give_up(self, error: EdgeFlareError) -> None:
        """Fail the requests that are held."""
        _fail(self.take(), error)

    def _send_as_one(self, part: Sequence[BatchedRequest]) -> None:
        try:
            pending = self._submit([sample for samples, _ in part for sample in samples])
        except BaseException as error:  # noqa: BLE001 - every job of the request gets it
            _fail(part, error)
            return
        pending.add_done_callback(partial(self._answered, part))

    def _answered(self, part: Sequence[BatchedRequest], pending: "Future[Reply[Output]]") -> None:
        """Give every request its share of the reply (in the link's thread)."""
        error = pending.exception()
        if isinstance(error, InferenceFailedError) and len(part) > 1:
            self._on_resend([sample for samples, _ in part for sample in samples])
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
    batch: Iterable[BatchedRequest], most_samples: int = MOST_SAMPLES, most_bytes: int = MOST_BYTES
) -> Iterator[list[BatchedRequest]]:
    """Group requests, in their order, within both limits.

    A request is never divided; one that is over a limit by itself is a group of its own.
    """
    part: list[BatchedRequest] = []
    count = size = 0
    for samples, future in batch:
        more = sum(sample.nbytes for sample in samples)
        over = count + len(samples) > most_samples or size + more > most_bytes
        if part and over:
            yield part
            part, count, size = [], 0, 0
        part.append((samples, future))
        count += len(samples)
        size += more
    if part:
        yield part


def _fail(batch: Sequence[BatchedRequest], error: BaseException) -> None:
    for _, future in batch:
        future.set_exception(error)


_TOGETHER_S = 0.004
_MOST_TOGETHER = 12
_RECENT = 0.1
_LEAST_S = 1e-6
MOST_JOBS = 512
MOST_BATCHED_BYTES = 256 << 20
"""Memory limit of all jobs that wait together, on all devices."""
_LEAST_BATCHED_JOBS = 16


class Deployed(Protocol):
    """The deployed model on one device; requests are answered in any order.

    `depth` requests in flight keep it busy. `away_s`: for how long it has not been reached,
    `detail`: why. After `withdraw` pending requests fail with DeviceAwayError; after `give_up` it is
    RETIRED, and they fail with that error.
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

    def submit(self, samples: Sequence[Query]) -> "Future[Reply[Output]]":
        """Queue a request without waiting for anything."""
        ...

    def withdraw(self) -> None:
        """Fail what is pending."""
        ...

    def give_up(self, error: EdgeFlareError) -> None:
        """Send nothing there any more."""
        ...


class RunningJob(Generic[R]):
    """A running job; `number` is the order of its start, over all devices."""

    def __init__(self, job: Job[R], queue: "DeviceQueue[R]", number: int) -> None:
        self.job = job
        self.number = number
        self.queue = queue
        self.generator: JobRun[R] = job.run()
        self.asked = 0
        """Number of inputs that it gave to the device."""
        self.has_turn = True
        """Whether it goes on by itself; else it waits for another job."""

    @property
    def most_left(self) -> int | None:
        """Number of inputs that it may still give to the device; None: nobody knows."""
        most = self.job.most_queries
        return None if most is None else max(0, most - self.asked)


class DeviceQueue(Generic[R]):
    """A device and the feed it takes jobs from; `spare` more jobs run than requests are in flight.

    With the limits' `one_trip` the jobs' requests wait until `take_batch` returns them, to be sent together.
    Then, without `concurrency`, up to 512 jobs run at once, limited to `memory` bytes by the
    largest so far, but at least 16. `at_limit`: a limit on queries lets no other job begin here.

    Without `batches` a quick device's requests wait for `flush`, or until they have as many samples
    as it answers within 4 ms, at most 12. No longer so after it could not answer such a request.
    """

    def __init__(
        self,
        device: Deployed,
        feed: Feed[R],
        limits: FleetLimits,
        *,
        shares_feed: bool,
        spare: int,
        memory: int = MOST_BATCHED_BYTES,
    ) -> None:
        self.device = device
        self.feed = feed
        self.shares_feed = shares_feed
        self.batches = limits.one_trip
        self.at_limit = False
        self.running: set[RunningJob[R]] = set()
        self._limits = limits
        self._spare = spare
        self._asked = limits.asked.get(device.name, 0)
        self._lock = threading.Lock()
        self._memory = memory
        self._largest_job_bytes = 1
        self._batcher = RequestBatcher(device.submit, self._count_again)
        self._mean_s = _TOGETHER_S
        self._mean_together = 1.0
        self._each_alone = False

    def begin(self, job: Job[R], number: int) -> "RunningJob[R]":
        """Start a job."""
        running = RunningJob(job, self, number)
        self.running.add(running)
        self._largest_job_bytes = max(self._largest_job_bytes, job.held_bytes)
        return running

    @property
    def asked(self) -> int:
        """Number of inputs that the device was given, or will be with the next batch."""
        with self._lock:
            return self._asked

    def submit(self, samples: Sequence[Query]) -> "Future[Reply[Output]]":
        """Count a request and send it to the device, or add it to those that are held."""
        self._count(samples)
        if self.batches:
            return self._batcher.add(samples)
        together = min(_MOST_TOGETHER, int(_TOGETHER_S / self._mean_s))
        if self._each_alone or together < 2:
            return self.device.submit(samples)
        future = self._batcher.add(samples)
        if self._batcher.samples_waiting >= together:
            self.flush()
        return future

    def flush(self) -> None:
        """Send the requests that are held, but for those of a batch."""
        if not self.batches and self._batcher.count_waiting and (held := self._batcher.take()):
            self._mean_together += _RECENT * (len(held) - self._mean_together)
            self._batcher.send(held)

    def record_seconds(self, seconds: Sequence[float]) -> None:
        """Record the device's seconds for each sample of a reply."""
        for second in seconds:
            self._mean_s += _RECENT * (max(second, _LEAST_S) - self._mean_s)

    def take_batch(self) -> Sequence[BatchedRequest]:
        """Remove and return the held requests if all running jobs wait for them."""
        active = sum(one.has_turn for one in self.running)
        if not self.batches or self._batcher.count_waiting < active:
            return ()
        return self._batcher.take()

    def send(self, batch: Sequence[BatchedRequest]) -> None:
        """Send requests that `take_batch` returned."""
        self._batcher.send(batch)

    def _count(self, samples: Sequence[Query]) -> None:
        with self._lock:
            self._asked += len(samples)

    def _count_again(self, samples: Sequence[Query]) -> None:
        self._each_alone = True
        self._count(samples)

    def withdraw(self) -> None:
        """Fail the device's pending and held requests with DeviceAwayError."""
        self.device.withdraw()
        self._batcher.give_up(DeviceAwayError(f"{self.device.name} is away"))

    @property
    def up(self) -> bool:
        """Whether the device answers."""
        return self.device.state is DeviceState.UP

    @property
    def fill(self) -> float:
        """Running jobs divided by those needed to keep the device busy; 1.0: full."""
        return len(self.running) / (self._limits.concurrency or self._jobs_wanted)

    @property
    def _jobs_wanted(self) -> int:
        """How many jobs keep the device busy, limited by memory."""
        if not self.batches:
            together = math.ceil(self._mean_together)
            return min(MOST_JOBS, self.device.depth * together + self._spare)
        return max(_LEAST_BATCHED_JOBS, min(MOST_JOBS, self._memory // self._largest_job_bytes))

    @property
    def can_take(self) -> bool:
        """Whether another job may begin here now."""
        return self.up and not self.at_limit and self.fill < 1.0 and self.feed.left

    @property
    def useful(self) -> bool:
        """Whether it has jobs, or would start some once it is up."""
        if self.device.state is DeviceState.RETIRED:
            return False
        return bool(self.running) or (self.feed.left and not self.at_limit)

    def should_hand_over(self, others_up: bool) -> bool:
        """Whether its running jobs should start again on another device."""
        return (
            self.shares_feed
            and others_up
            and bool(self.running)
            and not self.up
            and self.device.away_s >= self._limits.handover_s
        )

"""Runs many jobs at once on one original model and the deployed model on one or more devices."""

import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Generic, NamedTuple, Protocol

from edgeflare.devices import DeviceState, Reply
from edgeflare.errors import DeviceAwayError, DeviceError, InferenceFailedError
from edgeflare.oracles import Oracle
from edgeflare.scheduler.device_queue import (
    MOST_BATCHED_BYTES,
    Deployed,
    DeviceQueue,
    Held,
    Running,
)
from edgeflare.scheduler.job import Feed, FleetLimits, Job, R
from edgeflare.types import Answer, Ask, Decision, Output, Outputs, Sample

_MOST_WAITING = 64


class ResultWriter(AbstractContextManager["ResultWriter[R]"], Generic[R]):
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


_LAST_STEPS_S = 2.0
"""How long a stopping run waits for steps in progress: an original may take minutes to answer."""


class Original(Protocol):
    """The original model; called from several worker threads at once."""

    def answer(self, samples: Sequence[Sample]) -> tuple[Sequence[Output], Sequence[float]]:
        """Return one answer a sample, scores or a transcript, and the seconds that each took elsewhere than in this thread.

        Raises InferenceFailedError where it can't.
        """
        ...


class _Done(NamedTuple, Generic[R]):
    running: Running[R]
    result: R


class _Lost(NamedTuple, Generic[R]):
    """A job whose device is lost."""

    running: Running[R]


class Scheduler(Generic[R]):
    """Keeps every device's request queue full and the original model busy.

    `feeds` gives each device, in order, the feed it takes jobs from; among devices that share a feed, jobs of
    one that is away start again on another. A small pool of `workers` threads
    runs the jobs' steps and the original model; the devices' links have threads of their
    own. Two steps of one job never overlap. The result of a job does not depend on the other jobs.
    `concurrency` jobs run on each device, by default as many as keep it busy. `asked` is how often each
    device, by name, was queried before, for the limits. Every `tick_s` seconds devices that are away are checked.

    `one_trip` is for devices where a round trip is very slow, or that take batches only: up to 512 jobs
    run on each (or `concurrency`), and it is asked only once every one of them waits for it, about all
    they ask in one request (more where that would be over 2048 samples or 32 MiB). Of large samples fewer
    run at once: all devices' jobs hold at most 256 MiB, a search about 20 times its seed's sample, but at
    least 16 run on each. Each sample is still
    inferred alone, and results stay the same. A limit on queries begins no more jobs than queries are
    left, and is passed by what those still ask.
    """

    def __init__(
        self,
        original: Original,
        devices: Sequence[Deployed],
        feeds: Sequence[Feed[R]],
        oracle: Oracle,
        *,
        workers: int,
        concurrency: int | None = None,
        limits: FleetLimits | None = None,
        asked: Mapping[str, int] | None = None,
        tick_s: float = 0.5,
        one_trip: bool = False,
    ) -> None:
        self._original = original
        self._oracle = oracle
        self._workers = workers
        self._tick_s = tick_s
        self._limits = limits or FleetLimits()
        self._lanes: list[DeviceQueue[R]] = [
            DeviceQueue(
                device,
                feed,
                self._limits,
                shares_feed=sum(other is feed for other in feeds) > 1,
                concurrency=concurrency,
                spare=2 * workers + 2,
                asked=(asked or {}).get(device.name, 0),
                gathers=one_trip,
                memory=MOST_BATCHED_BYTES // len(devices),
            )
            for device, feed in zip(devices, feeds, strict=True)
        ]
        here = {device.name for device in devices}
        self._asked_elsewhere = sum(n for name, n in (asked or {}).items() if name not in here)
        self._events: queue.SimpleQueue[_Done[R] | _Lost[R] | BaseException | None] = (
            queue.SimpleQueue()  # None: check again whether every job of a device waits for it
        )
        self._steps: queue.PriorityQueue[tuple[int, int, Running[R], Callable[[], Ask]]] = (
            queue.PriorityQueue()
        )
        self._serial = itertools.count()
        self._begun = 0
        self._stopping = threading.Event()

    def run(
        self,
        on_result: Callable[[R, str], None],
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Do every job; `on_result` is called with each result and its device's name, one at a time.

        It is called in a thread of its own, where Ctrl-C cannot cut it short. `on_tick` is called
        every `tick_s` seconds in the caller's thread. An error (of a model, a strategy, every device)
        or Ctrl-C stops the run: what was done by then is still handed to `on_result`, then the error is raised;
        DeviceAwayError where no device is left. Ends early where the limits are used up: `left` says so.
        """
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="edgeflare-step")
        with ResultWriter(on_result) as keeper:
            try:
                self._loop(pool, keeper, on_tick)
                pool.shutdown()
            except BaseException:
                self._stopping.set()
                ending = threading.Thread(
                    target=pool.shutdown, kwargs={"cancel_futures": True}, daemon=True
                )
                ending.start()
                ending.join(_LAST_STEPS_S)
                self._hand_over_the_rest(keeper)
                raise

    @property
    def left(self) -> bool:
        """Whether jobs remain that were not begun."""
        return any(lane.feed.left for lane in self._lanes)

    @property
    def under_way(self) -> list[Job[R]]:
        """The jobs that have begun and not ended."""
        return [one.job for lane in self._lanes for one in tuple(lane.running)]

    def _loop(
        self, pool: ThreadPoolExecutor, keeper: ResultWriter[R], on_tick: Callable[[], None]
    ) -> None:
        next_tick = time.monotonic() + self._tick_s
        while True:
            self._fill(pool)
            self._send_gathered(pool)
            if not any(lane.running for lane in self._lanes) and not self._wait_worth():
                return
            try:
                event = self._events.get(timeout=max(0.0, next_tick - time.monotonic()))
            except queue.Empty:
                event = None
            if event is not None:
                self._take(event, keeper)
            if time.monotonic() >= next_tick:
                keeper.check()
                self._tend()
                on_tick()
                next_tick = time.monotonic() + self._tick_s

    def _fill(self, pool: ThreadPoolExecutor) -> None:
        """Start jobs on the least-loaded device until all queues are full."""
        while not self._all_spent() and (ready := [one for one in self._lanes if one.can_take]):
            lane = min(ready, key=lambda one: one.fill)
            job = lane.feed.take()
            if job is not None:
                self._begun += 1
                running = lane.begin(job, self._begun)
                self._submit(pool, running, running.generator.__next__)

    def _send_gathered(self, pool: ThreadPoolExecutor) -> None:
        """Send the held requests of each device whose jobs all wait, in a worker's thread."""
        for lane in self._lanes:
            if held := lane.gathered():
                pool.submit(self._send, lane, held)

    def _send(self, lane: DeviceQueue[R], held: Sequence[Held]) -> None:
        if self._stopping.is_set():
            return
        try:
            lane.send(held)
        except BaseException as error:  # noqa: BLE001 - raised again in `run`
            self._events.put(error)

    def _wait_worth(self) -> bool:
        """Whether to wait, with no job running, for a device that is away and has work left."""
        if self._all_spent():
            return False
        if all(lane.device.state is DeviceState.RETIRED for lane in self._lanes) and self.left:
            raise self._nobody_left()
        return any(lane.useful for lane in self._lanes)

    def _all_spent(self) -> bool:
        """Whether the queries made and about to be made reach the limit for all devices."""
        total = self._limits.total_queries
        if total is None:
            return False
        about_to = sum(len(lane.running) for lane in self._lanes if lane.gathers)
        asked = self._asked_elsewhere + sum(lane.asked for lane in self._lanes)
        return asked + about_to >= total

    def _take(self, event: "_Done[R] | _Lost[R] | BaseException", keeper: ResultWriter[R]) -> None:
        if isinstance(event, BaseException):
            raise event
        lane = event.running.lane
        lane.running.discard(event.running)
        if isinstance(event, _Done):
            keeper.keep(event.result, lane.device.name)
        else:
            event.running.generator.close()
            lane.feed.give_back(event.running.job)

    def _hand_over_the_rest(self, keeper: ResultWriter[R]) -> None:
        while True:
            try:
                event = self._events.get_nowait()
            except queue.Empty:
                return
            if isinstance(event, _Done):
                keeper.keep(event.result, event.running.lane.device.name)

    def _tend(self) -> None:
        """Move jobs off devices that stay away; raise DeviceAwayError where no device is left."""
        for lane in self._lanes:
            others_up = any(
                other.up and other.feed is lane.feed for other in self._lanes if other is not lane
            )
            if lane.should_hand_over(others_up):
                lane.withdraw()
        at_work = any(lane.up and (lane.running or lane.can_take) for lane in self._lanes)
        away = [
            lane.device.away_s
            for lane in self._lanes
            if lane.device.state is DeviceState.AWAY and lane.useful
        ]
        if not at_work and away and min(away) >= self._limits.patience_s:
            raise self._nobody_left()

    def _nobody_left(self) -> DeviceError:
        reasons = "; ".join(
            f"{lane.device.name}: {lane.device.detail or lane.device.state.value}"
            for lane in self._lanes
            if not lane.up
        )
        return DeviceAwayError(f"no device is left that could go on ({reasons})")

    def _advance(self, pool: ThreadPoolExecutor) -> None:
        """Run one step of the oldest job that has one.

        So where the host is the bottleneck, searches end one after the other, and not all at the same time.
        """
        *_, running, step = self._steps.get_nowait()
        if self._stopping.is_set():
            return
        job = running.job
        began = time.thread_time()
        try:
            ask = step()
            pending = None
            if ask.of != "original":
                pending = running.lane.submit(ask.samples)
                if running.lane.gathers:
                    self._events.put(None)
            asked: Sequence[Output] | None = None
            seconds: Sequence[float] = ()
            try:
                if ask.of != "deployed":
                    asked, seconds = self._original.answer(ask.samples)
            except InferenceFailedError as error:
                self._fail(pool, running, error, pending)
                return
            if job.seconds_count:
                job.counters.seconds += time.thread_time() - began + sum(seconds)
            if pending is None:
                self._submit(pool, running, partial(self._send_answer, running, ask, asked, None))
            else:
                pending.add_done_callback(partial(self._answered, pool, running, ask, asked))
        except StopIteration as stop:
            self._events.put(_Done(running, stop.value))
        except BaseException as error:  # noqa: BLE001 - raised again in `run`
            self._events.put(error)

    def _fail(
        self,
        pool: ThreadPoolExecutor,
        running: Running[R],
        error: InferenceFailedError,
        pending: "Future[Reply[Output]] | None",
    ) -> None:
        """Throw the original's error into a job, once its request to the device is settled."""
        step = partial(running.generator.throw, error)
        if pending is None:
            self._submit(pool, running, step)
        else:
            pending.add_done_callback(lambda _: self._submit(pool, running, step))

    def _answered(
        self,
        pool: ThreadPoolExecutor,
        running: Running[R],
        ask: Ask,
        original: Sequence[Output] | None,
        pending: "Future[Reply[Output]]",
    ) -> None:
        """Handle a device's reply (in the link's thread): queue the job's next step."""
        try:
            error = pending.exception()
            if isinstance(error, InferenceFailedError):
                self._submit(pool, running, partial(running.generator.throw, error))
            elif error is not None:
                retired = running.lane.device.state is DeviceState.RETIRED
                gone = retired or isinstance(error, DeviceAwayError)
                self._events.put(_Lost(running) if gone else error)
            else:
                reply = pending.result()
                counters = running.job.counters
                counters.device_seconds += sum(reply.seconds)
                if running.job.seconds_count:
                    counters.seconds += sum(reply.seconds)
                step = partial(self._send_answer, running, ask, original, reply.outputs)
                self._submit(pool, running, step)
        except BaseException as fault:  # noqa: BLE001 - raised again in `run`
            self._events.put(fault)

    def _submit(
        self, pool: ThreadPoolExecutor, running: Running[R], step: Callable[[], Ask]
    ) -> None:
        self._steps.put((running.number, next(self._serial), running, step))
        try:
            pool.submit(self._advance, pool)
        except RuntimeError:  # the pool is shut down: the run is stopping
            if not self._stopping.is_set():
                raise

    def _send_answer(
        self,
        running: Running[R],
        ask: Ask,
        original: Sequence[Output] | None,
        deployed: Sequence[Output] | None,
    ) -> Ask:
        """Send a job the answers to what it asked; return what it asks next."""
        outputs = []
        for index in range(len(ask.samples)):
            first = None if original is None else original[index]
            second = None if deployed is None else deployed[index]
            decision = (
                Decision.UNDECIDED
                if first is None or second is None
                else self._oracle.decide(first, second)
            )
            outputs.append(Outputs(first, second, decision))
        return running.generator.send(Answer(outputs))

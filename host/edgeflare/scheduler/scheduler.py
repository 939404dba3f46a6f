"""Runs many jobs at once on the original model and the deployed model on one or more devices."""

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Generic, Protocol, TypeAlias, runtime_checkable

from edgeflare._internal.text import first_of
from edgeflare.answers.oracles import Oracle
from edgeflare.devices import DeviceState, Reply
from edgeflare.errors import DeviceAwayError, DeviceError, EdgeFlareError, InferenceFailedError
from edgeflare.scheduler.device_queue import (
    MOST_BATCHED_BYTES,
    BatchedRequest,
    Deployed,
    DeviceQueue,
    RunningJob,
)
from edgeflare.scheduler.job import Feed, FleetLimits, Job, R, Turn, answer_of
from edgeflare.scheduler.step_threads import StepThreads
from edgeflare.types import Answer, Ask, Output, Query, with_row

_MOST_WAITING = 64
_MOST_BACKLOG = 24
"""Steps and requests that wait for a thread, from which on no other job begins: where the host is the
slower side, more jobs would only wait."""
_Step: TypeAlias = Callable[[], Ask | Future[Any]]


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


_FIRST = -1
"""A number before that of every job."""
_UNBLOCK_S = 0.01
_LAST_STEPS_S = 2.0
"""How long a stopping run waits for steps in progress; an original may take minutes to answer."""


class Original(Protocol):
    """The original model; called from several threads at once."""

    def answer(self, samples: Sequence[Query]) -> tuple[Sequence[Output], Sequence[float]]:
        """Return one answer a sample, scores or a transcript, and seconds.

        The samples may be those of several jobs. The seconds are those that each took elsewhere
        than in this thread. Raises InferenceFailedError where it can't answer on one of them: those
        of each job are then asked about alone.
        """
        ...


@runtime_checkable
class ProbedOriginal(Protocol):
    """An original whose probes can be asked, too (see `Ask`)."""

    def probe(self, ask: Ask) -> tuple[Sequence[Any], Sequence[float]]:
        """Return what a probe answers about each sample, and seconds as `answer` has them."""
        ...


@dataclass(frozen=True)
class _Done(Generic[R]):
    running: RunningJob[R]
    result: R


@dataclass(frozen=True)
class _Lost(Generic[R]):
    """A job whose device is lost, or that a limit on queries stopped.

    `refusal`: what the device answered that is no failure of one input, such as that it can't use the
    model.
    """

    running: RunningJob[R]
    at_limit: bool = False
    refusal: EdgeFlareError | None = None


class _Exchange(Generic[R]):
    """A job's request until all models that it asks have answered."""

    def __init__(self, running: RunningJob[R], ask: Ask) -> None:
        self.running = running
        self.ask = ask
        self.samples = [with_row(sample, running.job.row) for sample in ask.samples]
        self.awaited = 2 if ask.of == "both" else 1
        self.arrivals = itertools.count(1)  # counts from several threads without a lock
        self.original: Sequence[Output] | None = None
        self.original_s = 0.0
        self.error: InferenceFailedError | None = None
        self.reply: Future[Reply[Output]] | None = None


class Scheduler(Generic[R]):
    """Keeps every device's request queue full and the original model busy.

    `feeds` gives each device, in order, its feed of jobs; among devices that share a feed, jobs of
    one that is away start again on another. `workers` threads run the jobs' steps and the original
    model; the devices' links have their own threads. Steps of one job never overlap,
    and its result does not depend on other jobs.

    The `limits` on queries hold: a job that would pass one is stopped and given back to its feed, and
    `on_stopped` is called with its device's name and how many inputs that was given for nothing.
    `on_flush` is called where steps that were due are done, and every few milliseconds.
    """

    def __init__(
        self,
        original: Original,
        devices: Sequence[Deployed],
        feeds: Sequence[Feed[R]],
        oracle: Oracle,
        *,
        workers: int,
        limits: FleetLimits = FleetLimits(),  # noqa: B008 - immutable
        on_stopped: Callable[[str, int], None] | None = None,
        on_flush: Callable[[], None] = lambda: None,
    ) -> None:
        self._original = original
        self._oracle = oracle
        self._workers = workers
        self._on_stopped = on_stopped
        self._on_flush = on_flush
        self._counting = threading.Lock()
        self._limits = limits
        self._queues: list[DeviceQueue[R]] = [
            DeviceQueue(
                device,
                feed,
                self._limits,
                shares_feed=sum(other is feed for other in feeds) > 1,
                spare=2 * workers + 2,
                memory=MOST_BATCHED_BYTES // len(devices),
            )
            for device, feed in zip(devices, feeds, strict=True)
        ]
        here = {device.name for device in devices}
        self._asked_of_others = sum(n for name, n in limits.asked.items() if name not in here)
        self._events: SimpleQueue[_Done[R] | _Lost[R] | BaseException | None] = (
            SimpleQueue()  # None: check again whether every job of a device waits for it
        )
        self._started = 0
        self._stopping = threading.Event()

    def run(
        self,
        on_result: Callable[[R, str], None],
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Do every job; call `on_result` with each result and its device's name, one at a time.

        `on_result` runs in its own thread, which Ctrl-C does not interrupt; `on_tick` every
        `limits.tick_s` seconds in the caller's. An error (of a model, a strategy, all devices) or Ctrl-C
        stops the run; it is raised after finished results were passed on: DeviceAwayError where no
        device is left. Ends early at the limits; see `left`.
        """
        self._threads = StepThreads(self._workers, self._ask_original, self._flush)
        with ResultWriter(on_result) as writer:
            try:
                self._loop(writer, on_tick)
                self._threads.end()
            except BaseException:
                self._stopping.set()
                self._threads.end(drop=True, patience_s=_LAST_STEPS_S)
                self._write_remaining(writer)
                raise

    @property
    def left(self) -> bool:
        """Whether jobs remain that were not started."""
        return any(queue.feed.left for queue in self._queues)

    @property
    def under_way(self) -> list[Job[R]]:
        """The jobs that were started and have not ended."""
        return [one.job for queue in self._queues for one in tuple(queue.running)]

    def _loop(self, writer: ResultWriter[R], on_tick: Callable[[], None]) -> None:
        next_tick = time.monotonic() + self._limits.tick_s
        while True:
            self._fill()
            self._send_batches()
            if not any(queue.running for queue in self._queues) and not self._should_wait():
                return
            event = self._next_event(next_tick)
            if event is not None:
                self._take(event, writer)
            if time.monotonic() >= next_tick:
                writer.check()
                self._check_devices()
                on_tick()
                next_tick = time.monotonic() + self._limits.tick_s

    def _next_event(self, until: float) -> _Done[R] | _Lost[R] | BaseException | None:
        """Wait for an event; None at this time, or where a device's batch may be complete."""
        while (left := until - time.monotonic()) > 0:
            with suppress(Empty):
                return self._events.get(timeout=min(left, _UNBLOCK_S))
            self._threads.unblock()
            self._flush()
        return None

    def _fill(self) -> None:
        """Start jobs on the least-loaded device until all queues are full."""
        for one in self._queues:
            one.at_limit = one.at_limit or any(left <= 0 for left, _ in self._left_for(one))
        while ready := [
            one
            for one in self._queues
            if one.can_take
            and (one.batches or self._threads.backlog < _MOST_BACKLOG)
            and self._has_room(one)
        ]:
            queue = min(ready, key=lambda one: one.fill)
            job = queue.feed.take()
            if job is not None:
                self._started += 1
                running = queue.begin(job, self._started)
                self._submit(running, running.generator.__next__)

    def _send_batches(self) -> None:
        """Send the held requests of each device whose jobs all wait, in a worker's thread."""
        for queue in self._queues:
            if batch := queue.take_batch():
                self._threads.run(_FIRST, partial(self._send, queue, batch))

    def _flush(self) -> None:
        """Send what is held for devices that jobs have not filled a request for, and elsewhere."""
        for queue in self._queues:
            queue.flush()
        self._on_flush()

    def _send(self, queue: DeviceQueue[R], batch: Sequence[BatchedRequest]) -> float:
        if not self._stopping.is_set():
            try:
                queue.send(batch)
            except BaseException as error:  # noqa: BLE001 - raised again in `run`
                self._events.put(error)
        return 0.0

    def _should_wait(self) -> bool:
        """Whether to wait, with no job running, for a device that is away and has work left."""
        if all(queue.at_limit for queue in self._queues):
            return False
        if all(queue.device.state is DeviceState.RETIRED for queue in self._queues) and self.left:
            raise self._no_device_left()
        return any(queue.useful for queue in self._queues)

    def _left_for(self, queue: DeviceQueue[R]) -> Iterator[tuple[int, Sequence[DeviceQueue[R]]]]:
        """Yield the queries that each limit leaves to a device, and the devices that share them."""
        total, own = self._limits.total_queries, self._limits.device_queries
        if total is not None:
            asked = self._asked_of_others + sum(one.asked for one in self._queues)
            yield total - asked, self._queues
        if own is not None:
            yield own - queue.asked, (queue,)

    def _has_room(self, queue: DeviceQueue[R]) -> bool:
        """Whether the limits leave room for a device's next job, and for those under way.

        A job that runs alone may begin with less.
        """
        job = queue.feed.next
        for left, sharing in self._left_for(queue):
            running = [one.most_left for other in sharing for one in other.running]
            if running and job is not None:
                most = [one for one in (*running, job.most_queries) if one is not None]
                if len(most) <= len(running) or sum(most) > left:
                    return False
        return True

    def _ask_device(
        self, running: RunningJob[R], samples: Sequence[Query]
    ) -> "Future[Reply[Output]] | None":
        """Count a request and send it; None where it would pass a limit."""
        with self._counting:  # else two jobs that ask at once may pass a limit together
            for left, sharing in self._left_for(running.queue):
                if len(samples) > left:
                    for one in sharing:
                        one.at_limit = True
                    return None
            running.asked += len(samples)
            return running.queue.submit(samples)

    def _take(self, event: _Done[R] | _Lost[R] | BaseException, writer: ResultWriter[R]) -> None:
        if isinstance(event, BaseException):
            raise event
        queue = event.running.queue
        if isinstance(event, _Lost) and event.refusal is not None:
            self._refused(queue, event.refusal)
        queue.running.discard(event.running)
        if isinstance(event, _Done):
            writer.keep(event.result, queue.device.name)
        else:
            event.running.generator.close()
            queue.feed.give_back(event.running.job)
            if event.at_limit and self._on_stopped is not None:
                self._on_stopped(queue.device.name, event.running.asked)

    def _refused(self, queue: DeviceQueue[R], refusal: EdgeFlareError) -> None:
        """Give a device up where others can go on; raise what it said where it was the last."""
        if queue.device.state is DeviceState.RETIRED:  # by another job's answer
            return
        others = (one for one in self._queues if one is not queue and one.feed is queue.feed)
        if all(one.device.state is DeviceState.RETIRED for one in others):
            raise refusal
        queue.device.give_up(refusal)

    def _write_remaining(self, writer: ResultWriter[R]) -> None:
        while True:
            try:
                event = self._events.get_nowait()
            except Empty:
                return
            if isinstance(event, _Done):
                writer.keep(event.result, event.running.queue.device.name)

    def _check_devices(self) -> None:
        """Move jobs off devices that stay away; raise DeviceAwayError where no device is left."""
        for queue in self._queues:
            others_up = any(
                other.up and other.feed is queue.feed
                for other in self._queues
                if other is not queue
            )
            if queue.should_hand_over(others_up):
                queue.withdraw()
        at_work = any(queue.up and (queue.running or queue.can_take) for queue in self._queues)
        away = [
            queue.device.away_s
            for queue in self._queues
            if queue.device.state is DeviceState.AWAY and queue.useful
        ]
        if not at_work and away and min(away) >= self._limits.patience_s:
            raise self._no_device_left()

    def _no_device_left(self) -> DeviceError:
        reasons = first_of(
            [
                f"{queue.device.name}: {queue.device.detail or queue.device.state.value}"
                for queue in self._queues
                if not queue.up
            ]
        )
        return DeviceAwayError(f"no device is left that could go on ({reasons})")

    def _advance(self, running: RunningJob[R], step: _Step) -> float:
        """Run one step of a job; pass what it asks on to the models. Return processor seconds."""
        if self._stopping.is_set():
            return 0.0
        job = running.job
        began = time.thread_time()
        try:
            ask = step()
            running.has_turn = not isinstance(ask, Turn)
            if isinstance(ask, Future):
                going_on = partial(running.generator.send, Answer(()))
                ask.add_done_callback(lambda _: self._submit(running, going_on))
                if running.queue.batches:
                    self._events.put(None)
                return time.thread_time() - began
            exchange = _Exchange(running, ask)
            pending = None
            if ask.of != "original":
                pending = self._ask_device(running, exchange.samples)
                if pending is None:
                    self._events.put(_Lost(running, at_limit=True))
                    return 0.0
                if running.queue.batches:
                    self._events.put(None)
            taken_s = time.thread_time() - began
            if job.seconds_count:
                job.counters.seconds += taken_s
            if ask.of != "deployed":
                self._threads.ask(running.number, exchange)
            if pending is not None:
                pending.add_done_callback(partial(self._device_answered, exchange))
        except StopIteration as stop:
            self._events.put(_Done(running, stop.value))
        except BaseException as error:  # noqa: BLE001 - raised again in `run`
            self._events.put(error)
        else:
            return taken_s
        return 0.0

    def _ask_original(self, exchanges: "Sequence[_Exchange[R]]") -> float:
        """Ask the original about several jobs' inputs at once; each gets what it would get alone.

        Returns the seconds that it took for an input.
        """
        if self._stopping.is_set():
            return 0.0
        if len(exchanges) > 1 and any(exchange.ask.is_of_probe for exchange in exchanges):
            return max([self._ask_original([exchange]) for exchange in exchanges])
        began = time.thread_time()
        try:
            samples = [sample for exchange in exchanges for sample in exchange.samples]
            ask = exchanges[0].ask
            if ask.is_of_probe:
                assert isinstance(self._original, ProbedOriginal)  # noqa: S101
                outputs, seconds = self._original.probe(ask)
            else:
                outputs, seconds = self._original.answer(samples)
            own_s = (time.thread_time() - began) / len(samples)
            begin = 0
            for exchange in exchanges:
                end = begin + len(exchange.samples)
                exchange.original = outputs[begin:end]
                exchange.original_s = sum(seconds[begin:end]) + own_s * len(exchange.samples)
                begin = end
                self._settle(exchange)
            return own_s + sum(seconds) / len(samples)
        except InferenceFailedError as error:
            if len(exchanges) > 1:
                return max([self._ask_original([exchange]) for exchange in exchanges])
            exchanges[0].error = error
            self._settle(exchanges[0])
        except BaseException as error:  # noqa: BLE001 - raised again in `run`
            self._events.put(error)
        return 0.0

    def _device_answered(self, exchange: "_Exchange[R]", pending: "Future[Reply[Output]]") -> None:
        """Take a device's reply (in the link's thread)."""
        exchange.reply = pending
        self._settle(exchange)

    def _settle(self, exchange: "_Exchange[R]") -> None:
        """Queue a job's next step once all models that it asked have answered."""
        if next(exchange.arrivals) < exchange.awaited:
            return  # the other model's thread goes on, with both answers
        running, ask, reply = exchange.running, exchange.ask, exchange.reply
        try:
            if exchange.error is not None:
                self._submit(running, partial(running.generator.throw, exchange.error))
                return
            error = None if reply is None else reply.exception()
            if isinstance(error, InferenceFailedError):
                self._submit(running, partial(running.generator.throw, error))
            elif error is not None:
                retired = running.queue.device.state is DeviceState.RETIRED
                if retired or isinstance(error, DeviceAwayError):
                    self._events.put(_Lost(running))
                elif isinstance(error, EdgeFlareError):
                    self._events.put(_Lost(running, refusal=error))
                else:
                    self._events.put(error)
            else:
                deployed = None if reply is None else reply.result()
                counters = running.job.counters
                device_s = 0.0
                if deployed is not None:
                    device_s = sum(deployed.seconds)
                    running.queue.record_seconds(deployed.seconds)
                counters.device_seconds += device_s
                if running.job.seconds_count:
                    counters.seconds += device_s + exchange.original_s
                outputs = None if deployed is None else deployed.outputs
                self._submit(
                    running, partial(self._send_answer, running, ask, exchange.original, outputs)
                )
        except BaseException as fault:  # noqa: BLE001 - raised again in `run`
            self._events.put(fault)

    def _submit(self, running: RunningJob[R], step: _Step) -> None:
        self._threads.run(running.number, partial(self._advance, running, step))

    def _send_answer(
        self,
        running: RunningJob[R],
        ask: Ask,
        original: Sequence[Output] | None,
        deployed: Sequence[Output] | None,
    ) -> "Ask | Future[Any]":
        """Send a job the answers to what it asked; return what it asks next."""
        return running.generator.send(answer_of(ask, original, deployed, self._oracle))

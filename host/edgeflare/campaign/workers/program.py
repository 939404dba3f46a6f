"""The program of a worker process: it runs many searches in turn, with an original of its own.

It is started by `pool`, not by `multiprocessing`, so that the user's ``__main__`` is not run again.
Strategies, operators, oracles and runtimes are found by name, as in the process of the campaign. A
search asks the deployed model through the pipe; everything else that it needs is here. Both ends
are of one version and one user: messages travel as `multiprocessing.connection` has them.
"""

import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import cv2

from edgeflare.answers.oracles import oracle_for
from edgeflare.answers.outputs import raw_bytes
from edgeflare.errors import EdgeFlareError, InferenceFailedError
from edgeflare.models import OriginalModel
from edgeflare.models.original import OriginalSettings
from edgeflare.scheduler import Budget, Counters, JobRun, SearchJob, SearchJobResult, SearchSettings
from edgeflare.scheduler.confirmation import UnconfirmedTrigger
from edgeflare.scheduler.job import answer_of
from edgeflare.store.samples import LazySamples, Samples, open_samples
from edgeflare.strategies import build_strategy
from edgeflare.types import Ask, FrontPoint, KnownAnswers, Output, Sample, Seed, with_row

_PROBES = 2
_HELD_S = 0.006
_MOST_HELD = 12


class WorkerSettings(NamedTuple):
    """All that the searches of one campaign share.

    `strategy` and `oracle` are the arguments of `build_strategy` and `oracle_for`. `samples`: the
    folder of the campaign's samples, and their rate. `others`: the digests of `Seed.others`;
    `known`: `Seed.known` of each replica. `shared`: the worker has several searches at a time, and
    the original in its own process; what that can't survive is searched again with neither.
    """

    original: OriginalSettings
    strategy: tuple[str, Mapping[str, Any], tuple[str, ...]]
    oracle: Mapping[str, Any]
    budget: Budget
    campaign_seed: int
    samples: tuple[Path | str, int | None]
    others: Sequence[str]
    known: Mapping[str, KnownAnswers | None]
    shared: bool = True


class Begin(NamedTuple):
    """Start a search. `seed` comes without `others` and `known`: they are the worker's."""

    seed: Seed
    replica: str


class Replied(NamedTuple):
    """The deployed model's answers, and the seconds that it took."""

    outputs: Sequence[Output]
    seconds: float


class Failed(NamedTuple):
    """The deployed model can't answer."""

    reason: str


class Drop(NamedTuple):
    """Forget a search."""


First: TypeAlias = Sequence[bytes] | str
"""The first event: the original's raw outputs on the first of `others`; why it can't search."""


class Progress(NamedTuple):
    """How far a search is."""

    counters: Counters
    points: tuple[FrontPoint, ...]


class Asked(NamedTuple):
    """A search asks the deployed model."""

    samples: Sequence[Sample]
    progress: Progress


class Ended(NamedTuple):
    """The end of a search; `ending` without its seed. `stored`: samples to be kept."""

    ending: SearchJobResult | UnconfirmedTrigger
    progress: Progress
    stored: Sequence[Sample]


class Raised(NamedTuple):
    """An error that ends the campaign; `kind`: its class in `edgeflare.errors`."""

    kind: str
    text: str


Message: TypeAlias = Begin | Replied | Failed | Drop
Event: TypeAlias = Asked | Ended | Raised


def probed(original: OriginalModel, samples: Sequence[Sample]) -> list[bytes]:
    """Return the original's raw outputs on the first samples, to compare two processes' originals.

    Empty where it can't answer on them.
    """
    try:
        raws, _ = original.raw_answer(list(samples[:_PROBES]))
    except InferenceFailedError:
        return []
    return [raw_bytes(raw) for raw in raws]


def serve(descriptor: str) -> None:
    """Run searches for the process at the other end of a pipe until that closes it."""
    connection: Connection[Any, Any] = Connection(int(descriptor))
    cv2.setNumThreads(1)  # the processors have a worker each
    settings = connection.recv()
    outbox = _Outbox(connection)
    try:
        worker = _Worker(settings, outbox)
        answers = probed(worker.original, worker.others)
    except Exception as error:  # noqa: BLE001 - the user's plug-ins may raise anything
        named = "" if isinstance(error, EdgeFlareError) else f"{type(error).__name__}: "
        connection.send(f"{named}{error}")
        return
    connection.send(answers)
    inbox: queue.PriorityQueue[tuple[int, int, Message]] = queue.PriorityQueue()
    threading.Thread(target=_receive, args=(connection, inbox), daemon=True).start()
    while True:
        number, _, message = inbox.get()
        worker.handle(number, message)
        outbox.flush(soon=not inbox.empty())


def _receive(
    connection: "Connection[Any, Any]", inbox: "queue.PriorityQueue[tuple[int, int, Message]]"
) -> None:
    serial = count()
    try:
        while True:
            for number, message in connection.recv():
                inbox.put((number, next(serial), message))
    except (EOFError, OSError):
        os._exit(0)  # whatever the searches do: nobody waits for them


class _Outbox:
    """Events to the campaign's process; they travel together where the next ones come at once."""

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        self._connection = connection
        self._events: list[tuple[int, Event]] = []
        self._first = 0.0

    def put(self, number: int, event: Event) -> None:
        """Hold an event of a search until `flush`."""
        if not self._events:
            self._first = time.monotonic()
        self._events.append((number, event))

    def flush(self, *, soon: bool) -> None:
        """Send what is held; `soon`: only where it has been held for 6 ms, or is much."""
        held = len(self._events)
        if not held or (soon and held < _MOST_HELD and time.monotonic() - self._first < _HELD_S):
            return
        self._connection.send(self._events)
        self._events = []


class _Samples:
    """The campaign's samples; those that a search stores are collected for the campaign's process."""

    def __init__(self, files: Samples) -> None:
        self._files = files
        self.stored: list[Sample] = []

    def put_sample(self, sample: Sample) -> str:
        self.stored.append(sample)
        return self._files.digest(sample)

    def get_sample(self, digest: str) -> Sample:
        return self._files.get(digest)


@dataclass
class _Running:
    """A search; while it waits for the device: what it asked, and the original's part of the answer."""

    job: SearchJob
    samples: _Samples
    run: JobRun[SearchJobResult | UnconfirmedTrigger] = field(init=False)
    ask: Ask | None = None
    original: Sequence[Output] | InferenceFailedError | None = None

    def __post_init__(self) -> None:
        self.run = self.job.search()


class _Worker:
    """The searches of this process, each advanced by one message at a time."""

    def __init__(self, settings: WorkerSettings, outbox: _Outbox) -> None:
        self._settings = settings
        self._outbox = outbox
        self._answer_s = 0.0
        self._running: dict[int, _Running] = {}
        self._strategy = build_strategy(*settings.strategy)
        self._oracle = oracle_for(**settings.oracle)
        place, rate = settings.samples
        self._files = open_samples(place)
        self._files.rate = rate
        self.others = LazySamples(self._files.get, settings.others)
        self.original = settings.original.load(here=settings.shared)

    def handle(self, number: int, message: Message) -> None:
        """Advance a search until it needs the deployed model, or ends."""
        if isinstance(message, Begin):
            running = self._running[number] = self._begun(message)
            self._advance(number, running, running.run.__next__)
        elif (running_ := self._running.get(number)) is None:
            return  # dropped, or ended by an error
        elif isinstance(message, Drop):
            running_.run.close()
            del self._running[number]
        else:
            self._advance(number, running_, self._step(running_, message))

    def _begun(self, message: Begin) -> _Running:
        settings = self._settings
        known = settings.known.get(message.replica)
        samples = _Samples(self._files)
        rules = SearchSettings(
            self._strategy, settings.budget, 0, settings.campaign_seed, samples, self._oracle
        )
        seed = replace(message.seed, others=self.others, known=known)
        return _Running(SearchJob(seed, rules), samples)

    def _step(self, running: _Running, message: Replied | Failed) -> Callable[[], Any]:
        """Return the step that gives a search the deployed model's answer, or an error."""
        if isinstance(message, Replied):
            running.job.counters.seconds += message.seconds
        if isinstance(running.original, InferenceFailedError):
            return partial(running.run.throw, running.original)
        if isinstance(message, Failed):
            return partial(running.run.throw, InferenceFailedError(message.reason))
        assert running.ask is not None  # noqa: S101 - it waits for this
        answer = answer_of(running.ask, running.original, message.outputs, self._oracle)
        return partial(running.run.send, answer)

    def _advance(self, number: int, running: _Running, step: Callable[[], Any]) -> None:
        """Run a search's steps, with the original's answers, until it waits or ends."""
        try:
            while True:
                began = time.thread_time()
                ask: Ask = step()
                if ask.of != "original":  # the device answers while the original does so here
                    self._outbox.put(number, Asked(ask.samples, _progress(running.job)))
                running.ask, running.original = ask, None
                running.job.counters.seconds += time.thread_time() - began
                self._outbox.flush(soon=ask.of != "both" or self._answer_s < _HELD_S)
                if ask.of != "deployed":
                    try:
                        running.original, seconds = self._answers(ask, running.job.row)
                        self._answer_s = sum(seconds)
                        running.job.counters.seconds += self._answer_s
                    except InferenceFailedError as error:
                        running.original = error
                if ask.of != "original":
                    return
                if isinstance(running.original, InferenceFailedError):
                    step = partial(running.run.throw, running.original)
                else:
                    answer = answer_of(ask, running.original, None, self._oracle)
                    step = partial(running.run.send, answer)
        except StopIteration as stop:
            self._end(number, running, stop.value)
        except Exception as error:  # noqa: BLE001 - raised again in the campaign's process
            del self._running[number]
            known = isinstance(error, EdgeFlareError)
            text = str(error) if known else traceback.format_exc()
            self._outbox.put(number, Raised(_kind(error), text))

    def _answers(self, ask: Ask, row: int | None) -> tuple[Sequence[Any], Sequence[float]]:
        if ask.is_of_probe:
            began = time.thread_time()
            probed, _ = self.original.probe(ask)
            return probed, [time.thread_time() - began]
        return self.original.answer([with_row(one, row) for one in ask.samples])

    def _end(
        self, number: int, running: _Running, ending: SearchJobResult | UnconfirmedTrigger
    ) -> None:
        del self._running[number]
        if isinstance(ending, SearchJobResult):
            ending = replace(ending, seed=replace(ending.seed, others=(), known=None))
        self._outbox.put(number, Ended(ending, _progress(running.job), running.samples.stored))


def _progress(job: SearchJob) -> Progress:
    return Progress(job.counters, job.front.points)


def _kind(error: Exception) -> str:
    """Return the name of the nearest class that `edgeflare.errors` has; empty for none."""
    kinds = (kind for kind in type(error).__mro__ if kind.__module__ == EdgeFlareError.__module__)
    return next((kind.__name__ for kind in kinds), "")

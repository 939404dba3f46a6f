"""Drives many chains at once over one original and one deployed model."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import NamedTuple, Protocol

from edgeflare.oracles import Oracle
from edgeflare.scheduler.chain import Chain, ChainResult, Life, Rules
from edgeflare.types import Answer, Ask, Decision, Outputs, Sample, Scores, Seed

_WAIT_S = 0.5


class Reply(NamedTuple):
    """The deployed model's answers to one request and the device's own time for each, in seconds."""

    scores: Sequence[Scores]
    seconds: Sequence[float]


class Original(Protocol):
    """The original model; called from several worker threads at once."""

    def scores(self, samples: Sequence[Sample]) -> Sequence[Scores]:
        """Return one score vector a sample."""
        ...


class Deployed(Protocol):
    """The deployed model, on whatever device; requests are answered in any order."""

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        """Queue a request without waiting for anything."""
        ...


class Scheduler:
    """Keeps `concurrency` chains in flight and the device's queue full.

    A small pool of `workers` threads takes the chains' own steps and runs the original model; the
    device's link has threads of its own. Two steps of one chain never overlap. What a chain finds
    does not depend on what runs beside it.
    """

    def __init__(
        self,
        original: Original,
        deployed: Deployed,
        oracle: Oracle,
        rules: Rules,
        *,
        concurrency: int,
        workers: int,
    ) -> None:
        self._original = original
        self._deployed = deployed
        self._oracle = oracle
        self._rules = rules
        self._concurrency = concurrency
        self._workers = workers
        self._ended: queue.SimpleQueue[ChainResult | BaseException] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._in_flight: dict[str, Chain] = {}

    def run(
        self,
        seeds: Iterable[Seed],
        on_result: Callable[[ChainResult], None],
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """Search from every seed; `on_result` is called once a chain, one call at a time, as each ends.

        It is called in a thread of its own, where Ctrl-C cannot cut it short. `on_wait` is called
        about twice a second while no chain ends. An error (of a device, a model or a strategy) or
        Ctrl-C stops the run: the chains that have ended are still handed to `on_result`, then the
        error is raised.
        """
        waiting = iter(seeds)
        with (
            ThreadPoolExecutor(1, thread_name_prefix="edgeflare-result") as keeper,
            ThreadPoolExecutor(self._workers, thread_name_prefix="edgeflare-step") as pool,
        ):

            def keep(ended: ChainResult) -> None:
                keeper.submit(on_result, ended).result()

            try:
                for seed in waiting:
                    self._start(seed, pool)
                    if len(self._in_flight) == self._concurrency:
                        self._hand_over(self._next_ended(on_wait), keep)
                while self._in_flight:
                    self._hand_over(self._next_ended(on_wait), keep)
            except BaseException:
                self._stopping.set()
                pool.shutdown(wait=True, cancel_futures=True)
                self._hand_over_the_rest(keep)
                raise

    @property
    def queries_in_flight(self) -> int:
        """Search queries so far of the chains that have not ended."""
        return sum(chain.counters.search for chain in tuple(self._in_flight.values()))

    def _next_ended(self, on_wait: Callable[[], None]) -> ChainResult | BaseException:
        while True:
            try:
                return self._ended.get(timeout=_WAIT_S)
            except queue.Empty:
                on_wait()

    def _hand_over(
        self, ended: ChainResult | BaseException, on_result: Callable[[ChainResult], None]
    ) -> None:
        if isinstance(ended, BaseException):
            raise ended
        del self._in_flight[ended.seed.id]
        on_result(ended)

    def _hand_over_the_rest(self, on_result: Callable[[ChainResult], None]) -> None:
        while True:
            try:
                ended = self._ended.get_nowait()
            except queue.Empty:
                return
            if isinstance(ended, ChainResult):
                on_result(ended)

    def _start(self, seed: Seed, pool: ThreadPoolExecutor) -> None:
        chain = Chain(seed, self._rules)
        self._in_flight[seed.id] = chain
        life = chain.live()
        pool.submit(self._advance, pool, chain, life, life.__next__)

    def _advance(
        self, pool: ThreadPoolExecutor, chain: Chain, life: Life, step: Callable[[], Ask]
    ) -> None:
        """Take one step of a chain; the next one is queued behind those of the other chains."""
        if self._stopping.is_set():
            return
        began = time.thread_time()
        try:
            ask = step()
            pending = None if ask.of == "original" else self._deployed.submit(ask.samples)
            asked = self._original.scores(ask.samples) if ask.of != "deployed" else None
            if chain.searching:
                chain.counters.seconds += time.thread_time() - began
            if pending is None:
                self._resume(pool, chain, life, partial(self._answer, ask, asked, None))
            else:
                pending.add_done_callback(partial(self._answered, pool, chain, life, ask, asked))
        except StopIteration as stop:
            self._ended.put(stop.value)
        except BaseException as error:  # noqa: BLE001 - raised again in `run`
            self._ended.put(error)

    def _answered(
        self,
        pool: ThreadPoolExecutor,
        chain: Chain,
        life: Life,
        ask: Ask,
        asked: Sequence[Scores] | None,
        pending: "Future[Reply]",
    ) -> None:
        """Take a device's answer (in the link's thread) and hand the chain back to the pool."""
        try:
            reply = pending.result()
        except BaseException as error:  # noqa: BLE001 - raised again in `run`
            self._ended.put(error)
            return
        if chain.searching:
            chain.counters.seconds += sum(reply.seconds)
        self._resume(pool, chain, life, partial(self._answer, ask, asked, reply.scores))

    def _resume(
        self, pool: ThreadPoolExecutor, chain: Chain, life: Life, answer: Callable[[], Answer]
    ) -> None:
        try:
            pool.submit(self._advance, pool, chain, life, lambda: life.send(answer()))
        except RuntimeError:  # the pool is shut down: the run is stopping
            if not self._stopping.is_set():
                raise

    def _answer(
        self, ask: Ask, original: Sequence[Scores] | None, deployed: Sequence[Scores] | None
    ) -> Answer:
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
        return Answer(tuple(outputs))

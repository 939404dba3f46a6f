"""A search that runs in a worker process; only its confirmation runs in the campaign's process."""

import signal
from collections import Counter
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from edgeflare import errors
from edgeflare._internal.processes import MEMORY_ADVICE, MOST_DEATHS, described_status
from edgeflare.campaign.workers.pool import Link, WorkerLostError, WorkerPool
from edgeflare.campaign.workers.program import (
    Asked,
    Begin,
    Ended,
    Failed,
    Progress,
    Raised,
    Replied,
)
from edgeflare.errors import InferenceFailedError
from edgeflare.scheduler import Counters, JobRun, SearchJob, SearchJobResult
from edgeflare.scheduler.confirmation import UnconfirmedTrigger
from edgeflare.scheduler.search_job import ParetoFront
from edgeflare.types import Ask, Status
from edgeflare.words.campaign import ENDED_ITS_WORKER

_ATTEMPTS = 10
"""The first beside other searches, the others in a process of their own."""


@dataclass(kw_only=True)
class RemoteSearchJob(SearchJob):
    """A `SearchJob` whose search runs in a process of `pool`; here, where that has none ready.

    A worker process that ends, as by a crash of a plug-in's library or for want of memory, costs
    nothing but time: its searches begin again, each in a process of its own. A search that ends
    three processes at the same place, within one request, is `FAILED`: it takes the same course each
    time, and at different places something else ended them. `lost_queries` were made by searches
    that were lost so.
    """

    pool: WorkerPool
    replica: str
    lost_queries: int = 0

    def run(self) -> JobRun[SearchJobResult]:
        """Search from the seed and confirm what is found."""
        self.lost_queries = 0
        result = yield from super().run()
        return replace(result, lost_queries=self.lost_queries)

    def search(self) -> JobRun[SearchJobResult | UnconfirmedTrigger]:
        """Search from the seed; what is found is not confirmed."""
        lost, losses = "", Counter[int]()
        for attempt in range(_ATTEMPTS):
            link = self.pool.link() if attempt == 0 else None
            alone = self.pool.turn() if attempt else None
            try:
                if alone is not None:
                    yield alone
                    link = self.pool.link_alone()
                if link is None:
                    self._restart(seconds_count=True)
                    return (yield from super().search())
                self._restart(seconds_count=False)
                return (yield from self._in_worker(link))
            except WorkerLostError as error:
                lost = str(error)
                self.lost_queries += self.counters.search
                place = self.counters.round_trips
                losses[place] += 1
                # The last request may have been lost with the process before it was sent.
                # A loss between two places counts at both, so that more may be at hand at once.
                if sum(losses[one] for one in (place - 1, place, place + 1)) >= MOST_DEATHS:
                    break
            finally:
                if link is not None:
                    link.close()
                if alone is not None:
                    self.pool.end_turn(alone)
        self._restart(seconds_count=False)
        detail = ENDED_ITS_WORKER.format(losses.total(), lost)
        if lost.startswith(described_status(-signal.SIGKILL)):
            detail += f"; {MEMORY_ADVICE}"
        return self._result(Status.FAILED, detail=detail)

    def _restart(self, *, seconds_count: bool) -> None:
        self.counters = Counters(seed=1, device_seconds=self.counters.device_seconds)
        self.front = ParetoFront(self.seed.sample)
        self.seconds_count = seconds_count

    def _in_worker(self, link: Link) -> JobRun[SearchJobResult | UnconfirmedTrigger]:
        """Pass on what the search asks until it ends. Raises WorkerLostError, EdgeFlareError."""
        waiting = link.ask(Begin(replace(self.seed, others=(), known=None), self.replica))
        while True:
            event = yield from _settled(waiting)
            if isinstance(event, Raised):
                kind = getattr(errors, event.kind, None)
                raise RuntimeError(event.text) if kind is None else kind(event.text)
            self._take(event.progress)
            if isinstance(event, Ended):
                for sample in event.stored:
                    self.settings.sample_store.put_sample(sample)
                return self._whole(event.ending)
            waiting = link.ask((yield from self._answered(event)))

    def _answered(self, event: Asked) -> Generator[Any, Any, Replied | Failed]:
        before = self.counters.device_seconds
        try:
            answer = yield Ask(event.samples, "deployed")
        except InferenceFailedError as error:
            return Failed(str(error))
        outputs = [output.deployed for output in answer.outputs if output.deployed is not None]
        return Replied(outputs, self.counters.device_seconds - before)

    def _take(self, progress: Progress) -> None:
        own = self.counters
        self.counters = replace(progress.counters, seed=own.seed, device_seconds=own.device_seconds)
        self.front = ParetoFront(self.seed.sample, progress.points)

    def _whole(
        self, ending: SearchJobResult | UnconfirmedTrigger
    ) -> SearchJobResult | UnconfirmedTrigger:
        """Return an ending of this job: with its own seed and counters."""
        if isinstance(ending, SearchJobResult):
            return replace(ending, seed=self.seed, counters=self.counters)
        return ending


def _settled(waiting: "Future[Any]") -> Generator[Any, Any, Any]:
    """Wait for a future without a thread; return its result."""
    yield waiting
    return waiting.result()

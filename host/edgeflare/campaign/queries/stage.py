"""What the stages of a campaign share: what they are made with, and the one way to ask devices."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar, final

from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.oracles import Oracle, oracle_for
from edgeflare.campaign.events import Reporter, Stage, Step
from edgeflare.campaign.fleet import Fleet
from edgeflare.campaign.pair.model_pair import CountedDevice
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.status import add_queries, queries_before
from edgeflare.devices import DeviceState
from edgeflare.errors import DeviceAwayError
from edgeflare.models import AnswerReader, OriginalModel, as_output
from edgeflare.scheduler import Feed, FleetLimits, Job, Original, Scheduler
from edgeflare.store import CampaignState, SeedRecord, Store
from edgeflare.words.campaign import INPUTS_LEFT

J = TypeVar("J")
R = TypeVar("R")


class OutputReaders(NamedTuple):
    """How raw outputs become answers, and the seconds of the first seeds' queries."""

    original: AnswerReader
    deployed: AnswerReader
    seconds: Sequence[float] = ()
    host_seconds: Sequence[float] = ()


@dataclass
class CampaignRun:
    """What the stages of a running campaign are made with.

    `sides`: both models' interfaces. `replicas` has the names of each replica's devices. `only` has
    the ids of the seeds that are asked about, in the order to take them; None: all. `readers`: None
    until it is known how outputs become answers. The stage "options" replaces `config`.
    """

    config: CampaignConfig
    original: OriginalModel
    fleet: Fleet
    sides: tuple[ModelInterface, ModelInterface]
    store: Store
    reporter: Reporter
    replicas: Mapping[str, Sequence[str]]
    only: Sequence[str] | None = None
    readers: OutputReaders | None = None

    @property
    def is_shared(self) -> bool:
        """Whether devices share the seeds; else each of them is asked about all."""
        return self.config.fleet.mode == "split"

    @property
    def oracle(self) -> Oracle:
        """What decides whether answers deviate."""
        search, (original, deployed) = self.config.search, self.sides
        return oracle_for(
            search.oracle, dict(search), task=original.task, labels_only=not deployed.kind.is_scored
        )

    @property
    def has_retired(self) -> bool:
        """Whether a device was given up."""
        return any(session.state is DeviceState.RETIRED for session in self.fleet)

    def limits_leave(self, names: Sequence[str], queries: int) -> bool:
        """Whether the query limits leave so many queries to these devices together."""
        fleet, spent = self.config.fleet, queries_before(self.store)
        total, each = fleet.total_queries, fleet.device_queries
        own = queries if each is None else sum(max(0, each - spent[name]) for name in names)
        return own >= queries and (total is None or spent.total() + queries <= total)

    @contextmanager
    def counted_devices(self) -> Iterator[list[CountedDevice]]:
        """Yield the devices for a measurement; store the number of its queries."""
        devices = [CountedDevice(session) for session in self.fleet]
        try:
            yield devices
        finally:
            add_queries(
                self.store,
                CampaignState.measuring_queries,
                {device.name: device.samples for device in devices},
            )


class CampaignStage(ABC):
    """A stage of a campaign: what is finished of it is in the store, and it goes on from there.

    `name` is that by which workers are asked for it. What is left of one with the `scope` "seed" may
    be divided among workers by seeds; one with "campaign" is done once.
    """

    name: ClassVar[str]
    scope: ClassVar[Literal["seed", "campaign"]] = "campaign"

    def __init__(self, run: CampaignRun) -> None:
        self._run = run
        self._config = run.config
        self._only = run.only
        self._fleet = run.fleet
        self._store = run.store
        self._reporter = run.reporter
        self._replicas = run.replicas
        self._oracle = run.oracle

    @abstractmethod
    def do(self) -> Any:
        """Do what is left of it. What it returns may be sent to another process."""


class QueryStage(CampaignStage, Generic[J, R]):
    """A stage that asks the models, by a job for each item that is left.

    `is_limited`: it keeps to the configuration's query limits and concurrency. `may_remain`: where
    only a limit is the reason, items may be left at its end. `done` counts what is finished, for progress.
    """

    is_limited: ClassVar[bool] = False
    may_remain: ClassVar[bool] = False

    def __init__(self, run: CampaignRun) -> None:
        super().__init__(run)
        self.done = 0
        self._counted: dict[str, Sequence[J]] = {}
        self._original: Original = run.original
        self._reader = None if run.readers is None else run.readers.deployed
        self._rows: Mapping[str, int] = run.store.state.seed_rows
        self._replica_of = {name: one for one, names in run.replicas.items() for name in names}

    @abstractmethod
    def pending(self, replica: str) -> Iterable[J]:
        """Return what is left for a replica, in order, from the store alone."""

    @final
    def count(self) -> int:
        """Return how many items are pending; the next round takes these, without another reading."""
        self._counted = {replica: list(self.pending(replica)) for replica in self._replicas}
        return sum(map(len, self._counted.values()))

    @abstractmethod
    def job(self, item: J, replica: str) -> Job[R]:
        """Return the job of an item."""

    @abstractmethod
    def write(self, result: R, device: str) -> None:
        """Store a result, of the device of this name; from one thread, which isn't the stage's."""

    def event(self) -> Stage:
        """Return the event that the stage begins."""
        return Stage(self.name, "")

    def begin(self) -> bool:
        """Report that the stage begins; False: nothing is to be asked."""
        return True

    def again(self) -> bool:
        """Whether there is another round, once all items of one are done."""
        return False

    def tick(self, under_way: Sequence[Job[R]] = ()) -> None:
        """Report progress, while these jobs are under way and once at the end of a round."""
        self._reporter(Step(self.done))

    def flush(self) -> None:
        """Store what `write` has kept back; also where a round was interrupted."""

    def remain(self) -> None:
        """Take it that items are left. Raises DeviceAwayError where the limits aren't why."""
        if not self.may_remain or self._run.has_retired:
            raise DeviceAwayError(f"{self.remaining()}: {self._fleet.describe_unavailable()}")

    def remaining(self) -> str:
        """Return what is left, as an error says it."""
        return INPUTS_LEFT

    def end(self) -> Any:
        """Return what the stage returns, once all rounds have ended."""

    def during(self) -> AbstractContextManager[Any]:
        """Return what is entered for a round."""
        return nullcontext()

    def on_flush(self) -> None:
        """Send what is held elsewhere; called every few milliseconds."""

    def shown(self, done: int) -> Step:
        """Return the progress that the store shows, while workers do the stage.

        `done`: the number of seeds that were done before, and of those in finished shards.
        """
        return Step(done)

    def collect(self, values: Sequence[Any], left: Sequence[str]) -> None:
        """Take what the workers' stages returned, and which seeds are left."""

    @final
    def do(self) -> Any:
        """Ask about what is left, round by round. Raises what the scheduler raises."""
        if self.begin():
            while self._round() and self.again():
                pass
        return self.end()

    def _round(self) -> bool:
        """Ask about all pending items; return whether all of them are done."""
        feeds = ((names, Feed(self._jobs(one))) for one, names in self._replicas.items())
        scheduler = self._scheduler({name: feed for names, feed in feeds for name in names})

        def add(result: R, device: str) -> None:
            self.write(result, device)
            self.done += 1

        try:
            with self.during():
                scheduler.run(add, lambda: self.tick(scheduler.under_way))
        finally:
            # an interrupted campaign keeps what was answered: a resumed one asks about the rest
            self.flush()
            self.tick()
        if scheduler.left:
            self.remain()
        return not scheduler.left

    def _jobs(self, replica: str) -> Iterator[Job[R]]:
        counted = self._counted.pop(replica, None)
        for item in self.pending(replica) if counted is None else counted:
            yield self.job(item, replica)

    def _every_seed(self) -> int:
        """Return the number of seeds, of all replicas together."""
        return self._store.seed_count() * len(self._replicas)

    def _seeds(self, replica: str) -> Iterator[SeedRecord]:
        """Yield the seeds that are asked about, with the answers of this replica."""
        if self._only is None:
            return self._store.seeds(replica)
        return self._store.seeds_of(self._only, replica)

    def _scheduler(self, feeds: Mapping[str, Feed[R]]) -> Scheduler[R]:
        """Return a scheduler for the devices that `feeds` names.

        What a job asked that a limit stopped is counted as measurements.
        """
        sessions = [session for session in self._fleet if session.name in feeds]
        for session in sessions:
            session.read_with(as_output if self._reader is None else self._reader.read)
        fleet = self._config.fleet
        budgets = (fleet.device_queries, fleet.total_queries) if self.is_limited else (None, None)
        spent = {} if budgets == (None, None) else queries_before(self._store)
        return Scheduler(
            self._original,
            sessions,
            [feeds[session.name] for session in sessions],
            self._oracle,
            workers=os.cpu_count() or 2,
            limits=FleetLimits(
                *(*budgets, fleet.handover_s, fleet.patience_s, spent),
                concurrency=self._config.concurrency if self.is_limited else None,
                one_trip=self._config.one_trip,
            ),
            on_stopped=lambda name, count: add_queries(
                self._store, CampaignState.measuring_queries, {name: count}
            ),
            on_flush=self.on_flush,
        )

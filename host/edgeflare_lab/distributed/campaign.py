"""A campaign whose devices are on workers: processes that do its parts and write to its store."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from edgeflare.answers.interface import ModelInterface
from edgeflare.campaign.events import Reporter, Stage
from edgeflare.campaign.fleet import Fleet, check_one_model
from edgeflare.campaign.queries.stage import QueryStage
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.stages import STAGES, Campaign
from edgeflare.devices import DeviceState, DeviceStatus, LoadedModel
from edgeflare.devices.equivalence import Bits, check_equal_answers, check_same_fingerprints
from edgeflare.devices.telemetry import Minutes
from edgeflare.errors import EdgeFlareError, UsageError
from edgeflare.models import OriginalModel
from edgeflare.store import SeedRecord, Store

if TYPE_CHECKING:
    from edgeflare_lab.distributed.cluster import DaskCluster


class Board(NamedTuple):
    """A device of a worker; its name is ``NAME@WORKER``."""

    name: str
    model: LoadedModel
    fingerprint: dict[str, Any]


class RemoteBoard:
    """A worker's device in the process of the campaign: described, and never asked."""

    def __init__(self, board: Board) -> None:
        self.name, self.model, self.fingerprint = board
        self.minutes = Minutes(board.name)
        self.last = DeviceStatus(board.name, DeviceState.UP)
        """What its worker said last."""

    @property
    def state(self) -> DeviceState:
        """Whether it answers, as its worker said last."""
        return self.last.state

    @property
    def detail(self) -> str:
        """Why it is not up; empty while it is."""
        return self.last.detail

    def status(self) -> DeviceStatus:
        """Return what its worker said last."""
        return self.last

    def configure(self, *_: object, **__: object) -> None:
        """Do nothing: its worker configures it."""

    def close(self) -> None:
        """Do nothing: its worker closes it."""


@dataclass
class Worker:
    """A worker that has opened its devices for the campaign."""

    address: str
    name: str
    boards: list[RemoteBoard]
    environment: Mapping[str, Any]
    problem: EdgeFlareError | None = None
    """Why its models don't fit, where they don't."""
    away_until: float = 0.0


class RemoteFleet(Fleet):
    """The devices of all workers; `on_close` is called when the campaign needs them no more."""

    def __init__(self, boards: Sequence[RemoteBoard], on_close: Callable[[], None]) -> None:
        super().__init__((), ())
        self.add(boards)
        self._on_close = on_close

    def add(self, boards: Sequence[RemoteBoard]) -> None:
        """Add the devices of a worker."""
        self.sessions += tuple(boards)  # type: ignore[arg-type] # they stand for sessions

    def remove(self, boards: Sequence[RemoteBoard]) -> None:
        """Remove the devices of a worker."""
        gone = {board.name for board in boards}
        self.sessions = tuple(one for one in self.sessions if one.name not in gone)

    def described(self, config: CampaignConfig) -> str:
        """Return their names: those in the configuration may stand for all."""
        del config
        return ", ".join(session.name for session in self)

    def close(self) -> None:
        """Let the workers close them."""
        self._on_close()


class SharedCampaign(Campaign):
    """The stages of a campaign whose devices are asked by a cluster of workers.

    The workers write what they find into the store; the stages here find it there.
    """

    def __init__(
        self,
        config: CampaignConfig,
        original: OriginalModel,
        fleet: RemoteFleet,
        sides: tuple[ModelInterface, ModelInterface],
        store: Store,
        reporter: Reporter,
        cluster: "DaskCluster",
    ) -> None:
        super().__init__(config, original, fleet, sides, store, reporter)
        self._cluster = cluster
        self._boards = fleet
        self._first = fleet.sessions[0]
        self._answers: Sequence[Bits] | None = None
        self._next = 0.0

    def _stage(self, name: str) -> Any:
        stage = STAGES[name](self._run)
        if isinstance(stage, QueryStage) and stage.scope == "seed":
            return self._do_shards(name, stage)
        if name == "options" and not self._run.config.search.tune:
            return self.do(name)
        if name == "outputs":
            return self._detect_outputs()
        if name == "pursuit" and self._run.config.survey.pursuit:
            self._reporter(Stage("pursuit", "after what the survey saw"))
        (value,) = self._cluster.run(name, None, lambda _: self._reporter.tick())
        if name == "options":
            chosen = self._store.setting("search", "options")
            search = self._run.config.search.model_copy(update={"options": chosen})
            self._run.config = self._run.config.model_copy(update={"search": search})
        return value

    def _detect_outputs(self) -> None:
        seconds: tuple[Sequence[float], Sequence[float]] = ((), ())
        if not self._store.models:
            total = self._store.seed_count()
            self._reporter(Stage("seed queries", "both models", total))
            (seconds,) = self._cluster.run("outputs", None, lambda _: self._reporter.tick())
        self.do("outputs")
        assert self._run.readers is not None  # noqa: S101 - it was detected just now
        self._run.readers = self._run.readers._replace(seconds=seconds[0], host_seconds=seconds[1])

    def _do_shards(self, name: str, stage: QueryStage[SeedRecord, Any]) -> None:
        """Do a stage until no seed is left, or no more can be done, and show its progress."""

        def pending() -> list[str]:
            return [seed.id for seed in stage.pending("")]

        left, values = pending(), list[Any]()
        if not left and name == "survey":
            return
        event = stage.event()
        done = (event.total or 0) - len(left)
        self._reporter(event)
        self._reporter(stage.shown(done))
        try:
            while left:
                before = done

                def tick(finished: int, before: int = before) -> None:
                    nonlocal done
                    done = before + finished
                    if time.monotonic() >= self._next:
                        self._next = time.monotonic() + _EVERY_S
                        self._reporter(stage.shown(done))

                values += self._cluster.run(name, left, tick)
                were, left = len(left), pending()
                done = before + were - len(left)
                if not done - before:  # the devices' limits are reached
                    break
        finally:
            self._reporter(stage.shown(done))
        stage.collect(values, left)

    def _compare_devices(self) -> None:
        answers = [bits for of_worker in self._cluster.each("probes") for bits in of_worker]
        self._answers = answers[:1] or None
        if not answers:
            return  # all workers are gone
        check_same_fingerprints(list(self._fleet))
        check_equal_answers(list(self._fleet), answers)

    def _check_equivalent(self) -> None:
        if len(self._fleet) > 1:
            super()._check_equivalent()
        else:
            self._compare_devices()

    def admit(self, boards: Sequence[RemoteBoard], answers: Sequence[Bits] | None) -> None:
        """Take the devices of a worker that joins, where they may stand for the others.

        `answers` are theirs to probes. Raises UsageError where they can't take part.
        """
        together: list[Any] = [self._first, *boards]
        check_one_model(RemoteFleet(together, lambda: None))
        try:
            check_same_fingerprints(together)
            if self._answers is not None and answers is not None:
                check_equal_answers(together, [*self._answers, *answers])
        except UsageError as error:
            self._note_mixed(error)
        self._boards.add(boards)
        self._note_devices()


_EVERY_S = 1.0


def with_patience(config: CampaignConfig) -> CampaignConfig:
    """Return the configuration of a worker: it gives its seeds back after the handover time."""
    fleet = config.fleet
    soon = min(fleet.handover_s, fleet.patience_s)
    return config.model_copy(update={"fleet": fleet.model_copy(update={"patience_s": soon})})

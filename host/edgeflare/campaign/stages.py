"""The stages of an open campaign; each continues where it stopped."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, Literal, TypeAlias

import numpy as np

from edgeflare._internal.text import names_text
from edgeflare.answers.interface import ModelInterface
from edgeflare.answers.oracles import oracle_for
from edgeflare.campaign.events import Notice, Reporter, Stage
from edgeflare.campaign.fleet import Fleet, TelemetryWriter
from edgeflare.campaign.pair.inputs import store_seed_rows
from edgeflare.campaign.pair.model_pair import CountedDevice
from edgeflare.campaign.pair.preflight import Preflight, slowness
from edgeflare.campaign.priority import is_ordered_before, source_priorities
from edgeflare.campaign.resolution import STRATEGY, resolve_search
from edgeflare.campaign.search_stage import SearchStage
from edgeflare.campaign.seed_stage import OutputReaders, SeedStage
from edgeflare.campaign.seeds import partner_source, store_seeds
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.status import (
    LIVE_NAME,
    RunState,
    add_queries,
    all_searched,
    check_searched,
    count_outcomes,
    expected_outcomes,
    failed_replicas,
)
from edgeflare.campaign.survey.inputs import SurveyInputs
from edgeflare.campaign.survey.pursuit import PursuitStage
from edgeflare.campaign.survey.references import ReferenceStage
from edgeflare.campaign.survey.stage import SurveyStage
from edgeflare.devices.equivalence import check_equivalent, probe_answers
from edgeflare.devices.telemetry import slowed_devices
from edgeflare.errors import DeviceAwayError, EdgeFlareError, UsageError
from edgeflare.models import InputSpec, OriginalModel
from edgeflare.seeds import SeedSource
from edgeflare.store import CampaignState, Store
from edgeflare.strategies import build_strategy
from edgeflare.types import Sample, Strategy
from edgeflare.words.preflight import sentence

Part: TypeAlias = Literal[
    "outputs", "probes", "answer", "repeats", "survey", "pursuit", "partners", "options", "search"
]
"""What is done with devices, in this order: how outputs are read, whether devices are equivalent,
the seeds' answers, whether they repeat, the survey, its pursuit, the partners' answers, the open
options, the search."""

_PROBES = 16
"""Number of seeds and of noise samples used to compare devices."""


class Campaign:
    """The stages that a new and a resumed campaign share."""

    def __init__(
        self,
        config: CampaignConfig,
        original: OriginalModel,
        fleet: Fleet,
        sides: tuple[ModelInterface, ModelInterface],
        store: Store,
        reporter: Reporter,
    ) -> None:
        self._config = config
        self._original = original
        original.on_notice = reporter.queue_notice
        self._fleet = fleet
        self._sides = sides
        self._store = store
        self._reporter = reporter
        self._shared = config.fleet.mode == "split"
        self._readers: OutputReaders | None = None
        names = [session.name for session in fleet]
        self._replicas = {"": names} if self._shared else {name: [name] for name in names}

    def start(self, source: SeedSource | None, notices: Sequence[str] = ()) -> None:
        """Run a new campaign; delete its folder if it fails before anything useful was stored."""
        self._reporter.watch(self._store, self._fleet.status)
        for notice in notices:
            self._reporter.notice(notice)
        try:
            self._run(source)
        except BaseException as error:
            if self._is_discardable(error):
                with suppress(OSError):
                    (self._store.folder / LIVE_NAME).unlink(missing_ok=True)
                self._store.discard()
            else:
                self._stopped(error)
            raise
        self._ended()

    def resume(self, source: SeedSource | None, notices: Sequence[str]) -> None:
        """Run what is left of a campaign."""
        self._reporter.watch(self._store, self._fleet.status)
        for notice in notices:
            self._reporter.notice(notice)
        for name, error in self._fleet.missing:
            self._reporter.notice(f"goes on without {name}: {error}")
        try:
            if self._store.state.finished:  # else what is removed or added now counts as lost
                self._store.state.finished = False
            for replica in failed_replicas(self._store):
                self._store.remove_failed(replica)
            self._run(source)
        except BaseException as error:
            self._stopped(error)
            raise
        self._ended()

    def _run(self, source: SeedSource | None) -> None:
        """Run the remaining stages; store telemetry, and report which devices were slowed down."""
        began = time.monotonic()
        try:
            with TelemetryWriter(self._fleet, self._store):
                self._run_stages(source)
        finally:
            with not_interrupted():
                before = self._store.state.wall_s or 0.0
                self._store.state.wall_s = before + time.monotonic() - began
                for device in slowed_devices(self._store.telemetry()):
                    self._reporter(Notice(device.words))

    def _run_stages(self, source: SeedSource | None) -> None:
        search, (original, deployed) = self._config.search, self._sides
        if source is not None:
            side = self._sides[0]
            store_seeds(
                source,
                self._config.seeds,
                self._store,
                self._reporter,
                classes=side.classes or None,
                rate=None if isinstance(side.spec, InputSpec) else side.spec.rate,
                partners=partner_source(self._config, self._original),
                priority=partial(source_priorities, self._config, self._original, side)
                if is_ordered_before(self._config.seeds)
                else None,
            )
        store_seed_rows(self._sides, self._store)
        self._note_devices()
        if self._config.survey.enabled and not self._store.state.is_replay:
            if self._is_survey_left():
                SurveyInputs.begin(self._store, self._config.survey.families)  # raises
            ReferenceStage(*self._common()).check(self._sides[0])
        SeedStage(*self._common()).check_limits()
        self._part("outputs")
        read = self._readers
        assert read is not None  # noqa: S101 - it was detected just now
        self._check_equivalent()
        self._part("answer")
        self._part("repeats")
        self._check(read)
        if self._config.survey.enabled and not self._store.state.is_replay:
            self._part("survey")
            self._part("pursuit")
            ReferenceStage(*self._common()).answer(original, read.original)
        scored = original.classes and deployed.kind.is_scored
        if search.strategy == STRATEGY and scored and not self._part("partners"):
            SearchStage(*self._common()).report_remaining()
            return
        self._part("options")
        self._part("search")
        if not self._shared and not self._fleet.missing:
            SearchStage(*self._common()).replay(read.deployed)
        if self._fleet.missing and not self._shared:
            names = names_text([name for name, _ in self._fleet.missing])
            raise DeviceAwayError(f"what is left is for {names}, which can't be reached")
        check_searched(self._store)
        self._store.state.finished = all_searched(self._store)

    def _part(self, part: Part) -> Any:
        """Do one part, with the devices of this process."""
        return self.do(part)

    def do(self, part: Part, only: Sequence[str] | None = None) -> Any:
        """Do what the store does not have yet of one part; `only` for the seeds of these ids.

        What it returns may be sent to another process. Raises what the stages raise.
        """
        common = (*self._common(), only)
        seeds = SeedStage(*common)
        if part == "outputs":
            self._readers = seeds.detect_outputs(self._sides)
            return self._readers.seconds, self._readers.host_seconds
        if part == "probes":
            with self._counted_devices() as devices:
                return probe_answers(devices, self._probes(), timeout_s=self._probing_s)
        # a resumed campaign, and a worker of a cluster, may begin with any part
        if self._readers is None:
            self._readers = seeds.detect_outputs(self._sides)
            self._original.read_with(self._readers.original)
        read = self._readers
        if part == "answer":
            seeds.answer(read)
        elif part == "repeats":
            seeds.check_answers(read)
        elif part == "survey":
            SurveyStage(*common).survey(read.deployed)
        elif part == "pursuit":
            PursuitStage(*common).pursue(read.deployed)
        elif part == "partners":
            return seeds.answer_partners(read)
        elif part == "options":
            with self._counted_devices() as devices:
                self._config = resolve_search(
                    *(self._config, self._sides[0].task, self._original),
                    *(devices, self._store, self._reporter),
                )
        else:
            strategy = strategy_of(self._config)
            return SearchStage(*common).search(strategy, read.deployed, self._sides[0].task)
        return None

    def _common(self) -> tuple[Any, ...]:
        """Return what every stage is made with."""
        search, (original, deployed) = self._config.search, self._sides
        oracle = oracle_for(
            search.oracle, dict(search), task=original.task, labels_only=not deployed.kind.is_scored
        )
        return (
            *(self._config, self._original, self._fleet, oracle),
            *(self._store, self._reporter, self._replicas),
        )

    def _is_survey_left(self) -> bool:
        """Whether something of the survey or of its pursuit is left, as far as the store tells."""
        if self._store.state.families is None:
            return True
        if self._config.survey.pursuit != 0:
            return not {*self._replicas} <= {*(self._store.state.faults or ())}
        done = {replica: self._store.surveyed_seed_ids(replica) for replica in self._replicas}
        return any(
            seed.outputs is not None and seed.id not in done[replica]
            for replica in self._replicas
            for seed in self._store.seeds(replica)
        )

    @contextmanager
    def _counted_devices(self) -> Iterator[list[CountedDevice]]:
        """Yield the devices for a measurement; store the number of its queries."""
        devices = [CountedDevice(session) for session in self._fleet]
        try:
            yield devices
        finally:
            add_queries(
                self._store,
                CampaignState.measuring_queries,
                {device.name: device.samples for device in devices},
            )

    def _ended(self) -> None:
        """Leave the last status of a run without an error."""
        if self._store.state.finished:
            self._reporter.end("finished")
        else:
            self._reporter.end("paused", "the query limit is reached")

    def _note_devices(self) -> None:
        """Record which devices take part, and the replicas: also those of devices away just now."""
        known = dict(self._store.state.fingerprints)
        for session in self._fleet:
            known[session.name] = self._store.add_device(session.fingerprint, session.name)
        self._store.state.fingerprints = known
        names = self._store.state.device_names
        self._store.state.replicas = [""] if self._shared else names

    def _check_equivalent(self) -> None:
        """Raise UsageError where devices that are to share the seeds differ."""
        if not self._shared or len(self._fleet) == 1:
            return
        self._reporter(Stage("device", "comparing all"))
        try:
            self._compare_devices()
        except UsageError as error:
            self._note_mixed(error)

    def _compare_devices(self) -> None:
        """Raise UsageError where the devices' fingerprints or answers differ."""
        with self._counted_devices() as devices:
            check_equivalent(devices, self._probes(), timeout_s=self._probing_s)

    @property
    def _probing_s(self) -> float:
        """Seconds that all answers to probes may take."""
        return max(60.0, self._config.fleet.patience_s)

    def _probes(self) -> list[Sample]:
        """Return the inputs on which devices are compared: of the first seeds, and noise."""
        samples = [
            self._store.get_sample(seed.sample) for seed in islice(self._store.seeds(), _PROBES)
        ]
        rng = np.random.default_rng(0)
        return samples + [_noise(samples[0], rng) for _ in range(_PROBES)]

    def _note_mixed(self, problem: UsageError) -> None:
        """Raise the error, or make it a notice where devices may differ."""
        if not self._config.fleet.allow_mixed:
            raise problem
        text = (
            f"devices that differ share the seeds ({problem}): what is found depends on which took "
            "which"
        )
        if text not in self._store.notices():
            self._reporter.notice(text)

    def _check(self, read: OutputReaders) -> None:
        """Check both models' answers on the seeds.

        Not those of a replay, whose inputs are there because they deviate.
        """
        if self._store.state.is_replay:
            return
        preflight = Preflight(
            *(self._config, self._original, self._fleet, self._sides),
            *(self._store, self._reporter),
        )
        preflight.run(self._replicas, read.deployed)
        if slow := slowness(read.seconds, self._config.search, read.host_seconds):
            self._reporter.notice(sentence(slow))

    def _is_discardable(self, error: BaseException) -> bool:
        """Whether the folder holds nothing that a resumed campaign could use."""
        try:
            if self._store.tally().done or self._store.survey_counts().seeds:
                return False
            seeds = self._store.seed_count()
        except EdgeFlareError:
            return False
        for_good = isinstance(error, EdgeFlareError) and error.exit_code == 2
        return for_good or not seeds

    def _stopped(self, error: BaseException) -> None:
        """Write the last status, and report what is finished and how to resume."""
        with not_interrupted():
            folder = self._store.folder
            self._reporter.end(state_after(error), str(error))
            done, total = count_outcomes(self._store).done, expected_outcomes(self._store)
            done = 0 if failed_replicas(self._store) else done  # they are done again
            words = f"{done} of {total} searches are finished and kept"
            if not done and (stage := self._reporter.stage) != "search":
                where = f"in the stage {stage}, before any search" if stage else "before any search"
                words = f"stopped {where}; all answers are kept"
            self._reporter(Notice(words, resume=folder))


def _noise(like: Sample, rng: np.random.Generator) -> Sample:
    """Return noise of the shape and kind of a sample."""
    if like.dtype == np.float32:
        return rng.uniform(-1, 1, like.shape).astype(np.float32)
    return rng.integers(0, 256, like.shape, dtype=np.uint8)


def strategy_of(config: CampaignConfig) -> Strategy:
    """Return the strategy that a campaign searches with. Raises UsageError."""
    search = config.search
    return build_strategy(search.strategy, search.options, search.operators)


def state_after(error: BaseException) -> RunState:
    """Return the state of a campaign that was ended by this error."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return "paused" if isinstance(error, DeviceAwayError) else "failed"


@contextmanager
def not_interrupted() -> Iterator[None]:
    """Suppress errors of the cleanup, such as a full disk, so that the first error is raised."""
    with suppress(EdgeFlareError, OSError):
        yield

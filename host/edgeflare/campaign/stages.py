"""The stages of an open campaign; each continues where it stopped."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from edgeflare._internal.text import names_text
from edgeflare.answers.interface import ModelInterface
from edgeflare.campaign.events import Notice, Reporter, Stage
from edgeflare.campaign.fleet import Fleet, TelemetryWriter
from edgeflare.campaign.pair.inputs import store_seed_rows
from edgeflare.campaign.pair.preflight import Preflight, slowness
from edgeflare.campaign.priority import is_ordered_before, source_priorities
from edgeflare.campaign.queries.search import ExchangeStage, SearchStage
from edgeflare.campaign.queries.seeds import OutputsStage, PartnersStage, RepeatsStage, SeedStage
from edgeflare.campaign.queries.stage import CampaignRun, CampaignStage
from edgeflare.campaign.resolution import STRATEGY, resolve_search
from edgeflare.campaign.seeds import partner_source, store_seeds
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.campaign.status import (
    LIVE_NAME,
    RunState,
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
from edgeflare.devices.equivalence import Bits, check_equivalent, probe_answers
from edgeflare.devices.telemetry import slowed_devices
from edgeflare.errors import DeviceAwayError, EdgeFlareError, UsageError
from edgeflare.models import InputSpec, OriginalModel
from edgeflare.seeds import SeedSource
from edgeflare.store import Store
from edgeflare.types import Sample
from edgeflare.words import campaign as words
from edgeflare.words.preflight import sentence

_PROBES = 16
"""Number of seeds and of noise samples used to compare devices."""


class ProbesStage(CampaignStage):
    """The devices' answers to probes, which it returns."""

    name = "probes"

    def do(self) -> list[Bits]:
        with self._run.counted_devices() as devices:
            return probe_answers(devices, self._probes(), timeout_s=self._probing_s)

    def compare(self) -> None:
        """Raise UsageError where the devices' fingerprints or answers differ."""
        with self._run.counted_devices() as devices:
            check_equivalent(devices, self._probes(), timeout_s=self._probing_s)

    @property
    def _probing_s(self) -> float:
        """Seconds that all answers to probes may take."""
        return max(60.0, self._run.config.fleet.patience_s)

    def _probes(self) -> list[Sample]:
        """Return the inputs on which devices are compared: of the first seeds, and noise."""
        samples = [
            self._store.get_sample(seed.sample) for seed in islice(self._store.seeds(), _PROBES)
        ]
        rng = np.random.default_rng(0)
        return samples + [_noise(samples[0], rng) for _ in range(_PROBES)]


class OptionsStage(CampaignStage):
    """The options of the search that were left open."""

    name = "options"

    def do(self) -> None:
        run = self._run
        with run.counted_devices() as devices:
            run.config = resolve_search(
                run.config, run.sides[0].task, run.original, devices, run.store, run.reporter
            )


STAGES: Mapping[str, type[CampaignStage]] = {
    stage.name: stage
    for stage in (
        OutputsStage,
        ProbesStage,
        SeedStage,
        RepeatsStage,
        SurveyStage,
        PursuitStage,
        ReferenceStage,
        PartnersStage,
        OptionsStage,
        SearchStage,
        ExchangeStage,
    )
}
"""The stages of a campaign in their order, by their names."""
_WITHOUT_READERS = (OutputsStage.name, ProbesStage.name)


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
        original.on_notice = reporter.queue_notice
        names = [session.name for session in fleet]
        is_shared = config.fleet.mode == "split"
        replicas = {"": names} if is_shared else {name: [name] for name in names}
        self._run = CampaignRun(config, original, fleet, sides, store, reporter, replicas)
        self._fleet = fleet
        self._sides = sides
        self._store = store
        self._reporter = reporter

    def run(self, source: SeedSource | None, notices: Sequence[str], *, is_new: bool) -> None:
        """Do what is left of a campaign.

        The folder of a new one is deleted if it fails before anything useful was stored.
        """
        self._reporter.watch(self._store, self._fleet.status)
        away = (words.WITHOUT_DEVICE.format(name, error) for name, error in self._fleet.missing)
        for notice in (*notices, *away):
            self._reporter.notice(notice)
        try:
            if self._store.state.finished:  # else what is removed or added now counts as lost
                self._store.state.finished = False
            for replica in failed_replicas(self._store):
                self._store.remove_failed(replica)
            self._do_stages(source)
        except BaseException as error:
            if is_new and self._is_discardable(error):
                with suppress(OSError):
                    (self._store.folder / LIVE_NAME).unlink(missing_ok=True)
                self._store.discard()
            else:
                self._stopped(error)
            raise
        self._ended()

    def _do_stages(self, source: SeedSource | None) -> None:
        """Run the remaining stages; store telemetry, and report which devices were slowed down."""
        began = time.monotonic()
        try:
            with TelemetryWriter(self._fleet, self._store):
                self._do_each(source)
        finally:
            with not_interrupted():
                before = self._store.state.wall_s or 0.0
                self._store.state.wall_s = before + time.monotonic() - began
                for device in slowed_devices(self._store.telemetry()):
                    self._reporter(Notice(device.words))

    def _do_each(self, source: SeedSource | None) -> None:
        run, (original, deployed) = self._run, self._sides
        if source is not None:
            store_seeds(
                source,
                run.config.seeds,
                self._store,
                self._reporter,
                classes=original.classes or None,
                rate=None if isinstance(original.spec, InputSpec) else original.spec.rate,
                partners=partner_source(run.config, run.original),
                priority=partial(source_priorities, run.config, run.original, original)
                if is_ordered_before(run.config.seeds)
                else None,
            )
        store_seed_rows(self._sides, self._store)
        self._note_devices()
        is_surveyed = run.config.survey.enabled and not self._store.state.is_replay
        if is_surveyed:
            if self._is_survey_left():
                SurveyInputs.begin(self._store, run.config.survey.families)  # raises
            ReferenceStage(run).check()
        SeedStage(run).check_limits()
        self._stage("outputs")
        self._check_equivalent()
        self._stage("answer")
        self._stage("repeats")
        self._check()
        if is_surveyed:
            self._stage("survey")
            self._stage("pursuit")
            ReferenceStage(run).do()
        scored = original.classes and deployed.kind.is_scored
        if run.config.search.strategy == STRATEGY and scored and not self._stage("partners"):
            SearchStage(run).report_remaining()
            return
        self._stage("options")
        self._stage("search")
        missing = names_text([name for name, _ in self._fleet.missing])
        if not run.is_shared and not missing:
            ExchangeStage(run).do()
        if missing and not run.is_shared:
            raise DeviceAwayError(f"what is left is for {missing}, which can't be reached")
        check_searched(self._store)
        self._store.state.finished = all_searched(self._store)

    def _stage(self, name: str) -> Any:
        """Do a stage, with the devices of this process."""
        return self.do(name)

    def do(self, name: str, only: Sequence[str] | None = None) -> Any:
        """Do what the store does not have yet of one stage; `only` for the seeds of these ids.

        What it returns may be sent to another process. Raises what the stage raises.
        """
        # a resumed campaign, and a worker of a cluster, may begin with any stage
        if self._run.readers is None and name not in _WITHOUT_READERS:
            OutputsStage(self._run).do()
        return STAGES[name](self._run if only is None else replace(self._run, only=only)).do()

    def _is_survey_left(self) -> bool:
        """Whether something of the survey or of its pursuit is left, as far as the store tells."""
        if self._store.state.families is None:
            return True
        if self._run.config.survey.pursuit != 0:
            return not {*self._run.replicas} <= {*(self._store.state.faults or ())}
        done = {replica: self._store.surveyed_seed_ids(replica) for replica in self._run.replicas}
        return any(
            seed.outputs is not None and seed.id not in done[replica]
            for replica in self._run.replicas
            for seed in self._store.seeds(replica)
        )

    def _ended(self) -> None:
        """Leave the last status of a run without an error."""
        if self._store.state.finished:
            self._reporter.end("finished")
        else:
            self._reporter.end("paused", words.QUERY_LIMIT)

    def _note_devices(self) -> None:
        """Record which devices take part, and the replicas: also those of devices away just now."""
        known = dict(self._store.state.fingerprints)
        for session in self._fleet:
            known[session.name] = self._store.add_device(session.fingerprint, session.name)
        self._store.state.fingerprints = known
        names = self._store.state.device_names
        self._store.state.replicas = [""] if self._run.is_shared else names

    def _check_equivalent(self) -> None:
        """Raise UsageError where devices that are to share the seeds differ."""
        if not self._run.is_shared or len(self._fleet) == 1:
            return
        self._reporter(Stage("device", "comparing all"))
        try:
            self._compare_devices()
        except UsageError as error:
            self._note_mixed(error)

    def _compare_devices(self) -> None:
        """Raise UsageError where the devices' fingerprints or answers differ."""
        ProbesStage(self._run).compare()

    def _note_mixed(self, problem: UsageError) -> None:
        """Raise the error, or make it a notice where devices may differ."""
        if not self._run.config.fleet.allow_mixed:
            raise problem
        text = words.DEVICES_DIFFER.format(problem)
        if text not in self._store.notices():
            self._reporter.notice(text)

    def _check(self) -> None:
        """Check both models' answers on the seeds.

        Not those of a replay, whose inputs are there because they deviate.
        """
        read = self._run.readers
        if self._store.state.is_replay or read is None:
            return
        run = self._run
        preflight = Preflight(
            run.config, run.original, self._fleet, self._sides, self._store, self._reporter
        )
        preflight.run(run.replicas, read.deployed)
        if slow := slowness(read.seconds, run.config.search, read.host_seconds):
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
            text = words.SEARCHES_KEPT.format(done, total)
            if not done and (stage := self._reporter.stage) != "search":
                text = words.STOPPED_IN.format(stage) if stage else words.STOPPED
            self._reporter(Notice(text, resume=folder))


def _noise(like: Sample, rng: np.random.Generator) -> Sample:
    """Return noise of the shape and kind of a sample."""
    if like.dtype == np.float32:
        return rng.uniform(-1, 1, like.shape).astype(np.float32)
    return rng.integers(0, 256, like.shape, dtype=np.uint8)


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

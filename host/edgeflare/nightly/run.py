"""A night: every model on every device, one after the other; accepting it as the baseline."""

import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from edgeflare._internal.text import names_text
from edgeflare.analysis.base import run_as
from edgeflare.analysis.class_names import class_namer
from edgeflare.analysis.corpus import add_to_corpus, fits_corpus, note_replay
from edgeflare.analysis.replay import ReplaySummary, replay_summary
from edgeflare.campaign.batch import CampaignRunner, Report, begin_campaign
from edgeflare.campaign.context import RunContext
from edgeflare.campaign.events import BatchWatch, Event, Notice, Progress, silent
from edgeflare.campaign.executor import check_files
from edgeflare.campaign.fleet import fleet_devices
from edgeflare.campaign.replay.results import replay_config
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.devices import ConnectOptions
from edgeflare.errors import (
    AgentDiedError,
    DeviceAwayError,
    DeviceBusyError,
    DeviceTimeoutError,
    DiskFullError,
    EdgeFlareError,
    StoreError,
    UnreachableError,
    UsageError,
)
from edgeflare.nightly.comparison import (
    REGRESSION,
    answers_checks,
    changes,
    identity_of,
    replay_checks,
    resolved_as_in_baseline,
    search_checks,
)
from edgeflare.nightly.config import NightlyConfig, NightlyModel, check_night
from edgeflare.nightly.history import (
    LOG_NAME,
    REPORT_NAME,
    Baseline,
    History,
    NightLog,
    prune_history,
    run_folder,
)
from edgeflare.nightly.night import (
    Check,
    Identity,
    Night,
    NightRun,
    ReplayCounts,
    RunState,
    SearchFigures,
    replay_figures,
    search_figures,
)
from edgeflare.nightly.reports import write_junit, write_page
from edgeflare.store import CampaignLock, Store
from edgeflare.store.corpus.corpus import Corpus
from edgeflare.store.corpus.records import target_name
from edgeflare.store.database import disk_full_advice
from edgeflare.store.location import is_corpus
from edgeflare.types import AGREED
from edgeflare.words import nightly as words

if TYPE_CHECKING:
    from typing_extensions import Unpack

Part: TypeAlias = Literal["replay", "search"]
RunFailure: TypeAlias = tuple[Literal["away", "failed"], str]
ReportPart: TypeAlias = Callable[[Part | None, Event], None]

_AWAY = (
    AgentDiedError,
    DeviceAwayError,
    DeviceBusyError,
    DeviceTimeoutError,
    UnreachableError,
)

"""Errors of a device that is away or busy; any other error needs a person."""


def _failure_of(error: Exception, log: NightLog) -> RunFailure:
    """Return the state of a run that failed with this error, and the sentence about it."""
    if isinstance(error, _AWAY):
        return "away", str(error)
    if isinstance(error, EdgeFlareError):
        return "failed", str(error)
    log.line(traceback.format_exc())
    return "failed", words.FAULT.format(type(error).__name__, error)


class _Run:
    """A run of a model on a device, with its results so far."""

    def __init__(
        self, night: "_NightRunner", model: NightlyModel, device: str, report: ReportPart
    ) -> None:
        self.failure: RunFailure | None = None
        self._runner = night
        self._model = model
        self._device = device
        self._report = report
        self._folder = night.night.folder / run_folder(model.name, device)
        self._baseline: Baseline | None = None
        self._checks: list[Check] = []
        self._search_figures: SearchFigures | None = None
        self._replay_counts: ReplayCounts | None = None
        self._identity = Identity()

    def run(self) -> None:
        """Replay and search. Raises any error of the run."""
        night = self._runner
        self._baseline = night.history.last_green(self._model.name, self._device)
        green = None if self._baseline is None else self._baseline.campaign
        config = night.config.campaign(
            self._model, self._device, night=night.night.number, baseline=green
        )
        if green is not None:
            # The pair passed this check before; if it wouldn't now, the figures shall show that.
            config = config.model_copy(update={"allow_disagreement": True})
        check_files(config)
        self._replay_stored(config)
        self._search(config)

    def result(self, seconds: float) -> NightRun:
        """Return the record of the run."""
        baseline = self._baseline
        crossed = [check.words for check in self._checks if check.crossed]
        said = (*crossed, *([self.failure[1]] if self.failure else []))
        changed: tuple[str, ...] = ()
        if baseline is not None and self._identity != Identity():
            changed = changes(baseline.run.identity, self._identity)
            if crossed and not changed:
                changed = (words.UNCHANGED,)
        state: RunState
        if crossed:
            state = "regression"
        elif self.failure:
            state = self.failure[0]
        else:
            state = "first" if baseline is None else "green"
            said = (words.FIRST,) if baseline is None else said
        return NightRun(
            model=self._model.name,
            device=self._device,
            folder=run_folder(self._model.name, self._device),
            state=state,
            words=said,
            changed=changed,
            checks=tuple(self._checks),
            search=self._search_figures,
            replay=self._replay_counts,
            identity=self._identity,
            compared_with="" if baseline is None else baseline.night.stamp,
            seconds=seconds,
        )

    def _replay_stored(self, config: CampaignConfig) -> None:
        """Replay the corpus, and the seeds on which the models agreed in the last green night.

        Of models without classes, which have no corpus, that night's triggers and all seeds.
        """
        replays = list[ReplaySummary]()
        corpus = self._runner.history.corpus(self._model.name)
        if _has_entries(corpus):
            replays.append(self._replay(corpus, config, "replay"))
        if self._baseline is not None and _without_corpus(self._baseline.campaign):
            replays.append(self._replay(self._baseline.campaign, config, "replay"))
        elif self._baseline is not None and _has_agreeing_seeds(self._baseline.campaign):
            replays.append(self._replay(self._baseline.campaign, config, "seeds"))
        if not replays:
            return
        self._replay_counts = replay_figures(replays)
        if self._baseline is not None:
            limit = config.limits.max_new_triggers or 0
            self._checks += replay_checks(
                replays, limit, self._baseline.day, class_namer(self._baseline.campaign)
            )

    def _replay(self, source: Path, config: CampaignConfig, name: str) -> ReplaySummary:
        out = self._folder / name
        (device,) = fleet_devices(config)
        self._runner.campaigns.replay(
            source,
            replay_config(config, {"out": out}),
            only="seeds" if name == "seeds" else None,
            target=target_name(self._model.name, device.name),
            name=self._lease_name(name),
            progress=lambda event: self._report("replay", event),
        )
        with Store.open(out) as store:
            self._identity = identity_of(store, config.search)
        replay = replay_summary(out)
        if self._baseline is not None and replay.counts["new"]:
            self._write_report(out, "replay")
        return replay

    def _search(self, config: CampaignConfig) -> None:
        out, baseline = self._folder / "search", self._baseline
        search = (
            config.search if baseline is None else resolved_as_in_baseline(baseline, config.search)
        )
        self._runner.campaigns.run(
            config.model_copy(update={"search": search}),
            out,
            name=self._lease_name("search"),
            progress=lambda event: self._report("search", event),
        )
        with Store.open(out) as store:
            self._search_figures = search_figures(store)
            self._identity = identity_of(store, config.search)
        unusable = answers_checks(out)
        self._checks += [*unusable, *search_checks(out)]
        try:
            if baseline is not None and not unusable:
                self._checks += _compare(baseline, out, partial(self._report, "search"))
        finally:
            self._write_report(out, "search")

    def _write_report(self, campaign: Path, part: Part) -> None:
        """Write a campaign's report for people; the night does not depend on it."""
        from edgeflare.reports.html import write_html_report

        try:
            write_html_report(campaign, campaign / REPORT_NAME)
        except DiskFullError:
            raise
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, EdgeFlareError):
                self._runner.log.line(traceback.format_exc())
            self._report(part, Notice(words.NO_REPORT.format(error)))

    def _lease_name(self, part: str) -> str:
        """Return the name by which others see who uses the device."""
        return f"nightly-{self._runner.night.stamp}-{self._model.name}-{part}"


def _compare(baseline: Baseline, campaign: Path, progress: Progress) -> list[Check]:
    base = {"base": baseline.campaign, "called": words.LAST_GREEN.format(baseline.day)}
    try:
        context = RunContext(progress=progress)
        return run_as(REGRESSION, REGRESSION.name, campaign, base, context).checks
    except UsageError as error:
        raise UsageError(
            f"{error}; or take this night for the new baseline: `edgeflare nightly ... --accept`"
        ) from error


def _has_agreeing_seeds(campaign: Path) -> bool:
    """Whether a campaign has a seed on which the models agreed, so that it can be replayed."""
    with Store.open(campaign) as store:
        return any(
            seed.outputs is not None and seed.outputs.decision in AGREED for seed in store.seeds()
        )


def _without_corpus(campaign: Path) -> bool:
    with Store.open(campaign) as store:
        return not fits_corpus(store)


def _has_entries(folder: Path) -> bool:
    """Whether there is anything in a corpus to be sent again. Raises StoreError."""
    if not is_corpus(folder):
        return False
    with Corpus.open(folder) as corpus:
        return len(corpus) > 0


def update_corpus(
    history: History, night: Night, run: NightRun, on_notice: Callable[[str], None]
) -> None:
    """Add the triggers of a run, and of the red ones since the last green one, to the corpus.

    The results of this run's replay are added to its entries; `on_notice` is called with each
    notice. Models without classes have no corpus. Raises StoreError, and UsageError where the
    inputs are of another form than before.
    """
    with Store.open(night.campaign(run)) as store:
        if not fits_corpus(store):  # the last green night's own inputs are sent again
            return
    corpus = history.corpus(run.model)
    for search in [*_red_since_green(history, night, run), night.campaign(run)]:
        addition = add_to_corpus(
            corpus, search, model=run.model, database=history.store, samples=history.samples
        )
        for notice in addition.notices:
            on_notice(notice)
    if night.replayed(run).is_dir():
        note_replay(corpus, night.replayed(run), model=run.model)


def _red_since_green(history: History, night: Night, run: NightRun) -> list[Path]:
    """Return the searches since the last green night before this one, the oldest first."""
    found: list[Path] = []
    for earlier in reversed(history.nights()):
        other = earlier.run(run.model, run.device)
        if earlier.number >= night.number or other is None:
            continue
        if other.is_baseline:
            break
        folder = earlier.campaign(other)
        if other.search is not None and folder.is_dir():
            found.append(folder)
    return found[::-1]


Clock: TypeAlias = Callable[[], datetime]


def now() -> datetime:
    """Return the present time, UTC."""
    return datetime.now(timezone.utc)


def never() -> bool:
    """Return False: no signal has asked to stop."""
    return False


def run_nightly(
    config: NightlyConfig,
    *,
    models: Sequence[str] = (),
    devices: Sequence[str] = (),
    clock: Clock = now,
    progress: BatchWatch = silent,
    stopped: Callable[[], bool] = never,
    **reach: "Unpack[ConnectOptions]",
) -> Night:
    """Run a night and return it; its folder, log and page are in the history by then.

    Every model runs on every device, or those of the `models` and `devices` named here: what is in
    the model's corpus and the seeds of the last green night are sent again, then it is searched,
    then compared with the last green night. An error of one run is part of its result, and the
    others go on. `ask` is called once for each question. `stopped` returns whether a signal has
    asked for an end: any error after it becomes KeyboardInterrupt.

    Raises UsageError for an unknown name and, before a night begins, for all that is wrong with the
    configuration (a device that isn't in the inventory, a file that isn't there); StoreError where
    the history can't be used or another process runs a night in it; DiskFullError. After these, and
    after KeyboardInterrupt, what is finished stays stored, and the page says so.
    """
    chosen = _chosen_runs(config, models, devices)
    check_night(config, chosen)
    history = _history(config)
    history.make()
    with disk_full_advice(*words.DISK_FULL), CampaignLock(history.folder):
        history.attach()
        with suppress(StoreError):  # the end of the night tries again, and logs the error
            prune_history(history, config.keep)
        night = history.begin(clock(), len(chosen))
        with NightLog(night.folder / LOG_NAME, clock) as log:
            campaigns = CampaignRunner(RunContext(**reach), stored_elsewhere=True)
            runner = _NightRunner(config, history, night, log, clock, campaigns, progress, stopped)
            return runner.run(chosen)


def _history(config: NightlyConfig) -> History:
    return History(config.history, store=config.store, samples=config.samples)


def _chosen_runs(
    config: NightlyConfig, models: Sequence[str], devices: Sequence[str]
) -> list[tuple[NightlyModel, str]]:
    """Return each (named) model and device. Raises UsageError for an unknown name."""
    for what, names, known in (
        ("model", models, [one.name for one in config.models]),
        ("device", devices, config.devices),
    ):
        unknown = [name for name in names if name not in known]
        if unknown:
            raise UsageError(
                f"no {what} of the nightly is called {unknown[0]!r}; there is {names_text(known)}"
            )
    return [
        (model, device)
        for model in config.models
        if not models or model.name in models
        for device in config.devices
        if not devices or device in devices
    ]


@dataclass
class _NightRunner:
    """Runs one night of a history whose lock this process holds."""

    config: NightlyConfig
    history: History
    night: Night
    log: NightLog
    clock: Clock
    campaigns: CampaignRunner
    progress: BatchWatch
    stopped: Callable[[], bool]

    def run(self, chosen: Sequence[tuple[NightlyModel, str]]) -> Night:
        """Run these models on these devices."""
        self.log.line(words.BEGUN.format(self.night.number, len(chosen)))
        try:
            for number, (model, device) in enumerate(chosen, 1):
                name, folder = f"{model.name} on {device}", run_folder(model.name, device)
                where = self.night.folder / folder
                report = begin_campaign(self.progress, name, where, number, len(chosen))
                self._run(name, model, device, report)
        except BaseException as error:
            with suppress(EdgeFlareError, OSError):  # on a full disk this fails, too
                self.log.line(f"interrupted: {error or type(error).__name__}")
                self._close("interrupted")
            raise
        self._close("finished")
        return self.night

    def _run(self, name: str, model: NightlyModel, device: str, report: Report) -> None:
        self.log.line(f"{name} begins")

        def report_part(part: Part | None, event: Event) -> None:
            self.log.event(event, f"{name}, {part}" if part else name)
            report(event)

        run = self._run_on_device(model, device, report_part)
        self.log.end_stage()
        if run.is_baseline:
            run = self._update_corpus(run, lambda text: report_part(None, Notice(text)))
        self.log.line("\n".join([f"{name}: {run.state}", *run.words, *run.changed]))
        self._save(runs=(*self.night.runs, run))
        report(ended=run.state)

    def _run_on_device(self, model: NightlyModel, device: str, report: ReportPart) -> NightRun:
        """Run a model on a device and return the result, which any error is part of.

        Raises DiskFullError, which concerns all runs, and KeyboardInterrupt in place of any error
        after a signal.
        """
        began = time.monotonic()
        run = _Run(self, model, device, report)
        try:
            run.run()
        except DiskFullError:
            raise
        except Exception as error:
            if self.stopped():
                raise KeyboardInterrupt from error
            run.failure = _failure_of(error, self.log)
        return run.result(time.monotonic() - began)

    def _update_corpus(self, run: NightRun, on_notice: Callable[[str], None]) -> NightRun:
        """Add a green run's triggers to the model's corpus; where that fails the run has failed."""
        try:
            update_corpus(self.history, self.night, run, on_notice)
        except DiskFullError:
            raise
        except Exception as error:  # it concerns this model's corpus alone
            if self.stopped():
                raise KeyboardInterrupt from error
            _, said = _failure_of(error, self.log)
            return run.model_copy(update={"state": "failed", "words": (said,)})
        return run

    def _close(self, state: str) -> None:
        """Store the night's end, remove old campaigns, and write the page."""
        self._save(state=state, ended_at=self.clock().astimezone(timezone.utc))
        self.log.line(words.ENDED.format(self.night.number, state, self.night.verdict))
        write_junit(self.night)
        self._prune()
        write_page(self.history)

    def _prune(self) -> None:
        """Remove old campaigns; log the error where that fails."""
        try:
            if lost := prune_history(self.history, self.config.keep):
                self.log.line(words.PRUNED.format(lost))
        except StoreError as error:
            self.log.line(words.NOT_PRUNED.format(error))

    def _save(self, **values: object) -> None:
        self.night = self.night.model_copy(update=values)
        self.history.save(self.night)


def accept_night(
    config: NightlyConfig,
    *,
    models: Sequence[str] = (),
    devices: Sequence[str] = (),
    clock: Clock = now,
) -> tuple[str, ...]:
    """Accept the last run of each model and device that isn't green as the later nights' baseline.

    `models` and `devices` are as in `run_nightly`. Returns a line for each that was accepted.
    Raises UsageError where there is none, or a name is unknown; StoreError where the history can't
    be used or a night runs in it.
    """
    chosen = _chosen_runs(config, models, devices)
    history = _history(config)
    history.make(create=False)
    with CampaignLock(history.folder):
        history.attach()
        red = [
            one
            for model, device in chosen
            if (one := _last_searched(history, model.name, device)) and not one.run.is_baseline
        ]
        if not red:
            raise UsageError(
                "nothing to accept: the last search of each model on each device is the baseline "
                "already"
            )
        lines = tuple(_accept(history, one, clock) for one in red)
        write_page(history)
    return lines


def _last_searched(history: History, model: str, device: str) -> Baseline | None:
    """Return the newest night with a finished search of a model on a device."""
    for night in reversed(history.nights()):
        run = night.run(model, device)
        if run is not None and run.search is not None and night.campaign(run).is_dir():
            return Baseline(night, run)
    return None


def _accept(history: History, one: Baseline, clock: Clock) -> str:
    night = next(night for night in history.nights() if night.stamp == one.night.stamp)
    accepted = one.run.model_copy(update={"accepted": True})
    said = words.ACCEPTED.format(accepted.name, night.stamp)
    with NightLog(night.folder / LOG_NAME, clock) as log:
        update_corpus(history, night, accepted, log.line)
        log.line(said)
    runs = tuple(accepted if run.name == accepted.name else run for run in night.runs)
    history.save(night.model_copy(update={"runs": runs}))
    return said

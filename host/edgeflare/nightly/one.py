"""One model on one device in one night: replays, search and comparison with the last green night."""

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from edgeflare.analysis.replayed import ReplaySummary, replay_summary
from edgeflare.campaign.batch import CampaignRunner
from edgeflare.campaign.config import CampaignConfig
from edgeflare.campaign.fleet import fleet_devices
from edgeflare.campaign.progress import Event, Notice
from edgeflare.campaign.replay_settings import replay_config
from edgeflare.campaign.single import check_files
from edgeflare.errors import (
    AgentDiedError,
    DeviceAwayError,
    DeviceBusyError,
    DeviceTimeoutError,
    DiskFullError,
    EdgeFlareError,
    UnreachableError,
    UsageError,
)
from edgeflare.nightly.comparison import comparison_check, replay_checks, search_checks
from edgeflare.nightly.config import NightlyConfig, NightlyModel
from edgeflare.nightly.figures import replay_figures, search_figures
from edgeflare.nightly.history import REPORT_NAME, Baseline, History, run_folder
from edgeflare.nightly.identity import as_in, changes, identity_of
from edgeflare.nightly.log import NightLog
from edgeflare.nightly.night import (
    Check,
    Identity,
    Night,
    NightRun,
    ReplayCounts,
    RunState,
    SearchFigures,
)
from edgeflare.store import Store
from edgeflare.store.corpus import Corpus, is_corpus
from edgeflare.store.corpus_records import target_name
from edgeflare.types import Decision

Part: TypeAlias = Literal["replay", "search"]
Trouble: TypeAlias = tuple[Literal["away", "failed"], str]
Tell: TypeAlias = Callable[[Part | None, Event], None]

_AWAY = (
    AgentDiedError,
    DeviceAwayError,
    DeviceBusyError,
    DeviceTimeoutError,
    UnreachableError,
)
"""Errors of a device that is away or busy; any other error needs a person."""

_AGREED = (Decision.AGREE, Decision.TIE, Decision.BELOW_FLOOR)

FIRST = "nothing was compared: there is no green night of it here yet; later nights are held against this one"
UNCHANGED = "nothing that is known: files, device, libraries and settings are as they were"


class Task(NamedTuple):
    """A model and a device of a night, with the settings of the run."""

    config: NightlyConfig
    model: NightlyModel
    device: str
    history: History
    night: Night
    log: NightLog
    campaigns: CampaignRunner
    tell: Tell
    stopped: Callable[[], bool]

    @property
    def folder(self) -> Path:
        """Where its campaigns go."""
        return self.night.folder / run_folder(self.model.name, self.device)


def run_one(task: Task) -> NightRun:
    """Run a model on a device and return the result; any error is part of it, and concerns this run alone.

    Raises DiskFullError, which concerns all, and KeyboardInterrupt also where a signal that `stopped` knows
    of made something else of itself: what it tore fails with an error of its own.
    """
    began = time.monotonic()
    run = _Run(task)
    try:
        run.go()
    except DiskFullError:
        raise
    except Exception as error:
        if task.stopped():
            raise KeyboardInterrupt from error
        run.trouble = trouble_of(error, task.log)
    return run.result(time.monotonic() - began)


def trouble_of(error: Exception, log: NightLog) -> Trouble:
    """Return the state of a run that failed with this error, and the sentence about it."""
    if isinstance(error, _AWAY):
        return "away", str(error)
    if isinstance(error, EdgeFlareError):
        return "failed", str(error)
    log.line(traceback.format_exc())
    said = f"a fault of EdgeFlare's own, {type(error).__name__}: {error}; log.txt has the whole"
    return "failed", said


class _Run:
    """The results of a run so far."""

    def __init__(self, task: Task) -> None:
        self.trouble: Trouble | None = None
        self._task = task
        self._baseline: Baseline | None = None
        self._checks: list[Check] = []
        self._search: SearchFigures | None = None
        self._replay: ReplayCounts | None = None
        self._identity = Identity()

    def go(self) -> None:
        task = self._task
        self._baseline = task.history.last_green(task.model.name, task.device)
        green = None if self._baseline is None else self._baseline.campaign
        config = task.config.campaign(
            task.model, task.device, night=task.night.number, baseline=green
        )
        if green is not None:
            # The pair passed this check before; if it wouldn't now, the figures shall show that.
            config = config.model_copy(update={"allow_disagreement": True})
        check_files(config)
        self._send_again(config)
        self._search_for(config)

    def result(self, seconds: float) -> NightRun:
        """Return the record of the run."""
        task, baseline = self._task, self._baseline
        crossed = [check.words for check in self._checks if check.crossed]
        words = (*crossed, *([self.trouble[1]] if self.trouble else []))
        changed: tuple[str, ...] = ()
        if baseline is not None and self._identity != Identity():
            changed = changes(baseline.run.identity, self._identity)
            if crossed and not changed:
                changed = (UNCHANGED,)
        state: RunState
        if crossed:
            state = "regression"
        elif self.trouble:
            state = self.trouble[0]
        else:
            state = "first" if baseline is None else "green"
            words = (FIRST,) if baseline is None else words
        return NightRun(
            model=task.model.name,
            device=task.device,
            folder=run_folder(task.model.name, task.device),
            state=state,
            words=words,
            changed=changed,
            checks=tuple(self._checks),
            search=self._search,
            replay=self._replay,
            identity=self._identity,
            compared_with="" if baseline is None else baseline.night.stamp,
            seconds=seconds,
        )

    def _send_again(self, config: CampaignConfig) -> None:
        """Replay the corpus, and the seeds on which the models agreed in the last green night."""
        task, replays = self._task, list[ReplaySummary]()
        corpus = task.history.corpus(task.model.name)
        if _has_entries(corpus):
            replays.append(self._replayed(corpus, config, "replay"))
        if self._baseline is not None and _has_agreeing_seeds(self._baseline.campaign):
            replays.append(self._replayed(self._baseline.campaign, config, "seeds"))
        if not replays:
            return
        self._replay = replay_figures(replays)
        if self._baseline is not None:
            limit = config.limits.max_new_triggers or 0
            self._checks += replay_checks(replays, limit, self._baseline.day)

    def _replayed(self, source: Path, config: CampaignConfig, name: str) -> ReplaySummary:
        task, out = self._task, self._task.folder / name
        (device,) = fleet_devices(config)
        task.campaigns.replay(
            source,
            replay_config(config, {"out": out}),
            only="seeds" if name == "seeds" else None,
            target=target_name(task.model.name, device.name),
            name=self._called(name),
            progress=lambda event: task.tell("replay", event),
        )
        with Store.open(out) as store:
            self._identity = identity_of(store, config.search)
        replay = replay_summary(out)
        if self._baseline is not None and replay.counts["new"]:
            self._write_report(out, "replay")
        return replay

    def _search_for(self, config: CampaignConfig) -> None:
        task, out, baseline = self._task, self._task.folder / "search", self._baseline
        search = config.search if baseline is None else as_in(baseline, config.search)
        task.campaigns.run(
            config.model_copy(update={"search": search}),
            out,
            name=self._called("search"),
            progress=lambda event: task.tell("search", event),
        )
        with Store.open(out) as store:
            self._search = search_figures(store)
            self._identity = identity_of(store, config.search)
        self._checks += search_checks(out)
        self._write_report(out, "search")
        if baseline is not None:
            self._checks.append(_compared(baseline, out))

    def _write_report(self, campaign: Path, part: Part) -> None:
        """Write a campaign's report for people; the night does not depend on it."""
        from edgeflare.analysis.page import write_html_report

        try:
            write_html_report(campaign, campaign / REPORT_NAME)
        except DiskFullError:
            raise
        except Exception as error:  # noqa: BLE001
            if not isinstance(error, EdgeFlareError):
                self._task.log.line(traceback.format_exc())
            self._task.tell(part, Notice(f"no report could be written: {error}"))

    def _called(self, part: str) -> str:
        """Return the name of the device's user that others are shown."""
        return f"nightly-{self._task.night.stamp}-{self._task.model.name}-{part}"


def _compared(baseline: Baseline, campaign: Path) -> Check:
    try:
        return comparison_check(baseline.campaign, campaign, baseline.day)
    except UsageError as error:
        raise UsageError(
            f"{error}; or take this night for the new baseline: `edgeflare nightly ... --accept`"
        ) from error


def _has_agreeing_seeds(campaign: Path) -> bool:
    """Whether a campaign has a seed on which the models agreed: else there is nothing to send again."""
    with Store.open(campaign) as store:
        return any(
            seed.outputs is not None and seed.outputs.decision in _AGREED for seed in store.seeds()
        )


def _has_entries(folder: Path) -> bool:
    """Whether there is anything in a corpus to be sent again. Raises StoreError."""
    if not is_corpus(folder):
        return False
    with Corpus.open(folder) as corpus:
        return len(corpus) > 0

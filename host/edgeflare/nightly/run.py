"""A night: every model on every device, one after the other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import TypeAlias

from edgeflare.campaign.batch import BatchWatch, CampaignRunner, Report, begin_campaign, silent
from edgeflare.campaign.fleet import Connect, Prompt
from edgeflare.campaign.progress import Event, Notice
from edgeflare.devices import connect
from edgeflare.errors import DiskFullError, EdgeFlareError, StoreError, UsageError
from edgeflare.nightly.checking import check_night
from edgeflare.nightly.config import NightlyConfig, NightlyModel
from edgeflare.nightly.history import LOG_NAME, History, run_folder
from edgeflare.nightly.junit import write_junit
from edgeflare.nightly.keeping import learn
from edgeflare.nightly.log import NightLog
from edgeflare.nightly.night import Night, NightRun
from edgeflare.nightly.one import Part, Task, run_one, trouble_of
from edgeflare.nightly.page import write_page
from edgeflare.nightly.retention import prune_history
from edgeflare.store import CampaignLock

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
    ask: Prompt | None = None,
    progress: BatchWatch = silent,
    connect: Connect = connect,
    stopped: Callable[[], bool] = never,
) -> Night:
    """Run a night and return it; its folder, log and page are in the history by then.

    Every model runs on every device, or those of the `models` and `devices` named here: what is in the
    model's corpus and the seeds of the last green night are sent again, then it is searched, then compared
    with the last green night. What goes wrong in one run is told of in it, and the others go on.
    `clock` tells the time, `connect` reaches a device; `ask` is asked each question once. `stopped` says
    whether a signal has asked for an end: an error after it is no run's own, but KeyboardInterrupt.

    Raises UsageError for an unknown name and, before a night begins, for all that is wrong with the
    configuration (a device that isn't in the inventory, a file that isn't there), StoreError where the history can't be used or another process
    runs a night in it, DiskFullError where no space is left. After these, and where it is interrupted
    (KeyboardInterrupt), what is finished is kept, and the page says so.
    """
    chosen = chosen_runs(config, models, devices)
    check_night(config, chosen)
    history = History(config.history)
    history.make()
    with _full_disk_told(history), CampaignLock(history.folder):
        with suppress(StoreError):  # the end of the night tries again, and logs the error
            prune_history(history, config.keep)
        night = history.begin(clock(), len(chosen))
        with NightLog(night.folder / LOG_NAME, clock) as log:
            campaigns = CampaignRunner(ask, connect)
            turn = _Turn(config, history, night, log, clock, campaigns, progress, stopped)
            return turn.go(chosen)


@contextmanager
def _full_disk_told(history: History) -> Iterator[None]:
    """Replace the advice of a DiskFullError by that for a night."""
    try:
        yield
    except DiskFullError as error:
        raise DiskFullError(
            f"no space is left on the disk of {history.folder}; what is finished of the night is kept: free "
            "some space, for example by a lower keep.mb or keep.nights, and run the night again"
        ) from error


def chosen_runs(
    config: NightlyConfig, models: Sequence[str], devices: Sequence[str]
) -> list[tuple[NightlyModel, str]]:
    """Return each model and device, of the named ones where some are. Raises UsageError for an unknown name."""
    for what, names, known in (
        ("model", models, [one.name for one in config.models]),
        ("device", devices, config.devices),
    ):
        unknown = [name for name in names if name not in known]
        if unknown:
            raise UsageError(
                f"no {what} of the nightly is called {unknown[0]!r}; there is {', '.join(known)}"
            )
    return [
        (model, device)
        for model in config.models
        if not models or model.name in models
        for device in config.devices
        if not devices or device in devices
    ]


class _Turn:
    """One night of a history whose lock this process holds."""

    def __init__(
        self,
        config: NightlyConfig,
        history: History,
        night: Night,
        log: NightLog,
        clock: Clock,
        campaigns: CampaignRunner,
        progress: BatchWatch,
        stopped: Callable[[], bool],
    ) -> None:
        self._config = config
        self._history = history
        self._night = night
        self._log = log
        self._clock = clock
        self._campaigns = campaigns
        self._progress = progress
        self._stopped = stopped

    def go(self, chosen: Sequence[tuple[NightlyModel, str]]) -> Night:
        """Run all of them."""
        self._log.line(f"night {self._night.number} begins: {len(chosen)} runs")
        try:
            for number, (model, device) in enumerate(chosen, 1):
                name, folder = f"{model.name} on {device}", run_folder(model.name, device)
                where = self._night.folder / folder
                report = begin_campaign(self._progress, name, where, number, len(chosen))
                self._run(name, model, device, report)
        except BaseException as error:
            with suppress(EdgeFlareError, OSError):  # on a full disk this fails, too
                self._log.line(f"interrupted: {error or type(error).__name__}")
                self._close("interrupted")
            raise
        self._close("finished")
        return self._night

    def _run(self, name: str, model: NightlyModel, device: str, report: Report) -> None:
        self._log.line(f"{name} begins")

        def tell(part: Part | None, event: Event) -> None:
            self._log.event(event, f"{name}, {part}" if part else name)
            report(event)

        task = Task(
            self._config,
            model,
            device,
            self._history,
            self._night,
            self._log,
            self._campaigns,
            tell,
            self._stopped,
        )
        run = run_one(task)
        self._log.end_stage()
        if run.is_baseline:
            run = self._learnt(run, lambda text: tell(None, Notice(text)))
        self._log.line("\n".join([f"{name}: {run.state}", *run.words, *run.changed]))
        self._save(runs=(*self._night.runs, run))
        report(ended=run.state)

    def _learnt(self, run: NightRun, tell: Callable[[str], None]) -> NightRun:
        """Add a green run's triggers to the model's corpus; a run whose triggers it can't take is not green."""
        try:
            learn(self._history, self._night, run, tell)
        except DiskFullError:
            raise
        except Exception as error:  # it concerns this model's corpus alone
            if self._stopped():
                raise KeyboardInterrupt from error
            _, words = trouble_of(error, self._log)
            return run.model_copy(update={"state": "failed", "words": (words,)})
        return run

    def _close(self, state: str) -> None:
        """Store the night's end, remove old campaigns, and write the page."""
        self._save(state=state, ended_at=self._clock().astimezone(timezone.utc))
        self._log.line(f"night {self._night.number} {state}: {self._night.verdict}")
        write_junit(self._night)
        self._prune()
        write_page(self._history)

    def _prune(self) -> None:
        """Remove old campaigns; log the error where that fails."""
        try:
            if lost := prune_history(self._history, self._config.keep):
                self._log.line(f"campaigns of {lost} older nights removed")
        except StoreError as error:
            self._log.line(f"older nights could not be removed: {error}")

    def _save(self, **values: object) -> None:
        self._night = self._night.model_copy(update=values)
        self._history.save(self._night)

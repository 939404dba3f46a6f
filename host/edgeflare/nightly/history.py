"""The folder of a history: its nights, newest last, and the baseline of the next night."""

import hashlib
import re
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from edgeflare.campaign.events import Event, Notice, Stage, Step
from edgeflare.errors import UsageError
from edgeflare.nightly.config import KeepConfig
from edgeflare.nightly.night import CAMPAIGNS, Night, NightRun
from edgeflare.nightly.nights import NIGHTS, attach, nights_of, set_up
from edgeflare.store.creation import remove_folder, size_of
from edgeflare.store.database import translate_errors
from edgeflare.store.location import is_campaign

if TYPE_CHECKING:
    from typing_extensions import Self


LOG_NAME = "log.txt"
JUNIT_NAME = "junit.xml"
PAGE_NAME = "index.html"
REPORT_NAME = "report.html"
"""In the folder of a search, and of a replay with inputs that deviate newly."""
_CORPUS = "corpus"
_STEM = 60


class Baseline(NamedTuple):
    """The last green night of a model on a device, and its run in that night."""

    night: Night
    run: NightRun

    @property
    def day(self) -> str:
        """The day, in UTC, on which the night began."""
        return f"{self.night.started_at:%Y-%m-%d}"

    @property
    def campaign(self) -> Path:
        """The folder of its search."""
        return self.night.campaign(self.run)


class History:
    """A history's folder. All methods raise StoreError, DiskFullError among them."""

    def __init__(
        self, folder: Path, *, store: str | None = None, samples: str | None = None
    ) -> None:
        """Take its folder; `store` is the database where a new one is to be, `samples` the place."""
        self.folder = Path(folder).absolute()
        self.store = store
        self.samples = samples

    @property
    def page(self) -> Path:
        """The trend page."""
        return self.folder / PAGE_NAME

    def corpus(self, model: str) -> Path:
        """Return the folder of a model's corpus of triggers."""
        return self.folder / _CORPUS / model

    def make(self, *, create: bool = True) -> None:
        """Make the folder where it isn't there yet, pointing to the database that has the history.

        Raises UsageError where there is no history and `create` is false.
        """
        if not create and self.store is None and not self.folder.is_dir():
            raise UsageError(f"there is no history {self.folder} yet; run a night first")
        with translate_errors(self.folder, resumable=False):
            (self.folder / NIGHTS).mkdir(parents=True, exist_ok=True)
            if self.store is not None:
                set_up(self.folder, self.store, create=create)

    def attach(self) -> None:
        """Find in the folder what the database has of the nights, whichever host ran them.

        The caller has the history's lock.
        """
        nights = self.nights()
        corpora = [
            self.corpus(model) for model in {one.model for night in nights for one in night.runs}
        ]
        with translate_errors(self.folder):
            attach(
                self.folder, [*corpora, *(path for night in nights for path in _campaigns(night))]
            )

    def nights(self) -> list[Night]:
        """Return every night, the oldest first; one whose record is damaged is left out."""
        return nights_of(self.folder).read()[0]

    def damaged(self) -> list[Path]:
        """Return the nights' folders that can't be read."""
        return nights_of(self.folder).read()[1]

    def begin(self, now: datetime, planned: int) -> Night:
        """Make the folder of a new night; mark earlier ones that were cut short as interrupted."""
        nights = self.nights()
        for one in nights:
            if one.state == "running":
                self.save(one.model_copy(update={"state": "interrupted"}))
        moment = now.astimezone(timezone.utc)
        stamp = self._free(moment.strftime("%Y%m%dT%H%M%SZ"))
        number = max((one.number for one in nights), default=0) + 1
        folder = self.folder / NIGHTS / stamp
        with translate_errors(self.folder):
            folder.mkdir(parents=True)
        night = Night(
            stamp=stamp,
            number=number,
            state="running",
            started_at=moment,
            planned=planned,
            folder=folder,
        )
        self.save(night)
        return night

    def save(self, night: Night) -> None:
        """Write a night down, in one step."""
        nights_of(self.folder).save(night)

    def last_green(
        self, model: str, device: str, nights: list[Night] | None = None
    ) -> Baseline | None:
        """Return the newest green night of a model on a device whose search is still there."""
        for night in reversed(self.nights() if nights is None else nights):
            run = night.run(model, device)
            if run is None or not run.is_baseline:
                continue
            if is_campaign(night.campaign(run)):
                return Baseline(night, run)
        return None

    def _free(self, stamp: str) -> str:
        names = [stamp, *(f"{stamp}-{n}" for n in range(2, 1000))]
        return next(name for name in names if not (self.folder / NIGHTS / name).exists())


def run_folder(model: str, device: str) -> str:
    """Return the folder of a model and a device within a night, valid on every file system."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", device).strip("-.")[-_STEM:]
    if plain != device:  # two devices may have the same plain name
        plain += f"-{hashlib.sha256(device.encode()).hexdigest()[:6]}"
    return f"{model}/{plain}"


_MB = 1_000_000


def prune_history(history: History, keep: KeepConfig) -> int:
    """Remove the oldest nights' campaigns beyond the limits; return the number of nights.

    The newest night stays whole, and the search of each model's last green night on each device
    stays whatever it takes. Raises StoreError.
    """
    nights = history.nights()
    needed = _needed(history, nights)
    kept = [
        (night, folders)
        for night in nights
        if (folders := tuple(path for path in _campaigns(night) if path.is_dir()))
    ]
    recent = {night.stamp for night in nights[-keep.nights :]}
    budget = None if keep.mb is None else keep.mb * _MB
    spent = sum(map(size_of, needed))
    lost = 0
    for night, folders in reversed(kept):
        removable = [folder for folder in folders if folder not in needed]
        spent += sum(map(size_of, removable))
        newest = night.stamp == nights[-1].stamp
        if newest or (night.stamp in recent and (budget is None or spent <= budget)):
            continue
        if removable:
            _remove(history, removable)
            lost += 1
    return lost


def _needed(history: History, nights: list[Night]) -> set[Path]:
    pairs = {(run.model, run.device) for night in nights for run in night.runs}
    baselines = (history.last_green(model, device, nights) for model, device in pairs)
    return {one.campaign for one in baselines if one is not None}


def _campaigns(night: Night) -> Iterable[Path]:
    """Return where a night's campaigns are or were, those of an interrupted run included."""
    there = [path for name in CAMPAIGNS for path in night.folder.glob(f"*/*/{name}")]
    ended = [night.folder / run.folder / name for run in night.runs for name in CAMPAIGNS]
    return list(dict.fromkeys([*there, *ended]))


def _remove(history: History, folders: Iterable[Path]) -> None:
    with translate_errors(history.folder):
        for folder in folders:
            remove_folder(folder)


class NightLog:
    """A log with the time in UTC, each line on disk at once. Raises StoreError."""

    def __init__(self, path: Path, clock: Callable[[], datetime]) -> None:
        self._path = path
        self._clock = clock
        self._stage: Stage | None = None
        self._where = ""
        self._last: Step | None = None
        with translate_errors(path.parent):
            self._file = path.open("a", encoding="utf-8", buffering=1)

    def line(self, text: str) -> None:
        """Write a line; further lines of the text are indented."""
        now = self._clock().astimezone(timezone.utc)
        first, *rest = text.splitlines() or [""]
        lines = [f"{now:%Y-%m-%dT%H:%M:%SZ} {first}", *(f"    {one}" for one in rest)]
        with translate_errors(self._path.parent):
            self._file.write("".join(f"{one}\n" for one in lines))

    def event(self, event: Event, where: str) -> None:
        """Log an event of the campaign called `where`."""
        if isinstance(event, Notice):
            self.line(f"{where}: note: {event.text}")
        elif isinstance(event, Stage):
            self.end_stage()
            self._stage, self._where = event, where
            self.line(f"{where}: {event.name}: {event.detail}")
        elif isinstance(event, Step):
            self._last = event

    def end_stage(self) -> None:
        """Log the progress of the stage that has ended."""
        if self._stage is not None and self._last is not None:
            total = "" if self._stage.total is None else f" of {self._stage.total}"
            found = f", found {self._last.found}" if self._last.searched else ""
            self.line(f"{self._where}: {self._stage.name}: {self._last.done}{total} done{found}")
        self._stage = self._last = None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        with translate_errors(self._path.parent):
            self._file.close()

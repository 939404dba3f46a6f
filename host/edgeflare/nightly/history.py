"""The folder of a history: its nights, newest last, and the baseline of the next night."""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from edgeflare._internal.files import write_durably
from edgeflare.errors import StoreError
from edgeflare.nightly.night import Night, NightRun
from edgeflare.store.documents import read_json
from edgeflare.store.failures import told_of

NIGHT_NAME = "night.json"
LOG_NAME = "log.txt"
JUNIT_NAME = "junit.xml"
PAGE_NAME = "index.html"
REPORT_NAME = "report.html"
"""In the folder of a search, and of a replay with inputs that deviate newly."""
_FORMAT = 1
_NIGHTS, _CORPUS = "nights", "corpus"
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

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder).absolute()

    @property
    def page(self) -> Path:
        """The trend page."""
        return self.folder / PAGE_NAME

    def corpus(self, model: str) -> Path:
        """Return the folder of a model's corpus of triggers."""
        return self.folder / _CORPUS / model

    def make(self) -> None:
        """Make the folder where it isn't there yet."""
        with told_of(self.folder, begun=False):
            (self.folder / _NIGHTS).mkdir(parents=True, exist_ok=True)

    def nights(self) -> list[Night]:
        """Return every night, the oldest first; one whose ``night.json`` is damaged is left out."""
        found = [night for night in map(self._read, self._folders()) if night is not None]
        return sorted(found, key=lambda night: night.number)

    def damaged(self) -> list[Path]:
        """Return the nights' folders that can't be read."""
        return [folder for folder in self._folders() if self._read(folder) is None]

    def begin(self, now: datetime, planned: int) -> Night:
        """Make the folder of a new night; mark earlier ones that were cut short as interrupted."""
        nights = self.nights()
        for one in nights:
            if one.state == "running":
                self.save(one.model_copy(update={"state": "interrupted"}))
        moment = now.astimezone(timezone.utc)
        stamp = self._free(moment.strftime("%Y%m%dT%H%M%SZ"))
        number = max((one.number for one in nights), default=0) + 1
        folder = self.folder / _NIGHTS / stamp
        with told_of(self.folder):
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
        """Write a night's ``night.json``, in one step."""
        said = {"format": _FORMAT, **night.model_dump(mode="json")}
        text = json.dumps(said, indent=2, ensure_ascii=False)
        with told_of(self.folder):
            write_durably(night.folder / NIGHT_NAME, f"{text}\n".encode())

    def last_green(
        self, model: str, device: str, nights: list[Night] | None = None
    ) -> Baseline | None:
        """Return the newest green night of a model on a device whose search is still there."""
        for night in reversed(self.nights() if nights is None else nights):
            run = night.run(model, device)
            if run is not None and run.is_baseline and _holds_campaign(night.campaign(run)):
                return Baseline(night, run)
        return None

    def _folders(self) -> Iterator[Path]:
        with told_of(self.folder):
            found = sorted((self.folder / _NIGHTS).glob(f"*/{NIGHT_NAME}"))
        return (path.parent for path in found)

    def _read(self, folder: Path) -> Night | None:
        with told_of(self.folder):
            text = (folder / NIGHT_NAME).read_bytes()
        try:
            said = read_json(text)
            if said["format"] != _FORMAT:
                raise StoreError(
                    f"{folder / NIGHT_NAME} has the format {said['format']}, this edgeflare reads "
                    f"{_FORMAT}; use the edgeflare that wrote it"
                )
            return Night.model_validate({**said, "folder": folder})
        except (ValueError, TypeError, KeyError, ValidationError):
            return None

    def _free(self, stamp: str) -> str:
        names = [stamp, *(f"{stamp}-{n}" for n in range(2, 1000))]
        return next(name for name in names if not (self.folder / _NIGHTS / name).exists())


def run_folder(model: str, device: str) -> str:
    """Return the folder of a model and a device within a night: plain on every file system, unlike others."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", device).strip("-.")[-_STEM:]
    if plain != device:  # two devices may have the same plain name
        plain += f"-{hashlib.sha256(device.encode()).hexdigest()[:6]}"
    return f"{model}/{plain}"


def _holds_campaign(folder: Path) -> bool:
    return (folder / "campaign.sqlite").is_file()

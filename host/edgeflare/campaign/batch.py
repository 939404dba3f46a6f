"""A batch: a folder of campaigns that run one after the other, such as a comparison or a bench."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from edgeflare._internal.files import (
    is_unused,
    make_folder,
    read_regular,
    remove_torn,
    write_durably,
)
from edgeflare.campaign.api import resume_campaign, run_campaign
from edgeflare.campaign.context import RunContext
from edgeflare.campaign.events import BatchProgress, BatchWatch, Event, Progress
from edgeflare.campaign.fleet import PromptCache
from edgeflare.campaign.replay.run import run_replay
from edgeflare.campaign.settings.config import CampaignConfig
from edgeflare.errors import StoreError, UsageError
from edgeflare.store import CampaignLock
from edgeflare.store.creation import remove_folder
from edgeflare.store.database import translate_errors
from edgeflare.store.documents import read_json
from edgeflare.store.lock import LOCK_NAMES

_FORMAT = 1


Report: TypeAlias = Callable[..., None]
"""Reports what happens in one campaign of a batch: takes an `Event`, or ``ended=``."""


def begin_campaign(
    progress: BatchWatch, name: str, folder: Path, number: int, total: int
) -> Report:
    """Report that a campaign begins; return what reports the rest of it."""

    def report(event: Event | None = None, ended: str = "") -> None:
        progress(BatchProgress(name, folder, number, total, event, ended))

    report()
    return report


class CampaignRunner:
    """Runs and resumes the campaigns of a batch; the user is asked each question once.

    `stored_elsewhere`: campaigns are stored where their configurations say, else in their folders.
    """

    def __init__(self, context: RunContext, *, stored_elsewhere: bool = False) -> None:
        self._stored_elsewhere = stored_elsewhere
        ask = context.ask
        self.context = replace(context, ask=None if ask is None else PromptCache(ask))

    def run(self, config: CampaignConfig, folder: Path, *, name: str, progress: Progress) -> None:
        """Run a campaign in `folder`, in the place of what a killed process left there."""
        with translate_errors(folder.parent):
            if folder.exists():
                remove_folder(folder)
        places = {} if self._stored_elsewhere else {"store": None, "samples": None}
        config = config.model_copy(update={"out": folder, **places})
        run_campaign(config, name=name, progress=progress, **self.context.reach)

    def resume(self, folder: Path, **settings: Any) -> None:
        """Resume a campaign, with these settings of `resume_campaign`."""
        resume_campaign(folder, **self.context.reach, **settings)

    def replay(self, source: Path, config: CampaignConfig, **settings: Any) -> None:
        """Run a replay, with these settings of `run_replay`."""
        run_replay(source, config, **self.context.reach, **settings)


def check_free(folder: Path, marker: str, what: str) -> None:
    """Raise UsageError unless a folder is empty or a batch's, which has a file `marker`."""
    with translate_errors(folder):
        if (folder / marker).is_file() or is_unused(folder, LOCK_NAMES):
            return
    raise UsageError(
        f"{folder} exists and is neither {what} nor an empty folder; choose another --out"
    )


@contextmanager
def opened_folder(folder: Path, marker: str, what: str) -> Iterator[None]:
    """Make the folder of a batch if needed, and hold its lock. Raises UsageError, StoreError."""
    check_free(folder, marker, what)
    with ExitStack() as stack:
        with translate_errors(folder, resumable=False):
            make_folder(folder)
            stack.enter_context(CampaignLock(folder))
            check_free(folder, marker, what)
            remove_torn(folder)
        yield


def read_description(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file that `write_description` wrote.

    Raises StoreError where the file can't be read or is of another format, ValueError, TypeError or
    KeyError where it is damaged.
    """
    with translate_errors(path.parent):
        text = read_regular(path, inside=path.parent)
    values: dict[str, Any] = read_json(text)
    if values["format"] != _FORMAT:
        raise StoreError(
            f"{path} has the format {values['format']}, this edgeflare reads {_FORMAT}; use the "
            "edgeflare that wrote it"
        )
    return values


@contextmanager
def description(path: Path, advice: str) -> Iterator[dict[str, Any]]:
    """Yield what `read_description` returns; damage found within becomes a StoreError."""
    try:
        yield read_description(path)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(f"{path} is damaged; {advice}") from error


def write_description(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object with the format's number, atomically. Raises StoreError."""
    text = json.dumps({"format": _FORMAT, **values}, indent=2, ensure_ascii=False, allow_nan=False)
    with translate_errors(path.parent):
        write_durably(path, f"{text}\n".encode())

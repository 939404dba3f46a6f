"""Removal of older nights' campaigns; figures, words and logs stay."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from edgeflare.nightly.config import KeepConfig
from edgeflare.nightly.history import History
from edgeflare.nightly.night import CAMPAIGNS, Night
from edgeflare.store.failures import told_of

_MB = 1_000_000


class _Kept(NamedTuple):
    """One night's campaigns, by their folders."""

    night: Night
    folders: tuple[Path, ...]


def prune_history(history: History, keep: KeepConfig) -> int:
    """Remove the oldest nights' campaigns beyond the retention limits; return the number of nights concerned.

    The newest night stays whole, and the search of each model's last green night on each device stays
    whatever it takes. Raises StoreError.
    """
    nights = history.nights()
    needed = _needed(history, nights)
    kept = [
        _Kept(night, folders)
        for night in nights
        if (folders := tuple(path for path in _campaigns(night) if path.is_dir()))
    ]
    recent = {night.stamp for night in nights[-keep.nights :]}
    budget = None if keep.mb is None else keep.mb * _MB
    spent = sum(map(_size, needed))
    lost = 0
    for one in reversed(kept):
        removable = [folder for folder in one.folders if folder not in needed]
        spent += sum(map(_size, removable))
        newest = one.night.stamp == nights[-1].stamp
        if newest or (one.night.stamp in recent and (budget is None or spent <= budget)):
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
    """Return the folders of a night's campaigns; of an interrupted night also those that have no run."""
    return [path for name in CAMPAIGNS for path in night.folder.glob(f"*/*/{name}")]


def _remove(history: History, folders: Iterable[Path]) -> None:
    with told_of(history.folder):
        for folder in folders:
            shutil.rmtree(folder)


def _size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(
        entry.lstat().st_size
        for where, _, names in os.walk(folder)
        for entry in (Path(where, name) for name in names)
    )

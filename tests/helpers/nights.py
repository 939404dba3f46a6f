"""Nights made by hand, for tests of nightly's history and its pages."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from edgeflare.nightly.history import History, run_folder
from edgeflare.nightly.night import Check, Night, NightRun, ReplayCounts, SearchFigures

BEGIN = datetime(2026, 3, 1, 2, 0, tzinfo=timezone.utc)


def figures(**changed: Any) -> SearchFigures:
    values = {"seeds": 200, "seed_deviates": 3, "searched": 197, "found": 180, "queries": 2.0}
    values |= {"severity": 0.31, "total_queries": 4000, "latency_s": 0.0041, "temperature_c": 61.5}
    return SearchFigures(**{**values, **changed})


def run_of(model: str, device: str, state: str = "green", **values: Any) -> NightRun:
    if state in ("green", "first", "regression"):
        values.setdefault("search", figures())
        values.setdefault("replay", ReplayCounts(fixed=1, still=40, agrees=150))
    about = {"model": model, "device": device, "folder": run_folder(model, device), "state": state}
    return NightRun.model_validate({**about, **values})


def add_night(
    history: History,
    number: int,
    *runs: NightRun,
    state: str = "finished",
    campaigns: bool = False,
    size: int = 10,
) -> Night:
    """Add a night to a history, `number` days after the first; its campaigns are mere files of `size` bytes."""
    history.make()
    night = history.begin(BEGIN + timedelta(days=number), len(runs))
    night = night.model_copy(update={"runs": runs, "state": state})
    history.save(night)
    (night.folder / "log.txt").write_text("a log\n")
    if campaigns:
        for run in runs:
            for folder in (night.campaign(run), night.replayed(run)):
                folder.mkdir(parents=True)
                (folder / "campaign.sqlite").write_bytes(b"x" * size)
    return night


def red(
    words: str = "3 of 191 inputs sent again deviate and did not on 20260319T020000Z",
) -> dict[str, Any]:
    """Return what a red run has beside its figures."""
    return {
        "words": (words,),
        "checks": (Check(part="replay", name="max_new_triggers", words=words, crossed=True),),
        "changed": ("the deployed model's file: SHA-256 was 3f2a91c0, is 77bd0e12",),
        "replay": ReplayCounts(fixed=0, still=41, new=3, agrees=147),
        "search": figures(seed_deviates=9, found=190, searched=191, severity=0.58),
    }


def forty_nights(folder: Path) -> History:
    """Return a history of two models on two devices: one red night, one with a device away."""
    history = History(folder)
    pairs = [(model, device) for model in ("int8", "pruned") for device in ("local", "pi4")]
    for number in range(40):
        runs = []
        for model, device in pairs:
            wobble = (number * 7 + len(model) + len(device)) % 5
            values: dict[str, Any] = {
                "search": figures(
                    found=178 + wobble,
                    severity=0.29 + wobble / 100,
                    latency_s=0.004 + wobble / 10000,
                    temperature_c=None if device == "local" else 58.0 + wobble,
                ),
                "replay": ReplayCounts(fixed=wobble, still=40 + number, agrees=150),
            }
            state = "green"
            if number == 36 and (model, device) == ("int8", "pi4"):
                state, values = "regression", red()
            if number == 20 and device == "pi4":
                sentence = "pi4 can't be reached: no answer from 192.168.0.14 port 22 within 15 s"
                state, values = "away", {"words": (sentence,), "search": None, "replay": None}
            runs.append(run_of(model, device, state, **values))
        add_night(history, number, *runs)
    return history

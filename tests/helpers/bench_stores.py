"""Searches, benches and nightly runs made by hand, for tests of reports and histories."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.metrics import l2, linf
from edgeflare.nightly.history import History, run_folder
from edgeflare.nightly.night import (
    Check,
    Night,
    NightRun,
    ReplayCounts,
    SearchFigures,
)
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, FrontPoint, Status
from edgeflare_bench.cells import Bench, Cell, write_bench
from edgeflare_bench.searches import SearchRow
from edgeflare_bench.suite import Suite, suite_from

SIDE = 8
UNIT = {"x": np.array([0.9, 0.1]), "y": np.array([0.3, 0.7])}


def search(seed: int, queries: int, status: Status = Status.FOUND, **values: Any) -> SearchRow:
    """A search of strategy "a" on "pair" in repeat 0; found, unless the status says otherwise."""
    row: dict[str, Any] = {
        "pair": "pair",
        "strategy": "a",
        "repeat": 0,
        "seed_id": f"seed-{seed}",
        "status": status,
        "chain_seed": 0,
        "search_queries": queries,
        "seconds": queries / 10,
        "trigger": f"trigger-{seed}-{queries}" if status is Status.FOUND else None,
    }
    return SearchRow(**row | values)


def suite_of(pairs: Iterable[str] = ("One pair",), **over: Any) -> Suite:
    """A suite of strategies "a" (the baseline) and "b", two repeats, whose files need not exist."""
    values: dict[str, Any] = {
        "name": "by-hand",
        "title": "Made by hand",
        "about": "About *this* suite.",
        "seeds": 4,
        "repeats": 2,
        "baseline": "a",
        "pairs": [
            {
                "name": name,
                "original": {"path": "/m/o.onnx"},
                "deployed": {"path": "/m/d.tflite"},
                "seeds": {"path": "/m/seeds.npz"},
                "study": "study",
                "x": 10.0 * (number + 1),
            }
            for number, name in enumerate(pairs)
        ],
        "strategies": [{"name": "a"}, {"name": "b", "strategy": "dflare-r"}],
    }
    return suite_from(values | over, "the test")


def bench_of(folder: Path, suite: Suite, failed: dict[str, str] | None = None) -> Bench:
    """A bench in which nothing has run."""
    folder.mkdir(parents=True)
    bench = Bench(folder, suite, ("local",), failed or {})
    write_bench(bench)
    return bench


def image(value: int, side: int = SIDE, channels: int = 1) -> np.ndarray:
    """A picture with a slope."""
    rows = np.arange(side * side * channels).reshape(side, side, channels)
    return (rows % 100 + value).astype(np.uint8)


def fill_cell(
    bench: Bench,
    cell: Cell,
    ended: Sequence[tuple[Status, int]],
    *,
    finished: bool = True,
    mutations: Sequence[dict[str, Any]] = (),
) -> None:
    """Make the cell's campaign: seed number n ended with this status after so many search queries.

    `mutations` led to each triggering input. A search asks the original alone twice as often, and the device in requests of two. The original says
    "x" (label 0) to every seed; to a triggering input of an even seed, too. Both models
    say 0 to the seeds but for the first, on which the deployed one has a tie.
    """
    folder = bench.campaign(cell)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Store.create(folder, {}, environment={"numpy": "2", "repeat": cell.repeat}) as store:
        ids = [f"seed-{number}" for number in range(len(ended))]
        store.add_seeds(SeedInput(name, image(number)) for number, name in enumerate(ids))
        store.set_models(
            {"name": "o.onnx", "sha256": "aa", "runtime": {"name": "onnx", "version": "1"}},
            {"name": "d.tflite", "sha256": "bb", "runtime": {"name": "tflite", "version": "2"}},
        )
        device = store.add_device({"board": "Pi | 5", "cpu_flags": ["neon"]}, f"pi-{cell.repeat}")
        tie, same = (np.array([0.5, 0.5]), Decision.TIE), (UNIT["x"], Decision.AGREE)
        store.add_seed_answers(
            [
                SeedAnswer(name, UNIT["x"], *(same if number else tie))
                for number, name in enumerate(ids)
            ]
        )
        for number, (status, queries) in reversed(list(enumerate(ended))):
            store.add_outcome(_outcome(store, number, status, queries, device, mutations))
        if finished:
            store.state.finished = True


def _outcome(
    store: Store,
    number: int,
    status: Status,
    queries: int,
    device: str,
    mutations: Sequence[dict[str, Any]],
) -> OutcomeRecord:
    counted = OutcomeRecord(
        f"seed-{number}",
        status,
        0,
        seed_queries=1,
        search_queries=queries,
        host_only_queries=2 * queries,
        round_trips=queries // 2,
        seconds=queries / 10,
        device=device,
    )
    if status is not Status.FOUND:
        return counted
    trigger = image(number)
    trigger[0, 0] += 10 + number
    original, deployed = (UNIT["x"], UNIT["y"]) if number % 2 == 0 else (UNIT["y"], UNIT["x"])
    return OutcomeRecord(
        **vars(counted)
        | {
            "confirmation_queries": 2,
            "trigger": store.put_sample(trigger),
            "original": original,
            "deployed": deployed,
            "original_label": int(original.argmax()),
            "deployed_label": int(deployed.argmax()),
            "original_margin": float(np.ptp(original)),
            "deployed_margin": float(np.ptp(deployed)),
            "l2": l2(image(number), trigger),
            "linf": linf(image(number), trigger),
            "mutations": mutations,
            "front": [FrontPoint(queries, 0.4, l2(image(number), trigger), 10 + number)],
        }
    )


BEGIN = datetime(2026, 3, 1, 2, 0, tzinfo=timezone.utc)


def figures(**changed: Any) -> SearchFigures:
    values = {
        "seeds": 200,
        "seed_deviates": 3,
        "searched": 197,
        "found": 180,
        "queries": 2.0,
        "severity": 0.31,
        "total_queries": 4000,
        "latency_s": 0.0041,
        "temperature_c": 61.5,
    }
    return SearchFigures(**{**values, **changed})


def run_of(model: str, device: str, state: str = "green", **values: Any) -> NightRun:
    if state in ("green", "first", "regression"):
        values.setdefault("search", figures())
        values.setdefault("replay", ReplayCounts(fixed=1, still=40, agrees=150))
    return NightRun.model_validate(
        {
            "model": model,
            "device": device,
            "folder": run_folder(model, device),
            "state": state,
            **values,
        }
    )


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

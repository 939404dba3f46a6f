"""Searches and benches made by hand, for tests of what the report says of them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgeflare.bench.cells import Cell
from edgeflare.bench.opening import Bench, write_bench
from edgeflare.bench.rows import SearchRow
from edgeflare.bench.suite import Suite, suite_from
from edgeflare.distances import l2, linf
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.types import Decision, FrontPoint, Status

SIDE = 8
UNIT = {"x": np.array([0.9, 0.1]), "y": np.array([0.3, 0.7])}


def search(seed: int, queries: int, status: Status = Status.FOUND, **values: Any) -> SearchRow:
    """A search of strategy "a" on "pair" in repeat 0; found, unless the status says otherwise."""
    found = status is Status.FOUND
    row: dict[str, Any] = {
        "pair": "pair",
        "strategy": "a",
        "repeat": 0,
        "seed_id": f"seed-{seed}",
        "status": status.value,
        "searched": status is not Status.SEED_DEVIATES,
        "found": found,
        "queries": queries,
        "seconds": queries / 10,
        "trigger": f"trigger-{seed}-{queries}" if found else None,
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
            store.set_fact("finished", True)


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

"""Searches, suites and benches made by hand, whose campaigns never ran."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command import DEMO
from stores import answered, ended, store_of

from edgeflare.metrics import l2, linf
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


def demo_suite(
    *strategies: dict[str, Any], pair: dict[str, Any] | None = None, **over: Any
) -> Suite:
    """A suite of these strategies (one, "short") on the demo's models and seeds, a pair "LeNet 5"."""
    places = {"original": "original.onnx", "deployed": "deployed.tflite", "seeds": "seeds.npz"}
    values = {name: {"path": DEMO / file} for name, file in places.items()} | (pair or {})
    return suite_from(
        {
            "name": "small",
            "seeds": 2,
            "repeats": 2,
            "pairs": [{"name": "LeNet 5", **values}],
            "strategies": strategies or [{"name": "short"}],
        }
        | over,
        "the test",
    )


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
    ends: Sequence[tuple[Status, int]],
    *,
    finished: bool = True,
    mutations: Sequence[dict[str, Any]] = (),
) -> None:
    """Make the cell's campaign: seed number n ended with this status after so many search queries.

    `mutations` led to each triggering input. A search asks the original alone twice as often, and the device in requests
    of two. The original says "x" (label 0) to every seed; to a triggering input of an even seed, too. Both models
    say 0 to the seeds but for the first, on which the deployed one has a tie.
    """
    folder = bench.campaign(cell)
    folder.parent.mkdir(parents=True, exist_ok=True)
    tie = UNIT["x"], np.array([0.5, 0.5]), Decision.TIE
    device = f"pi-{cell.repeat}"
    with store_of(
        folder,
        seeds=[f"seed-{number}" for number in range(len(ends))],
        sample=image,
        answers=lambda number: (UNIT["x"], UNIT["x"]) if number else tie,
        devices={device: {"board": "Pi | 5", "cpu_flags": ["neon"]}},
        models=({}, {"name": "d.tflite", "runtime": {"name": "tflite", "version": "2"}}),
        environment={"numpy": "2", "repeat": cell.repeat},
    ) as store:
        for number, (status, queries) in reversed(list(enumerate(ends))):
            fields: dict[str, Any] = {
                "seed_queries": 1,
                "search_queries": queries,
                "host_only_queries": 2 * queries,
                "round_trips": queries // 2,
                "seconds": queries / 10,
            }
            if status is Status.FOUND:
                trigger = image(number)
                trigger[0, 0] += 10 + number
                far = {"l2": l2(image(number), trigger), "linf": linf(image(number), trigger)}
                both = (UNIT["x"], UNIT["y"])[:: -1 if number % 2 else 1]
                fields |= {"trigger": trigger, "confirmation_queries": 2, **answered(*both), **far}
                fields |= {"mutations": mutations, "front": [FrontPoint(queries, 0.4, **far)]}
            ended(store, f"seed-{number}", status, device=device, **fields)
        store.state.finished = finished

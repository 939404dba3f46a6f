"""Benches of the boundary search: what a device query costs is measured once a pair."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benches import demo_suite

from edgeflare.campaign import BatchProgress, Stage
from edgeflare.store import Store
from edgeflare_bench import (
    bench_report,
    open_bench,
    resume_bench,
    run_bench,
    write_report,
)

SUITE = demo_suite(
    {"name": "usual", "strategy": "boundary"},
    *(
        {"name": name, "strategy": "boundary", "repeats": 1, "options": options}
        for name, options in (
            ("severe", {"device_budget": 3}),
            ("natural", {"crossing": "natural"}),
        )
    ),
    {"name": "other", "strategy": "dflare", "repeats": 1},
    max_queries=9,
)


def options_by_cell(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    bench = open_bench(folder)
    for cell in bench.cells:
        with Store.open(bench.campaign(cell)) as store:
            yield f"{cell.strategy}/{cell.repeat}", store.campaign["search"]["options"]


@pytest.mark.extended
def test_cells_that_were_told_the_same_search_alike(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    def stop_in_the_second_repeat(progress: BatchProgress) -> None:
        search = isinstance(progress.event, Stage) and progress.event.name == "search"
        if search and progress.name.endswith("repeat 1"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bench(SUITE, tmp_path / "bench", progress=stop_in_the_second_repeat)
    with Store.open(tmp_path / "bench" / "cells" / "LeNet-5" / "usual" / "1") as begun:
        config = begun.campaign
        search = {**config["search"], "options": {}}
        begun.set_campaign({**config, "search": search})  # stopped before it was resolved
    folder = resume_bench(tmp_path / "bench")
    usual = {"crossing": "least-l2", "effort": 96, "tied_classes": 3, "candidates": 1}
    assert dict(options_by_cell(folder)) == {
        "usual/0": usual,
        "usual/1": usual,
        "severe/0": {**usual, "device_budget": 3},
        "natural/0": {"crossing": "natural", "effort": 32, "tied_classes": 2, "candidates": 1},
        "other/0": {},
    }
    report = bench_report(folder)
    natural = {"crossing": "natural", "effort": 32, "tied_classes": 2, "candidates": 1}
    assert report.to_json()["resolved"] == [
        {"pair": "LeNet 5", "strategy": "usual", **usual},
        {"pair": "LeNet 5", "strategy": "severe", **usual},
        {"pair": "LeNet 5", "strategy": "natural", **natural},
    ]
    write_report(report, folder)
    text = (folder / "report.md").read_text(encoding="utf-8")
    run = text.split("## How it was run", 1)[1].splitlines()
    assert [line for line in run if " on LeNet 5: " in line] == [
        "- usual on LeNet 5: crossing least-l2, effort 96, three classes tied",
        "- severe on LeNet 5: crossing least-l2, effort 96, three classes tied",
        "- natural on LeNet 5: crossing natural, effort 32",
    ]

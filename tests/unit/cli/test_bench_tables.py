"""What ``bench show`` prints of a report."""

import json
import re

import pytest
from shown_numbers import numbers

from edgeflare.types import Status
from edgeflare_bench import BenchReport, SearchRow
from edgeflare_bench.cell_figures import cell_figures
from edgeflare_bench.cli import print_bench
from edgeflare_bench.comparisons import BaselineContrast, Comparison, correlate
from edgeflare_bench.suite import Published

FULL = "dflare-reference"
PLAIN = "dflare"
PUBLISHED = Published(
    pair="LeNet [1]", strategy=PLAIN, source="paper, table 4", queries=83.97, success=1.0
)


@pytest.fixture(params=[60, 80, 160])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


def search(strategy: str, seed: int, queries: int, *, found: bool = True) -> SearchRow:
    told = SearchRow(
        pair="LeNet [1]",
        strategy=strategy,
        repeat=0,
        seed_id=f"s/{seed}.png",
        status=Status.FOUND if found else Status.TIMEOUT,
        chain_seed=0,
        seed_queries=1,
        search_queries=queries,
        confirmation_queries=2,
        host_only_queries=1000 * seed,
        round_trips=queries,
        seconds=queries / 1000,
    )
    if not found:
        return told
    known = {"l2": 1.5, "linf": 9, "ssim": 0.75, "original_margin": 0.5, "deployed_margin": 0.25}
    labels = {"original_label": 3, "deployed_label": 5, "seed_label_kept": True}
    return SearchRow(**vars(told) | known | labels | {"trigger": f"{strategy}{seed}"})


def contrast(ratio: float | None, p: float) -> BaselineContrast:
    return BaselineContrast(
        mean=30.0, baseline_mean=20.0, ratio=ratio, n=3, difference=1.5, p=p, p_holm=p,
        rank_biserial=0.42, rank_biserial_size="medium", a12=0.61, a12_size="small",
    )  # fmt: skip


def report(**changes: object) -> BenchReport:
    """Two strategies on one pair: one found a trigger from each of 3 seeds, the other from 2 of them."""
    searches = [search(PLAIN, seed, 10 * seed) for seed in (1, 2, 3)]
    searches += [search(FULL, seed, 20 * seed, found=seed < 3) for seed in (1, 2, 3)]
    figures = [
        cell_figures(
            "LeNet [1]",
            strategy,
            [row for row in searches if row.strategy == strategy],
            max_queries=2000,
            published=published,
        )
        for strategy, published in (
            (PLAIN, [PUBLISHED]),
            (FULL, []),
        )
    ]
    values = {
        "suite": "tiny",
        "title": "A [tiny] suite",
        "about": "",
        "folder": "benches/tiny",
        "command": "edgeflare bench run tiny",
        "baseline": PLAIN,
        "asked_devices": ("local",),
        "cells": (*figures, cell_figures("LeNet [1]", "not-yet", [])),
        "comparisons": (
            Comparison(
                "LeNet [1]", FULL, PLAIN, 3, contrast(0.7, 0.3), contrast(1.5, 0.0004),
                contrast(None, 0.04),
            ),
        ),
        "correlations": (correlate("size", PLAIN, {"LeNet [1]": 10.0}, figures),),
        "false_alarms": (),
        "finished": ("LeNet-1/dflare/0",),
        "unfinished": ("LeNet-1/dflare-reference/0",),
        "missing": ("LeNet-1/not-yet/0", "LeNet-1/not-yet/1"),
        "failed": {"gone/dflare/0": "there is no model file [gone].onnx"},
        "queries": {},
        "devices": (),
        "environments": (),
        "models": {},
        "resolved": (),
        "notices": ("no histograms: they need matplotlib",),
        "settings": {},
        "searches": tuple(searches),
    }  # fmt: skip
    return BenchReport(**values | changes)  # type: ignore[arg-type]


def shown(capsys: pytest.CaptureFixture[str], **options: bool) -> str:
    print_bench(report(), False, **options)
    return capsys.readouterr().out


def rows(text: str, strategy: str) -> list[list[str]]:
    """The lines of a strategy with their figures, split where at least two spaces are."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return [one[2:] for one in cells if one[:2] == ["LeNet [1]", strategy]]


def test_how_far_it_is_what_failed_and_what_is_missing(capsys, width) -> None:
    title, state, *lines = shown(capsys).splitlines()
    assert title == "A [tiny] suite"
    assert numbers(state) == "6 5 1 3 1"
    assert "gone/dflare/0" in "\n".join(lines)
    assert "LeNet-1/not-yet/1: not begun" in lines
    assert "histograms: they" in "\n".join(lines)
    assert "`edgeflare bench resume" in lines[-1]


def test_the_most_needed_figures_are_whole_at_every_width(capsys, width) -> None:
    text = shown(capsys)
    tables = [line for line in text.splitlines() if line.startswith(" ")]
    assert max(map(len, tables)) <= width
    results, *_ = rows(text, FULL)
    assert results[:2] == (["66.7 % (2 of 3)", "30.00"] if width > 60 else ["30.00"])


def test_searches_are_in_the_json_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    print_bench(report(), True)
    assert "searches" not in json.loads(capsys.readouterr().out)
    print_bench(report(), True, searches=True)
    told = json.loads(capsys.readouterr().out)["searches"]
    assert [one["queries"] for one in told] == [10, 20, 30, 20, 40, 60]
    assert told[-1]["ssim"] is None

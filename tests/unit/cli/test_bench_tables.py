"""What ``bench show`` prints of a report."""

import json
import re
from dataclasses import replace

import pytest

from edgeflare.bench import BenchReport, SearchRow
from edgeflare.bench.cell_figures import PublishedFigures, cell_figures
from edgeflare.bench.comparisons import Comparison, Contrast, correlate
from edgeflare.bench.false_alarms import false_alarms
from edgeflare.cli.tables import print_bench

FULL = "dflare-reference"
PLAIN = "dflare"


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
        status="found" if found else "timeout",
        searched=True,
        found=found,
        queries=queries,
        seconds=queries / 1000,
        host_queries=1000 * seed,
        device_queries=queries + 3,
        round_trips=queries,
    )
    if not found:
        return told
    known = {"l2": 1.5, "linf": 9, "ssim": 0.75, "original_margin": 0.5, "deployed_margin": 0.25}
    labels = {"original_label": 3, "deployed_label": 5, "seed_label_kept": True}
    return SearchRow(**vars(told) | known | labels | {"trigger": f"{strategy}{seed}"})


def contrast(ratio: float | None, p: float) -> Contrast:
    return Contrast(
        mean=30.0,
        baseline_mean=20.0,
        ratio=ratio,
        difference=1.5,
        p=p,
        p_holm=p,
        rank_biserial=0.42,
        rank_biserial_size="medium",
        a12=0.61,
        a12_size="small",
    )


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
            (PLAIN, [PublishedFigures("paper, table 4", 83.97, 1.0)]),
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
                "LeNet [1]",
                FULL,
                PLAIN,
                3,
                contrast(0.7, 0.3),
                contrast(1.5, 0.0004),
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
    }
    return BenchReport(**values | changes)  # type: ignore[arg-type]


def shown(capsys: pytest.CaptureFixture[str], **options: bool) -> str:
    print_bench(report(), False, **options)
    return capsys.readouterr().out


def rows(text: str, strategy: str) -> list[list[str]]:
    """The lines of a strategy with their figures, split where at least two spaces are."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return [one[2:] for one in cells if one[:2] == ["LeNet [1]", strategy]]


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.usefixtures("wide")
def test_a_small_margin_has_the_digits_that_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    print_bench(report(cells=(replace(report().cells[0], smaller_margin=0.00142),)), False)
    _, _, findings, *_ = rows(capsys.readouterr().out, PLAIN)
    assert findings[7] == "0.0014"


@pytest.mark.usefixtures("wide")
def test_every_figure_in_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    costs, spent, findings, published = rows(text, PLAIN)
    assert costs[:3] == ["100 %", "3/3", "20.0"]
    assert costs[4:] == ["20", "0.020", "28"]
    assert spent == [
        *("20.0", "23.0", "20.0", "2,000", "2,000"),
        *("0.020", "0.120", "0.420", "2.020"),
    ]
    assert findings == [
        *("100 %", "0", "0", "100 %"),
        *("1.50", "9", "0.75", "0.250", "100 %"),
    ]
    assert published[:5] == ["paper, table 4", "84.0", "20.0", "100 %", "100 %"]
    costs, spent, findings, compared = rows(text, FULL)
    assert costs[:3] == ["66.7 %", "2/3", "30.0"]
    assert spent[:3] == ["40.0", "43.0", "40.0"]  # the one that found nothing counts
    assert findings[1:3] == ["1", "0"]
    assert compared == [
        *("3", "1.50 x", "< 0.001", "more", "0.61", "small", "+0.42"),
        *("-", "0.040", "can't tell (0.300)"),
    ]
    assert rows(text, "not-yet") == []


def test_a_hundred_per_cent_means_every_search(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    searches = [search(PLAIN, seed, 10, found=seed > 0) for seed in range(3000)]
    print_bench(report(cells=(cell_figures("LeNet [1]", PLAIN, searches),)), False)
    costs, *_ = rows(capsys.readouterr().out, PLAIN)
    assert costs[:2] == ["99.9 %", "2999/3000"]


def test_beside_published_figures_stands_what_limited_the_searches(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    (told,) = [line for line in shown(capsys).splitlines() if "stopped at" in line]
    assert told.startswith(f"{PLAIN}: stopped at 2,000 queries a search; ")
    assert "limited by time alone" in told
    unlimited = report().cells[0]
    print_bench(report(cells=(replace(unlimited, max_queries=0),)), False)
    assert "stopped at" not in capsys.readouterr().out


def control(**found: bool) -> BenchReport:
    """A control pair on which every search of a strategy found a false alarm, or none."""
    searches = [
        search(strategy, seed, 10, found=alarms)
        for strategy, alarms in found.items()
        for seed in range(20)
    ]
    by = {name: [row for row in searches if row.strategy == name] for name in found}
    return report(
        cells=tuple(cell_figures("LeNet [1]", name, own) for name, own in by.items()),
        false_alarms=tuple(false_alarms("LeNet [1]", name, 0.001, own) for name, own in by.items()),
        searches=tuple(searches),
        comparisons=(),
        correlations=(),
    )


def test_a_control_without_a_finding_has_its_bound_and_what_it_cost(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    print_bench(control(quiet=False), False)
    text = capsys.readouterr().out
    alarms, spent = rows(text, "quiet")
    assert alarms == ["0.001", "20", "0", "0", "0 %", "13.9 %"]
    assert spent[0] == "10.0"
    assert "found a triggering input:" not in text


def test_false_alarms_are_shown_as_findings_too(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    print_bench(control(quiet=False, loud=True), False)
    text = capsys.readouterr().out
    alarms, costs, _, _ = rows(text, "loud")
    assert alarms[2:] == ["0", "20", "100 %", "100 %"]
    assert costs[:2] == ["100 %", "20/20"]
    assert len(rows(text, "quiet")) == 2


def test_a_correlation_stands_beside_the_lowest_success(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    figures = report().cells
    print_bench(
        report(correlations=(correlate("size", FULL, {"LeNet [1]": 10.0}, figures),)), False
    )
    text = capsys.readouterr().out
    (line,) = [line for line in text.splitlines() if line.strip().startswith("size")]
    assert "66.7 %" in line
    assert "lowest success" in text


def test_how_far_it_is_what_failed_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    first, *lines = shown(capsys).splitlines()
    assert first == "A [tiny] suite: 1 of 5 cells finished, 1 unfinished, 2 not begun, 1 failed"
    assert "failed: gone/dflare/0: there is no model file [gone].onnx" in lines
    assert lines[-2:] == [
        "note: no histograms: they need matplotlib",
        "Not finished; go on with: edgeflare bench resume benches/tiny",
    ]


def test_the_most_needed_figures_are_whole_at_every_width(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    text = shown(capsys)
    tables = [line for line in text.splitlines() if line.startswith(" ")]
    assert max(map(len, tables)) <= width
    costs, _, _, compared = rows(text, FULL)
    assert costs[0] == "66.7 %"
    assert "30.0" in costs
    assert compared[0 if width < 160 else 1 :][:2] == ["1.50 x", "< 0.001"]


@pytest.mark.parametrize("width", [80, 160], indirect=True)
def test_every_search_has_a_line(capsys: pytest.CaptureFixture[str], width: int) -> None:
    *_, first, second, third = rows(shown(capsys, searches=True), FULL)
    assert first[:5] == ["0", "s/1.png", "found", "20", "0.020"]
    assert second[:5] == ["0", "s/2.png", "found", "40", "0.040"]
    assert third[:5] == ["0", "s/3.png", "timeout", "60", "0.060"]


def test_a_bench_that_has_not_begun_has_no_tables(capsys: pytest.CaptureFixture[str]) -> None:
    empty = {"cells": (), "comparisons": (), "correlations": (), "searches": ()}
    print_bench(
        report(**empty, finished=(), unfinished=(), failed={}, notices=()), False, searches=True
    )
    assert capsys.readouterr().out == (
        "A [tiny] suite: 0 of 2 cells finished, 2 not begun\n"
        "Not finished; go on with: edgeflare bench resume benches/tiny\n"
    )


def test_searches_are_in_the_json_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    print_bench(report(), True)
    assert "searches" not in json.loads(capsys.readouterr().out)
    print_bench(report(), True, searches=True)
    told = json.loads(capsys.readouterr().out)["searches"]
    assert [one["queries"] for one in told] == [10, 20, 30, 20, 40, 60]
    assert told[-1]["ssim"] is None

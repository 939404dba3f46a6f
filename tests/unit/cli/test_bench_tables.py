"""What ``bench show`` prints of a report."""

import json
import re
from dataclasses import replace

import pytest
from shown_numbers import numbers

from edgeflare_bench import BenchReport, SearchRow
from edgeflare_bench.cell_figures import PublishedFigures, cell_figures, false_alarms
from edgeflare_bench.cli import print_bench
from edgeflare_bench.comparisons import BaselineContrast, Comparison, correlate

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


def contrast(ratio: float | None, p: float) -> BaselineContrast:
    return BaselineContrast(
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
    monkeypatch.setenv("COLUMNS", "240")


@pytest.mark.usefixtures("wide")
def test_every_figure_in_its_column(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys)
    results, published, found, spent, quality, time, unique = rows(text, PLAIN)[:7]
    assert results[:2] == ["100 % (3 of 3)", "20.00"]
    assert results[3:5] == ["20.0", "28.0"]
    assert published[:5] == ["paper, table 4", "83.97", "20.00", "100 %", "100 %"]
    assert found == spent
    assert spent[:6] == ["3", "20.00", "20.0", "23.00", "20.00", "2,000"]
    assert spent[6:] == ["2,000", "0.020", "0.120", "0.420", "2.020"]
    assert quality == ["1.50", "9", "0.750", "0.500", "0.250", "0.250", "100 %"]
    assert time[-3:] == ["0", "0", "0"]
    assert unique == ["3", "100 %", "0", "0"]
    _, _, spent, *_ = rows(text, FULL)
    assert spent[:4] == ["3", "40.00", "40.0", "43.00"]  # the one that found nothing counts
    *_, queries, seconds = rows(text, FULL)
    assert queries == ["1.50", "< 0.001", "< 0.001", "+0.42 medium", "0.61 small", "more"]
    assert seconds[0] == "–"
    assert rows(text, "not-yet") == []


def test_a_hundred_per_cent_means_every_search(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    searches = [search(PLAIN, seed, 10, found=seed > 0) for seed in range(3000)]
    print_bench(report(cells=(cell_figures("LeNet [1]", PLAIN, searches),)), False)
    results, *_ = rows(capsys.readouterr().out, PLAIN)
    assert numbers(results[0]) == "99.9 2,999 3,000"


def test_beside_published_figures_stands_what_limited_the_searches(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    (told,) = [line for line in shown(capsys).splitlines() if "stopped at" in line]
    assert f"{PLAIN}: stopped" in told
    assert "limited by time" in told
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
    assert alarms[:6] == ["0.001", "20", "0", "0", "0 %", "13.9 %"]
    assert spent[1] == "10.00"
    assert "Results" not in text


def test_false_alarms_are_shown_as_findings_too(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    print_bench(control(quiet=False, loud=True), False)
    text = capsys.readouterr().out
    alarms, *others = rows(text, "loud")
    assert alarms[2:6] == ["0", "20", "100 %", "100 %"]
    assert len(others) == 5  # costs twice, quality, time, uniqueness
    assert len(rows(text, "quiet")) == 2


def test_a_correlation_stands_next_to_the_lowest_success(
    capsys: pytest.CaptureFixture[str], wide: None
) -> None:
    figures = report().cells
    print_bench(
        report(correlations=(correlate("size", FULL, {"LeNet [1]": 10.0}, figures),)), False
    )
    text = capsys.readouterr().out
    line, _ = [line for line in text.splitlines() if line.strip().startswith("size")]
    assert "66.7 %" in line
    assert "lowest success" in text


def test_how_far_it_is_what_failed_and_what_is_missing(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    title, state, *lines = shown(capsys).splitlines()
    assert title == "A [tiny] suite"
    assert numbers(state) == "6 5 1 3 1"
    assert "gone/dflare/0" in "\n".join(lines)
    assert "LeNet-1/not-yet/1: not begun" in lines
    assert "histograms: they" in "\n".join(lines)
    assert "`edgeflare bench resume" in lines[-1]


def test_the_most_needed_figures_are_whole_at_every_width(
    capsys: pytest.CaptureFixture[str], width: int
) -> None:
    text = shown(capsys)
    tables = [line for line in text.splitlines() if line.startswith(" ")]
    assert max(map(len, tables)) <= width
    results, *_ = rows(text, FULL)
    assert results[:2] == (["66.7 % (2 of 3)", "30.00"] if width > 60 else ["30.00"])


@pytest.mark.parametrize("width", [80, 160], indirect=True)
def test_every_search_has_a_line(capsys: pytest.CaptureFixture[str], width: int) -> None:
    *_, first, second, third = rows(shown(capsys, searches=True), FULL)
    assert first[:5] == ["0", "s/1.png", "found", "20", "0.020"]
    assert second[:5] == ["0", "s/2.png", "found", "40", "0.040"]
    assert third[:5] == ["0", "s/3.png", "timeout", "60", "0.060"]


def test_a_bench_that_has_not_started_has_no_tables(capsys: pytest.CaptureFixture[str]) -> None:
    empty = {"cells": (), "comparisons": (), "correlations": (), "searches": ()}
    print_bench(
        report(**empty, finished=(), unfinished=(), failed={}, notices=()), False, searches=True
    )
    lines = capsys.readouterr().out.splitlines()
    assert numbers(lines[1]) == "0 2 0 2"
    assert not any("─" in line for line in lines)


def test_searches_are_in_the_json_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    print_bench(report(), True)
    assert "searches" not in json.loads(capsys.readouterr().out)
    print_bench(report(), True, searches=True)
    told = json.loads(capsys.readouterr().out)["searches"]
    assert [one["queries"] for one in told] == [10, 20, 30, 20, 40, 60]
    assert told[-1]["ssim"] is None

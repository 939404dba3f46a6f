"""What ``bench show`` prints of a report."""

import json
import re
from dataclasses import replace

import pytest
from benches import bench_of, fill_cell, suite_of
from shown_numbers import numbers

from edgeflare.types import Status
from edgeflare_bench import BenchReport, Cell, bench_report
from edgeflare_bench.cli import print_bench

FULL = "dflare-reference"


@pytest.fixture(params=[60, 80, 160])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("COLUMNS", str(request.param))
    return int(request.param)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> BenchReport:
    """Strategy a found a trigger from each of 3 seeds, `FULL` from 2 of them."""
    failed = {"LeNet-1/a/1": "there is no model file [gone].onnx"}
    strategies = [{"name": "a"}, {"name": FULL}]
    suite = suite_of(["LeNet 1"], title="A [tiny] suite", strategies=strategies)
    bench = bench_of(tmp_path_factory.mktemp("bench") / "b", suite, failed)
    fill_cell(bench, Cell("LeNet 1", "a", 0), [(Status.FOUND, 10 * number) for number in (1, 2, 3)])
    slow = [(Status.FOUND, 20), (Status.FOUND, 40), (Status.TIMEOUT, 60)]
    fill_cell(bench, Cell("LeNet 1", FULL, 0), slow)
    made = bench_report(bench)
    named = tuple(replace(cell, pair="LeNet [1]") for cell in made.cells)
    return replace(made, cells=named, notices=("no histograms: they need matplotlib",))


def rows(text: str, strategy: str) -> list[list[str]]:
    """The lines of a strategy with their figures, split where at least two spaces are."""
    cells = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return [one[2:] for one in cells if one[:2] == ["LeNet [1]", strategy]]


def test_how_far_it_is_what_failed_and_what_is_missing(report, capsys, width) -> None:
    print_bench(report, False)
    title, state, *lines = capsys.readouterr().out.splitlines()
    assert title == "A [tiny] suite"
    assert numbers(state) == "6 4 2 1 1"
    assert "LeNet-1/a/1" in "\n".join(lines)
    assert f"LeNet-1/{FULL}/1: not begun" in lines
    assert "histograms: they" in "\n".join(lines)
    assert any("`edgeflare bench resume" in line for line in lines[-3:])


def test_the_most_needed_figures_are_whole_at_every_width(report, capsys, width) -> None:
    print_bench(report, False)
    text = capsys.readouterr().out
    tables = [line for line in text.splitlines() if line.startswith(" ")]
    assert max(map(len, tables)) <= width
    results, *_ = rows(text, FULL)
    assert results[:2] == (["66.7 % (2 of 3)", "30.00"] if width > 60 else ["30.00"])


def test_searches_are_in_the_json_if_asked_for(report, capsys) -> None:
    print_bench(report, True)
    assert "searches" not in json.loads(capsys.readouterr().out)
    print_bench(report, True, searches=True)
    told = json.loads(capsys.readouterr().out)["searches"]
    assert [one["queries"] for one in told] == [10, 20, 30, 20, 40, 60]
    assert told[-1]["ssim"] is None

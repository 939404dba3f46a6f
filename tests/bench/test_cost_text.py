"""What the report says of costs and of false alarms."""

from pathlib import Path

import pytest
from benches import bench_of, fill_cell, suite_of

from edgeflare.reports.document import to_markdown
from edgeflare.types import Status
from edgeflare_bench.cells import cells
from edgeflare_bench.report import BenchReport, bench_report
from edgeflare_bench.reports.document import bench_document
from edgeflare_bench.suite import Suite, suite_from

QUICK = [(Status.FOUND, 10), (Status.FOUND, 30), (Status.FOUND, 20), (Status.SEED_DEVIATES, 0)]
NONE = [(Status.EXHAUSTED, 50), (Status.EXHAUSTED, 50), (Status.GAVE_UP, 4), (Status.TIMEOUT, 8)]


def written(folder: Path, suite: Suite, found_by: str) -> tuple[BenchReport, str]:
    """The report of a bench, and its document, in which these strategies found something."""
    bench = bench_of(folder / "bench", suite)
    for cell in cells(suite):
        fill_cell(bench, cell, QUICK if cell.strategy in found_by else NONE)
    report = bench_report(bench)
    return report, to_markdown(bench_document(report))


def control() -> Suite:
    values = suite_of(baseline=None, margin_floor=0.001).model_dump()
    values["pairs"][0].update(control=True, study=None, x=None)
    values["strategies"][1]["margin_floor"] = 0.0
    return suite_from(values, "the test")


def tables(text: str, heading: str) -> list[list[list[str]]]:
    """The cells of each table below a heading, its own headings first."""
    part = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return [
        [
            line.removeprefix("| ").removesuffix(" |").split(" | ")
            for line in block.splitlines()
            if "---" not in line
        ]
        for block in part.split("\n\n")
        if block.startswith("| ")
    ]


def test_one_table_does_where_every_search_found_something(tmp_path: Path) -> None:
    _, text = written(tmp_path, suite_of(), "ab")
    ((header, first, second),) = tables(text, "Costs")
    assert header[-3:] == ["+ 5 ms", "+ 20 ms", "+ 100 ms"]
    assert first == [
        *("One pair", "a", "6", "20.00", "20.0", "23.00", "10.00", "40", "40"),
        *("2.000", "2.050", "2.200", "3.000"),
    ]
    assert second[2:] == first[2:]


def test_those_that_found_nothing_have_a_table_with_what_they_spent(tmp_path: Path) -> None:
    _, text = written(tmp_path, suite_of(), "a")
    found, spent = tables(text, "Costs")
    assert [line[:2] for line in found[1:]] == [["One pair", "a"]]
    assert [line[1:4] for line in spent[1:]] == [["a", "6", "20.00"], ["b", "8", "28.00"]]


def test_a_control_without_a_finding_has_its_bound_instead_of_results(tmp_path: Path) -> None:
    report, text = written(tmp_path, control(), "")
    ((_, first, second),) = tables(text, "False alarms")
    assert first == [
        *(
            "One pair",
            "a",
            "0.001",
            "4",
            "0",
            "0",
            "0 %",
            "52.7 %",
            "4 exhausted, 2 gave-up, 2 timeout",
        ),
    ]
    assert second[:3] == ["One pair", "b", "0"]
    assert [one.upper_bound for one in report.false_alarms] == [pytest.approx(1 - 0.05**0.25)] * 2
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## False alarms", "## Costs", "## Repeat by repeat", "## How it was run"]
    assert not list((tmp_path / "bench").rglob("*.png"))


def test_a_control_s_false_alarms_are_described(tmp_path: Path) -> None:
    report, text = written(tmp_path, control(), "b")
    assert [one.seeds_with for one in report.false_alarms] == [0, 4]
    ((_, _, second),) = tables(text, "False alarms")
    assert second[3:] == ["4", "0", "4", "100 %", "100 %", "0"]
    ((_, described),) = tables(text, "Quality of the triggering inputs")
    assert described[:2] == ["One pair", "b"]
    assert "## Results" not in text


def test_where_nothing_was_found_nothing_is_described(tmp_path: Path) -> None:
    _, text = written(tmp_path, suite_of(), "")
    assert "triggering input" in text
    assert tables(text, "Quality of the triggering inputs") == []
    assert "## Results" in text
    assert "## False alarms" not in text

"""What a report says: its verdict first, then the pairs, the devices, what ended otherwise, how to run it again."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from page_stores import many_triggers
from stores import ended, store_of

from edgeflare import write_html_report
from edgeflare._internal import toml
from edgeflare.analysis.summary import control_figures
from edgeflare.document import Matrix
from edgeflare.reports.sections.again import campaign_toml
from edgeflare.reports.sections.pairs import pairs_section
from edgeflare.types import Status

Read = Callable[[Path], Any]


@pytest.fixture
def written(campaign: Any, tmp_path: Path, read: Read) -> Callable[[], Any]:
    """Writes the report and reads it."""

    def write() -> Any:
        write_html_report(campaign.store, tmp_path / "report.html")
        return read(tmp_path / "report.html")

    return write


def test_too_many_classes_make_a_list_of_the_most_frequent_pairs() -> None:
    def matrix(classes: int) -> Any:
        counts = {(number, number + 1): 1 + number for number in range(classes)}
        (block,) = (one for one in pairs_section((), counts, str).blocks if isinstance(one, Matrix))
        return block

    few = matrix(40)
    assert len(few.rows) - 1 == len(few.columns) - 2 == 40
    assert few.rows[-1][-1] == "820"
    assert sum(int(row[-1]) for row in few.rows[:-1]) == 820
    assert sum(int(total) for total in few.rows[-1][1:-1]) == 820
    cells = [row[-1] for row in matrix(50).rows]
    assert [int(cell.text) for cell in cells] == list(range(50, 30, -1))
    assert {cell.shade for cell in cells} <= {1, 2, 3, 4, 5}
    assert cells[0].shade == 5


def test_a_fleet_reports_causes_telemetry_and_agreement(tmp_path: Path, read: Read) -> None:
    folder = many_triggers(tmp_path / "fleet", 24)
    report = write_html_report(folder, folder / "report.html")
    page = read(folder / "report.html")
    assert report.findings == len(page.rows) == 25
    assert {row["cause"] for row in page.rows} == {"compression", "hardware", "not attributed"}
    tables = {one.get("id") for one in page.having("table")}
    assert tables >= {"by-device", "telemetry", "agreements", "models"}
    charts = [one["aria-label"] for one in page.having("svg", role="img")]
    assert sum("temperature" in one for one in charts) == 2
    assert "pi-5 was slowed" in page.text


def test_the_configuration_comes_back_from_its_toml() -> None:
    config = {
        "original": {"path": 'a "b"\\c\x7f\n.onnx', "runtime": None, "options": {"threads": 2}},
        "devices": ["pi", "ssh://me@host:22"],
        "out": "/away",
        "search": {"seed": 3, "margin_floor": 1e-3, "options": {"an odd key": [1, 2]}},
        "one_trip": False,
        "limits": {"max_deviation_rate": None},
    }
    text = campaign_toml(config)
    assert toml.loads(text) == {
        "original": {"path": config["original"]["path"], "options": {"threads": 2}},
        "devices": config["devices"],
        "search": config["search"],
        "one_trip": False,
    }


def test_only_searches_that_asked_the_device_bound_the_rate_of_false_alarms(
    campaign: Any, tmp_path: Path, read: Read
) -> None:
    search = {"strategy": "boundary", "margin_floor": 0.001}
    config = {**campaign.config, "control": True, "original": {"path": "o.onnx"}, "search": search}
    folder = tmp_path / "controlled"
    more = {"seeds": 3, "config": config, "label": lambda number: 2}
    with store_of(folder, **more) as store, store_of(folder / "control", **more) as control:
        store.state.control_begun = True
        ended(control, 0, Status.EXHAUSTED, search_queries=3)
        for n in (1, 2):
            ended(control, n, Status.GAVE_UP, host_only_queries=90)
        control.close()
        figures = control_figures(store)
        write_html_report(store, tmp_path / "page.html")
    assert figures is not None
    assert (figures.searches, figures.upper_bound) == (1, pytest.approx(0.95))
    assert "at most 95.0 %" in read(tmp_path / "page.html").text


def test_headings_are_in_order_and_every_field_and_column_is_named(
    campaign: Any, written: Any
) -> None:
    campaign.add()
    campaign.finish()
    page = written()
    levels = [int(tag[1]) for tag, _ in page.elements if tag in ("h1", "h2", "h3", "h4")]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))
    assert all(one.get("scope") for one in page.having("th"))
    assert all(one.get("aria-label") for one in page.having("svg"))
    fields = {one["name"] for one in (*page.having("select"), *page.having("input"))}
    assert fields == {"pair", "cause", "device", "status", "l2", "seed", "sort"}
    parts = ["header", "nav", "main", "footer"]
    assert [tag for tag, _ in page.elements if tag in parts] == parts

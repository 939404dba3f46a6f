"""What a report says: its verdict first, then the pairs, the devices, what ended otherwise, how to run it again."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_stores import many_triggers

from edgeflare import report_text, write_html_report
from edgeflare._internal import toml
from edgeflare.analysis.summary import control_figures
from edgeflare.reports.html.context import campaign_toml
from edgeflare.reports.html.gallery import matrix
from edgeflare.store import OutcomeRecord, SeedInput, Store
from edgeflare.types import Status

Read = Callable[[Path], Any]


@pytest.fixture
def written(campaign: Any, tmp_path: Path, read: Read) -> Callable[[], Any]:
    """Writes the report and reads it."""

    def write() -> Any:
        write_html_report(campaign.store, tmp_path / "report.html")
        return read(tmp_path / "report.html")

    return write


def test_the_verdict_comes_first_with_what_matters(campaign: Any, written: Any) -> None:
    campaign.add(pair=(0, 1), margin=0.2)
    campaign.add(Status.SEED_DEVIATES, pair=(2, 1), margin=0.3)
    campaign.add(Status.GAVE_UP, detail="no way out")
    campaign.store.add_notice("board was slowed down")
    campaign.finish()
    text = written().text
    verdict = (
        "2 of 3 seeds (66.7 %) lead to an input on which the deployed model decides differently."
    )
    places = [text.index(one) for one in (verdict, "What the original says, and", "Run it again")]
    assert places == sorted(places)
    assert "1 trigger" in text
    assert "deployed model 1" in text
    assert "trigger median 3" in text
    assert "board was slowed" in text
    assert "interrupted" not in text


def test_without_limits_the_page_says_what_a_margin_is_and_what_to_do(
    campaign: Any, written: Any
) -> None:
    campaign.add()
    campaign.add(Status.SEED_DEVIATES)
    comment = report_text(campaign.finish(), "markdown")
    page = written()
    assert page.having("section", id="summary", **{"class": "panel verdict neutral"})
    for said in ("most probable class is above its next one", "here 1 of 2", "--device-budget 8"):
        assert said in page.text
        assert said in comment


def test_an_interrupted_campaign_says_first_how_far_it_is(campaign: Any, written: Any) -> None:
    campaign.add()
    campaign.store.add_seeds([SeedInput("to-do.png", np.zeros((2, 2, 1), np.uint8))])
    assert "2 searches, 1" in written().text


def test_crossed_limits_come_before_everything(tmp_path: Path, campaign: Any, read: Read) -> None:
    limits = {"max_deviation_rate": 0.1, "min_l2": 0.0001}
    campaign.store.set_campaign({**campaign.config, "limits": limits})
    campaign.add()
    write_html_report(campaign.finish(), tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert page.text.index("1 of 2 limits is crossed: max_deviation_rate.") < page.text.index(
        "1 of 1 seed"
    )
    assert page.having("section", id="summary", **{"class": "panel verdict bad"})
    campaign.store.set_campaign({**campaign.config, "limits": {"min_l2": 0.0001}})
    write_html_report(campaign.store, tmp_path / "report.html")
    assert "limit is kept" in read(tmp_path / "report.html").text


def test_triggers_of_searches_and_seeds_that_deviate_are_distinguished(
    campaign: Any, written: Any
) -> None:
    campaign.add()
    campaign.add()
    campaign.add(Status.SEED_DEVIATES)
    campaign.finish()
    page = written()
    assert "2 of 2" in page.text
    assert page.having("section", id="summary", **{"class": "panel verdict neutral"})
    assert not page.having("span", **{"class": "sign"})


def test_a_campaign_without_a_trigger_has_a_neutral_page(campaign: Any, written: Any) -> None:
    campaign.add(Status.EXHAUSTED)
    campaign.add(Status.GAVE_UP, detail="the strategy knows no step")
    campaign.finish()
    page = written()
    assert "2 seeds" in page.text
    assert "strategy knows" in page.text
    assert "finding to show" in page.text
    assert page.rows == []
    assert page.having("section", id="summary", **{"class": "panel verdict neutral"})


def test_an_empty_campaign_says_that_it_was_interrupted(campaign: Any, written: Any) -> None:
    page = written()
    assert "searched from yet" in page.text
    assert "was interrupted" in page.text
    assert "edgeflare resume" in page.text


def test_the_matrix_counts_the_pairs_and_links_to_them(campaign: Any, written: Any) -> None:
    for pair in ((0, 1), (0, 1), (2, 0)):
        campaign.add(pair=pair)
    campaign.add(Status.UNSTABLE, pair=(1, 2))
    campaign.finish()
    page = written()
    links = [one for one in page.having("a") if "data-pair" in one]
    assert {(one["data-pair"], one["aria-label"]) for one in links} == {
        ("0-1", "2 triggers: the original says 0, the deployed model 1"),
        ("2-0", "1 trigger: the original says 2, the deployed model 0"),
    }
    assert {one["href"] for one in links} == {"#pair=0-1", "#pair=2-0"}


def test_too_many_classes_make_a_list_of_the_most_frequent_pairs() -> None:
    few = matrix({(number, number + 1): 1 + number for number in range(40)})
    assert len(few.rows) == len(few.columns) == 40
    assert few.count == sum(row.total for row in few.rows) == sum(few.totals) == 820
    many = matrix({(number, number + 1): 1 + number for number in range(50)})
    assert many.rows == []
    assert [cell.count for cell in many.top] == list(range(50, 30, -1))
    assert many.left_out == 30
    assert {cell.shade for cell in many.top} <= {1, 2, 3, 4, 5}
    assert many.top[0].shade == 5


def test_a_fleet_reports_causes_telemetry_and_agreement(tmp_path: Path, read: Read) -> None:
    folder = many_triggers(tmp_path / "fleet", 24)
    report = write_html_report(folder, folder / "report.html")
    page = read(folder / "report.html")
    assert report.findings == len(page.rows) == 25
    assert {row["cause"] for row in page.rows} == {"compression", "hardware", "not attributed"}
    assert {one["id"] for one in page.having("table") if "id" in one} >= {
        "by-device",
        "telemetry",
        "agreements",
        "models",
    }
    charts = [one["aria-label"] for one in page.having("svg", role="img")]
    assert sum("temperature" in one for one in charts) == 2
    assert "pi-5 was slowed" in page.text
    assert "devices" in page.text


def test_what_is_needed_to_run_it_again_is_there(campaign: Any, written: Any) -> None:
    campaign.add()
    campaign.finish()
    page = written()
    assert "ab" * 32 in page.text
    assert "cd" * 32 in page.text
    assert "search boundary" in page.text
    assert "randomness 7" in page.text


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
    seeds = [SeedInput(f"{n}.png", np.full((2, 2, 1), n, np.uint8), 2) for n in range(3)]
    with Store.create(folder, config) as store, Store.create(folder / "control", config) as control:
        store.add_seeds(seeds)
        store.state.control_begun = True
        control.add_seeds(seeds)
        control.add_outcome(OutcomeRecord("0.png", Status.EXHAUSTED, 0, search_queries=3))
        for n in (1, 2):
            control.add_outcome(OutcomeRecord(f"{n}.png", Status.GAVE_UP, n, host_only_queries=90))
        control.close()
        figures = control_figures(store)
        write_html_report(store, tmp_path / "page.html")
    assert figures is not None
    assert (figures.searches, figures.upper_bound) == (1, pytest.approx(0.95))
    said = "1 search that asked the device raised a false alarm (0 %, with 95 % confidence at most 95.0 %); 2 ended"
    assert said in read(tmp_path / "page.html").text


def test_a_control_reports_false_alarms(campaign: Any, tmp_path: Path, read: Read) -> None:
    folder = campaign.store.folder / "control"
    with Store.create(folder, campaign.config) as control:
        control.add_seeds([SeedInput("seed.png", np.zeros((2, 2, 1), np.uint8), 2)])
        control.add_outcome(OutcomeRecord("seed.png", Status.EXHAUSTED, 1, search_queries=3))
        control.state.finished = True
        write_html_report(control, tmp_path / "control.html")
        comment = report_text(control, "markdown")
    text = read(tmp_path / "control.html").text
    said = "No false alarm: in 1 search that asked the device the original was never taken for another model."
    assert said in text
    assert said in comment
    assert "campaign" in text


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
    assert {one["name"] for one in (*page.having("select"), *page.having("input"))} == {
        "pair",
        "cause",
        "device",
        "status",
        "l2",
        "seed",
        "sort",
    }
    assert [tag for tag, _ in page.elements if tag in ("main", "header", "nav", "footer")] == [
        "header",
        "nav",
        "main",
        "footer",
    ]

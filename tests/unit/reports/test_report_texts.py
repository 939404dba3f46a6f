"""The reports for programs and for people, read back."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from datetime import datetime, timezone

import pytest
from stores import ENDS, ended, replay_store, store_of

from edgeflare import write_html_report
from edgeflare.analysis import summarize
from edgeflare.devices import DeviceMinute
from edgeflare.errors import StoreError, UsageError
from edgeflare.reports import report_text
from edgeflare.reports.render.records import CSV_COLUMNS
from edgeflare.reports.telemetry import write_minutes
from edgeflare.store import Store
from edgeflare.types import Status

FINDINGS = ["near", "far", "seed-deviates", "unstable", "nonfinite"]


def strict(text: str):
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_object_is_the_summary_with_limits_and_findings(every_status):
    with every_status(limits={"min_l2": 1.0}) as store:
        said = strict(report_text(store, "json"))
        summary = strict(json.dumps(summarize(store).to_json()))
    assert {name: said[name] for name in summary} == summary
    assert "crossed: min_l2" in said["verdict"]
    assert [(one["name"], one["crossed"]) for one in said["limits"]] == [("min_l2", True)]
    assert said["replay"] is None
    assert [one["seed_id"] for one in said["findings"]] == FINDINGS
    near, *_, nonfinite = said["findings"]
    assert (near["original_label"], near["deployed_label"], near["l2"]) == (0, 1, 0.5)
    assert near["cause"] == "not attributed"
    assert near["command"].endswith("--trigger near")
    assert nonfinite["deployed_scores"] == ["nan", "inf", 0.0]
    assert (near["original_class"], said["class_names"]) == (None, None)


def test_a_campaign_without_findings_is_still_an_object(tmp_path):
    with Store.create(tmp_path / "c", {}) as store:
        said = strict(report_text(store, "json"))
    assert (said["findings"], said["verdict"]) == ([], "No seed has been searched from yet.")


def test_pandas_reads_the_lines_back(demo):
    import pandas as pd

    table = pd.read_csv(io.StringIO(report_text(demo, "csv")))
    with Store.open(demo) as store:
        kept = {one.seed_id: one for one in store.outcomes()}
    assert tuple(table.columns) == CSV_COLUMNS
    assert sorted(table.seed_id) == sorted(kept)
    for row in table.itertuples():
        one = kept[row.seed_id]
        assert (row.status, row.original_label) == ("found", one.original_label)
        assert row.l2 == pytest.approx(one.l2, rel=1e-15)  # pandas 2 errs in the last bit
        assert row.search_queries == one.search_queries
        assert row.trigger_sample == one.trigger
    assert pd.to_datetime(table.finished_at).dt.tz is not None


def rows_of(store, **options):
    return list(csv.DictReader(io.StringIO(report_text(store, "csv", **options), newline="")))


def test_of_a_replay_every_input_has_a_line_as_it_was_stored(tmp_path):
    with replay_store(tmp_path / "replay") as store:
        listed = rows_of(store, class_names=["zero", "one", "two"])
    rows = {row["seed_id"]: row for row in listed}
    states = ("fixed", "still", "fixed", "unstable", "failed", "nonfinite", "new", "agrees")
    expected = dict(zip(ENDS, states, strict=True))
    assert {name: row["state"] for name, row in rows.items()} == expected
    fixed, still, failed = rows["trigger:a"], rows["trigger:b"], rows["trigger:e"]
    for row in (fixed, still, failed):
        assert (row["original_label_before"], row["deployed_label_before"]) == ("0", "1")
        assert (row["l2"], row["linf"], row["label"]) == ("1.5", "", "2")
    assert (fixed["original_class"], fixed["deployed_class"]) == ("zero", "zero")
    assert (still["original_class"], still["deployed_class"]) == ("zero", "one")
    assert float(fixed["deployed_margin"]) == pytest.approx(0.5)
    assert (failed["deployed_label"], failed["deployed_margin"]) == ("", "")
    assert (rows["seed:g"]["l2"], rows["seed:g"]["linf"]) == ("0.0", "0")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((name, f"'{name}") for name in ("=1+1", "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\n=1")),
        ("\r=1", "'\n=1"),
        ("-3.5", "-3.5"),
        ('a,"b".png', 'a,"b".png'),
        ("line\nbreak.png", "line\nbreak.png"),
        ("old\rbreak.png", "old\nbreak.png"),
    ],
)
def test_no_text_breaks_a_table_or_is_a_formula_for_a_spreadsheet(tmp_path, name, told):
    end = {"seed": name, "status": Status.UNSTABLE, "device_name": name, "detail": name}
    with store_of(tmp_path / "c", [end], seeds=[name]) as store:
        (row,) = rows_of(store)
    assert {row["seed_id"], row["device_name"], row["detail"]} == {told}
    minute = DeviceMinute(device=name, minute=datetime(2026, 1, 2, tzinfo=timezone.utc))
    file = io.StringIO(newline="")
    write_minutes(file, [minute])
    assert next(csv.DictReader(io.StringIO(file.getvalue(), newline="")))["device"] == told


HOSTILE = "\x1b]0;x\x07\x9b2J\u202e|`<script>alert(1)</script>\n\n# `</system-out>[a](b) ``` &lt; $x$ \x00"


def test_no_text_of_a_campaign_breaks_a_report_or_reaches_a_terminal_as_a_command(tmp_path):
    seeds = [f"{n}{HOSTILE}" for n in range(3)]
    with store_of(
        tmp_path / "c",
        seeds=seeds,
        config={"search": {"strategy": HOSTILE}},
        models=({"name": HOSTILE, "sha256": HOSTILE}, {"name": HOSTILE}),
        devices={HOSTILE: {"board": HOSTILE}},
    ) as store:
        store.add_notice(HOSTILE)
        trigger = {"original_label": 0, "deployed_label": 1, "l2": 1.0, "linf": 1, "trigger": 9}
        for name, status in zip(seeds, (Status.FOUND, Status.FAILED, Status.GAVE_UP), strict=True):
            more = trigger if status is Status.FOUND else {}
            common = {"device": HOSTILE, "detail": HOSTILE, "search_queries": 1}
            ended(store, name, status, **common, **more)
        names = [HOSTILE, f"other {HOSTILE}"]
        write_html_report(store, tmp_path / "page.html", class_names=names)
        comment, cases = (
            report_text(store, form, class_names=names) for form in ("markdown", "junit")
        )
    page = (tmp_path / "page.html").read_text()
    for text in (comment, cases, page):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert "<script>alert" not in page + cases
    ET.fromstring(cases)
    prose, _, rest = comment.partition("````sh\n")
    assert "````" in rest
    assert "```" not in prose.replace("\\`", "")
    assert "<script>alert" not in prose
    assert [line for line in prose.splitlines() if line.startswith("#") and "alert" in line] == []
    for block in prose.split("\n\n"):
        rows = block.splitlines()
        if block.startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1, rows


@pytest.mark.parametrize("form", ["junit", "json", "markdown", "csv"])
def test_names_that_are_no_utf_8_can_be_written(every_status, form):
    with every_status() as store:
        text = report_text(store, form, class_names=["zero", "caf\udce9", "two"])
    assert "caf" in text
    text.encode()


def test_a_comment_stays_short_and_says_how_much_more_there_is(tmp_path):
    about = {"trigger": 1, "search_queries": 1}
    pairs = [{"original_label": n % 30, "deployed_label": n % 30 + 1} for n in range(300)]
    ends = [{"seed": n, **about, **pair} for n, pair in enumerate(pairs)]
    with store_of(tmp_path / "c", ends, seeds=300) as store:
        text = report_text(store, "markdown")
    assert "20 more pairs" in text
    assert len(text) < 4000


def test_another_format_no_campaign_or_too_few_names_are_refused(tmp_path, every_status):
    with every_status() as store:
        with pytest.raises(UsageError, match="junit, json"):
            report_text(store, "pdf")
        with pytest.raises(UsageError, match="3 classes"):
            report_text(store, "csv", class_names=["cat", "dog"])
    with pytest.raises(StoreError, match="campaign folder"):
        report_text(tmp_path / "nothing", "csv")


def test_by_default_the_campaigns_own_label_mapping_is_used_while_it_is_there(
    tmp_path, every_status
):
    mapping = tmp_path / "labels.json"
    mapping.write_text('{"cat": 0, "dog": 1, "eel": 2}')
    with every_status(seeds={"labels": str(mapping)}) as store:
        named = json.loads(report_text(store, "json"))
        mapping.write_text('{"cat": 0}')  # no longer one for these models
        partly = json.loads(report_text(store, "json"))
        mapping.unlink()
        gone = json.loads(report_text(store, "json"))
    assert named["findings"][0]["deployed_class"] == "dog"
    assert (partly["class_names"], gone["class_names"]) == (None, None)

"""What one section says is in every format: a stranger's analysis, and a figure that is new."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from plugin_distributions import write_distribution
from stores import compared_campaign

from edgeflare import report_text, summarize, write_html_report
from edgeflare.analysis import RunContext, run_analysis
from edgeflare.document import KeyFigure
from edgeflare.reports import print_document, summary_document
from edgeflare.reports.sections import campaign

SOURCE = """
from dataclasses import dataclass

from pydantic import BaseModel

from edgeflare.document import Cell, Figures, KeyFigure, Matrix, Section, table_of


class Settings(BaseModel):
    least: int = 0


@dataclass(frozen=True)
class Tallied:
    searches: int
    by_device: dict[str, int]


class Tally:
    about = "Count the searches of each device."
    settings, result = Settings, Tallied

    def run(self, store, settings, context):
        counts = {}
        for outcome in store.outcomes():
            counts[outcome.replica] = counts.get(outcome.replica, 0) + 1
        return Tallied(sum(counts.values()), counts)

    def sections(self, result, names):
        figure = KeyFigure("tallied searches", str(result.searches), "of all devices", main=True)
        rows = [(device, Cell(str(count), 3)) for device, count in result.by_device.items()]
        text = (table_of(["device", "tally"], [(device, cell.text) for device, cell in rows]),)
        blocks = (Figures((figure,)), Matrix(("device", "tally"), rows, text=text))
        yield Section("tally", "Tally <of searches>", blocks, key_figures=(figure,))


TALLY = Tally()
"""


def texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> Mapping[str, str]:
    """What each format says of a campaign."""
    capsys.readouterr()
    print_document(summary_document(summarize(folder)))
    page = folder / "report.html"
    write_html_report(folder, page)
    return {
        "terminal": capsys.readouterr().out,
        "page": page.read_text(encoding="utf-8"),
        "markdown": report_text(folder, "markdown"),
        "json": report_text(folder, "json"),
        "junit": report_text(folder, "junit"),
    }


def properties(junit: str) -> dict[str, Any]:
    """The key figures in a JUnit report."""
    return {one.get("name", ""): one.get("value") for one in ET.fromstring(junit).iter("property")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with compared_campaign(tmp_path / "c", {"board": "pi"}, {"board": "jetson"}) as store:
        return store.folder


def test_a_strangers_analysis_is_in_every_format(folder, tmp_path, monkeypatch, capsys) -> None:
    write_distribution(tmp_path / "site", "tally", SOURCE, {"edgeflare.analyses/tally": "TALLY"})
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert not [name for name, text in texts(folder, capsys).items() if "Tally" in text]
    result = run_analysis("tally", folder, {}, RunContext())
    said = texts(folder, capsys)
    assert "Tally <of searches>" in said["terminal"]
    assert "Tally \\<of searches\\>" in said["markdown"]
    assert '<h2 id="tally-title">Tally &lt;of searches&gt;</h2>' in said["page"]
    assert '<td class="heat-3">' in said["page"]
    (section,) = (one for one in json.loads(said["json"])["sections"] if one["id"] == "tally")
    assert section["data"] == {"searches": result.searches, "by_device": result.by_device}
    assert section["figures"][0]["value"] == str(result.searches)
    assert properties(said["junit"])["tallied searches"] == f"{result.searches} (of all devices)"
    output = "".join(one.text or "" for one in ET.fromstring(said["junit"]).iter("system-out"))
    for text in (said["terminal"], said["markdown"], said["page"], output):
        for device, count in result.by_device.items():
            line = text[text.index("tally", text.index("Tally")) :]
            assert str(count) in line[line.index(device) :]


def test_a_new_key_figure_is_in_every_format(folder, monkeypatch, capsys) -> None:
    figures = campaign.key_figures

    def with_another(*arguments: Any) -> tuple[KeyFigure, ...]:
        return (*figures(*arguments), KeyFigure("a new figure", "42", "of it"))

    monkeypatch.setattr(campaign, "key_figures", with_another)
    said = texts(folder, capsys)
    for text in said.values():
        assert "a new figure" in text
    assert {"name": "a new figure", "value": "42", "about": "of it"} in (
        figure for section in json.loads(said["json"])["sections"] for figure in section["figures"]
    )
    assert properties(said["junit"])["a new figure"] == "42 (of it)"

"""``show`` of campaigns of several devices."""

import re

import pytest
from fleet_stores import pooled_campaign, replicated_campaign

from edgeflare import summarize
from edgeflare.cli.summary_tables import print_summary


@pytest.fixture(params=[60, 80, 120])
def width(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def shown(store, capsys):
    with store:
        print_summary(summarize(store), False)
    return capsys.readouterr().out


def rows(text):
    """The lines with their cells, split where at least two spaces are."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


def test_a_pool(tmp_path, capsys, width):
    text = shown(pooled_campaign(tmp_path / "c"), capsys)
    listed = rows(text)
    assert ["failed: the device can't" + ("" if width == 60 else " answer"), "1"] in listed
    assert ["seeds unfinished", "1"] in listed
    assert ["pi-1", "3", "3", "100.0 %", "80", "0"] in listed
    assert ["pi-2", "2", "1", "50.0 %", "27", "1"] in listed
    assert "failed: pi-2 can't answer on s/4.png: the agent died three times: Segm" in text


def test_replicas_and_whose_triggers_work_on_whom(tmp_path, capsys, width):
    listed = rows(shown(replicated_campaign(tmp_path / "c"), capsys))
    assert ["searches unfinished", "1"] in listed
    assert ["triggers of", "on jetson", "on pi #1"] in listed
    assert ["jetson", "-", "1/2 50%"] in listed
    assert ["pi #1", "2/3 67%", "-"] in listed


def test_no_table_line_is_longer_than_the_terminal(tmp_path, capsys, width):
    with replicated_campaign(tmp_path / "c") as store:
        print_summary(summarize(store), False)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width

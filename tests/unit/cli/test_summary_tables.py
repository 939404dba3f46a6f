"""``show`` of campaigns of several devices."""

import dataclasses
import re

import pytest
from shown_numbers import numbers
from stores import pooled_campaign, replicated_campaign

from edgeflare import summarize
from edgeflare.analysis import ControlFigures
from edgeflare.cli.display.tables import print_summary
from edgeflare.reports.campaign import control_setting, control_words


@pytest.fixture(params=[60, 80, 120])
def width(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def rows(text):
    """The lines with their cells, split where at least two spaces are."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("effect", "told"),
    [
        (
            {"delegate": "XNNPACK, 5 of 8 operators in 3 parts"},
            "XNNPACK, 5 of 8 operators in 3 parts",
        ),
        ({"nodes": {"Aa": 12, "CPU": 3}}, "12 nodes on Aa, 3 nodes on CPU"),
        ({"nodes": None}, "nodes per provider not known"),
    ],
)
def test_what_runs_the_operators_is_reported(tmp_path, capsys, monkeypatch, effect, told):
    monkeypatch.setenv("COLUMNS", "120")
    models = {"deployed": {"name": "a.onnx", "runtime": {"name": "rt", "version": "1", **effect}}}
    with pooled_campaign(tmp_path / "c") as store:
        print_summary(dataclasses.replace(summarize(store), models=models), False)
    listed = rows(capsys.readouterr().out)
    assert ["deployed model", f"a.onnx (rt 1, {told})"] in listed


def test_no_table_line_is_longer_than_the_terminal(tmp_path, capsys, width):
    with replicated_campaign(tmp_path / "c") as store:
        print_summary(summarize(store), False)
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if line.startswith(" ")) <= width


def test_a_control_and_what_it_raised():
    control = ControlFigures(
        model="float [1].tflite",
        own_file=False,
        runtime={"name": "tflite", "version": "2.1", "delegate": None, "kernels": "default"},
        searches=40,
        unasked=3,
        false_alarms=2,
        failed=1,
        unfinished=7,
        rate=0.05,
        upper_bound=0.1494,
        margin_floor=0.001,
        largest_margin=0.00321,
        state="begun",
        refusal=None,
    )
    assert numbers(control_words(control)) == "2 40 5.0 95 14.9 0.0033 3 1 7"
    assert numbers(control_setting(control)) == "1 2.1 0.001"
    begun = dataclasses.replace(control, searches=0, unasked=0, false_alarms=0, failed=0, rate=None)
    assert numbers(control_words(begun)) == "0 7 7"
    assert control_words(dataclasses.replace(begun, state="not-begun")) == "not begun"
    refused = dataclasses.replace(begun, state="refused", refusal="no [copy]")
    assert "run: no [copy]" in control_words(refused)

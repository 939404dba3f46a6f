"""``show`` of campaigns of several devices."""

import dataclasses
import re

import pytest
from campaign_stores import compared_campaign, pooled_campaign, replicated_campaign
from shown_numbers import numbers

from edgeflare import summarize
from edgeflare.analysis import ControlFigures
from edgeflare.cli.display.tables import print_summary
from edgeflare.reports.campaign import control_setting, control_words


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
    assert ["failed: a model can't answer", "1"] in listed
    assert ["seeds unfinished", "1"] in listed
    devices = [row for row in listed if row[0] in ("pi-1", "pi-2")]
    assert [(row[1], row[-1]) for row in devices] == [("3", "0"), ("2", "1")]
    assert ["100 %" in devices[0], "50.0 %" in devices[1]] == [True, True]
    assert "failed: pi-2" in text


def test_replicas_and_whose_triggers_work_on_whom(tmp_path, capsys, width):
    listed = rows(shown(replicated_campaign(tmp_path / "c"), capsys))
    assert ["searches unfinished", "1"] in listed
    assert ["triggers of", "on jetson", "on pi #1"] in listed
    assert ["jetson", "–", "1/2 50 %"] in listed
    assert ["pi #1", "2/3 67 %", "–"] in listed


@pytest.mark.parametrize(
    ("floor", "told"), [(0, "no margin floor"), (0.001, "margins of at least 0.001")]
)
def test_the_margin_floor_is_reported(tmp_path, capsys, monkeypatch, floor, told):
    monkeypatch.setenv("COLUMNS", "120")
    limits = {"max_queries": 50, "timeout_s": 0, "margin_floor": floor}
    with pooled_campaign(tmp_path / "c") as store:
        search = {"strategy": "boundary", "options": {}, **limits}
        print_summary(dataclasses.replace(summarize(store), search=search), False)
    listed = rows(capsys.readouterr().out)
    assert ["search", f"boundary, at most 50 queries a seed, {told}"] in listed


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


def test_two_preprocessings_that_only_clip_apart_are_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    spec = {"scale": [1, 255], "mean": [0], "std": [1], "color": "GRAY"}
    both = {"original": {"input": spec}, "deployed": {"input": {**spec, "clip": [0, 0.5]}}}
    with pooled_campaign(tmp_path / "c") as store:
        print_summary(dataclasses.replace(summarize(store), models=both), False)
    told = "original scale=1/255, GRAY; deployed scale=1/255, GRAY, clip=0,0.5"
    assert ["preprocessing", f"{told} (pixels are 0 to 255)"] in rows(capsys.readouterr().out)


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


@pytest.mark.parametrize("columns", [80, 120])
def test_compared_devices_have_a_row_for_seeds_and_one_for_triggers(
    tmp_path, capsys, monkeypatch, columns
):
    monkeypatch.setenv("COLUMNS", str(columns))
    listed = rows(shown(compared_campaign(tmp_path / "c"), capsys))
    assert ["host / board", "3 seeds", "1", "2.5e-01", "1"] in listed
    assert ["host / board", "3 triggers", "1", "3.8e-01", "2"] in listed
    assert "Agreement of devices" not in shown(pooled_campaign(tmp_path / "pool"), capsys)

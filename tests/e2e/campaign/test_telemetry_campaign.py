"""A campaign remembers how its devices fared, and is marked where one was slowed down."""

import csv
import json
import sys
from pathlib import Path

import pytest
from command import DEMO_PAIR, edgeflare, must_run
from stand_ins import on_path, stand_in

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script"),
]

SLOWED = (
    "(under-voltage, throttled): times and rates of this campaign are not what the device can do"
)


def test_a_campaign_on_a_device_that_was_slowed_down(tmp_path, monkeypatch) -> None:
    stand_in(tmp_path / "bin", "vcgencmd", "echo throttled=0x50005")
    on_path(monkeypatch, tmp_path / "bin")
    ran = must_run("demo", "--seeds", "8", "--out", "hot", home=tmp_path)
    assert "local was slowed" in ran.err
    assert SLOWED in ran.err
    assert SLOWED in ran.out
    assert SLOWED in edgeflare("show", "hot", home=tmp_path).out

    summary = edgeflare("show", "hot", "--json", home=tmp_path).json
    assert summary["throttled"] == ["local"]
    assert SLOWED in summary["notices"][-1]
    (local,) = summary["telemetry"]
    counted = summary["total_queries"]
    assert local["queries"] == sum(counted.values()) - counted["host_only"]
    assert (
        1 <= local["throttled_minutes"] <= local["minutes"]
    )  # a new minute may have no reading yet
    assert local["throttle_reasons"] == ["under-voltage", "throttled"]
    assert 0 < local["latency_median_s"] <= local["latency_p99_s"] * 1.02
    assert local["latency_p99_s"] <= local["latency_max_s"] * 1.02

    must_run("export", "hot", "out", "--json", home=tmp_path)
    with (tmp_path / "out" / "telemetry.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["queries"]) for row in rows) == local["queries"]
    first = json.loads((tmp_path / "out" / "triggers.jsonl").read_text().splitlines()[0])
    assert first["device_seconds"] > 0


@pytest.mark.extended
def test_a_paused_campaign_goes_on_counting_and_a_device_at_full_speed_marks_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path / "bin", "vcgencmd", "echo throttled=0x50000")  # it was slow once, before
    on_path(monkeypatch, tmp_path / "bin")
    flags = ("--limit", 6, "--max-queries", 40, "--strategy", "dflare", "--concurrency", 1)
    must_run("run", *DEMO_PAIR, *flags, "--total-queries", 15, "--out", "cool", home=tmp_path)
    paused = edgeflare("show", "cool", "--json", home=tmp_path).json
    (first,) = paused["telemetry"]
    ran = must_run("resume", "cool", "--total-queries", 100000, home=tmp_path)
    assert "median ms" in ran.out
    assert "seconds by the" in ran.out
    assert "slowed down in" not in ran.err
    summary = edgeflare("show", "cool", "--json", home=tmp_path).json
    assert (summary["unfinished"], summary["throttled"]) == (0, [])
    (both,) = summary["telemetry"]
    counted = summary["total_queries"]
    assert 0 < first["queries"] < both["queries"]
    assert 0 < paused["wall_s"] < summary["wall_s"]
    assert both["queries"] >= counted["seed"] + counted["search"] + counted["confirmation"]

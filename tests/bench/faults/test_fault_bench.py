"""The fault suite's bench, through the command line, on a small net with random weights."""

import json
from pathlib import Path

import pytest
from small_originals import small_original
from typer.testing import CliRunner, Result

from edgeflare.cli.app import app
from edgeflare_bench.faults import Evaluated, healthy, originals, suite
from edgeflare_bench.faults.catalogue import draws
from edgeflare_bench.faults.evaluation import Evaluation
from edgeflare_bench.faults.healthy import Healthy

KINDS = ("layer-scale", "stale-state", "gamma")


@pytest.fixture(autouse=True)
def small_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    """One original, three kinds of faults in two sizes, and the healthy models but for int8."""
    chosen = [one for one in draws() if one.kind in KINDS and one.size != "mild"]
    monkeypatch.setattr(suite, "draws", lambda: iter(chosen))
    monkeypatch.setattr(suite, "ORIGINALS", {"small": None})
    monkeypatch.setattr(originals, "ORIGINALS", {"small": lambda data: small_original()})
    monkeypatch.setattr(healthy, "_SETS", 0)
    monkeypatch.setattr(healthy, "_SHARES", (0.1,))


def bench(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"COLUMNS": "400"})


def lines(folder: Path) -> list[str]:
    return (folder / "results.jsonl").read_text().splitlines()


@pytest.mark.extended
def test_a_bench_of_faults_is_run_resumed_and_shown(tmp_path: Path) -> None:
    folder = tmp_path / "faults"
    narrowed = ("--pair", "small", "--seeds", "12", "--repeats", "1", "--strategy", "dflare")
    ran = bench("run", "faults", "--data", tmp_path, *narrowed, "--out", folder)
    assert ran.exit_code == 0, ran.output
    assert "layer-scale, large, 0" in ran.output
    assert "applicable: the model" in ran.output
    whole = lines(folder)
    read = [Evaluated.from_json(json.loads(one)) for one in whole]
    assert [one.to_json() for one in read] == list(map(json.loads, whole))
    faults = [one for one in read if one.size]
    assert len(faults) == len(KINDS) * 2
    assert all(one.without or one.searches.keys() == {"survey", "dflare"} for one in faults)
    report = json.loads((folder / "report.json").read_text())
    large = [one for one in report["faults"] if one["size"] == "large"]
    assert {one["method"] for one in large} == {"survey and pursuit", "survey", "dflare"}
    assert all(one["found"] <= one["faults"] == 2 for one in large)
    every, beside = (one for one in report["healthy"] if one["kind"] == "all")
    assert every["models"] == len(read) - len(faults)
    assert (beside["references"], beside["models"]) == ("the original", 2)
    markdown = (folder / "report.md").read_text()
    assert "dflare, 6" in markdown
    assert f"{len(faults)} of {len(faults)} faults." in markdown
    (folder / "results.jsonl").write_text("\n".join(whole[:-2]) + "\n" + whole[-2][:50])
    resumed = bench("resume", folder)
    assert resumed.exit_code == 0, resumed.output
    assert lines(folder)[: len(whole) - 2] == whole[:-2]
    assert sorted(lines(folder)[-2:]) == sorted(whole[-2:])
    shown = bench("show", folder, "--json")
    assert json.loads(shown.stdout) == report


@pytest.mark.extended
def test_an_interrupted_bench_says_how_to_go_on(tmp_path, monkeypatch) -> None:
    begun: list[Healthy] = []

    def evaluate(evaluation: Evaluation, one: Healthy) -> Evaluated:
        begun.append(one)
        if len(begun) > 1:
            raise KeyboardInterrupt
        surveys = evaluation.respond(one.model, (2, 3, 6))
        return Evaluated(evaluation.original.name, one.name, one.kind, surveys=surveys)

    monkeypatch.setattr("edgeflare_bench.faults.suite._compressed", evaluate)
    folder = tmp_path / "faults"
    ran = bench("run", "faults", "--data", tmp_path, "--pair", "small", "--out", folder)
    command = f"edgeflare bench resume {folder}"
    assert ran.exit_code == 130
    assert f"{command}" in ran.stderr
    assert len(lines(folder)) == 1
    assert bench("show", folder).exit_code == 0
    report = (folder / "report.md").read_text()
    assert "0 of 18" in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["faults"], "--data FOLDER"),
        (["faults", "--data", "nope"], "nope; name another"),
        (["faults", "--data", ".", "--max-queries", "5"], "leave --max-queries out"),
        (["faults", "--data", ".", "--device", "board"], "leave --device out"),
        (["faults", "--data", ".", "--python", "python3.9"], "leave --python out"),
        (["faults", "--data", ".", "--pair", "other"], "'other'"),
        (["faults", "--data", ".", "--repeats", "4"], "most 3"),
        (["faults", "--data", ".", "--seeds", "9"], "least 10"),
        (["demo", "--reserved"], "leave --reserved out"),
    ],
)
def test_what_the_suite_does_not_have_is_refused(tmp_path, arguments, message) -> None:
    out = tmp_path / "out"
    ran = bench("run", *arguments, "--out", out)
    assert ran.exit_code == 2
    assert message in ran.output
    assert not out.exists()


def test_a_missing_file_of_an_original_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(originals, "ORIGINALS", {"small": lambda data: (data / "x.npz").open()})
    ran = bench("run", "faults", "--data", tmp_path, "--out", tmp_path / "out")
    assert ran.exit_code == 2
    assert f"file {tmp_path / 'x.npz'}" in ran.output
    assert "originals with --pair" in ran.output

"""The bench of everyday faults through the command line, on a small original with random weights."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_everyday import healthy_pair, small_everyday
from typer.testing import CliRunner, Result

from edgeflare.cli.app import app
from edgeflare_bench.everyday import catalogue, suite
from edgeflare_bench.everyday.healthy import without_wrong_conversions
from edgeflare_bench.everyday.records import EverydayPair, is_reserved
from edgeflare_bench.everyday.suite import FirstAnswer

KINDS = (
    "bias-lost",
    "classes-permuted",
    "labels-other-list",
    "resize-mode",
    "padding-side",
    "noise",
)


def bench(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"COLUMNS": "400"})


def lines(folder: Path) -> list[str]:
    return (folder / "results.jsonl").read_text().splitlines()


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one original, six kinds of faults, and two healthy pairs."""
    folder = tmp_path / "data"
    original = small_everyday(folder)
    kinds = tuple(
        replace(kind, share=1.0, chains=("float32",))
        for kind in catalogue.KINDS
        if kind.name in KINDS
    )
    pairs = [healthy_pair(original, folder, variant) for variant in ("a", "b")]
    monkeypatch.setattr(catalogue, "KINDS", kinds)
    monkeypatch.setattr(suite, "PLANS", {"small": None})
    monkeypatch.setattr(suite, "open_everyday", lambda name, folder: original)
    monkeypatch.setattr(suite, "healthy_pairs", lambda folder, names: pairs)
    return folder


@pytest.mark.extended
def test_a_bench_is_run_resumed_and_shown(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    ran = bench("run", "everyday", "--data", data, "--pair", "small", "--out", folder)
    assert ran.exit_code == 0, ran.output
    kept = lines(folder)
    answers = {row["name"]: FirstAnswer.from_json(row) for row in map(json.loads, kept)}
    faults = {f"small/{kind}" for kind in KINDS if not is_reserved(f"small/{kind}")}
    healthy = {name for name in ("small/quantiser/a", "small/quantiser/b") if not is_reserved(name)}
    device = {f"{name}/device" for name in sorted(healthy)[:1]}
    assert 1 < len(faults) < len(KINDS)
    assert answers.keys() == faults | healthy | device
    assert answers["small/resize-mode"].without
    assert answers["small/bias-lost"].is_right
    assert answers["small/bias-lost"].mended == "mended"
    assert not any(answers[name].failed for name in answers)
    report = json.loads((folder / "report.json").read_text())
    assert report["suite"]["reserved"] is False
    assert next(row for row in report["faults"] if row["by"] == "")["faults"] == len(faults) - 1
    assert "# Everyday faults" in (folder / "report.md").read_text()

    (folder / "results.jsonl").write_text("\n".join(kept[:-2]) + "\n" + kept[-2][:40])
    resumed = bench("resume", folder)
    assert resumed.exit_code == 0, resumed.output
    now = lines(folder)
    assert now[: len(kept) - 2] == kept[:-2]
    untimed = [{**json.loads(line), "seconds": 0} for line in now]
    assert untimed == [{**json.loads(line), "seconds": 0} for line in kept]
    shown = bench("show", folder, "--json")
    assert len(json.loads(shown.stdout)["pairs"]) == len(kept)


def test_only_the_reserved_draws_of_some_kinds_are_run_where_that_is_asked(
    data: Path, tmp_path: Path
) -> None:
    everyday = suite.everyday_suite(data=(data,), originals=("small",), reserved=True)
    names = {draw.name for draw in everyday.draws()}
    assert names == {f"small/{kind}" for kind in KINDS if is_reserved(f"small/{kind}")}
    narrowed = suite.everyday_suite(data=(data,), originals=("small",), kinds=("resize-mode",))
    bench_of = suite.EverydayBench.run(narrowed, tmp_path / "out", lambda answer: None)
    assert [answer.name for answer in bench_of.results] == ["small/resize-mode"]
    assert bench_of.results[0].without


def test_what_was_made_from_a_wrong_conversion_is_not_healthy(tmp_path: Path) -> None:
    original = small_everyday(tmp_path)
    pair = healthy_pair(original, tmp_path)

    def of(tool_chain: str, deployed: Path) -> EverydayPair:
        name = f"small/{tool_chain}/float32"
        return replace(pair, name=name, tool_chain=tool_chain, deployed=deployed)

    right = [of(chain, original.path) for chain in ("onnx2tf", "litert", "onnxsim")]
    assert without_wrong_conversions(right) == right
    wrong = [of("onnx2tf", pair.deployed), *right[1:]]  # it is rounded
    assert without_wrong_conversions(wrong) == right[2:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--data FOLDER"),
        (["--data", "nope"], "nope"),
        (["--data", ".", "--pair", "other"], "'other'"),
        (["--data", ".", "--strategy", "other"], "'other'"),
        (["--data", ".", "--seeds", "5"], "--seeds"),
        (["--data", ".", "--no-gradients"], "--no-gradients"),
        (["--data", ".", "--device", "board"], "--device"),
    ],
)
def test_what_the_suite_does_not_have_is_refused(tmp_path, arguments, message) -> None:
    out = tmp_path / "out"
    ran = bench("run", "everyday", *arguments, "--out", out)
    assert ran.exit_code == 2
    assert message in ran.output
    assert len(ran.stderr.strip().splitlines()) == 1
    assert not out.exists()


def test_a_folder_that_is_taken_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("")
    narrowed = ("--pair", "small", "--strategy", "resize-mode")
    taken = bench("run", "everyday", "--data", data, *narrowed, "--out", tmp_path / "out")
    assert (taken.exit_code, (tmp_path / "out" / "mine.txt").exists()) == (2, True)
    assert f"{tmp_path / 'out'}" in taken.output
    assert bench("run", "everyday", "--data", data, *narrowed, "--out", data / "b").exit_code == 0
    again = bench("run", "everyday", "--data", data, *narrowed, "--out", data / "b")
    assert (again.exit_code, "bench resume" in again.output) == (2, True)

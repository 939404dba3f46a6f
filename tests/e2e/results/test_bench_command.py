"""``edgeflare bench``: a suite is run, watched, interrupted, gone on with and shown."""

import csv
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from campaigns import finished as searches_finished
from campaigns import found_in
from command import DEMO, Ran, edgeflare, environment, must_run

pytestmark = pytest.mark.extended

SUITE = """
name = "tiny"
title = "A tiny suite"
seeds = 5
repeats = 2
max_queries = 300
timeout_s = 0
baseline = "dflare"

[[pairs]]
name = "LeNet 5"
original = { path = "{demo}/original.onnx" }
deployed = { path = "{demo}/deployed.tflite" }
seeds = { path = "{demo}/seeds.npz" }

[[strategies]]
name = "dflare"

[[strategies]]
name = "uniform"
strategy = "dflare-r"
seeds = 4
repeats = 1

[[published]]
pair = "LeNet 5"
strategy = "dflare"
source = "paper, table 4"
queries = 83.97
"""
CELLS = ("dflare/0", "uniform/0", "dflare/1")


def write_suite(home: Path, *changes: tuple[str, str]) -> Path:
    text = SUITE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = home / "suite.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    write_suite(home)
    return home


@pytest.fixture(scope="module")
def ran(home: Path) -> Ran:
    """A whole bench, in the folder ``whole``."""
    return must_run("bench", "run", "suite.toml", "--out", "whole", home=home)


@pytest.fixture
def bench(home: Path, ran: Ran, tmp_path: Path) -> Path:
    """A copy of the whole bench."""
    shutil.copytree(home / "whole", tmp_path / "copy")
    return tmp_path / "copy"


def cell(bench: Path, name: str) -> Path:
    return bench / "cells" / "LeNet-5" / name


def test_a_run_says_which_cell_it_is_at_and_what_each_has_found(ran: Ran) -> None:
    told = [line for line in ran.err.splitlines() if line.startswith("cell ")]
    names = [
        f"cell {number} of 3: LeNet 5, {name.replace('/', ', repeat ')}"
        for number, name in enumerate(CELLS, 1)
    ]
    assert told[::2] == names
    for name, line in zip(names, told[1::2], strict=True):
        assert re.fullmatch(rf"{name}: found (\d+) of \d+ searched, mean \d+\.\d queries", line), (
            line
        )
    assert "search: dflare-r" in ran.err
    assert "whole/report.md" in ran.sentence


def test_a_run_shows_and_keeps_its_report(home: Path, ran: Ran) -> None:
    assert re.match(r"A tiny suite\n\d+ searches in 3 cells: the bench is finished", ran.out)
    assert "paper, table 4" in ran.out
    assert "A tiny suite" in (home / "whole" / "report.md").read_text()
    with (home / "whole" / "searches.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 5 + 4 + 5


def test_show_reports_the_same_as_the_run_and_each_search_if_asked(bench: Path, ran: Ran) -> None:
    (bench / "report.md").unlink()
    shown = must_run("bench", "show", bench, "--searches", home=bench.parent)
    assert shown.out.startswith(ran.out)
    assert len(re.findall(r"seeds\.npz:\d", shown.out)) == 5 + 4 + 5
    assert (bench / "report.md").is_file()


def test_show_as_json_agrees_with_the_campaigns(bench: Path) -> None:
    shown = must_run("bench", "show", bench, "--json", "--searches", home=bench.parent)
    dflare, uniform = shown.json["cells"]
    assert (dflare["searches"], uniform["searches"]) == (10, 4)
    searches = shown.json["searches"]
    for name in CELLS:
        strategy, repeat = name.split("/")
        triggers = {
            one["seed_id"]: one["trigger"]
            for one in searches
            if (one["strategy"], one["repeat"]) == (strategy, int(repeat)) and one["found"]
        }
        kept = found_in(cell(bench, name))
        assert triggers == {seed: one[1] for (seed, _), one in kept.items() if one[0] == "found"}


def test_show_of_a_bench_that_cannot_be_written_to_says_so(bench: Path, ran: Ran) -> None:
    (bench / "report.md").unlink()
    (bench / "report.md").mkdir()
    shown = edgeflare("bench", "show", bench, home=bench.parent)
    assert (shown.code, shown.out) == (0, ran.out)
    assert "report's files" in shown.sentence
    assert "report.md" in shown.sentence


def test_the_flags_narrow_a_suite(home: Path) -> None:
    ran = must_run(
        *("bench", "run", "suite.toml", "--pair", "LeNet 5", "--strategy", "dflare"),
        *("--seeds", 2, "--repeats", 1, "--max-queries", 3, "--out", "narrow", "--json"),
        home=home,
    )
    assert "searches" not in ran.json
    (only,) = ran.json["cells"]
    assert (only["strategy"], only["seeds"], only["searches"]) == ("dflare", 2, 2)
    assert max(one[2] for one in found_in(cell(home / "narrow", "dflare/0")).values()) <= 3


def test_a_folder_is_chosen_where_none_is_named(home: Path) -> None:
    narrow = ("--strategy", "uniform", "--seeds", 1, "--max-queries", 1)
    ran = must_run("bench", "run", "suite.toml", *narrow, home=home)
    (folder,) = (home / "benches").iterdir()
    assert folder.name.startswith("tiny-2")
    assert str(Path("benches") / folder.name) in ran.sentence


def test_what_cannot_be_run_is_reported_and_the_rest_is(tmp_path: Path) -> None:
    broken = """
[[pairs]]
name = "gone"
original = { path = "gone.onnx" }
deployed = { path = "{demo}/deployed.tflite" }
seeds = { path = "{demo}/seeds.npz" }

[[strategies]]
name = "dflare"
"""
    write_suite(tmp_path, ('\n[[strategies]]\nname = "dflare"\n', broken))
    arguments = ("--strategy", "dflare", "--repeats", 1, "--seeds", 2, "--out", "half")
    absent = edgeflare("bench", "run", "suite.toml", *arguments, home=tmp_path)
    assert absent.code == 2
    assert f"{tmp_path / 'gone.onnx'}; correct" in absent.sentence
    assert not (tmp_path / "half").exists()

    (tmp_path / "gone.onnx").write_bytes(b"")
    ran = edgeflare("bench", "run", "suite.toml", *arguments, home=tmp_path)
    assert ran.code == 3
    assert "gone.onnx" in ran.out
    assert "1 finished, 1" in ran.out
    assert "edgeflare: 1 cell" in ran.sentence
    assert "edgeflare bench resume" in ran.sentence
    before = json.loads((tmp_path / "half" / "report.json").read_text())["failed"]
    (tmp_path / "gone.onnx").write_text("no model, but another reason")
    again = edgeflare("bench", "resume", "half", "--json", home=tmp_path)
    assert again.code == 3
    assert "gone.onnx" in again.json["failed"]["gone/dflare/0"]
    assert again.json["failed"] != before
    assert "cell 1 of 2" not in again.err


@pytest.mark.slow
def test_an_interrupted_bench_goes_on_as_if_nothing_had_been(home: Path, ran: Ran) -> None:
    folder = home / "torn"
    process = subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", "bench", "run", "suite.toml", "--out", folder],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and searches_finished(cell(folder, "dflare/0")) < 2:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not out
    assert "Traceback" not in err
    *_, advice, last = err.splitlines()
    assert f"bench resume {folder}" in advice
    assert err.count("edgeflare bench resume") == 1
    assert last == "edgeflare: interrupted"
    shown = edgeflare("bench", "show", folder, home=home)
    assert "finished" in shown.out
    assert "the bench is finished" not in shown.out
    resumed = must_run("bench", "resume", folder, "--json", home=home)
    assert resumed.json["unfinished"] == resumed.json["missing"] == []
    for name in CELLS:
        assert found_in(cell(folder, name)) == found_in(cell(home / "whole", name))


def test_a_finished_bench_has_nothing_left_to_do(bench: Path, ran: Ran) -> None:
    resumed = edgeflare("bench", "resume", bench, home=bench.parent)
    assert (resumed.code, resumed.out) == (0, ran.out)
    assert "cell 1" not in resumed.err
    assert "finished: nothing" in resumed.err


def unknown_suite(home: Path) -> Ran:
    return edgeflare("bench", "run", "no-such-suite", home=home)


def misspelt_key(home: Path) -> Ran:
    write_suite(home, ("repeats = 2", "repeat = 2"))
    return edgeflare("bench", "run", "suite.toml", home=home)


def misspelt_option(home: Path) -> Ran:
    write_suite(home, ('name = "dflare"\n', 'name = "dflare"\noptions = { varient = "text" }\n'))
    return edgeflare("bench", "run", "suite.toml", home=home)


def without_data(home: Path) -> Ran:
    write_suite(home, ("{demo}/original.onnx", "{data}/original.onnx"))
    return edgeflare("bench", "run", "suite.toml", home=home)


def data_that_is_not_there(home: Path) -> Ran:
    write_suite(home, ("{demo}/original.onnx", "{data}/original.onnx"))
    return edgeflare("bench", "run", "suite.toml", "--data", "nowhere", home=home)


def with_flags(*flags: object) -> Callable[[Path], Ran]:
    def attempt(home: Path) -> Ran:
        write_suite(home)
        return edgeflare("bench", "run", "suite.toml", *flags, home=home)

    return attempt


def existing_folder(home: Path) -> Ran:
    (home / "mine").mkdir()
    (home / "mine" / "notes").write_text("words")
    return with_flags("--out", "mine")(home)


def existing_bench(home: Path) -> Ran:
    (home / "mine").mkdir()
    (home / "mine" / "bench.json").write_text("{}")
    return with_flags("--out", "mine")(home)


CASES: dict[str, tuple[Callable[[Path], Ran], str]] = {
    "unknown suite": (unknown_suite, "no-such-suite"),
    "misspelt key": (misspelt_key, "there is no setting repeat"),
    "misspelt option": (misspelt_option, "varient"),
    "missing --data": (without_data, "--data"),
    "data that is not there": (data_that_is_not_there, "nowhere"),
    "unknown pair": (with_flags("--pair", "LeNet"), "choose one of LeNet 5"),
    "unknown strategy": (with_flags("--strategy", "magic"), "choose one of dflare, uniform"),
    "unknown device": (with_flags("--device", "pi9"), "pi9"),
    "existing folder": (existing_folder, "mine"),
    "existing bench": (existing_bench, "edgeflare bench resume"),
    "folder that can't be made": (with_flags("--out", "suite.toml/new"), "suite.toml/new"),
    "resume of no bench": (lambda home: edgeflare("bench", "resume", ".", home=home), "bench.json"),
    "show of no bench": (lambda home: edgeflare("bench", "show", "none", home=home), "none"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_gets_one_sentence_and_leaves_nothing(tmp_path: Path, case: str) -> None:
    attempt, words = CASES[case]
    ran = attempt(tmp_path)
    assert ran.code == 2, ran.err
    assert words in ran.sentence
    assert len(ran.err.splitlines()) == 1
    assert not ran.out
    assert {path.name for path in tmp_path.iterdir()} <= {"suite.toml", "mine"}


def test_the_packaged_suites_are_listed(tmp_path: Path) -> None:
    told = edgeflare("bench", "suites", "--json", home=tmp_path).json
    assert {"name", "title", "needs_data"} == set().union(*told)
    listed = edgeflare("bench", "suites", home=tmp_path).out
    for suite in told:
        assert suite["name"] in listed
        assert suite["title"]


def test_each_file_is_looked_for_in_several_folders_of_data(home: Path, tmp_path: Path) -> None:
    models, seeds = tmp_path / "models", tmp_path / "seeds"
    for folder, names in ((models, ("original.onnx", "deployed.tflite")), (seeds, ("seeds.npz",))):
        folder.mkdir()
        for name in names:
            shutil.copy(DEMO / name, folder)
    suite = write_suite(tmp_path, ("{demo}", "{data}"), ("seeds = 5", "seeds = 1"))
    few = (str(suite), "--strategy", "uniform", "--seeds", "1")
    data = ("--data", str(models), "--data", str(seeds))
    must_run("bench", "run", *few, *data, "--out", str(tmp_path / "out"), home=home)
    (pair,) = json.loads((tmp_path / "out" / "bench.json").read_text())["suite"]["pairs"]
    assert pair["original"]["path"] == str(models / "original.onnx")
    assert pair["seeds"]["path"] == str(seeds / "seeds.npz")
    one = edgeflare("bench", "run", *few, *data[:2], "--out", str(tmp_path / "none"), home=home)
    assert one.code == 2
    assert f"{models / 'seeds.npz'}" in one.err

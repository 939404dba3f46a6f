"""Nights on this machine, as a user runs them: green, red, away, accepted, interrupted."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from campaigns import found_in
from command import DEMO, edgeflare, environment, must_run

from edgeflare.nightly import Night, NightRun, load_nightly, run_nightly
from edgeflare.nightly.history import History
from edgeflare_bench.made_models import perturb_weights

AWAY = "ssh://nobody@127.0.0.1:1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a model, a damaged one, and the nightly.toml of the first."""
    perturb_weights(DEMO / "original.onnx", tmp_path / "good.onnx", percent=20, by=0.05, seed=0)
    perturb_weights(DEMO / "original.onnx", tmp_path / "bad.onnx", percent=60, by=0.9, seed=0)
    (tmp_path / "deployed.onnx").write_bytes((tmp_path / "good.onnx").read_bytes())
    write_config(tmp_path, "local")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write_config(home: Path, *devices: str) -> None:
    (home / "nightly.toml").write_text(
        f'history = "history"\ndevices = {json.dumps(devices)}\n[[models]]\nname = "lenet"\n'
        f'original.path = "{(DEMO / "original.onnx").as_posix()}"\ndeployed.path = "deployed.onnx"\n'
        f'seeds = {{path = "{(DEMO / "seeds.npz").as_posix()}", limit = 6}}\n'
        "[search]\nmax_queries = 200\n"
    )


def night_of(home: Path) -> Night:
    return run_nightly(load_nightly(home / "nightly.toml"))


def of_local(night: Night) -> NightRun:
    run = night.run("lenet", "local")
    assert run is not None
    return run


@pytest.mark.extended
def test_a_planted_regression_is_named_and_stays_red_until_it_is_accepted(home: Path) -> None:
    write_config(home, "local", AWAY)
    first = night_of(home)
    assert (first.exit_code, of_local(first).state) == (3, "first"), of_local(first).words
    assert "nothing was compared" in of_local(first).words[0]
    away = first.run("lenet", AWAY)
    assert away.state == "away"
    assert "refused the connection" in away.words[0]

    write_config(home, "local")
    second = night_of(home)
    green = of_local(second)
    assert (second.exit_code, green.state) == (0, "green"), green.words
    assert (green.replay.still, green.replay.new) == (6, 0)
    searches = [night.campaign(of_local(night)) for night in (first, second)]
    assert found_in(searches[0]) == found_in(searches[1])  # so that nothing is a false alarm
    page = (searches[1] / "report.html").read_text(encoding="utf-8")
    assert f"Compared with the last green night ({first.started_at:%Y-%m-%d})" in page

    (home / "deployed.onnx").write_bytes((home / "bad.onnx").read_bytes())
    red = edgeflare("nightly", "nightly.toml", "--json", home=home)
    assert red.code == 1, red.err
    said = red.json["runs"][0]
    assert said["state"] == "regression"
    assert "sent again deviate" in said["words"][0]
    day = f"{second.started_at:%Y-%m-%d}"
    assert f"night ({day}): disagreement" in said["words"][-1]
    assert "model's file: SHA-256" in said["changed"][0]

    campaign = Path(red.json["folder"], "lenet", "local", "search")
    ran = edgeflare("analyse", "regression", campaign, "--base", searches[1], home=home)
    assert ran.code == 1, ran.both
    assert "disagreement" in ran.out

    still = night_of(home)
    bad = of_local(still)
    assert (still.exit_code, bad.compared_with) == (1, second.stamp)
    assert list(bad.words) == said["words"]
    page = home / "history" / "index.html"
    assert "1 of 1" in page.read_text(encoding="utf-8")
    replay = still.folder / bad.folder / "seeds" / "report.html"
    assert replay.relative_to(home / "history").as_posix() in page.read_text(encoding="utf-8")

    accepted = must_run("nightly", "nightly.toml", "--accept", home=home)
    assert f"night {still.stamp}" in accepted.out.strip()
    assert "1 of 1" in page.read_text(encoding="utf-8")
    last = night_of(home)
    assert (last.exit_code, of_local(last).state) == (0, "green"), of_local(last).words


def test_a_night_that_is_stopped_keeps_what_is_there_and_the_next_one_runs(home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", "nightly", "nightly.toml"],
        cwd=home,
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_for_line(home / "history", "lenet on local begins", process)
            process.send_signal(signal.SIGSTOP)
            other = edgeflare("nightly", "nightly.toml", home=home)
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "edgeflare nightly nightly.toml" in told.splitlines()[-1]
    assert other.code == 2
    assert f"process {process.pid}" in other.sentence
    (night,) = History(home / "history").nights()
    assert (night.state, night.runs) == ("interrupted", ())
    assert "night was interrupted" in (home / "history" / "index.html").read_text("utf-8")


def wait_for_line(history: Path, words: str, process: "subprocess.Popen[str]") -> None:
    """Wait until a night's log says so."""
    for _ in range(600):
        logs = list(history.glob("nights/*/log.txt"))
        if logs and words in logs[0].read_text(encoding="utf-8"):
            return
        assert process.poll() is None
        time.sleep(0.05)
    raise AssertionError(f"no {words!r} in the log")


def test_a_device_that_is_not_in_the_inventory_is_no_night(home: Path) -> None:
    write_config(home, "local", "nowhere")
    ran = edgeflare("nightly", "nightly.toml", home=home)
    assert ran.code == 2
    assert "called 'nowhere'" in ran.sentence
    assert not (home / "history").exists()


def test_a_wrong_file_is_one_sentence(home: Path) -> None:
    (home / "nightly.toml").write_text('history = "history"\ndevces = ["local"]\n')
    ran = edgeflare("nightly", "nightly.toml", home=home)
    assert ran.code == 2
    assert "setting devces" in ran.sentence
    assert not (home / "history").exists()

"""What ``status``, ``devices status`` and an interrupted ``run`` tell, seen by a user with two terminals."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command import DEMO, DEMO_PAIR, edgeflare, environment, must_run

TWINS = (
    *("--original", DEMO / "original.onnx", "--deployed", DEMO / "original.onnx"),
    *(
        "--seeds", DEMO / "seeds.npz", "--limit", 20, "--strategy", "dflare", "--max-queries",
        10**9, "--timeout", 0, "--no-survey", "--out", "long",
    ),
)  # fmt: skip
"""Flags of a campaign that finds nothing: a model never differs from itself. It runs until it is stopped."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def finished(home: Path) -> Path:
    devices = ("--device", "local", "--device", "local")
    must_run("run", *DEMO_PAIR, "--limit", 6, *devices, "--no-survey", "--out", "short", home=home)
    return home / "short"


@pytest.fixture
def running(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A campaign in `tmp_path`/long that searches until it is stopped."""
    with subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", "run", *map(str, TWINS)],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def watching(home: Path, *flags: str) -> "subprocess.Popen[str]":
    """Start ``status --watch`` for the campaign that runs."""
    return subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", "status", "long", "--watch", *flags],
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def status(home: Path, folder: str = "long") -> dict[str, Any]:
    ran = must_run("status", folder, "--json", home=home)
    told: dict[str, Any] = ran.json
    return told


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.2)


def searching(home: Path) -> bool:
    if not (home / "long" / "live.json").exists():
        return False
    told = status(home)
    return told["stage"] == "search" and bool(told["devices"]) and told["queries"] > 0


def test_a_finished_campaign(home: Path, finished: Path) -> None:
    told = status(home, "short")
    assert (told["state"], told["done"], told["total"]) == ("finished", 6, 6)
    ran = edgeflare("status", finished, home=home)
    assert ran.out.splitlines()[0] == f"{finished}: finished"
    assert "6 done (100.0" in ran.out
    assert "resume" not in ran.out
    watched = edgeflare("status", finished, "--watch", home=home)
    assert (watched.code, len(watched.out.splitlines())) == (0, 1)
    assert "6 of 6" in watched.out


def test_watching_in_a_terminal(home: Path, finished: Path) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", "status", "short", "--watch"],
        cwd=home,
        env={**environment(home), "TERM": "xterm", "COLUMNS": "60", "LINES": "20"},
        stdin=subprocess.DEVNULL,
        stdout=follower,
    ) as process:
        os.close(follower)
        text = _read_until(leader, None).decode()
        os.close(leader)
        assert process.wait(timeout=60) == 0
    assert "short: " in text
    assert "6 done (100.0" in text


def test_show_reports_what_each_device_did(home: Path, finished: Path) -> None:
    summary = edgeflare("show", finished, "--json", home=home).json
    assert {one["name"] for one in summary["by_device"]} <= {"local", "local#2"}
    assert sum(one["finished"] for one in summary["by_device"]) == 6
    assert sum(one["queries"] for one in summary["by_device"]) == summary["total_queries"]["search"]


@pytest.mark.extended
def test_resume_with_a_larger_query_limit_ends_what_the_limit_left(home: Path) -> None:
    common = ("run", *DEMO_PAIR, "--limit", 6)
    must_run(*common, "--total-queries", 15, "--out", "limited", home=home)
    for limit in (15, 40, 67):
        some = must_run("resume", "limited", "--total-queries", limit, "--json", home=home)
        assert some.json["unfinished"] > 0
        counted = some.json["total_queries"]
        assert sum(counted.values()) - counted["host_only"] <= limit
    left = edgeflare("show", "limited", "--json", home=home).json["unfinished"]
    assert left > 0
    same = edgeflare("resume", "limited", "--json", home=home)
    assert (same.code, same.json["unfinished"]) == (0, left), same.err
    again = edgeflare("resume", "limited", "--total-queries", 10**6, "--json", home=home)
    assert (again.code, again.json["unfinished"], again.json["finished"]) == (0, 0, 6), again.err
    counted, (device,) = again.json["total_queries"], again.json["telemetry"]
    assert counted["measuring"] >= 26, "the rest of the source's first 32, and what was stopped"
    assert device["queries"] == sum(counted.values()) - counted["host_only"]


@pytest.mark.extended
def test_a_running_campaign_is_watched_by_others_then_killed(tmp_path, running) -> None:
    until(lambda: searching(tmp_path))
    told = status(tmp_path)
    assert (told["state"], told["pid"], told["done"]) == ("running", running.pid, 0)
    (device,) = told["devices"]
    assert (device["name"], device["state"]) == ("local", "up")
    shown = edgeflare("status", "long", home=tmp_path).out
    assert f"process {running.pid} on " in shown
    assert re.search(r"^local +up ", shown, re.MULTILINE)

    with watching(tmp_path) as watcher:
        assert "0 of 20" in watcher.stdout.readline()
        watcher.send_signal(signal.SIGINT)
        _, err = watcher.communicate(timeout=60)
    assert (watcher.returncode, err) == (0, "no longer watching; a campaign that runs goes on\n")

    gone = "ssh://nobody@127.0.0.1:1"
    ran = edgeflare("devices", "status", "local", gone, "--json", home=tmp_path)
    assert ran.code == 3
    assert "1 of 2" in ran.sentence
    (lease,) = ran.json["local"]["leases"]
    assert "campaign long" in lease["about"]
    (away,) = [report for name, report in ran.json.items() if name != "local"]
    assert "127.0.0.1" in away["error"]
    ran = must_run("devices", "status", "local", home=tmp_path)
    assert "campaign long" in ran.out
    assert "runtimes" in ran.out

    assert status(tmp_path)["state"] == "running"
    running.kill()
    running.wait()
    told = status(tmp_path)
    assert told["state"] == "interrupted"
    assert "killed" in told["message"]
    shown = edgeflare("status", "long", home=tmp_path).out
    assert "edgeflare resume" in shown.splitlines()[-1]
    assert shown.splitlines()[-1].endswith("long")


@pytest.mark.extended
def test_watching_ends_with_a_campaign_that_is_stopped(tmp_path, running) -> None:
    until(lambda: searching(tmp_path))
    with watching(tmp_path, "--json") as watcher:
        assert json.loads(watcher.stdout.readline())["state"] == "running"
        running.terminate()
        _, err = running.communicate(timeout=60)
        out, _ = watcher.communicate(timeout=60)
    assert running.returncode == 130
    assert err.count(f"edgeflare resume {tmp_path / 'long'}") == 1
    assert err.splitlines()[-1] == "edgeflare: interrupted"
    assert "Traceback" not in err
    assert watcher.returncode == 0
    assert json.loads(out.splitlines()[-1])["state"] == "interrupted"
    told = status(tmp_path)
    assert (told["state"], told["pid"]) == ("interrupted", None)
    again = edgeflare("status", "long", "--watch", home=tmp_path)
    assert again.out.startswith("interrupted")


@pytest.mark.extended
def test_in_a_terminal_the_bars_are_gone_before_the_advice(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", "run", *map(str, TWINS)],
        cwd=tmp_path,
        env={**environment(tmp_path), "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=follower,
    ) as process:
        os.close(follower)
        seen = _read_until(leader, b"found 0/0")
        process.send_signal(signal.SIGINT)
        seen += _read_until(leader, None)
        os.close(leader)
        assert process.wait(timeout=60) == 130
    text = seen.decode()
    advice = f"edgeflare resume {tmp_path / 'long'}"
    assert text.count(advice) == 1
    assert "queries/s" not in text[text.index(advice) :]
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert text.index(advice) > text.rindex("search")
    assert text.rstrip().endswith("edgeflare: interrupted")
    assert "Traceback" not in text


def test_devices_status_without_any_device(tmp_path: Path) -> None:
    ran = edgeflare("devices", "status", home=tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "devices status local" in ran.sentence


def _read_until(terminal: int, word: bytes | None) -> bytes:
    """Read what is shown until a word has been, or to the end."""
    seen = b""
    while word is None or word not in seen:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other side is closed
            return seen
        if not part:
            return seen
        seen += part
    return seen

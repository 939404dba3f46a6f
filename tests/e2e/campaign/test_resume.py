"""A campaign's process is killed, interrupted or refused; the campaign is whole in the end."""

import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from campaigns import Found, finished, found_in
from command import DEMO_PAIR, Ran, edgeflare, environment, must_run

from edgeflare.store import Store

SEEDS = 24
ARGUMENTS = (
    "run", *DEMO_PAIR, "--limit", SEEDS, "--max-queries", 300, "--timeout", 0, "--variant", "text",
    "--no-survey",
)  # fmt: skip


def start(*arguments: object, home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", *map(str, arguments)],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def when(condition: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Wait until the condition holds, or the process has ended."""
    while process.poll() is None and not condition():
        time.sleep(0.005)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Found:
    home = tmp_path_factory.mktemp("undisturbed")
    must_run(*ARGUMENTS, "--out", "whole", home=home)
    return found_in(home / "whole")


def killed_and_resumed(home: Path, kills: int, rng: random.Random) -> int:
    """Kill the campaign's process again and again, at any moment; return how often it was alive then."""
    folder = home / "torn"
    hit = 0
    for _ in range(kills):
        # Before the folder has a database there is nothing to resume: begin again, as a user would.
        begun = (folder / "campaign.sqlite").exists()
        if not begun and folder.exists():
            shutil.rmtree(folder)
        command = ("resume", folder) if begun else (*ARGUMENTS, "--out", folder)
        process = start(*command, home=home)
        if rng.random() < 0.5:
            wanted = finished(folder) + rng.randrange(1, 4) if begun else rng.randrange(4)
            when(lambda wanted=wanted: finished(folder) >= wanted, process)  # type: ignore[misc]
        else:
            with suppress(subprocess.TimeoutExpired):
                process.wait(rng.random() * 3)
        hit += process.poll() is None
        process.kill()
        process.communicate()
    return hit


def finish(home: Path) -> Ran:
    folder = home / "torn"
    if not (folder / "campaign.sqlite").exists():
        shutil.rmtree(folder, ignore_errors=True)
        return edgeflare(*ARGUMENTS, "--out", folder, home=home)
    return edgeflare("resume", folder, "--json", home=home)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_fifty_kills(tmp_path: Path, undisturbed: Found, seed: int) -> None:
    assert killed_and_resumed(tmp_path, 10, random.Random(seed)) >= 3
    assert finish(tmp_path).code == 0
    assert found_in(tmp_path / "torn") == undisturbed


@pytest.mark.extended
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_an_interrupted_campaign_says_how_to_go_on_and_does(tmp_path, undisturbed, number) -> None:
    folder = tmp_path / "torn"
    process = start(*ARGUMENTS, "--out", folder, home=tmp_path)
    when(lambda: finished(folder) >= 5, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.count(f"edgeflare resume {folder}") == 1
    before = found_in(folder)
    assert 5 <= len(before) < SEEDS

    ran = must_run("resume", folder, "--json", home=tmp_path)
    assert ran.json["unfinished"] == 0
    after = found_in(folder)
    assert after == undisturbed
    assert all(after[key] == value for key, value in before.items())

    again = must_run("resume", folder, home=tmp_path)
    assert "nothing is left" in again.err


@pytest.mark.extended
def test_a_second_process_on_one_campaign_is_refused(tmp_path: Path, undisturbed: Found) -> None:
    folder = tmp_path / "busy"
    first = start(*ARGUMENTS, "--out", folder, home=tmp_path)
    when(lambda: finished(folder) >= 2, first)
    # Held still, it is sure to be running while the second begins: it is done in about a second.
    first.send_signal(signal.SIGSTOP)
    try:
        second = edgeflare("resume", folder, home=tmp_path)
    finally:
        first.send_signal(signal.SIGCONT)
    _, err = first.communicate(timeout=120)
    assert second.code == 2
    assert f"process {first.pid}" in second.sentence
    assert first.returncode == 0, err
    assert found_in(folder) == undisturbed


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with models and seeds of its own that was killed."""
    tmp_path = tmp_path_factory.mktemp("killed")
    for flag, path in zip(DEMO_PAIR[::2], DEMO_PAIR[1::2], strict=True):
        shutil.copy(Path(str(path)), tmp_path / f"{str(flag)[2:]}{Path(str(path)).suffix}")
    folder = tmp_path / "torn"
    process = start(
        "run",
        *("--original", "original.onnx", "--deployed", "deployed.tflite", "--seeds", "seeds.npz"),
        *(
            "--limit", SEEDS, "--max-queries", 300, "--no-survey", "--variant", "text", "--out",
            folder,
        ),
        home=tmp_path,
    )  # fmt: skip
    when(lambda: finished(folder) >= 3, process)
    process.kill()
    process.communicate()
    return folder


@pytest.fixture
def interrupted(killed: Path, tmp_path: Path) -> Iterator[Path]:
    """The killed campaign; what a test changes around it is as it was for the next one."""
    home = killed.parent
    shutil.copytree(home, tmp_path / "saved")
    yield killed
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "saved", home)


def change_model(home: Path) -> None:
    with (home / "deployed.tflite").open("ab") as file:
        file.write(b"\0")


def change_seeds(home: Path) -> None:
    with np.load(home / "seeds.npz") as archive:
        arrays = dict(archive)
    np.savez(home / "seeds.npz", **{**arrays, "images": arrays["images"][::-1]})


def remove_model(home: Path) -> None:
    (home / "original.onnx").unlink()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (change_model, "the deployed model .*deployed.tflite has changed"),
        (change_seeds, "seed file seeds.npz.* has changed"),
        (remove_model, "the original model .*original.onnx is gone"),
    ],
)
def test_what_has_changed_is_named_and_refused(interrupted, change, named) -> None:
    home = interrupted.parent
    before = found_in(interrupted)
    change(home)
    refused = edgeflare("resume", interrupted, home=home)
    assert refused.code == 2
    assert re.search(named, refused.sentence)
    assert "--force" in refused.sentence
    assert found_in(interrupted) == before


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "was", "words"),
    [
        ("onnxruntime", "0.0.1", "onnxruntime was 0.0.1"),
        ("original answers", "0" * 64, "original answers otherwise"),
    ],
)
def test_a_changed_library_or_other_bits_are_named_and_force_goes_on(
    interrupted: Path, name: str, was: str, words: str
) -> None:
    home = interrupted.parent
    with Store.open(interrupted) as store:
        assert store.environment[name]
        store.add_environment({**store.environment, name: was})
    refused = edgeflare("resume", interrupted, home=home)
    assert refused.code == 2
    assert words in refused.sentence
    assert "--force" in refused.sentence
    forced = must_run("resume", interrupted, "--force", "--json", home=home)
    assert forced.json["unfinished"] == 0
    assert any("--force although" in notice for notice in forced.json["notices"])


@pytest.mark.extended
def test_seeds_that_are_missing_do_not_matter_once_the_campaign_has_its_own(interrupted) -> None:
    (interrupted.parent / "seeds.npz").unlink()
    ran = must_run("resume", interrupted, "--json", home=interrupted.parent)
    assert ran.json["unfinished"] == 0


@pytest.mark.extended
def test_lost_outcomes_are_searched_again_and_damaged_samples_named(tmp_path: Path) -> None:
    arguments = [4 if one == SEEDS else one for one in ARGUMENTS]
    assert edgeflare(*arguments, "--out", "lost", home=tmp_path).code == 0
    folder = tmp_path / "lost"
    before = found_in(folder)
    with closing(sqlite3.connect(folder / "campaign.sqlite")) as connection:
        connection.execute("DELETE FROM outcomes WHERE position > 2")
        connection.commit()
    shown = edgeflare("show", folder, home=tmp_path)
    assert "2 outcomes" in " ".join(shown.out.split())
    assert edgeflare("resume", folder, home=tmp_path).code == 0
    assert found_in(folder) == before
    with Store.open(folder) as store:
        trigger = next(one.trigger for one in store.outcomes() if one.trigger is not None)
    path = folder / "samples" / trigger[:2] / f"{trigger}.npy"
    path.write_bytes(path.read_bytes()[:-1])
    ran = edgeflare("resume", folder, home=tmp_path)
    assert (ran.code, "1 sample" in ran.err, trigger in ran.err) == (0, True, True)


def test_no_campaign_no_resume(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in ("nowhere", "empty"):
        ran = edgeflare("resume", folder, home=tmp_path)
        assert ran.code == 2
        assert folder in ran.sentence
    assert not any((tmp_path / "empty").iterdir())

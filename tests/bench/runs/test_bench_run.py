"""Benches on this machine with the demo's models: run, interrupted, torn and gone on with."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from campaigns import Found, found_in
from command import DEMO, environment

from edgeflare.campaign import BatchProgress, Notice, Stage, Step
from edgeflare.errors import InventoryError, StoreError, UnreachableError, UsageError
from edgeflare.store import CampaignLock
from edgeflare_bench import (
    Bench,
    Suite,
    load_suite,
    open_bench,
    resume_bench,
    run_bench,
)

pytestmark = pytest.mark.extended

HELPER = Path(__file__).resolve().parents[2] / "helpers" / "killed_at_write.py"
SUITE = """
name = "small"
seeds = 4
repeats = 2
max_queries = 40

[[pairs]]
name = "LeNet 5"
original = { path = "{demo}/original.onnx" }
deployed = { path = "DEPLOYED" }
seeds = { path = "{demo}/seeds.npz" }

[[strategies]]
name = "usual"

[[strategies]]
name = "short"
max_queries = 10
"""
OTHER_PAIR = """
[[pairs]]
name = "other"
original = { path = "{demo}/original.onnx" }
deployed = { path = "other.tflite" }
seeds = { path = "{demo}/seeds.npz" }
"""
CHANGED_PAIR = """
[[pairs]]
name = "changed"
original = { path = "{demo}/original.onnx" }
perturb = { percent = 50, by = 0.5, seed = 3 }
seeds = { path = "{demo}/seeds.npz" }
"""
Seen: TypeAlias = list[BatchProgress]


@pytest.fixture
def suite(tmp_path: Path) -> str:
    """A suite's file, with a deployed model of its own that a test may change."""
    return _suite(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "bench"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench that ran to its end, never to be changed."""
    home = tmp_path_factory.mktemp("undisturbed")
    return open_bench(run_bench(load_suite(_suite(home)), home / "bench"))


def _suite(home: Path) -> str:
    shutil.copy(DEMO / "deployed.tflite", home / "deployed.tflite")
    path = home / "suite.toml"
    path.write_text(SUITE.replace("DEPLOYED", "deployed.tflite"))
    return str(path)


def all_found(bench: Bench) -> dict[str, Found]:
    return {cell.name: found_in(bench.campaign(cell)) for cell in bench.cells}


def states(bench: Bench) -> list[str]:
    return [bench.state(cell) for cell in bench.cells]


def stop_at(cell: int, kind: type, error: BaseException, seen: Seen) -> Callable[..., None]:
    """A watcher that raises at the first event of a kind in the `cell`-th cell.

    The first Step is that after the first search.
    """

    def watch(progress: BatchProgress) -> None:
        seen.append(progress)
        event = progress.event
        if progress.number == cell and isinstance(event, kind) and getattr(event, "searched", 1):
            raise error

    return watch


def interrupted(suite: Suite, folder: Path, cell: int, kind: type) -> Seen:
    """Run a bench until the first event of a kind in the `cell`-th cell; return what it reported."""
    seen: Seen = []
    with pytest.raises(KeyboardInterrupt):
        run_bench(suite, folder, progress=stop_at(cell, kind, KeyboardInterrupt(), seen))
    return seen


def test_every_cell_is_a_finished_campaign(undisturbed: Bench) -> None:
    assert states(undisturbed) == ["finished"] * 4
    assert undisturbed.failed == {}
    found = all_found(undisturbed)
    assert list(found) == [
        f"LeNet-5/{strategy}/{repeat}" for repeat in (0, 1) for strategy in ("usual", "short")
    ]
    assert {len(cell) for cell in found.values()} == {4}
    assert any(outcome[1] for outcome in found["LeNet-5/usual/0"].values())
    assert found["LeNet-5/usual/0"] != found["LeNet-5/usual/1"]  # another campaign seed
    spent = [outcome[3] for outcome in found["LeNet-5/short/0"].values()]
    assert max(spent) <= 10 < max(o[3] for o in found["LeNet-5/usual/0"].values())


def test_a_finished_bench_is_left_alone(undisturbed: Bench) -> None:
    seen: Seen = []
    assert resume_bench(undisturbed.folder, progress=seen.append) == undisturbed.folder
    assert seen == []


def test_progress_reports_the_cell(suite: str, tmp_path: Path) -> None:
    seen: Seen = []
    one = load_suite(suite).narrowed(strategies=["short"], seeds=2)
    run_bench(one, tmp_path / "bench", progress=seen.append)
    assert {(p.name, p.number, p.total) for p in seen} == {
        ("LeNet 5, short, repeat 0", 1, 2),
        ("LeNet 5, short, repeat 1", 2, 2),
    }
    assert [p.number for p in seen if p.event is None and not p.ended] == [1, 2]
    assert seen[0].event is None
    stages = [p.event.name for p in seen if p.number == 2 and isinstance(p.event, Stage)]
    assert stages[0] == "device"
    assert stages[-1] == "search"


@pytest.mark.slow
def test_killed_time_and_again_it_finds_the_same(suite, folder, tmp_path, undisturbed) -> None:
    seen: set[tuple[str, ...]] = set()
    for _ in range(40):
        done = subprocess.run(
            [sys.executable, str(HELPER), suite, str(folder), "13"],
            env=environment(tmp_path),
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            break
        assert done.returncode == 99, done.stderr
        seen.add(tuple(states(open_bench(folder))))
    bench = open_bench(folder)
    assert any("unfinished" in state and "finished" in state for state in seen)
    assert states(bench) == ["finished"] * 4
    assert all_found(bench) == all_found(undisturbed)


@pytest.mark.parametrize("content", [None, b""], ids=["no database", "an empty database"])
def test_a_torn_beginning_starts_again(suite, folder, undisturbed, content) -> None:
    interrupted(load_suite(suite), folder, 2, Stage)
    bench = open_bench(folder)
    torn = bench.campaign(bench.cells[1])
    (torn / "samples").mkdir(parents=True)
    (torn / ".new-0").write_bytes(b"x")
    if content is not None:
        (torn / "campaign.sqlite").write_bytes(content)
    assert states(bench) == ["finished", "missing", "missing", "missing"]
    resume_bench(folder)
    assert all_found(bench) == all_found(undisturbed)


def test_a_campaign_that_cannot_be_read_is_not_thrown_away(suite: str, folder: Path) -> None:
    interrupted(load_suite(suite), folder, 2, Stage)
    bench = open_bench(folder)
    database = bench.campaign(bench.cells[1]) / "campaign.sqlite"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="damaged"):
        resume_bench(folder)
    assert database.exists()


def test_an_interruption_says_how_to_go_on(suite: str, folder: Path, undisturbed: Bench) -> None:
    seen = interrupted(load_suite(suite), folder, 3, Step)
    bench = open_bench(folder)
    assert states(bench)[:2] == ["finished", "finished"]
    assert states(bench)[3] == "missing"
    assert bench.failed == {}
    assert [p.event for p in seen if isinstance(p.event, Notice)][-1].resume == seen[-1].folder
    begun: Seen = []
    resume_bench(folder, progress=begun.append)
    assert [p.number for p in begun if p.event is None and not p.ended] == [3, 4]
    assert all_found(bench) == all_found(undisturbed)


def test_other_devices_go_on_with_it(suite: str, folder: Path, undisturbed: Bench) -> None:
    interrupted(load_suite(suite), folder, 2, Step)
    resume_bench(folder, devices=["local", "local"])
    bench = open_bench(folder)
    assert bench.devices == ("local", "local")
    assert all_found(bench) == all_found(undisturbed)


def test_one_process_at_a_time(suite: str, folder: Path) -> None:
    seen: list[str] = []

    def watch(progress: BatchProgress) -> None:
        if progress.event is None and not progress.ended and progress.number == 1:
            with pytest.raises(StoreError, match="being run") as refused:
                resume_bench(folder)
            seen.append(str(refused.value))

    run_bench(load_suite(suite).narrowed(seeds=1, repeats=1), folder, progress=watch)
    assert len(seen) == 1
    assert not CampaignLock.is_held(folder)


def test_a_folder_is_not_taken_twice(suite: str, tmp_path: Path, undisturbed: Bench) -> None:
    with pytest.raises(UsageError, match=f"resume {undisturbed.folder}`"):
        run_bench(load_suite(suite), undisturbed.folder)
    with pytest.raises(UsageError, match="choose another"):
        run_bench(load_suite(suite), tmp_path)


def test_what_cannot_be_run_is_noted_and_tried_again(suite, folder, tmp_path) -> None:
    with Path(suite).open("a") as file:
        file.write(OTHER_PAIR)
    both = load_suite(suite).narrowed(pairs=["LeNet 5", "other"], strategies=["short"], repeats=1)
    both = both.model_copy(update={"pairs": both.pairs[::-1]})  # the one that fails comes first
    seen: Seen = []
    with pytest.raises(UsageError, match=r"other\.tflite; correct"):
        run_bench(both, folder)
    assert not folder.exists()

    (tmp_path / "other.tflite").write_bytes(b"no model")
    run_bench(both, folder, progress=seen.append)
    bench = open_bench(folder)
    (sentence,) = bench.failed.values()
    assert list(bench.failed) == ["other/short/0"]
    assert "other.tflite" in sentence
    assert states(bench) == ["missing", "finished"]
    assert [p.event.text for p in seen if p.number == 1 and isinstance(p.event, Notice)] == [
        f"other/short/0 can't be run, the other cells go on: {sentence}"
    ]
    shutil.copy(DEMO / "deployed.tflite", tmp_path / "other.tflite")
    resume_bench(folder)
    bench = open_bench(folder)
    assert bench.failed == {}
    assert states(bench) == ["finished", "finished"]


def test_a_device_that_fails_ends_the_bench(suite: str, folder: Path, undisturbed: Bench) -> None:
    def away(device: Any, ask: Any) -> Any:
        raise UnreachableError(f"{device.name} is away")

    with pytest.raises(UnreachableError, match="local is"):
        run_bench(load_suite(suite), folder, connect=away)
    bench = open_bench(folder)
    assert bench.failed == {}
    assert states(bench) == ["missing"] * 4
    resume_bench(folder)
    assert all_found(bench) == all_found(undisturbed)


def test_an_unknown_device_is_reported_before_anything_is_made(suite: str, tmp_path: Path) -> None:
    with pytest.raises(InventoryError, match="called 'pi9'"):
        run_bench(load_suite(suite), tmp_path / "bench", devices=["pi9"])
    assert not (tmp_path / "bench").exists()


@pytest.mark.parametrize(
    "stopped_at",
    [
        pytest.param(Stage, id="between cells", marks=pytest.mark.slow),
        pytest.param(Step, id="within a cell"),
    ],
)
def test_a_model_that_changed_meanwhile_is_refused(suite, folder, tmp_path, stopped_at) -> None:
    interrupted(load_suite(suite), folder, 2, stopped_at)
    with (tmp_path / "deployed.tflite").open("ab") as file:
        file.write(b"\0" * 16)
    with pytest.raises(UsageError, match=r"changed; .*--force"):
        resume_bench(folder)
    assert open_bench(folder).failed == {}
    seen: Seen = []
    resume_bench(folder, force=True, progress=seen.append)
    assert states(open_bench(folder)) == ["finished"] * 4
    assert any(isinstance(p.event, Notice) and "has changed" in p.event.text for p in seen)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (None, UsageError, "bench.json"),
        ("{", StoreError, "bench.json"),
        ("[]", StoreError, "bench.json"),
        ("[" * 100_000, StoreError, "bench.json"),
        ('{"format": 2}', StoreError, "format 2"),
    ],
)
def test_what_is_no_bench_is_reported(folder, tmp_path, text, error, words) -> None:
    if text is not None:
        (tmp_path / "bench.json").write_text(text)
    with pytest.raises(error, match=words):
        open_bench(tmp_path)
    with pytest.raises(UsageError, match="bench folder"):
        open_bench(tmp_path / "none")


def test_it_says_in_json_what_it_was_run_from(undisturbed: Bench) -> None:
    said = json.loads((undisturbed.folder / "bench.json").read_text())
    assert (said["format"], said["devices"], said["failed"]) == (1, ["local"], {})
    assert said["suite"] == undisturbed.suite.model_dump(mode="json")


def test_a_changed_model_is_made_and_searched(suite: str, folder: Path) -> None:
    with Path(suite).open("a") as file:
        file.write(CHANGED_PAIR)
    one = load_suite(suite).narrowed(pairs=["changed"])
    interrupted(one, folder, 2, Stage)
    made = folder / "models" / "changed.onnx"
    content = made.read_bytes()
    assert content != (DEMO / "original.onnx").read_bytes()
    made.unlink()  # what is made from the suite can be made again, the same
    resume_bench(folder)
    assert made.read_bytes() == content
    bench = open_bench(folder)
    assert (states(bench), bench.failed) == (["finished"] * 4, {})

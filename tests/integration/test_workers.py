"""Searches in worker processes: the same results, whatever becomes of a worker or a device."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from campaigns import Found, finished, found_in
from command import DEMO
from fragile_runtime import install
from plugin_distributions import write_distribution
from value_models import photographs, value_onnx

from edgeflare import CampaignConfig, config_from, resume_campaign, run_campaign
from edgeflare._internal import plugins
from edgeflare.campaign.workers import pool
from edgeflare.campaign.workers.pool import WorkerLostError
from edgeflare.campaign.workers.search import RemoteSearchJob
from edgeflare.devices import connect
from edgeflare.errors import InferenceFailedError, StrategyError
from edgeflare.store import Store
from edgeflare.types import Decision, Outputs, Seed, Status
from edgeflare_lab.testing import FaultPlan, connecting

pytestmark = pytest.mark.usefixtures("own_home")

SEEDS = 10
DFLARE = {"strategy": "dflare", "options": {"variant": "text"}, "max_queries": 150, "timeout_s": 0}
BOUNDARY = {"strategy": "boundary", "timeout_s": 0}
PLUGINS = '''
import os, signal, sys, time
import numpy as np
from edgeflare import Ask, Outcome

if os.environ.get("ONLY_IN") not in (None, str(os.getpid())):
    raise ImportError("it is not meant for this process")

def walk(seed, rng):
    """Add noise until the models deviate, and say in which process."""
    for _ in range(20):
        noisy = (seed.sample + rng.integers(0, 3, seed.sample.shape)).astype(np.uint8)
        answer = yield Ask((noisy,))
        if answer.outputs[0].decision.value == "deviation":
            return Outcome(noisy)
    return Outcome(None, reason=f"process {os.getpid()}")

def unlucky(seed, rng):
    """Lose the process of one search four times, each time at another place."""
    if not seed.id.endswith(":3"):
        return (yield from walk(seed, rng))
    with open("lost", "a+") as file:
        lost = file.tell()
        file.write("x")
    search, answer = walk(seed, rng), None
    for asked in range(100):
        if lost < 4 and asked == 2 * lost:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            ask = next(search) if answer is None else search.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = yield ask

def slow(seed, rng):
    time.sleep(0.4)
    return (yield from walk(seed, rng))

def deadly(seed, rng):
    if seed.id.endswith(":3"):
        os.kill(os.getpid(), signal.SIGKILL)
    return (yield from walk(seed, rng))

class Odd:
    def __reduce__(self):
        return int, ("no number",)

def odd(seed, rng):
    return Outcome(None, reason=Odd())
    yield

def broken(seed, rng):
    raise ValueError("nothing works")
    yield
'''


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    site = tmp_path_factory.mktemp("site")
    names = {
        f"edgeflare.strategies/{name}": name
        for name in ("walk", "unlucky", "slow", "deadly", "odd", "broken")
    }
    write_distribution(site, "strategies_for_workers", PLUGINS, names)
    sys.path.insert(0, str(site))
    plugins.load.cache_clear()
    yield
    sys.path.remove(str(site))
    plugins.load.cache_clear()


def config(out: Path, search: dict[str, object], **more: object) -> CampaignConfig:
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": SEEDS},
        "search": search,
        "survey": {"enabled": False},
        "out": out,
        **more,
    }
    return config_from(values, "test")


@pytest.fixture(scope="module")
def in_one_process(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Found]:
    folder = tmp_path_factory.mktemp("one-process")
    done: dict[str, Found] = {}

    def found(strategy: str) -> Found:
        if strategy not in done:
            search = BOUNDARY if strategy == "boundary" else DFLARE
            done[strategy] = found_in(run_campaign(config(folder / strategy, search, workers=0)))
        return done[strategy]

    return found


def worker_processes() -> list[int]:
    """The worker processes of this one."""
    tasks = Path("/proc/self/task").glob("*/children")
    children = [int(child) for task in tasks for child in _read(task).split()]
    commands = {child: _read(Path(f"/proc/{child}/cmdline")) for child in children}
    return [child for child, command in commands.items() if b"workers.program" in command]


def _read(path: Path) -> bytes:
    """Return the content of a file about a thread or process; empty where that has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def notices(folder: Path) -> list[str]:
    with Store.open(folder) as store:
        return list(store.notices())


@pytest.mark.parametrize(
    "strategy", ["dflare", pytest.param("boundary", marks=pytest.mark.extended)]
)
@pytest.mark.parametrize(
    "workers",
    [2, pytest.param(3, marks=pytest.mark.slow)],
)
def test_any_number_of_workers_finds_the_same(tmp_path, in_one_process, strategy, workers) -> None:
    search = BOUNDARY if strategy == "boundary" else DFLARE
    folder = run_campaign(config(tmp_path / "campaign", search, workers=workers))
    assert found_in(folder) == in_one_process(strategy)
    assert notices(folder) == []
    assert worker_processes() == []


@pytest.mark.extended
def test_workers_start_by_themselves_where_enough_is_left(tmp_path, monkeypatch) -> None:
    seen: set[int] = set()
    monkeypatch.setattr(pool, "usable_processors", lambda: 2)
    monkeypatch.setattr(pool, "_WORTH_AFTER_S", 0.0)
    monkeypatch.setattr(pool, "_WORTH_LEFT_S", 0.0)
    monkeypatch.setattr(pool, "_WORTH_QUERY_S", 0.0)
    search = {"strategy": "slow", "timeout_s": 0}
    folder = run_campaign(
        config(tmp_path / "campaign", search, concurrency=1),
        progress=lambda _: seen.update(worker_processes()),
    )
    assert len(seen) == 2
    with Store.open(folder) as store:
        details = [one.detail for one in store.outcomes() if one.status is Status.GAVE_UP]
    assert f"process {os.getpid()}" in details  # the first began before there was a worker
    assert {f"process {one}" for one in seen} & set(details)


def while_running(folder: Path, act: Callable[[], None]) -> threading.Thread:
    """Call `act` once two searches of a campaign have ended."""

    def wait() -> None:
        while finished(folder) < 2:
            time.sleep(0.005)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize(
    "one_trip", [False, pytest.param(True, marks=pytest.mark.extended)]
)  # True: one request has the queries of all searches, those that wait for their turn left out
def test_a_killed_worker_costs_nothing_but_time(tmp_path, in_one_process, one_trip) -> None:
    folder = tmp_path / "campaign"
    killed = while_running(folder, lambda: os.kill(worker_processes()[0], signal.SIGKILL))
    run_campaign(config(folder, DFLARE, workers=2, one_trip=one_trip))
    killed.join()
    assert found_in(folder) == in_one_process("dflare")
    (told,) = notices(folder)
    assert told.startswith("a worker process")


@pytest.mark.extended
def test_a_worker_killed_before_it_is_ready_leaves_the_searches_in_this_process(
    tmp_path: Path, in_one_process: Callable[[str], Found]
) -> None:
    ended = threading.Event()

    def kill() -> None:
        while not ended.is_set():
            for one in worker_processes():
                with suppress(ProcessLookupError):  # it has ended since
                    os.kill(one, signal.SIGKILL)
            time.sleep(0.002)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        folder = run_campaign(config(tmp_path / "campaign", DFLARE, workers=2))
    finally:
        ended.set()
        killer.join()
    assert found_in(folder) == in_one_process("dflare")
    (told,) = notices(folder)
    assert "worker process" in told


@pytest.mark.slow
def test_a_search_that_ends_its_workers_fails_alone(tmp_path: Path) -> None:
    search = {"strategy": "deadly", "timeout_s": 0}
    folder = run_campaign(config(tmp_path / "campaign", search, workers=2))
    usual = run_campaign(
        config(tmp_path / "usual", {"strategy": "walk", "timeout_s": 0}, workers=0)
    )
    with Store.open(folder) as store:
        failed = [one for one in store.outcomes() if one.status is Status.FAILED]
    (fatal,) = failed
    assert fatal.seed_id.endswith(":3")
    assert "3 times: signal" in fatal.detail
    found, expected = found_in(folder), found_in(usual)
    assert {key: one for key, one in found.items() if key[0] != fatal.seed_id} == {
        key: one for key, one in expected.items() if key[0] != fatal.seed_id
    }


@pytest.mark.slow
def test_a_search_that_loses_processes_at_different_places_goes_on(tmp_path: Path) -> None:
    few = {"seeds": {"path": DEMO / "seeds.npz", "limit": 4}}
    usual = {"strategy": "walk", "timeout_s": 0}
    expected = found_in(run_campaign(config(tmp_path / "usual", usual, workers=0, **few)))
    search = {"strategy": "unlucky", "timeout_s": 0}
    folder = run_campaign(config(tmp_path / "campaign", search, workers=1, **few))
    assert (tmp_path / "lost").stat().st_size == 5
    assert found_in(folder) == expected


class LosingSearch(RemoteSearchJob):
    """A search whose worker process ends after one of these numbers of requests each time."""

    def __init__(self, places: list[int]) -> None:
        seed = Seed("s", np.zeros((2, 2, 1), np.uint8), Outputs(None, None, Decision.AGREE))
        settings: Any = SimpleNamespace(campaign_seed=0)
        super().__init__(seed, settings, pool=MagicMock(), replica="")
        self.places = iter(places)

    def _in_worker(self, link: Any) -> Any:
        self.counters = replace(self.counters, round_trips=next(self.places))
        yield
        raise WorkerLostError("ended")


@pytest.mark.parametrize(
    ("places", "losses"),
    [([5, 5, 5, 9], 3), ([5, 6, 5, 9], 3), ([10, 10, 12, 12, 11, 9], 5), ([*range(0, 30, 3)], 10)],
)
def test_a_search_that_ends_three_processes_at_one_place_is_given_up(places, losses) -> None:
    job = LosingSearch(places)

    def ending() -> Iterator[Any]:
        yield (yield from job.search())

    *_, result = ending()
    assert result.status is Status.FAILED
    assert len(places) - len([*job.places]) == losses


@pytest.mark.extended
@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("SIGABRT", "crashed"),
        pytest.param("hang", "did not answer within 1 s", marks=pytest.mark.slow),
    ],
)
def test_an_original_that_fails_on_some_inputs_fails_on_the_same_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, reason: str
) -> None:
    some = "int(values.sum(dtype='float64') * 1000) % 199 == 0"
    install(tmp_path, monkeypatch, some, way)
    few = {"seeds": {"path": DEMO / "seeds.npz", "limit": 6}}
    one, other = (
        run_campaign(
            config(tmp_path / str(number), DFLARE, **few, workers=number, original_timeout_s=1)
        )
        for number in (0, 2)
    )
    assert found_in(other) == found_in(one)
    with Store.open(other) as store:
        details = [outcome.detail for outcome in store.outcomes() if reason in outcome.detail]
    assert details
    assert any("worker process ended" in told for told in notices(other))


@pytest.mark.extended
def test_a_strategy_of_ones_own_runs_in_the_workers(tmp_path: Path) -> None:
    search = {"strategy": "walk", "timeout_s": 0}
    folder = run_campaign(config(tmp_path / "campaign", search, workers=1))
    with Store.open(folder) as store:
        details = {one.detail for one in store.outcomes() if one.status is Status.GAVE_UP}
    assert len(details) == 1
    assert details != {f"process {os.getpid()}"}


def test_a_strategy_that_only_this_process_has_runs_here_which_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_IN", str(os.getpid()))
    search = {"strategy": "walk", "timeout_s": 0}
    folder = run_campaign(config(tmp_path / "campaign", search, workers=2))
    with Store.open(folder) as store:
        details = {one.detail for one in store.outcomes() if one.status is Status.GAVE_UP}
    assert details == {f"process {os.getpid()}"}
    (told,) = notices(folder)
    assert "searches run" in told
    assert "for this process" in told


@pytest.mark.extended
def test_what_a_strategy_returns_and_nobody_can_read_fails_that_search(tmp_path: Path) -> None:
    search = {"strategy": "odd", "timeout_s": 0}
    seeds = {"path": DEMO / "seeds.npz", "limit": 1}
    with pytest.raises(InferenceFailedError, match="here: ValueError"):
        run_campaign(config(tmp_path / "campaign", search, seeds=seeds, workers=1))
    with Store.open(tmp_path / "campaign") as store:
        (outcome,) = store.outcomes()
    assert outcome.status is Status.FAILED


def test_a_broken_strategy_is_named_as_without_workers(tmp_path: Path) -> None:
    search = {"strategy": "broken"}
    with pytest.raises(StrategyError, match="ValueError: nothing"):
        run_campaign(config(tmp_path / "campaign", search, workers=1))
    assert worker_processes() == []


@pytest.mark.extended
def test_devices_that_hang_up_change_nothing(tmp_path, in_one_process) -> None:
    plans = [FaultPlan(k, span=100_000) for k in range(2)]
    folder = run_campaign(
        config(
            tmp_path / "campaign",
            DFLARE,
            workers=2,
            devices=["local", "local"],
            fleet={"handover_s": 0.1},
        ),
        connect=connecting(dict(zip(("local", "local#2"), plans, strict=True)), connect),
    )
    assert found_in(folder) == in_one_process("dflare")
    assert any(plan.fired for plan in plans)


@pytest.mark.extended
def test_limits_on_queries_hold_and_the_rest_is_resumed(tmp_path, in_one_process) -> None:
    first = config(tmp_path / "campaign", DFLARE, workers=2, fleet={"total_queries": 400})
    folder = run_campaign(first)
    assert 0 < finished(folder) < SEEDS
    with Store.open(folder) as store:
        asked = sum(one.search_queries + one.confirmation_queries for one in store.outcomes())
    assert asked <= 400
    resume_campaign(folder, changes={"fleet": {"total_queries": None}})
    assert found_in(folder) == in_one_process("dflare")


SCRIPT = """
import sys, edgeflare
print("begin")
demo, out = sys.argv[1:]
result = edgeflare.search(
    demo + "/original.onnx", demo + "/deployed.tflite", {"path": demo + "/seeds.npz", "limit": 6},
    strategy="dflare", max_queries=100, workers=2, folder=out,
)
print(len(list(result.triggers)))
"""


@pytest.mark.extended
@pytest.mark.parametrize(
    "given", [pytest.param("file", marks=pytest.mark.slow), "stdin"]
)  # stdin: there is no file to run again
def test_a_script_without_a_main_guard_is_run_once(tmp_path: Path, given: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script if given == "file" else "-", DEMO, tmp_path / "out"],
        input=SCRIPT if given == "stdin" else None,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("begin") == 1
    assert found_in(tmp_path / "out")
    assert notices(tmp_path / "out") == []


def test_an_interrupted_campaign_leaves_no_worker_and_goes_on(tmp_path, in_one_process) -> None:
    folder = tmp_path / "campaign"
    main = threading.main_thread().ident
    assert main is not None
    stopped = while_running(folder, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        run_campaign(config(folder, DFLARE, workers=2))
    stopped.join()
    assert worker_processes() == []
    resume_campaign(folder)
    assert found_in(folder) == in_one_process("dflare")


def test_workers_decide_by_the_task_where_no_oracle_is_stated(tmp_path: Path) -> None:
    original = value_onnx(tmp_path / "maps.onnx", "first")
    out = tmp_path / "campaign"
    stated: dict[str, object] = {
        "original": {"path": original},
        "deployed": {"path": original},
        "seeds": {"path": photographs(tmp_path / "seeds.npz", 2)},
    }
    search: dict[str, object] = {"strategy": "dflare", "max_queries": 3}
    run_campaign(config(out, search, workers=1, **stated).model_copy(update={"task": "dense"}))
    with Store.open(out) as store:
        assert {one.status for one in store.outcomes()} <= {Status.EXHAUSTED, Status.GAVE_UP}
    assert not [one for one in notices(out) if "tolerance" in one]

"""Campaigns whose original's processes are killed, as the system does when memory is short."""

import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from campaigns import all_of
from command import DEMO
from fragile_runtime import install

from edgeflare import config_from, resume_campaign, run_campaign
from edgeflare.campaign.events import Event, Stage
from edgeflare.campaign.queries.search import SearchStage
from edgeflare.campaign.queries.seeds import PartnersStage, SeedStage
from edgeflare.campaign.survey import references
from edgeflare.campaign.survey.pursuit import PursuitStage
from edgeflare.campaign.survey.stage import SurveyStage
from edgeflare.errors import DeviceAwayError
from edgeflare.models import OriginalModel, quantized
from edgeflare.scheduler import search_job
from edgeflare.store import Store

pytestmark = pytest.mark.usefixtures("own_home")

KILLS = 30
SMALL: dict[str, Any] = {
    "seeds": {"path": DEMO / "seeds.npz", "limit": 4},
    "survey": {"queries": 3, "pursuit": 8},
}
"""With fewer seeds than there are mixing samples, whose answers are asked for, too."""
LARGE: dict[str, Any] = {
    "seeds": {"path": DEMO / "seeds.npz", "limit": 40},
    "survey": {"queries": 12, "pursuit": 300},
}


def run(folder: Path, stated: dict[str, Any], **more: Any) -> Path:
    search = {
        "strategy": "boundary",
        "max_queries": 30 if stated is SMALL else 600,
        "timeout_s": 0,
        "options": {"crossing": "least-l2", "effort": 16},
    }
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "search": search,
        "out": folder,
        "workers": more.pop("workers", 0),
        **stated,
    }
    return run_campaign(config_from(values, "test"), **more)


def in_the_end(folder: Path, stated: dict[str, Any], *, progress: Any, workers: int) -> Path:
    """Run a campaign; resume it where it pauses, as after six kills of a process that loads."""
    try:
        return run(folder, stated, workers=workers, progress=progress)
    except DeviceAwayError:
        while True:
            with suppress(DeviceAwayError):
                return resume_campaign(folder, progress=progress)


def learned(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on the deaths of processes; all but the notices."""
    everything = all_of(folder)
    with Store.open(folder) as store:
        everything["partners"] = store.state.partner_answers
        everything["faults"] = store.state.faults
        everything["given to the original"] = sorted(
            (one.replica, one.seed_id, one.phase, one.round, one.host_only_queries)
            for one in store.surveyed_seeds()
        )
        everything["references"] = {
            name: [(one.key, one.decision) for one in store.reference_answers(name)]
            for name in store.state.references
        }
    return {name: one for name, one in everything.items() if not name.startswith("notices")}


def notices(folder: Path) -> list[str]:
    with Store.open(folder) as store:
        return list(store.notices())


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Callable[[dict[str, Any]], Any]:
    done: dict[int, dict[str, Any]] = {}

    def of(stated: dict[str, Any]) -> dict[str, Any]:
        if id(stated) not in done:
            folder = run(tmp_path_factory.mktemp("unbroken") / "campaign", stated)
            done[id(stated)] = learned(folder)
        return done[id(stated)]

    return of


def model_processes(root: int) -> list[int]:
    """The descendants of a process that have an original: its own processes, and the workers."""
    parents, models = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            status = (folder / "stat").read_text()
            parents[int(folder.name)] = int(status.rsplit(")", 1)[1].split()[1])
            command = (folder / "cmdline").read_bytes()
            if b"edgeflare_agent.child" in command or b"workers.program" in command:
                models.append(int(folder.name))

    def is_below(pid: int) -> bool:
        while pid in parents and pid != root:
            pid = parents[pid]
        return pid == root

    return [one for one in models if is_below(one)]


def kill(pid: int) -> bool:
    with suppress(ProcessLookupError):  # it has ended since
        os.kill(pid, signal.SIGKILL)
        return True
    return False


class Kills:
    """Kills the original's processes at the beginning of steps, after the next request has begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: Counter[str] = Counter()
        self._monkeypatch = monkeypatch
        self._timers: list[threading.Timer] = []

    def before(self, owner: Any, name: str) -> None:
        """Kill before the first call of a function, which `at` counts by its owner."""
        call, at = getattr(owner, name), owner.__name__

        def killing(*values: Any, **more: Any) -> Any:
            if not self.at[at]:
                self._kill(at)
            return call(*values, **more)

        self._monkeypatch.setattr(owner, name, killing)

    def _kill(self, name: str) -> None:
        for pid in model_processes(os.getpid()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)  # what it is asked next is under way for sure
                self.at[name] += 1
                self._timers.append(threading.Timer(0.2, kill, (pid,)))
                self._timers[-1].start()

    def join(self) -> None:
        for timer in self._timers:
            timer.join()


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_an_original_that_is_killed_in_each_stage_changes_no_result(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unbroken: Callable[[dict[str, Any]], Any],
    workers: int,
) -> None:
    expected = unbroken(SMALL)
    assert expected["partners"][""]
    kills = Kills(monkeypatch)
    stages = (SeedStage, SurveyStage, PursuitStage, PartnersStage, SearchStage)
    for stage in stages:
        kills.before(stage, "begin")
    kills.before(search_job, "confirm")
    folder = run(tmp_path / "campaign", SMALL, workers=workers)
    kills.join()
    assert set(kills.at) >= {one.__name__ for one in (*stages, search_job)}
    assert learned(folder) == expected
    assert sum("signal 9" in one for one in notices(folder)) >= 1


@pytest.mark.extended
def test_an_original_that_can_not_be_loaded_again_pauses_the_campaign(tmp_path, unbroken) -> None:
    expected = unbroken(SMALL)
    model = shutil.copy(DEMO / "original.onnx", tmp_path / "original.onnx")
    stated = {**SMALL, "original": {"path": model}}

    def take_away(event: Event) -> None:
        if isinstance(event, Stage) and event.name == "survey":
            Path(model).rename(tmp_path / "away.onnx")
            for pid in model_processes(os.getpid()):
                kill(pid)

    folder = tmp_path / "campaign"
    with pytest.raises(DeviceAwayError, match=r"original\.onnx; it") as away:
        run(folder, stated, progress=take_away)
    assert away.value.exit_code == 3
    (tmp_path / "away.onnx").rename(model)
    resume_campaign(folder)
    found = learned(folder)
    assert {**found, "models": None} == {**expected, "models": None}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("workers", [0, 2])
def test_thirty_kills(tmp_path, unbroken, workers, seed) -> None:
    expected = unbroken(LARGE)
    rng = random.Random(seed)
    began = time.monotonic()
    OriginalModel(DEMO / "original.onnx", "onnx", {}).close()
    start_s = time.monotonic() - began  # of a process: most kills are to hit one that answers
    at: Counter[str] = Counter()
    stage = ""

    def watch(event: Event) -> None:
        nonlocal stage
        if isinstance(event, Stage):
            stage = event.name

    def kill_at_random(ended: threading.Event) -> None:
        while at.total() < KILLS and not ended.wait(start_s * rng.uniform(0.5, 3)):
            if stage in ("seed queries", "survey", "pursuit", "search"):
                pids = model_processes(os.getpid())
                at[stage] += bool(pids) and kill(rng.choice(pids))

    campaigns = 0
    while at.total() < KILLS:
        campaigns, stage = campaigns + 1, ""
        ended = threading.Event()
        killer = threading.Thread(target=kill_at_random, args=(ended,))
        killer.start()
        try:
            folder = in_the_end(tmp_path / str(campaigns), LARGE, workers=workers, progress=watch)
        finally:
            ended.set()
            killer.join()
        assert learned(folder) == expected
    print(f"workers {workers}, seed {seed}: {dict(at)} in {campaigns} campaigns")


@pytest.mark.slow
def test_references_that_are_killed_answer_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(quantized, "RECIPES", quantized.RECIPES[:2])
    stated = {
        **SMALL,
        "survey": {"queries": 3, "pursuit": 0, "references": ["int8"]},
        "search": {"strategy": "none"},
    }
    expected = learned(run(tmp_path / "unbroken", stated))
    kills = Kills(monkeypatch)
    kills.before(references._Question, "answer")
    folder = run(tmp_path / "campaign", stated)
    kills.join()
    assert kills.at["_Question"]
    found = learned(folder)
    assert len(found["references"]) == 2
    assert found == expected


@pytest.mark.extended
def test_an_input_at_which_the_original_always_ends_is_left_out_of_the_pursuit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = install(tmp_path, monkeypatch, "True", "exit")
    left.write_text("0")

    def begin(event: Event) -> None:
        if isinstance(event, Stage) and event.name == "pursuit":
            left.write_text("6")  # three of the first inputs together, and three of the first alone

    folder = run(tmp_path / "campaign", {**SMALL, "search": {"strategy": "none"}}, progress=begin)
    assert left.read_text() == "0"
    found = learned(folder)
    assert found["finished"]
    assert found["faults"] is not None

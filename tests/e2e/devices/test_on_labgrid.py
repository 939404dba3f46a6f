"""Campaigns on places of a real labgrid coordinator."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from campaigns import Found, finished, found_in
from command import DEMO, DEMO_PAIR, edgeflare, environment
from labgrid_lab import OTHER, Lab, start_lab
from ssh_servers import start_asyncssh

from edgeflare import CampaignConfig, Notice, config_from, resume_campaign, run_campaign
from edgeflare.campaign import Step
from edgeflare.errors import DeviceAwayError
from edgeflare_lab.labgrid import place as places

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("own_home")]

SEEDS = 12


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with start_asyncssh() as first, start_asyncssh() as second:
        servers = {"pi4": first, "pi5": second}
        with start_lab(tmp_path_factory.mktemp("lab"), servers) as lab:
            yield lab


@pytest.fixture(autouse=True)
def inventory(lab: Lab, tmp_path: Path) -> Iterator[Path]:
    places._taken_away.clear()
    yield write(lab, tmp_path)
    if lab.holder("pi4") == f"lab/{OTHER}":
        lab.client("-p", "pi4", "release")


def write(lab: Lab, folder: Path, **more: object) -> Path:
    """Write an inventory with the places pi4 and pi5, and `more` settings of both."""
    path = folder / "devices.toml"
    path.write_text("".join(lab.table(name, **more) for name in ("pi4", "pi5")))
    return path


def config(out: Path, **more: object) -> CampaignConfig:
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": SEEDS},
        "search": {"strategy": "dflare", "max_queries": 200, "timeout_s": 0},
        "survey": {"enabled": False},
        "python": sys.executable,
        "out": out,
        **more,
    }
    return config_from(values, "test")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What a campaign on this machine finds."""
    return found_in(run_campaign(config(tmp_path_factory.mktemp("alone") / "one", python=None)))


def until(condition: Callable[[], object]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it never happened")


class Listener:
    """Takes a place away once a search is finished, and keeps what the campaign says."""

    def __init__(self, lab: Lab, place: str, *, keep: bool) -> None:
        self.told: list[str] = []
        self.holders: list[str | None] = []
        self._lab = lab
        self._place = place
        self._keep = keep

    def __call__(self, event: object) -> None:
        if isinstance(event, Notice):
            self.told.append(event.text)
        if isinstance(event, Step) and event.searched and not self.holders:
            self.holders.append(self._lab.holder(self._place))
            self._lab.client("-p", self._place, "release", "--kick")
            if self._keep:
                self._lab.client("-p", self._place, "acquire")

    def said(self, text: str) -> bool:
        return any(text in one for one in self.told)


def test_a_campaign_holds_its_place_and_gives_it_back(lab, tmp_path, alone) -> None:
    holders: list[str | None] = []

    def listen(event: object) -> None:
        if isinstance(event, Step) and not holders:
            holders.append(lab.holder("pi4"))

    folder = run_campaign(config(tmp_path / "one", devices=["pi4"]), progress=listen)
    assert found_in(folder) == alone
    assert holders
    assert holders[0] is not None
    assert lab.holder("pi4") is None


def test_a_place_that_is_taken_away_is_a_lost_device(lab, tmp_path, alone) -> None:
    listener = Listener(lab, "pi4", keep=True)
    more = {"devices": ["pi4", "pi5"], "fleet": {"handover_s": 0.2}, "concurrency": 1}
    folder = run_campaign(config(tmp_path / "two", **more), progress=listener)
    assert found_in(folder) == alone
    reason = "pi4 is lost: pi4: labgrid place pi4 was taken away: another client released it"
    assert listener.said(f"{reason}; next try in 60 s"), listener.told
    assert lab.holder("pi4") == f"lab/{OTHER}"
    assert lab.holder("pi5") is None


def test_a_place_that_comes_back_goes_on(lab, tmp_path, alone, monkeypatch) -> None:
    """With a single place, which is released by another and asked for again."""
    monkeypatch.setattr(places, "RETRY_AFTER_S", 0.5)
    listener = Listener(lab, "pi5", keep=False)
    folder = run_campaign(
        config(tmp_path / "one", devices=["pi5"], concurrency=1), progress=listener
    )
    assert found_in(folder) == alone
    assert listener.said("was taken away"), listener.told
    assert listener.said("pi5 is back after"), listener.told
    assert lab.holder("pi5") is None


def test_a_campaign_without_its_place_pauses_and_is_resumed(lab, tmp_path, alone) -> None:
    folder = tmp_path / "one"
    with pytest.raises(DeviceAwayError, match="place pi4"):
        run_campaign(
            config(folder, devices=["pi4"], fleet={"patience_s": 1}, concurrency=1),
            progress=Listener(lab, "pi4", keep=True),
        )
    places._taken_away.clear()  # as in another process
    busy = edgeflare("resume", folder, home=tmp_path)
    assert busy.code == 3
    assert "labgrid place pi4" in busy.err
    lab.client("-p", "pi4", "release")
    resume_campaign(folder)
    assert found_in(folder) == alone
    assert lab.holder("pi4") is None


@pytest.mark.slow
def test_a_campaign_waits_for_its_place(lab: Lab, tmp_path: Path, alone: Found) -> None:
    write(lab, tmp_path, wait_s=60, priority=1.5)
    lab.client("-p", "pi4", "acquire")
    with ThreadPoolExecutor(1) as pool:
        ran = pool.submit(run_campaign, config(tmp_path / "one", devices=["pi4"]))
        until(lambda: "prio: 1.5" in lab.reservations())
        assert not ran.done()
        lab.client("-p", "pi4", "release")
        assert found_in(ran.result(120)) == alone
    assert lab.reservations() == ""


def started(home: Path, *flags: object) -> "subprocess.Popen[bytes]":
    """Start a campaign without a survey in a process of its own."""
    command = ("run", *DEMO_PAIR, "--no-survey", *flags)
    return subprocess.Popen(
        [sys.executable, "-m", "edgeflare.cli", *map(str, command)],
        cwd=home,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_campaign_that_is_ended_leaves_no_place_behind(lab, tmp_path, number) -> None:
    folder = tmp_path / "killed"
    command = (
        *("--strategy", "dflare", "--max-queries", 100000),
        *("--python", sys.executable, "--device", "pi4", "--device", "pi5", "--out", folder),
    )
    with started(tmp_path, *command) as process:
        until(lambda: finished(folder) >= 1)
        assert lab.holder("pi4")
        assert lab.holder("pi5")
        process.send_signal(number)
    until(lambda: lab.holder("pi4") is None and lab.holder("pi5") is None)


@pytest.mark.slow
def test_ctrl_c_while_a_place_is_waited_for(lab: Lab, tmp_path: Path) -> None:
    write(lab, tmp_path, wait_s=600)
    lab.client("-p", "pi4", "acquire")
    process = started(tmp_path, "--device", "pi4", "--out", tmp_path / "none")
    try:
        until(lab.reservations)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 130, said
        assert b"waiting for labgrid place pi4, 10.0 min at most" in said
        assert lab.reservations() == ""
        assert not (tmp_path / "none").exists()
    finally:
        process.kill()
        lab.client("-p", "pi4", "release")

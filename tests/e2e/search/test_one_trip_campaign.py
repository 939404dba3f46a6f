"""Whole campaigns in one-trip mode, real local agents: few requests, and the same findings."""

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from campaigns import Found, finished, found_in
from command import DEMO

from edgeflare import CampaignConfig, campaign_status, config_from, run_campaign
from edgeflare.store import Store

pytestmark = pytest.mark.usefixtures("own_home")

SEEDS = 16


def config(out: Path, **more: object) -> CampaignConfig:
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": SEEDS},
        "search": {"strategy": "dflare", "max_queries": 200, "timeout_s": 0},
        "survey": {"enabled": False},
        "out": out,
        "one_trip": True,
        **more,
    }
    return config_from(values, "test")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign without the mode."""
    return run_campaign(config(tmp_path_factory.mktemp("usual") / "whole", one_trip=False))


@pytest.fixture
def expected(usual: Path) -> Found:
    return found_in(usual)


def requests(folder: Path) -> int:
    return sum(device.requests for device in campaign_status(folder).devices)


def replays(folder: Path) -> list[tuple[str, str, str, str]]:
    with Store.open(folder) as store:
        return sorted(
            (one.seed_id, one.on_device, one.decision.value, one.deployed.tobytes().hex())
            for one in store.replays()
        )


def longest(folder: Path) -> int:
    """The most requests that one search of the campaign needed by itself."""
    with Store.open(folder) as store:
        return max(one.round_trips + one.confirmation_queries for one in store.outcomes())


@pytest.mark.extended
def test_the_device_gets_as_many_requests_as_the_longest_search_needs(
    tmp_path: Path, usual: Path, expected: Found
) -> None:
    folder = run_campaign(config(tmp_path / "gathered"))
    assert found_in(folder) == expected
    assert requests(folder) == longest(folder) + 2, (
        "one for all the seeds, one for those asked again"
    )
    assert requests(folder) < requests(usual)


@pytest.mark.extended
def test_all_triggers_of_another_device_are_tried_in_one_request(tmp_path: Path) -> None:
    twice = {"devices": ["local"] * 2, "fleet": {"mode": "replicate"}}
    folder = run_campaign(config(tmp_path / "both", **twice))
    usual = run_campaign(config(tmp_path / "usual", one_trip=False, **twice))
    assert found_in(folder) == found_in(usual)
    assert replays(folder) == replays(usual) != []
    assert requests(folder) == 2 * (longest(folder) + 3), (
        "one each for seeds, seeds again and replays"
    )


@pytest.mark.extended
def test_with_an_agent_killed_in_the_middle_a_campaign_finds_the_same(tmp_path, expected) -> None:
    folder, ended, killed = tmp_path / "killed", threading.Event(), threading.Event()

    def kill() -> None:
        while finished(folder) < 3 and not ended.wait(0.005):
            pass
        for lease in tmp_path.rglob("leases/*.json"):
            os.kill(int(json.loads(lease.read_text())["pid"]), signal.SIGKILL)
            killed.set()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        run_campaign(config(folder))
    finally:
        ended.set()
        killer.join()
    assert killed.is_set()
    assert found_in(folder) == expected
    assert [device.reconnects for device in campaign_status(folder).devices] == [1]

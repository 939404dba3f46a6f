"""Whole campaigns over links that break: what is found is what an undisturbed campaign finds."""

import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from campaigns import Found, finished, found_in
from command import DEMO
from ssh_servers import SshServer, start_sshd

from edgeflare import (
    CampaignConfig,
    Notice,
    campaign_status,
    config_from,
    resume_campaign,
    run_campaign,
)
from edgeflare.devices import connect
from edgeflare.errors import DeviceAwayError
from edgeflare.store import Store
from edgeflare_lab.testing import KINDS, FaultPlan, connecting

pytestmark = pytest.mark.usefixtures("own_home")

SEEDS = 12
BREAKING = tuple(kind for kind in KINDS if kind != "drop")


def config(out: Path, **more: object) -> CampaignConfig:
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": SEEDS},
        "search": {
            "strategy": "dflare",
            "max_queries": 200,
            "timeout_s": 0,
            "options": {"variant": "text"},
        },
        "survey": {"enabled": False},
        "out": out,
        **more,
    }
    return config_from(values, "test")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Found:
    return found_in(run_campaign(config(tmp_path_factory.mktemp("undisturbed") / "whole")))


def under(plans: Sequence[FaultPlan], folder: Path, **more: object) -> Found:
    """Run a campaign with one local agent a plan."""
    names = ["local", *(f"local#{k}" for k in range(2, len(plans) + 1))]
    faulty = connecting(dict(zip(names, plans, strict=True)), connect)
    done = run_campaign(config(folder, devices=["local"] * len(plans), **more), connect=faulty)
    return found_in(done)


@pytest.mark.extended
@pytest.mark.parametrize("seed", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_campaign_over_a_breaking_link_finds_the_same(tmp_path, undisturbed, seed) -> None:
    plan = FaultPlan(seed, span=60_000, spare=4_096, kinds=BREAKING)
    assert under([plan], tmp_path / "torn") == undisturbed, plan
    assert plan.fired


@pytest.mark.extended
def test_a_fleet_over_breaking_links_finds_the_same(tmp_path: Path, undisturbed: Found) -> None:
    plans = [FaultPlan(k, span=100_000, kinds=BREAKING) for k in range(2)]
    found = under(plans, tmp_path / "torn", fleet={"handover_s": 0.1})
    assert found == undisturbed, plans
    assert any(plan.fired for plan in plans)


@pytest.fixture(scope="module")
def met() -> Iterator[list[bool]]:
    """Whether each schedule met a fault: which device gets how many seeds, and bytes, is chance."""
    schedules: list[bool] = []
    yield schedules
    assert sum(schedules) >= 0.8 * len(schedules) - 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_two_hundred_schedules(tmp_path, undisturbed, met, seed) -> None:
    devices = 1 + seed % 3
    kinds = KINDS if seed % 20 == 0 else BREAKING  # a dropped byte costs the heartbeat's time
    plans = [FaultPlan(1000 + 3 * seed + k, span=100_000, kinds=kinds) for k in range(devices)]
    found = under(plans, tmp_path / "torn", fleet={"handover_s": 0.2})
    assert found == undisturbed, plans
    met.append(any(plan.fired for plan in plans))


def over_ssh(folder: Path, tmp_path: Path, server: SshServer, **more: object) -> CampaignConfig:
    device = json.loads(server.device(name="board").model_dump_json())
    (tmp_path / "devices.toml").write_text(
        "[devices.board]\n"
        + "".join(
            f"{key} = {json.dumps(value)}\n"
            for key, value in device.items()
            if value is not None and key not in ("name", "options", "cache")
        )
        + f"cache = {json.dumps(str(tmp_path / 'cache'))}\n"
    )
    return config(folder, devices=["board"], inventory=tmp_path / "devices.toml", **more)


@pytest.mark.extended
@pytest.mark.sshd
def test_an_ssh_server_that_is_killed_and_restarted_again_and_again(tmp_path, undisturbed) -> None:
    told: list[str] = []
    folder = tmp_path / "torn"
    with start_sshd() as server:
        ended = threading.Event()

        def torment() -> None:
            for done in (1, 4, 8):
                while not ended.is_set() and finished(folder) < done:
                    ended.wait(0.005)
                if ended.is_set():
                    return
                server.kill()
                ended.wait(0.3)
                server.restart()

        tormentor = threading.Thread(target=torment)
        tormentor.start()
        try:
            run_campaign(
                over_ssh(folder, tmp_path, server, concurrency=1),
                progress=lambda e: told.append(e.text) if isinstance(e, Notice) else None,
            )
        finally:
            ended.set()
            tormentor.join()
    assert found_in(folder) == undisturbed
    assert any("board is lost" in text for text in told)
    assert any("back after" in text for text in told)
    with Store.open(folder) as store:
        assert any("back after" in text for text in store.notices())


@pytest.mark.extended
@pytest.mark.sshd
def test_with_the_only_device_gone_the_campaign_pauses_and_resumes(tmp_path, undisturbed) -> None:
    folder = tmp_path / "torn"
    told: list[Path | None] = []
    with start_sshd() as server:
        ended = threading.Event()

        def pull_the_cable() -> None:
            while not ended.is_set() and finished(folder) < 3:
                ended.wait(0.005)
            server.kill()

        puller = threading.Thread(target=pull_the_cable)
        puller.start()
        with pytest.raises(DeviceAwayError, match=r"left.*board"):
            run_campaign(
                over_ssh(folder, tmp_path, server, concurrency=1, fleet={"patience_s": 1.0}),
                progress=lambda e: told.append(e.resume) if isinstance(e, Notice) else None,
            )
        ended.set()
        puller.join()
        assert folder in told
        status = campaign_status(folder)
        assert status.state == "paused"
        assert status.done < status.total == SEEDS

        server.restart()
        resume_campaign(folder)
    assert found_in(folder) == undisturbed
    assert campaign_status(folder).state == "finished"

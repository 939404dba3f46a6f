"""Several devices in one campaign, real agents each."""

from pathlib import Path

import pytest
from campaigns import Found, found_in
from command import DEMO

from edgeflare import (
    CampaignConfig,
    Notice,
    config_from,
    run_campaign,
    summarize,
)
from edgeflare.errors import UsageError
from edgeflare.store import Store

pytestmark = pytest.mark.usefixtures("own_home")


def config(out: Path, **more: object) -> CampaignConfig:
    values = {
        "original": {"path": DEMO / "original.onnx"},
        "deployed": {"path": DEMO / "deployed.tflite"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": 12},
        "search": {"strategy": "dflare", "max_queries": 300, "timeout_s": 0},
        "survey": {"enabled": False},
        "out": out,
        **more,
    }
    return config_from(values, "test")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What one agent finds."""
    home = tmp_path_factory.mktemp("alone")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        return found_in(run_campaign(config(home / "one")))


@pytest.mark.extended
def test_four_agents_find_what_one_finds(tmp_path: Path, alone: Found) -> None:
    folder = run_campaign(config(tmp_path / "four", devices=["local"] * 4))
    assert found_in(folder) == alone
    with Store.open(folder) as store:
        took_part = {outcome.device_name for outcome in store.outcomes()}
    assert len(took_part) == 4


UNLIKE = """
[devices.fast]
transport = "local"
[devices.reference]
transport = "local"
options = { kernels = "reference", delegate = false }
"""


@pytest.mark.extended
def test_devices_that_differ_do_not_share_seeds_unawares(tmp_path: Path) -> None:
    (tmp_path / "devices.toml").write_text(UNLIKE)
    with pytest.raises(UsageError, match=r"alike.*--allow-mixed"):
        run_campaign(config(tmp_path / "refused", devices=["fast", "reference"]))
    assert not (tmp_path / "refused").exists()

    told: list[str] = []
    folder = run_campaign(
        config(tmp_path / "mixed", devices=["fast", "reference"], fleet={"allow_mixed": True}),
        progress=lambda event: told.append(event.text) if isinstance(event, Notice) else None,
    )
    assert any("devices that differ" in text for text in told)
    summary = summarize(folder)
    assert summary.unfinished == 0
    assert len(summary.devices) == 2


@pytest.mark.extended
def test_each_device_searches_for_itself_and_is_tried_with_the_others_triggers(tmp_path) -> None:
    (tmp_path / "devices.toml").write_text(UNLIKE)
    folder = run_campaign(
        config(tmp_path / "both", devices=["fast", "reference"], fleet={"mode": "replicate"})
    )
    found = found_in(folder)
    assert len(found) == 2 * 12
    alone = found_in(run_campaign(config(tmp_path / "alone", devices=["reference"])))
    assert {seed: value for (seed, replica), value in found.items() if replica == "reference"} == {
        seed: value for (seed, _), value in alone.items()
    }
    triggers = {
        (key, value[1]) for key, value in found.items() if value[0] in ("found", "seed-deviates")
    }
    with Store.open(folder) as store:
        replays = list(store.replays())
    assert {((one.seed_id, one.replica), one.trigger) for one in replays} == triggers
    assert all(one.on_device != one.replica for one in replays)
    assert {one.decision.value for one in replays} <= {"agree", "deviation", "tie"}

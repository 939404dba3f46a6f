"""How a replay is configured from a campaign."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import DEMO

from edgeflare._internal.files import file_sha256
from edgeflare.campaign import CampaignConfig, config_from, replay_base, replay_config, run_replay
from edgeflare.errors import StoreError, UsageError
from edgeflare.store import SeedAnswer, SeedInput, Store
from edgeflare.types import Decision


def base(**more: Any) -> CampaignConfig:
    values: dict[str, Any] = {
        "original": {"path": DEMO / "original.onnx", "input": {"scale": "1/255", "layout": "CHW"}},
        "deployed": {
            "path": DEMO / "deployed.tflite",
            "runtime": "tflite",
            "options": {"delegate": False},
            "input": {"scale": "1/255", "layout": "HWC"},
            "output": "probabilities",
            "output_name": "y",
        },
        "seeds": {"path": DEMO / "seeds.npz"},
        **more,
    }
    return config_from(values, "test")


def test_it_searches_nothing_and_keeps_what_decides() -> None:
    search = {"options": {"device_budget": 9}, "margin_floor": 0.02, "seed": 4, "confirmations": 5}
    config = replay_config(base(search=search, control=True, limits={"max_new_triggers": 0}))
    assert (config.search.strategy, config.search.options) == ("none", {})
    assert (config.search.margin_floor, config.search.seed, config.search.confirmations) == (
        0.02,
        4,
        5,
    )
    assert not config.control
    assert config.limits.max_new_triggers == 0


def test_query_limits_of_the_search_end_no_replay() -> None:
    search = {"max_queries": 0, "timeout_s": 3.0}
    config = replay_config(base(search=search, fleet={"total_queries": 3, "device_queries": 2}))
    assert (config.fleet.total_queries, config.fleet.device_queries) == (None, None)
    assert config.search.timeout_s == 0


def test_a_file_of_the_same_format_is_run_as_the_one_before() -> None:
    config = replay_config(base(), {"deployed": {"path": DEMO / "original.tflite"}})
    assert config.deployed == base().deployed.model_copy(update={"path": DEMO / "original.tflite"})


def test_a_file_of_another_format_keeps_only_the_scaling_of_its_pixels() -> None:
    config = replay_config(base(), {"deployed": {"path": DEMO / "original.onnx"}})
    model = config.deployed
    assert (model.runtime, model.options, model.output_name) == (None, {}, None)
    assert (model.input.scale, model.input.layout, model.output) == ("1/255", None, "auto")


def test_what_is_stated_wins() -> None:
    config = replay_config(
        base(),
        {
            "deployed": {
                "input": {"layout": "CHW"},
                "output": "logits",
                "output_name": "z",
                "options": {"threads": 2},
            },
            "devices": ["local", "local"],
            "fleet": {"mode": "replicate", "patience_s": 2.5},
            "search": {"confirmations": 7},
        },
    )
    assert (config.deployed.input.layout, config.deployed.output) == ("CHW", "logits")
    assert config.deployed.output_name == "z"
    assert config.deployed.options == {"delegate": False, "threads": 2}
    assert (config.devices, config.fleet.mode) == (("local", "local"), "replicate")
    assert config.fleet.patience_s == 2.5
    assert config.search.confirmations == 7


@pytest.mark.parametrize("which", ["original", "deployed"])
def test_a_model_that_has_moved_is_to_be_named(which: str, tmp_path: Path) -> None:
    moved = base(**{which: {"path": tmp_path / "gone.onnx"}})
    with pytest.raises(UsageError, match=f"{which} model"):
        replay_config(moved)
    found = replay_config(moved, {which: {"path": DEMO / "original.onnx"}})
    assert getattr(found, which).path == DEMO / "original.onnx"


@pytest.mark.parametrize("which", ["original", "deployed"])
def test_a_model_that_was_named_and_is_not_there_need_not_be_named_again(which, tmp_path) -> None:
    with pytest.raises(UsageError) as told:
        replay_config(base(), {which: {"path": tmp_path / "gone.onnx"}})
    assert f"model file {tmp_path / 'gone.onnx'}" in str(told.value)
    with pytest.raises(UsageError, match="folder; name"):
        replay_config(base(), {which: {"path": tmp_path}})


def test_a_campaign_file_may_stand_in_for_the_campaigns_own(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(
        f'[original]\npath = "{DEMO / "original.onnx"}"\n'
        f'[deployed]\npath = "{DEMO / "deployed.tflite"}"\n[seeds]\npath = "{DEMO / "seeds.npz"}"\n'
    )
    assert replay_base(tmp_path / "no such source", path).original.path == DEMO / "original.onnx"


def test_a_damaged_format_of_boxes_is_one_sentence_about_the_source(tmp_path: Path) -> None:
    model = {
        "sha256": file_sha256(DEMO / "original.onnx"),
        "output": {"kind": "detections", "detector": {"kind": "nothing"}},
    }
    scores = np.array([0.5, 0.3, 0.2])
    with Store.create(tmp_path / "source", {}, environment={}) as store:
        store.set_models(model, model)
        store.add_seeds([SeedInput("s", np.zeros((4, 4, 1), np.uint8))])
        store.add_seed_answers([SeedAnswer("s", scores, scores, Decision.AGREE)])
    with pytest.raises(StoreError, match="is damaged"):
        run_replay(tmp_path / "source", replay_config(base(out=tmp_path / "out")))

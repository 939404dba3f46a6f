"""The [limits] of a campaign.toml."""

import re
from pathlib import Path
from typing import Any

import pytest

from edgeflare.campaign import LimitsConfig, config_from, load_config
from edgeflare.campaign.control import control_config
from edgeflare.campaign.replay.results import replay_config
from edgeflare.campaign.settings.templates import STARTER
from edgeflare.errors import UsageError

PAIR = {
    "original": {"path": "/m/a.onnx"},
    "deployed": {"path": "/m/b.tflite"},
    "seeds": {"path": "/s"},
}
MINIMAL = """
[original]
path = "a.onnx"
[deployed]
path = "b.tflite"
[seeds]
path = "seeds"
"""


def limits(**values: Any) -> LimitsConfig:
    return config_from({**PAIR, "limits": values}, "campaign.toml").limits


def refused(**values: Any) -> str:
    with pytest.raises(UsageError) as caught:
        limits(**values)
    return str(caught.value)


def test_a_campaign_has_no_limits_unless_they_are_stated() -> None:
    assert config_from(PAIR, "test").limits == LimitsConfig()
    assert LimitsConfig().model_dump(exclude_defaults=True) == {}


def test_the_baseline_is_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "campaign.toml"
    path.write_text(MINIMAL + "[limits]\nnew_pairs = false\nbaseline = 'campaigns/old'\n")
    config = load_config(path)
    assert config.limits.baseline == tmp_path / "campaigns" / "old"
    again = config_from(config.model_dump(mode="json"), "the store")
    assert again.limits == config.limits, "it comes back from the campaign's folder"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_deviation_rate", -0.1), ("max_deviation_rate", 5), ("max_deviation_rate", "0.05"),
        ("max_deviation_rate", True), ("max_seed_deviation_rate", float("nan")),
        ("max_severity", 1.5), ("max_disagreement", -0.1), ("min_median_queries", 0),
        ("min_median_queries", 2.5), ("min_l2", 0), ("min_l2", float("inf")),
        ("max_new_triggers", -1), ("new_pairs", "no"), ("max_deviations", 0.1),
    ],
)  # fmt: skip
def test_a_limit_that_can_not_be_meant_is_refused_by_name(key: str, value: object) -> None:
    said = refused(**{key: value})
    assert f"limits.{key}" in said
    assert said.startswith("campaign.toml: ")
    assert "\n" not in said


def test_new_pairs_and_their_baseline_go_together() -> None:
    assert "needs a baseline" in refused(new_pairs=False)
    assert "new_pairs = false" in refused(baseline="/c")


def test_a_control_has_no_limits() -> None:
    config = config_from({**PAIR, "control": True, "limits": {"min_l2": 0.5}}, "test")
    assert control_config(config, Path("/c")).limits == LimitsConfig()


def test_a_replay_needs_no_baseline(tmp_path: Path) -> None:
    for name in ("a.onnx", "b.tflite"):
        (tmp_path / name).touch()
    stated = {"new_pairs": False, "baseline": tmp_path / "gone", "max_new_triggers": 2}
    values = {
        "original": {"path": tmp_path / "a.onnx"},
        "deployed": {"path": tmp_path / "b.tflite"},
        "seeds": {"path": tmp_path},
        "limits": stated,
    }
    assert replay_config(config_from(values, "test")).limits == LimitsConfig(max_new_triggers=2)


def test_the_starters_limits_are_good_ones_once_their_marks_are_gone(tmp_path: Path) -> None:
    before, table = STARTER.split("[limits]")
    path = tmp_path / "campaign.toml"
    path.write_text(before + "[limits]" + re.sub(r"\n# (?! )", "\n", table))
    stated = load_config(path, {"survey": {"references": ["int8"]}}).limits
    assert set(stated.model_dump(exclude_defaults=True)) == set(LimitsConfig.model_fields)
    assert stated.baseline == tmp_path / "campaigns" / "last-release"
    path.write_text(STARTER)
    assert load_config(path).limits == LimitsConfig(), "as it is written it has none"

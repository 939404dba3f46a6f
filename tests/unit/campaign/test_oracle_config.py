"""Which oracle a campaign may be stated to have."""

from typing import Any

import pytest

from edgeflare.answers.values import ValuesConfig
from edgeflare.campaign.replay.results import replay_config
from edgeflare.campaign.settings.config import CampaignConfig, SearchConfig, config_from, merge
from edgeflare.errors import UsageError

BASE = {"original": {"path": "a.onnx"}, "deployed": {"path": "b.onnx"}, "seeds": {"path": "s"}}
TOLERANCE = {"oracle": "tolerance", "tolerance": 0.1, "strategy": "dflare"}


def search_of(values: dict[str, Any]) -> Any:
    return config_from({**BASE, "search": values}, "test").search


def test_it_goes_by_the_models_unless_stated() -> None:
    assert (search_of({}).oracle, search_of({}).tolerance) == ("auto", None)


def test_a_tolerance_has_no_margin_floor() -> None:
    search = search_of(TOLERANCE)
    assert (search.oracle, search.tolerance, search.margin_floor) == ("tolerance", 0.1, 0)


def test_what_is_stored_is_read_back_as_it_was() -> None:
    config = config_from({**BASE, "search": TOLERANCE}, "test")
    assert config_from(config.model_dump(mode="json"), "stored") == config
    assert config_from(merge(config.model_dump(mode="json"), {}), "merged").search == config.search


def test_a_tolerance_without_a_stated_strategy_is_searched_by_the_default_one() -> None:
    chosen = search_of({"oracle": "tolerance", "tolerance": 0.1})
    assert chosen.strategy == "boundary"
    assert search_of(chosen.model_dump(mode="json")) == chosen


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"oracle": "tolerance", "strategy": "dflare"}, "tolerance"),
        ({"tolerance": 0.1}, '"tolerance"'),
        ({"oracle": "label", "tolerance": 0.1}, '"tolerance"'),
        ({**TOLERANCE, "margin_floor": 0.1}, "--margin-floor"),
        ({**TOLERANCE, "strategy": "gradient"}, "gradient"),
        ({**TOLERANCE, "tolerance": 0}, "search.tolerance"),
        ({"oracle": "words"}, "search.oracle"),
    ],
)
def test_what_does_not_go_together_is_refused(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        search_of(values)


def test_a_replay_decides_as_the_campaign_did(tmp_path: Any) -> None:
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(b"")
    models = {"original": {"path": tmp_path / "a.onnx"}, "deployed": {"path": tmp_path / "b.onnx"}}
    base = config_from({**BASE, **models, "search": TOLERANCE}, "test")
    search = replay_config(base).search
    assert (search.oracle, search.tolerance, search.strategy) == ("tolerance", 0.1, "none")


def of_sections(task: str, **sections: Any) -> SearchConfig:
    """Return the search of a configuration made of typed sections, as by a library's user."""
    return CampaignConfig.model_validate({**BASE, "task": task, **sections}).search


def test_typed_sections_state_what_tables_do() -> None:
    search = of_sections("dense", search=SearchConfig(seed=7))
    assert (search.oracle, search.tolerance, search.margin_floor, search.seed) == (
        "tolerance",
        0.01,
        0,
        7,
    )
    each = of_sections("vector", values=ValuesConfig(tolerances=(0.1, 2.0)), search=SearchConfig())
    assert (each.oracle, each.tolerance) == ("tolerance", 1.0)
    with pytest.raises(ValueError, match="a tolerance"):
        of_sections("vector", search=SearchConfig())


def test_a_typed_gallery_is_compared_by_label(tmp_path: Any) -> None:
    values = ValuesConfig(gallery=tmp_path / "gallery.npz")
    assert of_sections("embedding", values=values).oracle == "auto"

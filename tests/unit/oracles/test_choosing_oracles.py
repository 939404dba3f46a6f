from typing import Any

import pytest

from edgeflare.answers.oracles import (
    BUILT_IN,
    ConfiguredOracle,
    LabelOracle,
    ToleranceOracle,
    TranscriptOracle,
    oracle_for,
    traits_in,
    traits_of,
)
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.errors import UsageError


def test_it_goes_by_the_models_unless_stated() -> None:
    label = oracle_for("auto", {"margin_floor": 0.25}, task="classification")
    words = oracle_for("auto", {"margin_floor": 0.25}, task="transcript")
    assert isinstance(label, LabelOracle)
    assert isinstance(words, TranscriptOracle)
    assert (label.floor, words.floor) == (0.25, 0.25)


def test_what_is_stated_is_taken() -> None:
    assert isinstance(oracle_for("label", {}, task="classification"), LabelOracle)
    assert isinstance(oracle_for("transcript", {}, task="transcript"), TranscriptOracle)
    chosen = oracle_for("tolerance", {"tolerance": 0.2}, task="classification")
    assert isinstance(chosen, ToleranceOracle)
    assert chosen.tolerance == 0.2


@pytest.mark.parametrize(
    ("name", "about", "problem"),
    [
        ("label", {"task": "transcript"}, "--oracle trans"),
        ("tolerance", {"settings": {"tolerance": 0.1}, "task": "transcript"}, "tolerance oracle"),
        ("transcript", {}, "each class"),
        ("tolerance", {}, "--tolerance"),
        ("label", {"task": "detection"}, "--oracle detection"),
        ("detection", {}, "--oracle label"),
        ("auto", {"task": "vector"}, "--tolerance"),
        ("tolerance", {"settings": {"tolerance": 0.1}, "labels_only": True}, "deployed model"),
    ],
)
def test_one_that_does_not_fit_is_refused(name: Any, about: dict[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        oracle_for(name, **{"settings": {}, **about})


def test_each_built_in_oracle_states_what_settings_and_reports_need() -> None:
    assert len({one.name for one in BUILT_IN}) == len(BUILT_IN)
    for one in BUILT_IN:
        search = {"oracle": one.name, one.setting: 0.25}
        assert one.setting in SearchConfig.model_fields
        assert one.summary in str(SearchConfig.model_fields["oracle"].description)
        assert (traits_of(one.name), traits_in(search)) == (one, one)
        assert "{" not in one.deviation.format_map(search)


def test_another_oracle_is_like_one_of_labels() -> None:
    assert {traits_of(name) for name in ("auto", None, [])} == {ConfiguredOracle}
    missing = traits_of("not-installed")
    assert (missing.compares_scores, missing.setting) == (False, "margin_floor")
    assert missing.deviation == LabelOracle.deviation
    assert traits_in({}).deviation == LabelOracle.deviation
    assert traits_in({"oracle": "tolerance", "tolerance": None}) is ConfiguredOracle

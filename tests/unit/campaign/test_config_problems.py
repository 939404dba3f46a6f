"""What is said of a setting that has a wrong value."""

from pathlib import Path
from typing import Any

import pytest

from edgeflare.campaign.settings.config import config_from
from edgeflare.errors import UsageError
from edgeflare.nightly.config import load_nightly

GOOD = {"original": {"path": "o.onnx"}, "deployed": {"path": "d.onnx"}, "seeds": {"path": "s"}}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"search": {"max_queries": "many"}},
            'search.max_queries must be a whole number, not "many"',
        ),
        ({"search": {"max_queries": 2.5}}, "search.max_queries must be a whole number, not 2.5"),
        ({"search": {"max_queries": [1]}}, "search.max_queries must be a whole number, not [1]"),
        ({"search": {"max_queries": -1}}, "search.max_queries must be at least 0, not -1"),
        ({"search": {"margin_floor": 1}}, "search.margin_floor must be below 1, not 1"),
        ({"search": {"timeout_s": "long"}}, 'search.timeout_s must be a number, not "long"'),
        (
            {"search": {"timeout_s": float("inf")}},
            "search.timeout_s must be a finite number, not inf",
        ),
        ({"search": {"strategy": 3}}, "search.strategy must be text, not 3"),
        ({"search": {"operators": "blur"}}, 'search.operators must be a list, not "blur"'),
        ({"search": {"options": 3}}, "search.options must be a table, not 3"),
        ({"search": "fast"}, 'search must be a table, not "fast"'),
        ({"seeds": None}, "seeds must be a table, not nothing"),
        ({"control": "maybe"}, 'control must be true or false, not "maybe"'),
        ({"concurrency": 5000}, "concurrency must be at most 4096, not 5000"),
        ({"python": ""}, "python is empty"),
        ({"devices": []}, "devices has 0 entries; it needs 1 at least"),
        ({"devices": {"a": 1}}, "devices must be a list, not a table"),
        (
            {"deployed": {"path": "d.onnx", "input": {"clip": 1}}},
            "deployed.input.clip: two numbers are needed, such as clip=-1,1, not 1",
        ),
        ({"inventory": 3}, "inventory must be a path, not 3"),
        ({"fleet": {"mode": "x" * 90}}, "fleet.mode must be 'split' or 'replicate', not \"xxx"),
        ({"fleet": {"moed": "split"}}, "there is no setting fleet.moed"),
        (
            {"limits": {"max_lost": {"person": 1.5, "car": 0.9}}},
            "limits.max_lost.person: must be a share from 0 to 1",
        ),
        ({"limits": {"max_lost": "x"}}, 'limits.max_lost must be a number, not "x"'),
        ({"control_model": "x"}, "control_model is used with control = true only"),
    ],
)
def test_a_wrong_value_is_reported_with_what_is_wanted(values: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        config_from({**GOOD, **values}, "here")
    said = str(caught.value)
    assert said.startswith(f"here: {words}")
    assert len(said) < 130


@pytest.mark.parametrize(
    ("search", "typed", "words"),
    [
        (
            {"max_queries": 0, "timeout_s": 0},
            {"search.max_queries": "--max-queries", "search.timeout_s": "--timeout"},
            "--max-queries and --timeout are both 0: a search that finds nothing would never end",
        ),
        (
            {"max_queries": 0, "timeout_s": 0},
            {"search.timeout_s": "--timeout"},
            "here: max_queries (--max-queries) and --timeout are both 0: a search that finds",
        ),
        (
            {"options": {"device_budget": 20}, "max_queries": 5},
            {"search.options.device_budget": "--device-budget"},
            "here: --device-budget is 20, but max_queries ends a search after 5: raise it (--max-queries 20;",
        ),
        (
            {"options": {"device_budget": 3000}},
            {"search.options.device_budget": "--device-budget"},
            "--device-budget is 3000, but max_queries ends a search after 2000: raise it",
        ),
        (
            {"strategy": "gradient", "oracle": "tolerance", "tolerance": 0.1},
            {"search.strategy": "--strategy"},
            'here: --strategy gradient searches where labels change, so oracle = "tolerance" needs another',
        ),
        (
            {"strategy": "gradient", "oracle": "tolerance", "tolerance": 0.1},
            {"search.strategy": "--strategy", "search.oracle": "--oracle"},
            "--strategy gradient searches where labels change, so --oracle tolerance needs another one",
        ),
        (
            {"tolerance": 0.1},
            {"search.tolerance": "--tolerance"},
            "--tolerance is used with oracle =",
        ),
        (
            {"oracle": "tolerance"},
            {"search.oracle": "--oracle"},
            "--oracle tolerance needs a tolerance",
        ),
    ],
)
def test_keys_that_do_not_go_together_are_named_by_the_flags_that_were_typed(
    search: dict[str, Any], typed: dict[str, str], words: str
) -> None:
    with pytest.raises(UsageError) as caught:
        config_from({**GOOD, "search": search}, "here", typed)
    assert str(caught.value).startswith(words)
    with pytest.raises(UsageError) as caught:
        config_from({**GOOD, "search": search}, "here", {"out": "--out"})
    assert str(caught.value).startswith("here: search: ")


def test_of_an_entry_that_is_wrong_only_the_cause_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "nightly.toml"
    path.write_text(
        'history = "h"\ndevices = "local"\n[[models]]\nname = "a/b"\ncampaign = "c.toml"\n'
    )
    with pytest.raises(UsageError) as caught:
        load_nightly(path)
    assert f"{path}: models.0.name: 'a/b'" in str(caught.value)

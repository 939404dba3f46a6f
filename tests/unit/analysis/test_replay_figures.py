"""What a replay's folder says: what is fixed, still there, new."""

import json
from pathlib import Path
from typing import Any

import pytest
from stores import ENDS, pooled_campaign, replay_store

from edgeflare.analysis import ReplaySummary, replay_summary, summarize
from edgeflare.errors import StoreError
from edgeflare.store.records import ReplayResult


def summary_of(tmp_path: Path, **values: Any) -> ReplaySummary:
    with replay_store(tmp_path / "replay", **values) as store:
        return replay_summary(store)


def test_each_input_is_what_it_was_before_and_is_now(tmp_path: Path) -> None:
    summary = summary_of(tmp_path)
    states = ("fixed", "still", "fixed", "unstable", "failed", "nonfinite", "new", "agrees")
    assert {one.id: one.state for one in summary.inputs} == dict(zip(ENDS, states, strict=True))
    assert summary.counts == {state: states.count(state) for state in set(states)}
    assert [one.id for one in summary.new] == ["seed:g"]
    assert summary.failed[0].detail == "the agent died"
    narrow = [(one.id, one.narrow) for one in summary.fixed]
    assert narrow == [("trigger:a", False), ("trigger:c", True)]  # by a tie only
    assert summary.figures.narrow == 1
    (still,), (new,) = summary.still, summary.new
    assert (still.original_label_before, still.deployed_label_before) == (0, 1)
    assert (still.original_label, still.deployed_label, still.elsewhere) == (0, 1, False)
    assert still.margin == pytest.approx(0.5)
    assert (new.deployed_label_before, new.deployed_label) == (0, 1)
    plain = json.loads(json.dumps(summary.to_json()))
    assert (plain["counts"]["fixed"], plain["source"]) == (2, "/there")
    assert [one["state"] for one in plain["inputs"]] == [one.state for one in summary.inputs]


def test_an_input_that_deviates_to_another_class_is_elsewhere(tmp_path: Path) -> None:
    (one, *_) = summary_of(tmp_path, looks={"pi": ReplayResult(True, 2)}).elsewhere
    assert (one.id, one.deployed_label_before, one.deployed_label) == ("trigger:b", 2, 1)


def test_each_device_is_held_to_what_it_said_itself(tmp_path: Path) -> None:
    looks = {"jetson": ReplayResult(False, 0)}
    summary = summary_of(tmp_path, replicas=("pi", "jetson"), looks=looks)
    states = {(one.id[-1], one.device): one.state for one in summary.inputs}
    assert (states["b", "pi"], states["b", "jetson"]) == ("still", "new")
    assert (states["a", "pi"], states["a", "jetson"]) == ("fixed", "agrees")
    assert (summary.by_device["pi"]["new"], summary.by_device["jetson"]["new"]) == (1, 2)


def test_of_devices_that_share_the_inputs_the_last_look_counts_whichever_took_it(
    tmp_path: Path,
) -> None:
    results = {"pi": (True, 1), "pi #2": (False, 0), "jetson": (True, 1)}
    looks = {name: ReplayResult(*one) for name, one in results.items()}
    with replay_store(tmp_path / "replay", looks=looks) as store:
        for devices, expected in (
            (["pi", "pi #2"], ["agrees", "new"]),
            (["pi"], ["fixed", "still"]),
        ):
            store.state.devices = [{"name": name} for name in devices]
            assert [one.state for one in replay_summary(store).inputs[:2]] == expected


@pytest.mark.parametrize(("sha256", "same"), [("bb", True), ("cc", False)])
def test_what_is_to_be_asked_about_is_counted_and_another_file_is_reported(
    tmp_path: Path, sha256: str, same: bool
) -> None:
    summary = summary_of(tmp_path, done=3, sha256=sha256)
    assert (len(summary.inputs), summary.unfinished) == (3, len(ENDS) - 3)
    assert (summary.same_original, summary.same_deployed) == (True, same)


def test_the_summary_of_a_campaign_has_the_figures_of_a_replay_only(tmp_path: Path) -> None:
    with replay_store(tmp_path / "replay") as store:
        replay = summarize(store).replay
    assert replay is not None
    assert replay.counts["still"] == 1
    with pooled_campaign(tmp_path / "pool") as store:
        assert summarize(store).replay is None
        with pytest.raises(StoreError, match="replay; `edgeflare"):
            replay_summary(store)

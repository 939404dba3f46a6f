"""What a replay's folder says: what is fixed, still there, new."""

import json
from pathlib import Path

import pytest
from stores import ENDS, pooled_campaign, replay_store

from edgeflare.analysis import ReplaySummary, replay_summary, summarize
from edgeflare.errors import StoreError
from edgeflare.store.records import ReplayResult


def told(summary: ReplaySummary) -> dict[str, str]:
    return {one.id: one.state for one in summary.inputs}


def test_each_input_is_what_it_was_before_and_is_now(tmp_path: Path) -> None:
    with replay_store(tmp_path / "replay") as store:
        summary = replay_summary(store)
    assert told(summary) == {
        "trigger:a": "fixed",
        "trigger:b": "still",
        "trigger:c": "fixed",
        "trigger:d": "unstable",
        "trigger:e": "failed",
        "trigger:f": "nonfinite",
        "seed:g": "new",
        "seed:h": "agrees",
    }
    assert summary.counts == {
        "fixed": 2,
        "still": 1,
        "new": 1,
        "agrees": 1,
        "unstable": 1,
        "nonfinite": 1,
        "failed": 1,
    }
    assert [one.id for one in summary.new] == ["seed:g"]
    assert summary.failed[0].detail == "the agent died"


def test_what_is_fixed_by_a_tie_only_is_reported_as_narrow(tmp_path: Path) -> None:
    with replay_store(tmp_path / "replay") as store:
        summary = replay_summary(store)
    assert [(one.id, one.narrow) for one in summary.fixed] == [
        ("trigger:a", False),
        ("trigger:c", True),
    ]
    assert summary.figures.narrow == 1


def test_labels_and_margin_are_those_of_now(tmp_path: Path) -> None:
    with replay_store(tmp_path / "replay") as store:
        (still,) = replay_summary(store).still
        (new,) = replay_summary(store).new
    assert (still.original_label_before, still.deployed_label_before) == (0, 1)
    assert (still.original_label, still.deployed_label) == (0, 1)
    assert not still.elsewhere
    assert still.margin == pytest.approx(0.5)
    assert (new.deployed_label_before, new.deployed_label) == (0, 1)


def test_an_input_that_deviates_to_another_class_is_elsewhere(tmp_path: Path) -> None:
    with replay_store(tmp_path / "replay", looks={"pi": ReplayResult(True, 2)}) as store:
        (one, *_) = replay_summary(store).elsewhere
    assert one.id == "trigger:b"
    assert (one.deployed_label_before, one.deployed_label) == (2, 1)


def test_each_device_is_held_to_what_it_said_itself(tmp_path: Path) -> None:
    looks = {"jetson": ReplayResult(False, 0)}
    with replay_store(tmp_path / "replay", replicas=("pi", "jetson"), looks=looks) as store:
        summary = replay_summary(store)
    states = {(one.id, one.device): one.state for one in summary.inputs}
    assert states["trigger:b", "pi"] == "still"
    assert states["trigger:b", "jetson"] == "new"
    assert states["trigger:a", "pi"] == "fixed"
    assert states["trigger:a", "jetson"] == "agrees"
    assert summary.by_device["pi"]["new"] == 1
    assert summary.by_device["jetson"]["new"] == 2


def test_of_devices_that_share_the_inputs_the_last_look_counts_whichever_took_it(
    tmp_path: Path,
) -> None:
    looks = {
        "pi": ReplayResult(True, 1),
        "pi #2": ReplayResult(False, 0),
        "jetson": ReplayResult(True, 1),
    }
    with replay_store(tmp_path / "replay", looks=looks) as store:
        store.state.devices = [{"name": "pi"}, {"name": "pi #2"}]
        states = told(replay_summary(store))
        store.state.devices = [{"name": "pi"}]
        alone = told(replay_summary(store))
    assert (states["trigger:a"], states["trigger:b"]) == ("agrees", "new")
    assert (alone["trigger:a"], alone["trigger:b"]) == ("fixed", "still")


def test_inputs_that_are_still_to_be_asked_about_are_counted(tmp_path: Path) -> None:
    with replay_store(tmp_path / "replay", done=3) as store:
        summary = replay_summary(store)
    assert len(summary.inputs) == 3
    assert summary.unfinished == len(ENDS) - 3


@pytest.mark.parametrize(("sha256", "same"), [("bb", True), ("cc", False)])
def test_it_reports_whether_the_deployed_model_is_another_file(
    tmp_path: Path, sha256: str, same: bool
) -> None:
    with replay_store(tmp_path / "replay", sha256=sha256) as store:
        summary = replay_summary(store)
    assert (summary.same_original, summary.same_deployed) == (True, same)


def test_the_json_has_every_input_and_the_counts(tmp_path: Path) -> None:
    with replay_store(tmp_path / "replay") as store:
        summary = replay_summary(store)
    plain = json.loads(json.dumps(summary.to_json()))
    assert plain["counts"]["fixed"] == 2
    assert [one["state"] for one in plain["inputs"]] == [one.state for one in summary.inputs]
    assert plain["source"] == "/there"


def test_the_summary_of_a_campaign_has_the_figures_of_a_replay_only(tmp_path: Path) -> None:
    with replay_store(tmp_path / "replay") as store:
        replay = summarize(store).replay
    with pooled_campaign(tmp_path / "pool") as store:
        assert summarize(store).replay is None
        with pytest.raises(StoreError, match="replay; `edgeflare"):
            replay_summary(store)
    assert replay is not None
    assert replay.counts["still"] == 1

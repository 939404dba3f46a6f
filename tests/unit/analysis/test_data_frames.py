"""Campaigns as data frames: what a notebook does with them gives the figures that `show` gives."""

import sys

import numpy as np
import pytest
from stores import ENDS, compared_campaign, replay_store, replicated_campaign

import edgeflare
from edgeflare.analysis import replay_summary, summarize, to_frames
from edgeflare.errors import StoreError, UsageError
from edgeflare.store import Store


def test_a_notebook_gets_the_figures_of_the_summary(demo):
    frames, summary = edgeflare.to_frames(demo), summarize(demo)
    searched = frames.outcomes[frames.outcomes.searched]
    assert len(searched) == summary.searched == 5
    assert (searched.status == "found").mean() == summary.success_rate
    assert searched.first_trigger_queries.median() == summary.queries_found.median
    assert frames.triggers.l2.median() == pytest.approx(summary.l2)
    pairs = frames.triggers.groupby(["original_label", "deployed_label"]).size()
    expected = {(one.original, one.deployed): one.count for one in summary.label_pairs}
    assert pairs.to_dict() == expected
    right = frames.seeds.original_label == frames.seeds.label
    assert int(right.sum()) == summary.original_right
    assert frames.telemetry.queries.sum() == sum(one.queries for one in summary.telemetry)


def test_scores_are_arrays_and_samples_can_be_fetched(demo):
    frames = to_frames(demo)
    trigger = frames.triggers.iloc[0]
    assert trigger.original_scores.argmax() == trigger.original_label
    assert trigger.deployed_scores.argmax() == trigger.deployed_label
    assert np.stack(list(frames.seeds.deployed_scores)).shape == (5, 10)
    with Store.open(demo) as store:
        seed, changed = map(store.get_sample, (trigger.seed_sample, trigger.trigger_sample))
    assert trigger.l2 == pytest.approx(np.linalg.norm(changed.astype(float) - seed) / 255)


def test_types_are_those_that_a_notebook_reckons_with_also_where_there_are_no_rows(demo, tmp_path):
    full = to_frames(demo)
    with Store.create(tmp_path / "new", {}) as store:
        frames = to_frames(store)
    outcomes = full.outcomes
    assert outcomes.finished_at.dt.tz is not None
    assert outcomes.status.cat.categories.tolist()[:2] == ["found", "seed-deviates"]
    assert (outcomes.original_label.dtype, outcomes.l2.dtype) == ("Int64", "float64")
    assert full.telemetry.minute.dt.tz is not None
    assert not any((outcomes[name].dtype == object) for name in outcomes)
    for name in ("outcomes", "triggers", "seeds", "telemetry", "replays", "transfers"):
        empty = getattr(frames, name)
        assert len(empty) == 0
        kinds = getattr(full, name).dtypes.astype(str).to_dict()
        assert empty.dtypes.astype(str).to_dict() == kinds


def test_of_several_campaigns_each_row_reports_its_own(demo, tmp_path):
    with replicated_campaign(tmp_path / "fleet") as store:
        frames = to_frames([demo, store])
        store.seed_count()  # an open store stays open
    assert frames.outcomes.campaign.value_counts().to_dict() == {demo.name: 5, "fleet": 5}
    of_fleet = frames.transfers[frames.transfers.campaign == "fleet"]
    rates = of_fleet.groupby(["replica", "on_device"], observed=True).deviates.mean().to_dict()
    assert rates == {("pi #1", "jetson"): pytest.approx(2 / 3), ("jetson", "pi #1"): 0.5}
    assert set(frames.seeds[frames.seeds.campaign == "fleet"].replica) == {"pi #1", "jetson"}


def test_a_replay_has_a_row_for_each_input_and_device(tmp_path, demo):
    with replay_store(tmp_path / "replay", replicas=("pi", "jetson")) as store:
        frames, summary = to_frames([store, demo]), replay_summary(store)
    replays = frames.replays
    assert set(replays.campaign) == {"replay"}
    assert len(replays) == len(summary.inputs) == 2 * len(ENDS)
    assert replays.state.value_counts().to_dict() == summary.counts
    still = replays[(replays.id == "trigger:b") & (replays.device == "pi")].iloc[0]
    assert (still.original_label_before, still.deployed_label_before) == (0, 1)
    assert (still.original_label, still.deployed_label, still.l2) == (0, 1, 1.5)
    assert (still.original_margin, still.deployed_margin) == pytest.approx((0.7, 0.5))
    failed = replays[replays.state == "failed"].iloc[0]
    assert failed.isna().original_label
    assert failed.detail == "the agent died"
    assert len(frames.transfers) == 0


def test_folders_of_one_name_are_distinguished_and_one_named_twice_is_refused(tmp_path):
    folders = [tmp_path / parent / "night" for parent in "ab"]
    for folder in folders:
        folder.parent.mkdir()
        replicated_campaign(folder).close()
    frames = to_frames(folders)
    assert frames.outcomes.campaign.nunique() == 2
    assert str(folders[0]) in set(frames.outcomes.campaign)
    with Store.open(folders[0]) as store, pytest.raises(UsageError, match="named 2"):
        to_frames([store, f"{folders[0]}/../night"])


def test_causes_are_a_column(tmp_path):
    with compared_campaign(tmp_path / "c", {"board": "pi"}, {"board": "jetson"}) as store:
        causes = to_frames(store).triggers.cause.value_counts().to_dict()
    assert causes == {"compression": 2, "hardware": 2, "not attributed": 2}


def test_what_every_status_leaves_out_is_missing_not_zero(finished):
    frames = to_frames(finished)
    outcomes = frames.outcomes.set_index("seed_id")
    assert outcomes.first_trigger_queries.isna().sum() == 5
    assert outcomes.original_label.isna()["digits/4.png"]
    assert (len(frames.seeds), frames.seeds.decision.notna().sum()) == (10, 1)
    assert frames.seeds.original_scores[9] is None


def test_no_pandas_and_no_campaign_are_reported_in_one_sentence(tmp_path, monkeypatch):
    with pytest.raises(StoreError, match="campaign folder"):
        to_frames(tmp_path / "nothing")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"install 'edgeflare\[notebook\]'"):
        to_frames(tmp_path)

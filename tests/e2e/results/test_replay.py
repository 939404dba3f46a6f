"""Replays on this machine: what a campaign found, asked about on the same model, a better and a worse one."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from campaigns import found_in
from command import DEMO, DEMO_PAIR, edgeflare, environment, must_run
from small_models import damaged_onnx
from typer.testing import CliRunner

from edgeflare import (
    CampaignConfig,
    Event,
    Notice,
    StoreError,
    UsageError,
    replay_base,
    replay_config,
    resume_campaign,
    run_campaign,
    run_replay,
)
from edgeflare.analysis import ReplaySummary, add_to_corpus, replay_summary
from edgeflare.campaign import Stage, demo_config, reproduce
from edgeflare.campaign.settings.models import SeedsConfig
from edgeflare.cli.app import app
from edgeflare.store import Store

SEEDS = 10
KILLED_WHILE_FILLING = """
import os, sys
from pathlib import Path
from edgeflare import replay_base, replay_config, run_replay
from edgeflare.store import Store
plain = Store.add_seeds
def dying(self, seeds):
    plain(self, list(seeds)[:3])
    os._exit(99)
Store.add_seeds = dying
source, out = map(Path, sys.argv[1:])
run_replay(source, replay_config(replay_base(source), {"out": out}))
"""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    only_searched = {"survey": {"enabled": False}}
    out = tmp_path_factory.mktemp("c") / "campaign"
    return run_campaign(demo_config(only_searched, seeds=SEEDS, out=out))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("f") / "fleet"
    devices = {"devices": ("local", "local"), "fleet": {"mode": "replicate"}}
    return run_campaign(demo_config(devices, seeds=3, out=out))


def config(source: Path, out: Path, deployed: Path | None = None) -> CampaignConfig:
    model = {} if deployed is None else {"path": deployed}
    return replay_config(replay_base(source), {"deployed": model, "out": out})


def replayed(source: Path, out: Path, deployed: Path | None = None) -> ReplaySummary:
    return replay_summary(run_replay(source, config(source, out, deployed)))


def states(summary: ReplaySummary) -> Counter[tuple[str, str]]:
    return Counter((one.kind, one.state) for one in summary.inputs)


def test_on_the_same_model_and_device_everything_is_as_it_was(campaign, tmp_path) -> None:
    summary = replayed(campaign, tmp_path / "replay")
    assert states(summary) == {("trigger", "still"): SEEDS, ("seed", "agrees"): SEEDS}
    assert not summary.elsewhere
    assert summary.same_deployed
    assert summary.devices == ("local",)
    assert summary.unfinished == 0
    assert summary.notices == ()


def test_a_model_that_equals_the_original_fixes_every_trigger(campaign, tmp_path) -> None:
    summary = replayed(campaign, tmp_path / "replay", DEMO / "original.tflite")
    assert states(summary) == {("trigger", "fixed"): SEEDS, ("seed", "agrees"): SEEDS}
    assert summary.same_deployed is False


@pytest.mark.extended
def test_a_damaged_model_has_new_deviations_and_a_second_replay_reports_what_changed_since(
    campaign: Path, tmp_path: Path
) -> None:
    worse = damaged_onnx(tmp_path / "worse.onnx", 0.5)
    first = replayed(campaign, tmp_path / "first", worse)
    assert first.new
    assert {one.kind for one in first.new} == {"seed"}
    assert all(one.original_label != one.deployed_label for one in first.new)

    again = replayed(tmp_path / "first", tmp_path / "again")
    assert len(again.still) == len(first.still) + len(first.new)
    assert not again.new
    assert not again.fixed

    back = replayed(tmp_path / "first", tmp_path / "back", DEMO / "deployed.tflite")
    assert {one.id for one in first.new} <= {one.id for one in back.fixed}
    assert {one.id for one in back.new} == {one.id for one in first.fixed}
    assert [one.id for one in back.inputs] == [one.id for one in first.inputs]


@pytest.mark.slow
def test_only_triggers_or_only_seeds_are_sent_where_that_is_wanted(campaign, tmp_path) -> None:
    for only, kind in (("triggers", "trigger"), ("seeds", "seed")):
        folder = run_replay(campaign, config(campaign, tmp_path / only), only=only)
        inputs = replay_summary(folder).inputs
        assert len(inputs) == SEEDS
        assert {one.kind for one in inputs} == {kind}


@pytest.mark.extended
def test_of_a_fleet_each_device_is_reported(fleet: Path, tmp_path: Path) -> None:
    summary = replayed(fleet, tmp_path / "replay")
    assert set(summary.by_device) == {"local", "local#2"}
    for counts in summary.by_device.values():
        assert (counts["still"], counts["agrees"]) == (3, 3)
    second = reproduce(
        fleet, ["seeds.npz:1"], replay_config(replay_base(fleet), {"devices": ["local#2"]})
    )
    assert [(one.device, one.found_on, one.bit_equal) for one in second] == [
        ("local#2", "local#2", True)
    ]


class StopsAt:
    """Interrupts a campaign, as Ctrl-C does, when a stage begins."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __call__(self, event: Event) -> None:
        if isinstance(event, Stage) and event.name == self._stage:
            raise KeyboardInterrupt


@pytest.mark.extended
def test_an_interrupted_replay_goes_on_and_ends_as_it_would_have(campaign, tmp_path) -> None:
    whole, torn = tmp_path / "whole", tmp_path / "torn"
    run_replay(campaign, config(campaign, whole))
    with pytest.raises(KeyboardInterrupt):
        run_replay(campaign, config(campaign, torn), progress=StopsAt("replay"))
    assert replay_summary(torn).unfinished == 2 * SEEDS
    resume_campaign(torn)
    assert found_in(torn) == found_in(whole)
    assert replay_summary(torn).inputs == replay_summary(whole).inputs


@pytest.mark.slow
def test_one_that_was_killed_while_its_inputs_were_stored_goes_on(campaign, tmp_path) -> None:
    folder = tmp_path / "torn"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_WHILE_FILLING, campaign, folder],
        env=environment(tmp_path),
        timeout=120,
    )
    assert killed.returncode == 99
    with Store.open(folder) as store:
        assert store.seed_count() == 3
    resume_campaign(folder)
    assert len(replay_summary(folder).still) == SEEDS


def test_one_that_was_killed_before_it_knew_its_inputs_takes_no_other_seeds(
    campaign: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "torn"
    seeds = SeedsConfig(path=campaign)
    begun = config(campaign, folder).model_copy(update={"seeds": seeds})
    Store.create(folder, begun.model_dump(mode="json")).close()
    with pytest.raises(StoreError, match="interrupted before"):
        resume_campaign(folder)


def test_a_campaign_that_lost_a_sample_leaves_no_half_made_replay(campaign, tmp_path) -> None:
    torn = tmp_path / "campaign"
    shutil.copytree(campaign, torn)
    with Store.open(torn) as store:
        digest = list(store.seeds())[-1].sample
    for path in (torn / "samples").rglob(f"*{digest[4:]}*"):
        path.unlink()
    with pytest.raises(StoreError):
        run_replay(torn, config(torn, tmp_path / "replay"))
    assert not (tmp_path / "replay").exists()


@pytest.mark.extended
def test_an_unfinished_campaign_is_replayed_as_far_as_it_came(tmp_path: Path) -> None:
    unfinished = tmp_path / "campaign"
    limited = demo_config({"survey": {"enabled": False}}, seeds=4, out=unfinished)
    fleet = limited.fleet.model_copy(update={"total_queries": 13 + 28})  # 28 for the drift
    run_campaign(limited.model_copy(update={"fleet": fleet, "concurrency": 1}))
    told: list[str] = []

    def note(event: Event) -> None:
        if isinstance(event, Notice):
            told.append(event.text)

    folder = run_replay(unfinished, config(unfinished, tmp_path / "replay"), progress=note)
    summary = replay_summary(folder)
    assert any("far is replayed" in one for one in told)
    assert summary.notices == tuple(told)
    assert 1 <= len(summary.still) < 4
    assert len(summary.agrees) == 4


@pytest.mark.extended
def test_a_corpus_is_replayed_with_the_models_of_a_campaign(campaign: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    add_to_corpus(corpus, campaign)
    with pytest.raises(UsageError, match="no models"):
        replay_base(corpus)
    settings = replay_config(replay_base(corpus, campaign), {"out": tmp_path / "replay"})
    summary = replay_summary(run_replay(corpus, settings))
    assert summary.source_kind == "corpus"
    assert states(summary) == {("trigger", "still"): SEEDS}


def test_one_trigger_is_reproduced_to_the_last_bit_and_leaves_nothing_behind(
    campaign: Path, tmp_path: Path
) -> None:
    ran = must_run("replay", campaign, "--trigger", "seeds.npz:3", "--json", home=tmp_path)
    (one,) = ran.json["triggers"]
    assert one["bit_equal"] is True
    assert (one["state"], one["device"], one["found_on"]) == ("still", "local", "local")
    assert one["original_now"][0]["label"] != one["deployed_now"][0]["label"]
    assert one["deployed_before"] == one["deployed_now"]
    assert not (tmp_path / "campaigns").exists()


@pytest.mark.slow
def test_a_reproduction_on_another_model_shows_both_answers_then_and_now(
    campaign: Path, tmp_path: Path
) -> None:
    flags = ("--trigger", "seeds.npz:3", "--deployed", DEMO / "original.tflite")
    ran = must_run("replay", campaign, *flags, home=tmp_path)
    assert "seeds.npz:3 on local" in ran.out
    assert "original's answer alone" in ran.out
    assert ran.out.count("when found") == ran.out.count(" now ") == 2


def test_the_command_reports_counts_and_where_everything_is(campaign: Path, tmp_path: Path) -> None:
    worse = damaged_onnx(tmp_path / "worse.onnx", 0.5)
    ran = must_run("replay", campaign, "--deployed", worse, "--patience", 60, home=tmp_path)
    assert "\nreplay: on local\n" in ran.err
    assert "search: " not in ran.err
    (folder,) = (tmp_path / "campaigns").glob("worse-replay-*")
    assert str(folder) in ran.err
    assert f"edgeflare report {folder}" in ran.out
    summary = replay_summary(folder)
    for state, words in (("new", "deviates now, did not before"), ("fixed", "deviated, and does")):
        line = next(line for line in ran.out.splitlines() if words in line)
        assert int(line.split()[-1]) == len([one for one in summary.inputs if one.state == state])
    assert f"seed {summary.new[0].seed_id}" in ran.out

    shown = edgeflare("show", folder, home=tmp_path)
    assert f"{campaign} on worse.onnx" in shown.out
    assert "success rate" not in shown.out


def test_too_many_new_deviations_end_with_exit_code_1(campaign: Path, tmp_path: Path) -> None:
    worse = damaged_onnx(tmp_path / "worse.onnx", 0.5)
    limited = tmp_path / "campaign.toml"
    models = f'[original]\npath = "{DEMO / "original.onnx"}"\n[deployed]\npath = "{worse}"\n'
    limited.write_text(
        f'{models}[seeds]\npath = "{DEMO / "seeds.npz"}"\n[limits]\nmax_new_triggers = 0\n'
    )
    ran = edgeflare("replay", campaign, "--campaign", limited, "--json", home=tmp_path)
    assert ran.code == 1, ran.err
    (limit,) = ran.json["limits"]
    assert (limit["name"], limit["crossed"]) == ("max_new_triggers", True)
    assert limit["value"] == ran.json["counts"]["new"] > 0


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            ("--trigger", "seeds.npz:33"),
            "no trigger of a seed 'seeds.npz:33'.*example, seeds.npz:3",
        ),
        (("--only", "all"), "--only all: choose one of triggers, seeds"),
        (("--only", "seeds", "--trigger", "seeds.npz:3"), "contradict each other"),
        (("--deployed", "gone.tflite"), "there is no model file gone.tflite$"),
        (("--original", DEMO / "deployed.tflite", "--original-input", "size=1,1"), "size=1,1"),
        (("--original", DEMO / "deployed.tflite", "--input", "size=1,1"), "size=1,1"),
        (("--input", "size"), "--input 'size' is not of the form KEY=VALUE"),
    ],
)
def test_what_can_not_be_replayed_is_reported_in_a_sentence(
    campaign: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[object, ...],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, ["replay", str(campaign), *map(str, flags)])
    assert ran.exit_code == 2
    assert re.search(sentence, ran.stderr), ran.stderr
    assert not (tmp_path / "campaigns").exists()


@pytest.mark.extended
def test_a_run_without_a_search_compares_the_seeds_and_its_replay_has_no_triggers(tmp_path) -> None:
    ran = must_run(
        "run", *DEMO_PAIR, "--limit", 5, "--strategy", "none", "--out", "plain", home=tmp_path
    )
    assert "success rate" not in ran.out
    again = edgeflare("replay", "plain", "--json", home=tmp_path)
    assert "triggering input" in again.err
    assert json.loads(again.out)["counts"]["agrees"] == 5

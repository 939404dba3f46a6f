"""A campaign with a control: the original against itself, or against a copy of it, after the search."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from campaigns import found_in
from command import DEMO, edgeflare, must_run
from onnx import helper, numpy_helper
from small_models import dense_onnx, label_onnx

from edgeflare import (
    CampaignConfig,
    Event,
    Notice,
    campaign_status,
    config_from,
    resume_campaign,
    run_campaign,
    summarize,
)
from edgeflare.campaign import Stage, Step
from edgeflare.errors import ModelError, StoreError, UsageError
from edgeflare.store import Store

pytestmark = pytest.mark.usefixtures("own_home")

SEEDS = 3


def values(**more: Any) -> dict[str, Any]:
    return {
        "original": {"path": str(DEMO / "original.onnx")},
        "deployed": {"path": str(DEMO / "deployed.tflite")},
        "seeds": {"path": str(DEMO / "seeds.npz"), "limit": SEEDS},
        "search": {"strategy": "dflare", "max_queries": 25, "timeout_s": 0},
        "survey": {"enabled": False},
        "control": True,
        **more,
    }


def config(out: Path, **more: Any) -> CampaignConfig:
    return config_from(values(out=out, **more), "test")


class EventRecorder:
    """Keeps what a campaign reports; calls `at_control` once, at the first step of the control's search."""

    def __init__(self, at_control: Callable[[], None] = lambda: None) -> None:
        self.notices: list[str] = []
        self.stages: list[tuple[str, str]] = []
        self._at_control: Callable[[], None] | None = at_control

    def __call__(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.notices.append(event.text)
        elif isinstance(event, Stage):
            self.stages.append((event.name, event.detail.partition(":")[0]))
        elif isinstance(event, Step) and self.stages[-1] == ("control", "search"):
            act, self._at_control = self._at_control, None
            if act is not None:
                act()


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        return run_campaign(config(home / "whole"))


def assert_whole(folder: Path, undisturbed: Path) -> None:
    assert found_in(folder) == found_in(undisturbed)
    assert found_in(folder / "control") == found_in(undisturbed / "control")
    assert campaign_status(folder).state == "finished"
    ours, theirs = summarize(folder).control, summarize(undisturbed).control
    assert ours == theirs


@pytest.mark.extended
def test_the_control_searches_from_the_same_seeds_with_the_same_randomness(undisturbed) -> None:
    with Store.open(undisturbed) as store, Store.open(undisturbed / "control") as control:
        ours, theirs = list(store.seeds()), list(control.seeds())
        assert [(s.id, s.sample, s.label) for s in ours] == [
            (s.id, s.sample, s.label) for s in theirs
        ]
        assert {o.seed_id: o.chain_seed for o in store.outcomes()} == {
            o.seed_id: o.chain_seed for o in control.outcomes()
        }
        assert control.campaign["search"] == store.campaign["search"]
        assert any(s.outputs and (s.outputs[0] != s.outputs[1]).any() for s in theirs), (
            "the same arithmetic twice is no control"
        )


def test_no_search_of_the_original_against_itself_finds_anything(undisturbed: Path) -> None:
    control = summarize(undisturbed).control
    assert (control.searches, control.false_alarms, control.unfinished) == (SEEDS, 0, 0)
    assert control.own_file
    assert control.rate == 0
    assert control.upper_bound == pytest.approx(1 - 0.05 ** (1 / SEEDS))
    assert control.runtime["graph_optimization"] == "none"
    with Store.open(undisturbed) as store:
        assert store.models["original"]["runtime"]["graph_optimization"] == "all"


def test_show_reports_the_control_for_people_and_for_programs(tmp_path, undisturbed) -> None:
    shown = edgeflare("show", undisturbed, home=tmp_path)
    assert f"0 of {SEEDS}" in (shown.out)
    assert "original against itself" in shown.out
    assert "graph optimization off" in shown.out
    shown = edgeflare("show", undisturbed, "--json", home=tmp_path).json["control"]
    assert edgeflare("analyse", "control", undisturbed, "--json", home=tmp_path).json == shown
    assert (shown["searches"], shown["false_alarms"], shown["margin_floor"]) == (SEEDS, 0, 0.001)
    of_control = edgeflare("show", undisturbed / "control", "--json", home=tmp_path).json
    assert of_control["control"] is None
    assert of_control["by_status"]["exhausted"] == SEEDS


def test_an_export_leaves_the_control_out(tmp_path: Path, undisturbed: Path) -> None:
    ran = must_run("export", undisturbed, "pictures", "--json", home=tmp_path)
    summary = summarize(undisturbed)
    assert ran.json["findings"] == summary.found + summary.by_status["seed-deviates"]


@pytest.mark.extended
def test_false_alarms_are_reported_with_their_largest_margin_and_what_may_be_the_cause(
    tmp_path: Path,
) -> None:
    recorder = EventRecorder()
    copy = DEMO / "deployed.tflite"  # no float copy at all: it must be found out
    deployed = {"path": str(DEMO / "original.tflite")}
    search = {"max_queries": 100, "timeout_s": 0}
    seeds = {"path": str(DEMO / "seeds.npz"), "limit": 2}
    folder = run_campaign(
        config(tmp_path / "c", control_model=copy, search=search, seeds=seeds, deployed=deployed),
        progress=recorder,
    )
    control = summarize(folder).control
    assert control.false_alarms > 0
    assert control.largest_margin is not None
    assert control.model == "deployed.tflite"
    assert not control.own_file
    [notice] = [one for one in recorder.notices if "false alarms" in one]
    assert f"raised {control.false_alarms} false" in notice
    [floor] = re.findall(r"--margin-floor well above ([0-9.e-]+),", notice)
    assert "deployed.tflite" in notice
    assert control.largest_margin <= float(floor) < 1.2 * control.largest_margin
    assert summarize(folder).notices.count(notice) == 1


@pytest.mark.extended
def test_an_interrupted_control_goes_on(tmp_path: Path, undisturbed: Path) -> None:
    recorder = EventRecorder(interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_campaign(config(tmp_path / "torn"), progress=recorder)
    [notice] = recorder.notices
    assert "search is finished" in notice
    status = campaign_status(tmp_path / "torn")
    assert (status.state, status.done, status.total) == ("interrupted", SEEDS, SEEDS)
    assert "finished, its control" in status.message
    torn = summarize(tmp_path / "torn").control
    assert torn.searches + torn.unfinished == SEEDS
    recorder = EventRecorder()
    resume_campaign(tmp_path / "torn", progress=recorder)
    assert recorder.stages[0] == ("control", "device"), "the search's own devices need not be there"
    assert_whole(tmp_path / "torn", undisturbed)
    resume_campaign(tmp_path / "torn", progress=recorder)
    assert recorder.notices == [f"{tmp_path / 'torn'} is finished: nothing is left to do"]


@pytest.mark.extended
def test_the_control_needs_the_campaigns_own_samples_only(tmp_path, undisturbed) -> None:
    shutil.copy(DEMO / "seeds.npz", tmp_path / "seeds.npz")
    seeds = {"path": tmp_path / "seeds.npz", "limit": SEEDS}

    def lose_seeds() -> None:
        (tmp_path / "seeds.npz").unlink()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_campaign(config(tmp_path / "torn", seeds=seeds), progress=EventRecorder(lose_seeds))
    resume_campaign(tmp_path / "torn")
    assert_whole(tmp_path / "torn", undisturbed)


@pytest.mark.extended
def test_a_model_that_changed_before_the_control_began_is_refused(tmp_path: Path) -> None:
    shutil.copy(DEMO / "original.onnx", tmp_path / "mine.onnx")
    original = {"path": tmp_path / "mine.onnx"}

    def stop(event: Event) -> None:
        if isinstance(event, Stage) and event.name == "control":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_campaign(config(tmp_path / "torn", original=original), progress=stop)
    with (tmp_path / "mine.onnx").open("ab") as file:
        file.write(b"\x10\x00")
    with pytest.raises(UsageError, match="original model"):
        resume_campaign(tmp_path / "torn")


@pytest.mark.extended
def test_a_control_under_way_is_seen_and_not_run_twice(tmp_path: Path) -> None:
    seen = []

    def look() -> None:
        seen.append(campaign_status(tmp_path / "c"))
        with pytest.raises(StoreError):
            resume_campaign(tmp_path / "c")

    run_campaign(config(tmp_path / "c"), progress=EventRecorder(look))
    [status] = seen
    assert (status.state, status.stage) == ("running", "control")
    assert status.total == SEEDS
    assert status.searched == SEEDS, "what the search found, not the control"


@pytest.mark.extended
def test_a_search_paused_by_a_query_limit_has_its_control_once_it_is_finished(
    tmp_path: Path, undisturbed: Path
) -> None:
    folder = run_campaign(config(tmp_path / "c", concurrency=1, fleet={"total_queries": SEEDS + 9}))
    assert not (folder / "control").exists()
    paused = summarize(folder).control
    assert (paused.searches, paused.unfinished, paused.rate) == (0, SEEDS, None)
    assert campaign_status(folder).state == "paused"
    assert "not begun" in edgeflare("show", folder, home=tmp_path).out
    resume_campaign(folder, changes={"fleet": {"total_queries": None}})
    assert_whole(folder, undisturbed)


@pytest.mark.parametrize(
    "told_by",
    [
        "the deployed file",
        pytest.param("the user, of the deployed model", marks=pytest.mark.slow),
    ],
)
@pytest.mark.extended
def test_the_control_takes_the_scale_from_where_the_campaign_does(tmp_path, told_by) -> None:
    models = {}
    for name in ("original", "deployed"):
        model = onnx.load(dense_onnx(tmp_path / f"{name}.onnx", [1, 8, 8, 1]))
        if name == "original" or told_by != "the deployed file":
            del model.metadata_props[:]
        onnx.save(model, tmp_path / f"{name}.onnx")
        models[name] = {"path": tmp_path / f"{name}.onnx"}
    if told_by != "the deployed file":
        models["deployed"]["input"] = {"scale": 0.5, "mean": [3], "std": [2]}
    images = np.random.default_rng(3).integers(0, 256, (2, 8, 8, 1), np.uint8)
    np.savez(tmp_path / "seeds.npz", images=images)
    recorder = EventRecorder()
    search = {"strategy": "dflare", "max_queries": 3, "timeout_s": 0}
    changes = {**models, "seeds": {"path": tmp_path / "seeds.npz"}, "search": search}
    folder = run_campaign(config(tmp_path / "c", **changes), progress=recorder)
    assert not [text for text in recorder.notices if "can't be run" in text]
    with Store.open(folder) as store, Store.open(folder / "control") as control:
        assert control.models["original"]["input"] == store.models["original"]["input"]
        assert control.models["deployed"]["input"] == store.models["original"]["input"]


def test_a_control_model_that_is_none_is_refused_before_the_search(tmp_path: Path) -> None:
    (tmp_path / "copy.tflite").write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"copy\.tflite"):
        run_campaign(config(tmp_path / "c", control_model=tmp_path / "copy.tflite"))
    with pytest.raises(UsageError, match=r"file .*gone\.tflite"):
        run_campaign(config(tmp_path / "c", control_model=tmp_path / "gone.tflite"))
    assert not (tmp_path / "c").exists()


def test_the_deployed_model_is_no_control_model(tmp_path: Path) -> None:
    shutil.copy(DEMO / "deployed.tflite", tmp_path / "same.tflite")
    with pytest.raises(UsageError, match=r"same\.tflite"):
        run_campaign(config(tmp_path / "c", control_model=tmp_path / "same.tflite"))


def test_what_is_wrong_with_the_control_is_reported_as_the_controls(tmp_path: Path) -> None:
    label_onnx(DEMO / "original.onnx", tmp_path / "copy.onnx", shape=(2,))
    with pytest.raises(ModelError, match=r"^control: .*10"):
        run_campaign(config(tmp_path / "c", control_model=tmp_path / "copy.onnx"))


def reversed_classes(path: Path) -> None:
    """Write a copy of the original that gives the first class's score to the last class, and so on."""
    model = onnx.load(DEMO / "original.onnx")
    [scores] = model.graph.output
    backwards = numpy_helper.from_array(np.arange(10)[::-1].copy(), "backwards")
    model.graph.initializer.append(backwards)
    model.graph.node.append(
        helper.make_node("Gather", [scores.name, "backwards"], ["turned"], axis=1)
    )
    scores.name = "turned"
    onnx.save(model, path)


@pytest.mark.extended
def test_a_control_that_its_preflight_refuses_does_not_keep_the_campaign_from_its_end(
    tmp_path: Path,
) -> None:
    reversed_classes(tmp_path / "copy.onnx")
    recorder = EventRecorder()
    seeds = {"path": str(DEMO / "seeds.npz"), "limit": 20}
    search = {"max_queries": 5, "timeout_s": 0}
    refused = config(
        tmp_path / "c", control_model=tmp_path / "copy.onnx", seeds=seeds, search=search
    )
    folder = run_campaign(refused, progress=recorder)
    [notice] = [one for one in recorder.notices if one.startswith("the control can't be run: ")]
    assert "disagree" in notice
    assert summarize(folder).notices.count(notice) == 1
    assert campaign_status(folder).state == "finished"
    control = summarize(folder).control
    assert (control.state, control.searches, control.unfinished) == ("refused", 20, 0)
    assert "be run" in edgeflare("show", folder, home=tmp_path).out
    resume_campaign(folder, progress=recorder)
    assert f"{folder} is finished" in recorder.notices[-1]


def test_a_control_half_made_or_missing_is_reported(tmp_path: Path, undisturbed: Path) -> None:
    folder = shutil.copytree(undisturbed, tmp_path / "c")
    with Store.open(folder) as store:
        store.state.control_begun = False
        store.state.control_finished = False
    (folder / "control" / "campaign.sqlite").write_bytes(b"")
    half = summarize(folder).control
    assert (half.state, half.unfinished) == ("not-begun", SEEDS)
    assert edgeflare("export", folder, "pictures", home=tmp_path).code == 0
    shutil.rmtree(folder / "control")
    with Store.open(folder) as store:
        store.state.control_finished = True
    assert "has been removed" in edgeflare("show", folder, home=tmp_path).out


@pytest.mark.extended
def test_the_control_runs_on_this_machine_beside_an_unshared_device_of_it(
    tmp_path: Path, undisturbed: Path
) -> None:
    (tmp_path / "devices.toml").write_text('[devices.local]\ntransport = "local"\nshare = false\n')
    folder = run_campaign(config(tmp_path / "c", devices=["local"]))
    assert_whole(folder, undisturbed)


@pytest.mark.extended
def test_each_device_of_its_own_has_one_control_together(tmp_path: Path) -> None:
    fleet = {"mode": "replicate"}
    folder = run_campaign(config(tmp_path / "c", devices=["local", "local"], fleet=fleet))
    control = summarize(folder).control
    assert (control.searches, control.unfinished) == (SEEDS, 0)

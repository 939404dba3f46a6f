"""One campaign for each candidate; what fails, what changed, and going on."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from command import DEMO
from small_models import prune

from edgeflare import (
    CampaignConfig,
    DeviceError,
    ModelError,
    Notice,
    SeedError,
    StoreError,
    UsageError,
    config_from,
    rank_campaigns,
    run_candidates,
)
from edgeflare.campaign import BatchProgress, Candidates, candidates_named
from edgeflare.campaign.comparison import search_for
from edgeflare.campaign.settings.config import SearchConfig
from edgeflare.store import Store

pytestmark = [pytest.mark.extended, pytest.mark.usefixtures("own_home")]

ORIGINAL = DEMO / "original.onnx"
FIXED = {"crossing": "line", "effort": 16, "tied_classes": 2, "candidates": 1, "device_budget": 2}


def config(out: Path, **more: Any) -> CampaignConfig:
    values = {
        "original": {"path": ORIGINAL},
        "deployed": {"path": "not/read"},
        "seeds": {"path": DEMO / "seeds.npz", "limit": 2},
        "search": {"timeout_s": 0, "options": FIXED},
        "survey": {"enabled": False},
        "out": out,
        **more,
    }
    return config_from(values, "test")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [prune(ORIGINAL, folder / f"half{n}.onnx", 0.5 + n / 10) for n in range(2)]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory, models: list[Path]) -> Candidates:
    """Both models' campaigns, for tests that only read them."""
    return run_candidates(config(tmp_path_factory.mktemp("compared") / "out"), models)


@pytest.fixture
def garbage(tmp_path: Path) -> Path:
    path = tmp_path / "garbage.onnx"
    path.write_bytes(b"no model")
    return path


class TestRun:
    def test_each_has_a_campaign_with_nothing_else_different(self, tmp_path, models) -> None:
        seen: list[BatchProgress] = []
        options = {"device_budget": 2}
        like = config(tmp_path / "out", search={"timeout_s": 0, "options": options, "seed": 5})
        ran = run_candidates(like, models, progress=seen.append)
        assert [(run.name, run.failed) for run in ran.runs] == [("half0", None), ("half1", None)]
        begun = [(one.name, one.number, one.total) for one in seen if not (one.event or one.ended)]
        assert begun == [("half0", 1, 2), ("half1", 2, 2)]
        stored = []
        for run in ran.runs:
            with Store.open(run.folder) as store:
                assert store.state.finished
                assert store.models["deployed"]["path"] == str(run.model.resolve())
                stored.append(store.campaign)
        for one in stored:
            one.pop("out")
            one["deployed"].pop("path")
        assert stored[0] == stored[1]  # what the boundary search resolves by its costs, too
        assert stored[0]["search"]["options"]["effort"] is not None
        assert rank_campaigns([run.folder for run in ran.finished]).seeds == 2

    def test_two_files_of_one_name_have_a_folder_each(self, tmp_path, models) -> None:
        (tmp_path / "other").mkdir()
        twin = Path(shutil.copy(models[0], tmp_path / "other" / "half0.onnx"))
        ran = run_candidates(config(tmp_path / "out"), [models[0], twin])
        assert [run.name for run in ran.runs] == ["half0", "half0-2"]
        ranking = rank_campaigns([run.folder for run in ran.runs])
        assert ranking.duels[0].interval == (0, 0)
        assert ranking.duels[0].verdict == "tie"

    def test_like_a_campaign_that_is_there(self, tmp_path, models, compared) -> None:
        first = compared.runs[0].folder
        ran = run_candidates(first, models[1:], out=tmp_path / "more")
        assert ran.folder == tmp_path / "more"
        assert rank_campaigns([first, ran.runs[0].folder]).seeds == 2

    def test_like_a_campaign_whose_model_returned_labels(self, tmp_path, models, compared) -> None:
        like = Path(shutil.copytree(compared.runs[0].folder, tmp_path / "labels"))
        with Store.open(like) as store:
            original, deployed = store.models["original"], store.models["deployed"]
            store.set_models(
                original, {**deployed, "output": {**deployed["output"], "answers": "labels"}}
            )
        with pytest.raises(UsageError, match="no probabilities"):
            run_candidates(like, models, measure="disagreement", out=tmp_path / "more")
        assert not (tmp_path / "more").exists()


class TestFailing:
    def test_one_that_fails_hides_no_other(self, tmp_path, models, garbage) -> None:
        seen: list[BatchProgress] = []
        ran = run_candidates(config(tmp_path / "out"), [garbage, models[0]], progress=seen.append)
        bad, good = ran.runs
        assert bad.failed
        assert good.failed is None
        assert ran.finished == (good,)
        told = [one.event.text for one in seen if isinstance(one.event, Notice)]
        assert [one for one in told if "run, the others" in one]

    def test_where_all_fail_the_reason_is_raised(self, tmp_path: Path, garbage: Path) -> None:
        with pytest.raises((ModelError, DeviceError)):
            run_candidates(config(tmp_path / "out"), [garbage])

    def test_one_that_failed_is_tried_again(self, tmp_path, models, garbage) -> None:
        like = config(tmp_path / "out")
        run_candidates(like, [models[0], garbage])
        shutil.copy(models[1], garbage)
        again = run_candidates(like, [models[0], garbage])
        assert [run.failed for run in again.runs] == [None, None]

    def test_what_was_finished_before_an_error_of_all_is_reported(self, tmp_path, models) -> None:
        out, seen = tmp_path / "out", list[BatchProgress]()

        def lose_the_seeds(progress: BatchProgress) -> None:
            seen.append(progress)
            if progress.event is None and not progress.ended and progress.number == 2:
                seeds.unlink()

        seeds = Path(shutil.copy(DEMO / "seeds.npz", tmp_path / "seeds.npz"))
        like = config(out, seeds={"path": seeds, "limit": 2})
        with pytest.raises(SeedError):
            run_candidates(like, models, progress=lose_the_seeds)
        assert [(one.name, one.folder, one.ended) for one in seen if one.ended] == [
            ("half0", out / "half0", "finished")
        ]


class TestNamed:
    def test_a_comparison_stands_for_its_campaigns_and_its_own_files_for_nothing(
        self, models: list[Path], compared: Candidates
    ) -> None:
        out = compared.folder
        campaigns = (out / "half0", out / "half1")
        assert candidates_named([out]) == campaigns
        assert candidates_named(sorted(out.iterdir())) == campaigns
        assert candidates_named([models[0], out]) == (models[0], *campaigns)
        assert rank_campaigns(candidates_named([out])).seeds == 2

    def test_what_cannot_be_compared_is_refused(self, tmp_path: Path, models: list[Path]) -> None:
        with pytest.raises(UsageError, match="level is"):
            candidates_named(models, level=2)
        with pytest.raises(UsageError, match="two candidates"):
            candidates_named(models[:1])
        with pytest.raises(StoreError, match="campaign folder"):
            candidates_named([models[0], tmp_path])
        settings = {"format": 1, "settings": {}, "candidates": {"a": "/a.onnx"}}
        (tmp_path / "comparison.json").write_text(json.dumps(settings))
        with pytest.raises(UsageError, match="candidate's campaign"):
            candidates_named([models[0], tmp_path])
        for text in ("{", "[" * 100_000):
            (tmp_path / "comparison.json").write_text(text)
            with pytest.raises(StoreError, match="is damaged"):
                candidates_named([models[0], tmp_path])


class TestGoingOn:
    def test_what_is_finished_is_kept_and_more_may_come(self, tmp_path, models) -> None:
        like = config(tmp_path / "out")
        before = run_candidates(like, models[:1]).runs[0]
        with Store.open(before.folder) as store:
            id_before = store.id
        seen: list[BatchProgress] = []
        ran = run_candidates(like, models, progress=seen.append)
        assert ran.runs[0] == before
        with Store.open(before.folder) as store:
            assert store.id == id_before
        notices = [one.event.text for one in seen if isinstance(one.event, Notice)]
        assert any("nothing is left" in one for one in notices)

    def test_other_settings_are_refused_unless_they_change_nothing(self, tmp_path, models) -> None:
        run_candidates(config(tmp_path / "out"), models[:1])
        run_candidates(config(tmp_path / "out", concurrency=3), models[:1])
        with pytest.raises(UsageError, match=r"settings \(search"):
            run_candidates(config(tmp_path / "out", search={"seed": 9}), models[:1])

    def test_a_model_that_has_changed_is_refused(self, tmp_path: Path, models: list[Path]) -> None:
        model = Path(shutil.copy(models[0], tmp_path / "model.onnx"))
        run_candidates(config(tmp_path / "out"), [model])
        shutil.copy(models[1], model)
        with pytest.raises(UsageError, match="deployed model"):
            run_candidates(config(tmp_path / "out"), [model])

    def test_a_folder_that_is_none_of_ours_is_refused(self, tmp_path, models) -> None:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "thesis.txt").write_text("mine")
        with pytest.raises(UsageError, match="comparison nor"):
            run_candidates(config(tmp_path / "out"), models)

    def test_what_is_compared_is_written_down(self, models, compared) -> None:
        said = json.loads((compared.folder / "comparison.json").read_text())
        assert said["candidates"] == {"half0": str(models[0]), "half1": str(models[1])}


class TestRefused:
    def test_a_model_named_twice(self, tmp_path: Path, models: list[Path]) -> None:
        with pytest.raises(UsageError, match="named twice"):
            run_candidates(config(tmp_path / "out"), [models[0], models[0]])
        assert not (tmp_path / "out").exists()

    def test_a_model_that_is_not_there(self, tmp_path: Path, models: list[Path]) -> None:
        with pytest.raises(UsageError, match="model file"):
            run_candidates(config(tmp_path / "out"), [models[0], tmp_path / "missing.onnx"])

    def test_a_file_whose_runtime_nothing_says(self, tmp_path: Path, models: list[Path]) -> None:
        names = tmp_path / "names.txt"
        names.write_text("cat")
        like = config(tmp_path / "out")
        with pytest.raises(UsageError, match=r"names\.txt"):
            run_candidates(like, [models[0], names])
        assert not (tmp_path / "out").exists()
        stated = like.deployed.model_copy(update={"runtime": "onnx"})
        ran = run_candidates(like.model_copy(update={"deployed": stated}), [models[0], names])
        assert [bool(run.failed) for run in ran.runs] == [False, True]

    def test_a_device_that_states_its_runtime_takes_any_file(self, tmp_path, models) -> None:
        bare = Path(shutil.copy(models[0], tmp_path / "bare.model"))
        inventory = tmp_path / "devices.toml"
        inventory.write_text('[devices.here]\ntransport = "local"\nruntime = "onnx"\n')
        like = config(tmp_path / "out", devices=["here"], inventory=inventory)
        assert run_candidates(like, [bare]).runs[0].failed is None

    def test_a_measure_that_the_search_cannot_tell(self, tmp_path, models) -> None:
        like = config(tmp_path / "out", search={"strategy": "boundary"})
        with pytest.raises(UsageError, match="queries don't"):
            run_candidates(like, models, measure="queries")
        assert not (tmp_path / "out").exists()

    def test_an_unknown_measure(self, tmp_path: Path, models: list[Path]) -> None:
        with pytest.raises(UsageError, match="measure luck"):
            run_candidates(config(tmp_path / "out"), models, measure="luck")


class TestSearch:
    def test_the_search_follows_from_the_measure(self) -> None:
        assert search_for("queries", SearchConfig()).strategy == "dflare"
        assert search_for("severity", SearchConfig()).options == {"device_budget": 8}
        assert search_for("disagreement", SearchConfig(max_queries=3)).options == {
            "device_budget": 3
        }

    def test_what_was_stated_stays(self) -> None:
        stated = SearchConfig(strategy="diffchaser")
        assert search_for("queries", stated) == stated
        assert search_for("severity", stated) == stated
        budget = SearchConfig(options={"device_budget": 30})
        assert search_for("disagreement", budget) == budget

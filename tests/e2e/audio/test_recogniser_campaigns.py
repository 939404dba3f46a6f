"""Campaigns over made-up speech recognisers: their oracle, their control, and replays of what they found."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import soundfile
from speech_models import LETTERS, RATE, ctc_model, spelt

from edgeflare import (
    CampaignConfig,
    Event,
    Notice,
    config_from,
    rank_campaigns,
    replay_base,
    replay_config,
    run_campaign,
    run_candidates,
    run_replay,
)
from edgeflare.campaign import reproduce
from edgeflare.campaign.replay.results import replayed_inputs
from edgeflare.errors import UsageError
from edgeflare.explanation import explain_campaign, shrink_campaign
from edgeflare.repair import recipes_campaign
from edgeflare.reports import print_document, reproductions_document
from edgeflare.store import Store
from edgeflare.types import TRIGGERS, Decision, Status

pytestmark = pytest.mark.extended

TEXTS = ("ab|ca", "b|ac|b", "ca|ba")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two recognisers that take some loudness for two letters, and clips of three texts."""
    folder = tmp_path_factory.mktemp("recognisers")
    ctc_model(folder / "original.onnx")
    ctc_model(folder / "deployed.onnx", shift=0.04)
    (folder / "seeds" / "said").mkdir(parents=True)
    (folder / "labels.json").write_text('{"said": 1}')
    rng = np.random.default_rng(5)
    for number, text in enumerate(TEXTS):
        noisy = spelt(text, LETTERS) + rng.uniform(0, 0.04, 100 * len(text)).astype(np.float32)
        soundfile.write(folder / "seeds" / "said" / f"{number}.wav", noisy, RATE, subtype="FLOAT")
    return folder


def config(pair: Path, **more: Any) -> CampaignConfig:
    values = {
        "original": {"path": pair / "original.onnx"},
        "deployed": {"path": pair / "deployed.onnx"},
        "seeds": {"path": pair / "seeds", "labels": pair / "labels.json"},
        "search": {"strategy": "dflare", "operators": ["gain"], "max_queries": 25, "timeout_s": 0},
    }
    for name, value in more.items():
        before = values.get(name)
        values[name] = {**before, **value} if isinstance(before, dict) else value
    return config_from(values, "test")


@pytest.fixture(scope="module")
def campaign(pair: Path) -> tuple[Path, list[str]]:
    """The folder of a campaign with a control, and its notices."""
    notices: list[str] = []

    def told(event: Event) -> None:
        if isinstance(event, Notice):
            notices.append(event.text)

    return run_campaign(config(pair, control=True, out=pair / "found"), progress=told), notices


@pytest.fixture(scope="module")
def better(pair: Path, campaign: tuple[Path, list[str]]) -> Path:
    """The folder of a replay of the triggers with the original as the deployed model."""
    settings = {"deployed": {"path": pair / "original.onnx"}, "out": pair / "better"}
    return run_replay(campaign[0], replay_config(config(pair), settings), only="triggers")


def test_findings_are_explained_and_shrunk_by_their_words(campaign: tuple[Path, list[str]]) -> None:
    config = replay_config(replay_base(campaign[0]))
    found = explain_campaign(campaign[0], config)
    assert set(found.counts) == {"conversion"}  # both files are of floats
    assert found.layers is None
    assert "layers unknown" in [one.code for one in found.notices]
    shrunk = shrink_campaign(campaign[0], config)
    assert len(shrunk.shrunk) >= 2
    for one in shrunk.shrunk:
        assert one.after.l2 < one.before.l2
        assert one.words_after != one.words_before
    with Store.open(Path(shrunk.folder)) as store:
        for outcome in store.outcomes():
            assert outcome.original.text != outcome.deployed.text


def test_words_decide_where_both_models_transcribe(campaign: tuple[Path, list[str]]) -> None:
    with Store.open(campaign[0]) as store:
        found = [one for one in store.outcomes() if one.status is Status.FOUND]
        assert len(found) >= 2
        assert store.sample_rate == RATE
        for one in found:
            assert one.original.text.split() != one.deployed.text.split()
            assert (one.original_label, one.deployed_label) == (None, None)
            assert one.severity is not None
            assert one.severity >= 1e-3
            assert one.confirmed == 2
            assert one.snr_db is not None


def test_the_original_against_itself_raises_no_alarm(campaign: tuple[Path, list[str]]) -> None:
    with Store.open(campaign[0] / "control") as control:
        outcomes = list(control.outcomes())
        assert len(outcomes) == 3
        assert not any(one.status in TRIGGERS for one in outcomes)
        assert sum(one.search_queries for one in outcomes) >= 50
        assert control.sample_rate == RATE


class TestReplay:
    def test_it_shows_what_both_models_hear_now(self, pair, campaign, capsys) -> None:
        with Store.open(campaign[0]) as store:
            found = next(one for one in store.outcomes() if one.status is Status.FOUND)
        (told,) = reproduce(campaign[0], [found.seed_id], replay_config(config(pair)))
        assert (told.state, told.deviates, told.bit_equal, told.confirmed) == (
            "still",
            True,
            True,
            2,
        )
        texts = (found.original.text, found.deployed.text)
        assert (told.original_text_before, told.deployed_text_before) == texts
        assert (told.original_text_now, told.deployed_text_now) == texts
        assert told.original_now == ()
        print_document(reproductions_document([told]))
        printed = capsys.readouterr().out
        assert all(printed.count(f'"{text}"') == 2 for text in texts)
        assert "most probable classes" not in printed

    def test_what_a_better_model_hears_is_reported_beside_what_was_heard(self, better) -> None:
        with Store.open(better) as store:
            inputs = list(replayed_inputs(store))
            assert store.sample_rate == RATE
        assert {one.state for one in inputs} == {"fixed"}
        for one in inputs:
            assert one.decision is Decision.AGREE
            assert one.deployed_text_before != one.original_text_before
            assert one.deployed_text == one.original_text == one.original_text_before

    def test_models_of_another_rate_are_refused(self, pair, campaign) -> None:
        faster = config(
            pair, original={"path": pair / "original.onnx", "input": {"rate": 2 * RATE}}
        )
        with pytest.raises(UsageError, match="1000 Hz"):
            run_replay(campaign[0], replay_config(faster))

    @pytest.mark.slow
    def test_what_the_deployed_models_input_alone_gives_is_enough(self, pair, tmp_path) -> None:
        silent = onnx.load(pair / "original.onnx")
        about = [one for one in silent.metadata_props if one.key != "edgeflare.input"]
        del silent.metadata_props[:]
        silent.metadata_props.extend(about)
        onnx.save(silent, tmp_path / "silent.onnx")
        told = config(
            pair,
            original={"path": tmp_path / "silent.onnx"},
            deployed={"input": {"front_end": "waveform", "rate": RATE}},
            out=tmp_path / "found",
        )
        run_campaign(told)
        folder = run_replay(tmp_path / "found", replay_config(told, {"out": tmp_path / "replay"}))
        with Store.open(folder) as store:
            assert {one.state for one in replayed_inputs(store)} == {"still", "agrees"}


def test_a_clip_that_the_original_cannot_take_ends_no_campaign(pair: Path, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds"
    shutil.copytree(pair / "seeds", seeds)
    soundfile.write(seeds / "odd.wav", np.full(150, 0.4, np.float32), RATE, subtype="FLOAT")
    found = config(pair, seeds={"path": seeds, "labels": None}, out=tmp_path / "found")
    with Store.open(run_campaign(found)) as store:
        failed = {
            one.seed_id: one.detail for one in store.outcomes() if one.status is Status.FAILED
        }
        assert len(list(store.outcomes())) == 4
    assert list(failed) == ["odd.wav"]
    assert "original model: onnx" in failed["odd.wav"]


def test_candidates_are_ranked_by_the_words_of_their_first_triggers(pair, tmp_path) -> None:
    worse = ctc_model(tmp_path / "worse.onnx", shift=0.06)
    like = config_from(
        {
            "original": {"path": pair / "original.onnx"},
            "deployed": {"path": worse},
            "seeds": {"path": pair / "seeds"},
        },
        "test",
    )
    done = run_candidates(like, [pair / "deployed.onnx", worse], out=tmp_path / "compared")
    assert [run.failed for run in done.finished] == [None, None]
    ranking = rank_campaigns([run.folder for run in done.finished])
    assert ranking.measure == "disagreement"
    assert ranking.seeds == 3
    assert all(one.value.value > 0 for one in ranking.candidates)


@pytest.mark.slow
def test_recipes_are_searched_without_a_device_budget(campaign: tuple[Path, list[str]]) -> None:
    found = recipes_campaign(campaign[0], only=("int8-weights",), keep_float=0)
    assert not found.failed
    assert found.candidate("int8-weights").disagreement.value < found.present.disagreement.value

"""A real speech recogniser, float32 against dynamic int8, from the command to what both heard."""

import shutil
from pathlib import Path

import pytest
from command import must_run
from speech_models import WhisperModels, whisper_models  # noqa: F401

from edgeflare.answers.transcripts import spoken
from edgeflare.store import Store
from edgeflare.types import Status

pytestmark = pytest.mark.shared_data

HEARD = {
    "cards_002.wav": "4. Queen of Clothes",
    "speechbrain_spk2_snt1.wav": "We are sure that one war is enough.",
}
"""What CTranslate2 4.8 hears with the same weights: float32, greedy, the same prompt."""


@pytest.fixture
def run(tmp_path: Path, shared_data: Path, whisper_models: WhisperModels):  # noqa: F811
    """Runs a campaign on both clips and returns its seeds' answers and its outcomes, by seed."""
    for name in HEARD:
        shutil.copy(shared_data / "audio" / "speech" / name, tmp_path)

    def campaign(*more: object):
        must_run(
            *("run", "--original", whisper_models.original),
            *("--deployed", whisper_models.deployed, "--seeds", tmp_path),
            *("--out", "campaign", "--json", "--no-survey", *more),
            home=tmp_path,
        )
        with Store.open(tmp_path / "campaign") as store:
            seeds = {seed.id: seed.outputs for seed in store.seeds()}
            return seeds, {outcome.seed_id: outcome for outcome in store.outcomes()}

    return campaign


@pytest.mark.extended
def test_both_models_transcribe_and_are_compared_by_words(run) -> None:
    seeds, outcomes = run("--strategy", "none")
    assert {name: one.original.text.strip() for name, one in seeds.items()} == HEARD
    for name, one in seeds.items():
        differs = spoken(one.original.text) != spoken(one.deployed.text)
        assert (outcomes[name].status is Status.SEED_DEVIATES) == differs


@pytest.mark.slow
def test_a_search_finds_speech_that_int8_hears_differently(run) -> None:
    _, outcomes = run("--strategy", "dflare", "--max-queries", 300)
    found = [one for one in outcomes.values() if one.status is Status.FOUND]
    assert found
    for one in found:
        assert spoken(one.original.text) != spoken(one.deployed.text)
        assert one.l2 > 0

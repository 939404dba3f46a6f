"""Audio samples, and the transcripts of speech recognisers, in a campaign's folder."""

import numpy as np
import pytest
import soundfile
from object_stores import samples_in_folder

from edgeflare.answers.metrics import is_same
from edgeflare.errors import StoreError
from edgeflare.store import OutcomeRecord, SeedAnswer, SeedInput, Store
from edgeflare.store.records import ReplayRecord
from edgeflare.store.samples import read_wav, wav_bytes
from edgeflare.types import Decision, Status, Transcript

CLIP = np.array([0.0, 1.0, -1.0, 1e-7, 1 / 3, -0.0], np.float32)
HEARD = Transcript((" no", "?"), np.array([[0.75, 0.125], [np.nan, 0.0]]))
NOTHING = Transcript((), np.zeros((0, 2)))


@samples_in_folder
def test_an_audio_sample_comes_back_to_the_bit_and_other_programs_can_play_it(store):
    store.set_sample_rate(16000)
    digest = store.put_sample(CLIP)
    (path,) = store.folder.glob(f"samples/*/{digest}*")
    assert path.name == f"{digest}.wav"
    played, rate = soundfile.read(path, dtype="float32")
    assert rate == 16000
    assert played.tobytes() == CLIP.tobytes() == store.get_sample(digest).tobytes()
    assert store.put_sample(CLIP.copy()) == digest


@samples_in_folder
def test_the_rate_is_known_when_the_campaign_is_opened_again(store):
    store.set_sample_rate(8000)
    [digest] = store.add_seeds([SeedInput("clip", np.zeros(3, np.float32))])
    store.close()
    with Store.open(store.folder) as reopened:
        assert reopened.sample_rate == 8000
        assert reopened.get_sample(digest).shape == (3,)
        path = next(reopened.folder.glob(f"samples/*/{reopened.put_sample(CLIP)}.wav"))
        assert soundfile.info(path).samplerate == 8000
        path.write_bytes(path.read_bytes()[:-1] + b"x")
        with pytest.raises(StoreError, match=path.name):
            reopened.get_sample(path.stem)


def test_audio_of_an_unknown_rate_is_refused_and_images_need_none(store):
    assert store.sample_rate is None
    with pytest.raises(StoreError, match="the audio"):
        store.put_sample(CLIP)
    store.put_sample(np.ones((2, 2, 1), np.uint8))


@pytest.mark.parametrize("data", [b"", b"RIFF", wav_bytes(CLIP, 8000).replace(b"WAVE", b"WAXE")])
def test_what_is_no_wav_file_of_ours_is_refused(data):
    with pytest.raises(ValueError, match="WAV"):
        read_wav(data)


def test_transcripts_come_back_to_the_bit_on_seeds_outcomes_and_replays(store):
    store.add_seed_answers([SeedAnswer("a", HEARD, NOTHING, Decision.DEVIATION)])
    digest = next(iter(store.seeds())).sample
    both = {"original": HEARD, "deployed": NOTHING}
    store.add_outcome(OutcomeRecord("a", Status.FOUND, 1, trigger=digest, snr_db=21.5, **both))
    store.add_replay(ReplayRecord("a", "", "pi", digest, HEARD, None, Decision.AGREE))
    outputs = next(iter(store.seeds())).outputs
    [outcome], [replay] = list(store.outcomes()), list(store.replays())
    assert outcome.snr_db == 21.5
    read = (outputs.original, outputs.deployed, outcome.original, outcome.deployed, replay.deployed)
    for one, written in zip(read, (HEARD, NOTHING, HEARD, NOTHING, HEARD), strict=True):
        assert isinstance(one, Transcript)
        assert is_same(one, written)


def test_a_device_that_heard_nothing_has_answered_and_one_without_scores_has_not(store):
    digest = next(iter(store.seeds())).sample
    for name in ("pi", "phone"):
        store.add_seed_answers([SeedAnswer("a", HEARD, HEARD, Decision.AGREE)], name)
    both = {"original": HEARD, "deployed": NOTHING}
    store.add_outcome(OutcomeRecord("a", Status.FOUND, 1, trigger=digest, replica="pi", **both))
    for name, answer in (("phone", NOTHING), ("gone", np.zeros(0))):
        store.add_replay(ReplayRecord("a", "pi", name, digest, answer, None, Decision.AGREE))
        [comparison] = store.comparisons(["pi", "phone", "gone"])
        assert set(comparison.triggers[digest]) == {"pi", "phone"}

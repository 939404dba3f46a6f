"""Audio as people have it: another rate, several channels, clipped, damaged, empty, far too long."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
from command import Ran, edgeflare

from edgeflare.store import Store

pytestmark = [pytest.mark.extended, pytest.mark.shared_data]

RATE = 16000
FRONT_END = ("--input", "front_end=mlperf-tiny-kws")


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """A folder of good and bad files, and twenty minutes of silence and tone."""
    folder = tmp_path_factory.mktemp("speech")
    yes, _ = soundfile.read(shared_data / "audio" / "speech" / "tflm_yes_1000ms.wav")
    soundfile.write(folder / "1-good.wav", yes, RATE)
    soundfile.write(folder / "2-stereo.wav", np.stack([yes, 0.5 * yes], axis=1), RATE)
    soundfile.write(folder / "3-telephone.wav", yes[::2], RATE // 2)
    soundfile.write(folder / "4-clipped.wav", np.clip(20 * yes, -1, 1), RATE)
    (folder / "5-empty.wav").write_bytes(b"")
    soundfile.write(folder / "6-zero-length.wav", yes[:0], RATE)
    (folder / "7-corrupt.wav").write_bytes(np.random.default_rng(0).bytes(4000))
    (folder / "8-cut-short.wav").write_bytes((folder / "1-good.wav").read_bytes()[:9000])
    soundfile.write(folder / "9-nan.wav", np.append(yes[1:], np.nan), RATE, subtype="FLOAT")
    minute = np.zeros(60 * RATE, np.float32)
    minute[: 5 * RATE] = 0.3 * np.sin(np.arange(5 * RATE) / 8)
    with soundfile.SoundFile(folder / "10-long.flac", "w", RATE, 1) as file:
        for _ in range(20):
            file.write(minute)
    return folder


def run(home: Path, data: Path, seeds: Path, *more: object) -> Ran:
    models = data / "models" / "mlperf-tiny"
    return edgeflare(
        "run", "--original", models / "kws_dscnn_float.tflite", "--deployed",
        models / "kws_dscnn_int8.tflite", "--seeds", seeds, "--strategy", "none", "--out",
        "campaign", *more, home=home,
    )  # fmt: skip


def test_what_can_be_used_is_and_the_rest_is_named(tmp_path, shared_data, speech) -> None:
    ran = run(
        tmp_path, shared_data, speech, *FRONT_END, "--cut", "first", "--resample-audio", "--json"
    )
    assert ran.code == 0, ran.err
    assert "Traceback" not in ran.err
    for words in (
        "5 files skipped",
        "1 recording had several channels",
        "1 recording of 8000 Hz resampled to 16000 Hz; there is nothing in it above 4000 Hz",
        "1 recording clipped",
        "1 recording longer than 1 s; the first 1 s of each was taken",
    ):
        assert words in ran.err
    with Store.open(tmp_path / "campaign") as store:
        names = [seed.id for seed in store.seeds()]
        reasons = {one.name: one.reason for one in store.skipped()}
        assert store.sample_rate == RATE
    kept = ("1-good.wav", "2-stereo.wav", "3-telephone.wav", "4-clipped.wav", "10-long.flac")
    assert names == list(kept)
    assert reasons["5-empty.wav"] == "it is empty"
    assert "has no samples" in reasons["6-zero-length.wav"]
    assert "known format" in reasons["7-corrupt.wav"]
    assert "cut short" in reasons["8-cut-short.wav"]
    assert "NaN" in reasons["9-nan.wav"]

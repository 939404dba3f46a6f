"""The front ends with the models and recordings that they are for."""

import wave
from pathlib import Path

import numpy as np
import pytest
from audio_specs import KWS, KWS_INT8, WHISPER
from numpy.typing import NDArray

from edgeflare.models import InputOptions, resolve_input
from edgeflare_agent.preprocess import dequantize, prepare
from edgeflare_agent.runtimes import Runtime, load

pytestmark = pytest.mark.shared_data
LABELS = (
    "down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "silence", "unknown",
)  # fmt: skip


def recording(shared_data: Path, name: str) -> NDArray[np.float32]:
    with wave.open(str(shared_data / "audio" / "speech" / f"{name}.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        whole = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    return whole.astype(np.float32) / np.float32(2**15)


def keyword_model(shared_data: Path, kind: str) -> Runtime:
    return load(
        str(shared_data / "models" / "mlperf-tiny" / f"kws_dscnn_{kind}.tflite"), "tflite", {}
    )


@pytest.mark.parametrize(("kind", "spec"), [("float", KWS), ("int8", KWS_INT8)])
def test_keywords_are_heard_in_recordings(shared_data: Path, kind: str, spec) -> None:  # type: ignore[no-untyped-def]
    model = keyword_model(shared_data, kind)
    stated = InputOptions(front_end="mlperf-tiny-kws")
    assert resolve_input(model.inputs[0], stated, InputOptions(), "the model") == spec
    heard = {}
    for name in ("yes", "no", "silence", "noise"):
        raw = model.run(prepare(recording(shared_data, f"tflm_{name}_1000ms"), spec))[0][0]
        heard[name] = LABELS[int(np.argmax(raw))]
    # Shifted by 10 ms the "no" of this recording is heard as such; as it lies, both models take it for "go".
    assert heard == {"yes": "yes", "no": "go", "silence": "silence", "noise": "unknown"}
    model.close()


@pytest.mark.parametrize(("kind", "right"), [("float", 900), ("int8", 902)])
def test_the_models_hear_what_their_publishers_front_end_made(shared_data, kind, right) -> None:
    model = keyword_model(shared_data, kind)
    data = np.load(shared_data / "audio" / "speech_commands_mfcc_1000.npz")
    stored, labels = data["mfcc_int8"], data["labels"]
    real = dequantize(stored, KWS_INT8.quantization).astype(np.float32)
    inputs = stored if kind == "int8" else real
    answers = [int(np.argmax(model.run(one[None])[0])) for one in inputs]
    assert int((answers == labels).sum()) == right
    model.close()


def test_silent_frames_are_those_of_the_publishers_front_end(shared_data: Path) -> None:
    stored = np.load(shared_data / "audio" / "speech_commands_mfcc_1000.npz")["mfcc_int8"][..., 0]
    silent = stored[stored[:, :, 0] == -128]
    ours = prepare(np.zeros(16000, np.float32), KWS_INT8)[0, 0, :, 0]
    near = (
        np.abs(silent - ours.astype(np.int64)).max(axis=1) <= 1
    )  # theirs are cut off, ours rounded
    assert (len(silent), near.sum()) == (680, 679)


def test_coefficients_spread_as_those_of_the_publishers_front_end(shared_data: Path) -> None:
    stored = np.load(shared_data / "audio" / "speech_commands_mfcc_1000.npz")["mfcc_int8"][..., 0]
    theirs = dequantize(stored, KWS_INT8.quantization).std(axis=(0, 1))
    samples = [
        recording(shared_data, path.stem)
        for path in sorted((shared_data / "audio" / "speech").glob("speechbrain_*.wav"))
    ]
    seconds = [one[n : n + 16000] for one in samples for n in range(0, len(one) - 15999, 16000)]
    ours = np.concatenate([prepare(second, KWS)[0, :, :, 0] for second in seconds]).std(axis=0)
    assert (np.abs(np.log(ours[1:] / theirs[1:])) < np.log(1.6)).all()


@pytest.mark.slow
def test_log_mel_bands_are_librosas(shared_data: Path) -> None:
    librosa = pytest.importorskip("librosa")
    samples = np.concatenate([recording(shared_data, "ljspeech_LJ001-0002"), np.zeros(480000)])[
        :480000
    ]
    transform = librosa.stft(
        samples, n_fft=400, hop_length=160, pad_mode="reflect", dtype=np.complex128
    )
    filters = librosa.filters.mel(sr=16000, n_fft=400, n_mels=80, dtype=np.float64)
    logarithm = np.log10(np.maximum(filters @ np.abs(transform[:, :-1]) ** 2, 1e-10))
    expected = (np.maximum(logarithm, logarithm.max() - 8) + 4) / 4
    got = prepare(samples.astype(np.float32), WHISPER)
    np.testing.assert_allclose(got[0], expected, rtol=0, atol=2e-7)

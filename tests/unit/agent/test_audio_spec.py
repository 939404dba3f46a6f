import json

import pytest
from audio_specs import KWS, KWS_INT8, OPEN, WHISPER

from edgeflare_agent.audio_spec import AudioSpec, spec_from_json
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import InputSpec

WAVEFORM = AudioSpec((1, None), "float32", 16000)
IMAGE = InputSpec((1, 2, 2, 1), "uint8", (2, 2), 1, color="GRAY")


@pytest.mark.parametrize("spec", [KWS, KWS_INT8, WHISPER, OPEN, WAVEFORM, IMAGE])
def test_a_spec_comes_back_from_json(spec) -> None:  # type: ignore[no-untyped-def]
    assert spec_from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_frames_and_samples_are_those_of_the_models() -> None:
    assert KWS.mel
    assert WHISPER.mel
    assert KWS.mel.frames(16000) == 49
    assert WHISPER.mel.frames(480000) == 3000
    for mel in (KWS.mel, WHISPER.mel, KWS.mel._replace(fft=513, centered=True)):
        for frames in (2, 7, 100):
            fewest = mel.samples(frames)
            assert (mel.frames(fewest), mel.frames(fewest - 1)) == (frames, frames - 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"front_end": "plp"}, "front_end"),
        ({"front_end": "waveform"}, "waveform neither"),
        ({"front_end": "log-mel"}, "also coefficients"),
        ({"shape": (1, 49, 11, 1)}, "490 values"),
        ({"shape": (1, None, 10, 1)}, "open axis"),
        ({"samples": None}, "open axis"),
        ({"samples": 100}, "0 values"),
        ({"rate": 0}, "rate"),
        ({"dtype": "int7"}, "dtype"),
        ({"peak": "loudest"}, "peak"),
        ({"axes": "bands"}, "axes"),
        ({"std": (0.0,)}, "must"),
        ({"mean": (0.0, 1.0)}, "band"),
        ({"mean": (float("nan"),)}, "finite"),
        ({"quantization": (0.5, 0)}, "integer dtype"),
    ],
)
def test_a_senseless_spec_is_refused(change, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match=words):
        AudioSpec.from_json(json.loads(json.dumps(KWS._replace(**change).to_json())))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stride": 0}, "stride"), ({"window": 1}, "window"), ({"fft": 256}, "window's 480"),
        ({"fft": 10**9}, "most 8192"), ({"bands": 0}, "bands"), ({"coefficients": 41}, "40 bands"),
        ({"low_hz": 5000.0}, "low_hz"), ({"high_hz": 8001.0}, "16000 Hz"),
        ({"high_hz": float("inf")}, "finite"), ({"mel_scale": "bark"}, "mel_scale"),
        ({"mel_slopes": "bark"}, "mel_slopes"), ({"spectrum": "phase"}, "spectrum"),
        ({"log": "log2"}, "log must"), ({"log_offset": 0.0}, "least 1e-30"),
        ({"dynamic_range": -1.0}, "dynamic_range"), ({"dct": "ortho"}, "dct"),
    ],
)  # fmt: skip
def test_senseless_parameters_of_a_spectrum_are_refused(change, words) -> None:  # type: ignore[no-untyped-def]
    assert KWS.mel
    spec = KWS._replace(mel=KWS.mel._replace(**change))
    with pytest.raises(RequestError, match=words):
        AudioSpec.from_json(spec.to_json())


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "video"},
        {"kind": "audio"},
        {**KWS.to_json(), "shape": "49"},
        {**KWS.to_json(), "mel": 3},
    ],
)
def test_what_is_no_spec_is_refused(data) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RequestError, match="input spec"):
        spec_from_json(data)

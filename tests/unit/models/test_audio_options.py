import json

import pytest
from audio_specs import KWS, KWS_INT8, WHISPER
from pydantic import ValidationError

from edgeflare.cli.options import pairs
from edgeflare.errors import UsageError
from edgeflare.models import (
    AudioSpec,
    InputOptions,
    InputSpec,
    TensorInfo,
    audio_input,
    known_of,
    resolve_input,
)
from edgeflare.models.image_input import options_in_file

NOTHING = InputOptions()
KEYWORDS = InputOptions(front_end="mlperf-tiny-kws")
WAVEFORM = InputOptions(front_end="waveform", rate=16000)
BANDS = InputOptions(
    front_end="log-mel", rate=16000, window=400, stride=160, bands=64, mel_scale="htk",
    spectrum="power", log="ln", log_offset=0.01,
)  # fmt: skip


def tensor(*shape: int | None, dtype: str = "float32", quantization=None) -> TensorInfo:  # type: ignore[no-untyped-def]
    return TensorInfo("input", shape, dtype, quantization)


def resolved(info: TensorInfo, stated: InputOptions, told: InputOptions = NOTHING) -> AudioSpec:
    spec = resolve_input(info, stated, told, "the model")
    assert isinstance(spec, AudioSpec)
    return spec


def test_presets_are_the_models_own_front_ends() -> None:
    assert resolved(tensor(None, 49, 10, 1), KEYWORDS) == KWS
    info = tensor(1, 49, 10, 1, dtype="int8", quantization=KWS_INT8.quantization)
    assert resolved(info, KEYWORDS) == KWS_INT8
    assert resolved(tensor(None, 80, 3000), InputOptions(front_end="whisper")) == WHISPER


def test_a_part_of_a_preset_may_be_stated_otherwise() -> None:
    stated = InputOptions(front_end="whisper", axes="frames-bands", samples=160000, scale="1/2")
    spec = resolved(tensor(1, 1000, 80), stated)
    assert (spec.axes, spec.samples) == ("frames-bands", 160000)
    assert (spec.scale, spec.mean, spec.std) == ((1.0, 2.0), (0.0,), (1.0,))
    assert spec.mel == WHISPER.mel


@pytest.mark.parametrize(
    ("shape", "samples", "filled"),
    [
        ((1, 16000), 16000, (1, 16000)), ((None, 16000, 1), 16000, (1, 16000, 1)),
        ((None, 1, 1, 4000), 4000, (1, 1, 1, 4000)), ((15600,), 15600, (15600,)),
        ((16000, 1), 16000, (16000, 1)), ((None, 1), None, (None, 1)),
        ((None, None), None, (1, None)), ((None,), None, (None,)),
        ((None, None, 1), None, (1, None, 1)),
    ],
)  # fmt: skip
def test_a_waveform_takes_its_length_from_the_shape(shape, samples, filled) -> None:  # type: ignore[no-untyped-def]
    spec = resolved(tensor(*shape), WAVEFORM)
    assert (spec.samples, spec.shape) == (samples, filled)


def test_a_stated_length_fills_open_axes() -> None:
    stated = InputOptions(rate=16000, samples=8000)
    assert resolved(tensor(None, None), stated).shape == (1, 8000)
    assert resolved(tensor(8000, 1), stated).shape == (8000, 1)


@pytest.mark.parametrize(
    ("shape", "samples", "filled", "axes"),
    [
        ((1, 98, 64), 400 + 97 * 160, (1, 98, 64), "frames-bands"),
        ((1, 64, 98), 400 + 97 * 160, (1, 64, 98), "bands-frames"),
        ((None, 98, 64, 1), 400 + 97 * 160, (1, 98, 64, 1), "frames-bands"),
        ((None, 98 * 64), 400 + 97 * 160, (1, 98 * 64), "frames-bands"),
        ((None, None, 64), None, (1, None, 64), "frames-bands"),
        ((None, 1, 64, None), None, (1, 1, 64, None), "bands-frames"),
    ],
)
def test_bands_are_laid_as_the_shape_has_them(shape, samples, filled, axes) -> None:  # type: ignore[no-untyped-def]
    spec = resolved(tensor(*shape), BANDS)
    assert (spec.samples, spec.shape, spec.axes) == (samples, filled, axes)
    assert spec.mel
    assert (spec.mel.fft, spec.mel.low_hz, spec.mel.high_hz) == (512, 0.0, 8000.0)


def test_a_file_may_tell_its_front_end() -> None:
    metadata = {"edgeflare.input": json.dumps({"front_end": "whisper"})}
    told = options_in_file(metadata, "model.onnx")
    assert resolved(tensor(1, 80, 3000), NOTHING, told) == WHISPER
    assert resolved(tensor(1, 80, 1000), InputOptions(samples=160000), told).samples == 160000
    other = resolved(tensor(1, 98, 64), BANDS, told)
    assert (other.samples, other.mean) == (400 + 97 * 160, (0.0,))


def test_both_models_have_one_front_end_unless_it_is_reported() -> None:
    told = InputOptions(front_end="whisper")
    assert known_of(NOTHING, KEYWORDS, NOTHING).front_end == "mlperf-tiny-kws"
    assert known_of(NOTHING, NOTHING, told).front_end == "whisper"
    assert known_of(told, KEYWORDS, NOTHING).front_end == "whisper"
    assert known_of(NOTHING, InputOptions(samples=8000), told).model_dump(exclude_none=True) == {
        "front_end": "whisper",
        "samples": 8000,
    }
    pixels = known_of(InputOptions(layout="CHW"), InputOptions(scale="1/255"), NOTHING)
    assert (pixels.layout, pixels.scale) == ("CHW", "1/255")


def test_the_seeds_rate_and_length_are_known_from_one_model() -> None:
    assert audio_input(tensor(None, 49, 10, 1), KEYWORDS, NOTHING, "the model") == (16000, 16000)
    assert audio_input(tensor(None, None), WAVEFORM, NOTHING, "the model") == (16000, None)
    assert audio_input(tensor(1, 28, 28, 1), InputOptions(scale=1), NOTHING, "the model") is None


@pytest.mark.parametrize(
    ("shape", "stated", "words"),
    [
        ((1, 49, 12, 1), KEYWORDS, "16000 samples"),
        ((1, 16000), InputOptions(front_end="waveform"), "--input rate=16000"),
        ((1, 98, 64), InputOptions(front_end="log-mel", rate=8000), "them.*--input window=480"),
        ((1, 98, 64), BANDS.model_copy(update={"bands": None}), "--input bands=40"),
        ((1, 98, 64), BANDS.model_copy(update={"front_end": "mfcc"}), "--input coefficients=10"),
        ((1, 98, 64), BANDS.model_copy(update={"high_hz": 9000.0}), "16000"),
        ((1, 98, 64), BANDS.model_copy(update={"low_hz": 8000.0}), "low_hz"),
        ((1, 98, 64), BANDS.model_copy(update={"coefficients": 10}), "`coefficients`"),
        ((1, 16000), InputOptions(rate=16000, window=480), "`window`"),
        ((1, 16000), InputOptions(rate=16000, layout="HWC"), "`layout`"),
        ((1, 40, 12), InputOptions(front_end="mlperf-tiny-kws", coefficients=41), "40 bands"),
        ((1, 49, 10), InputOptions(front_end="mlperf-tiny-kws", mean=(1.0, 2.0)), "band"),
        ((1, 64, 98), BANDS.model_copy(update={"axes": "frames-bands"}), "64 values"),
        ((1, 7, 7, 2, 64), BANDS, "64 values"),
        ((1, 2, None), WAVEFORM, "1 x 2 x \\?"),
        ((None, 49, 10, 1), WAVEFORM, "1; state"),
        ((None, 20, None), InputOptions(rate=16000, samples=8000), "samples"),
        ((1, 16000), NOTHING, "--input front_end="),
        ((1, 80, None), InputOptions(scale=1), "--input front_end="),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_reported(shape, stated, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=words):
        resolve_input(tensor(*shape), stated, NOTHING, "the model")


def test_a_colour_image_is_not_taken_for_audio() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_input(tensor(1, 224, 224, 3), NOTHING, NOTHING, "the model")
    assert "front_end" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"front_end": "plp"}, {"rate": 0}, {"stride": 0}, {"window": 10**6}, {"log_offset": -1},
        {"high_hz": "inf"}, {"dynamic_range": 0},
    ],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(options) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValidationError):
        InputOptions.model_validate(options)


def test_options_of_a_command_line_are_read() -> None:
    words = ["front_end=whisper", "rate=16000", "centered=true", "low_hz=0", "mean=4", "std=2,3"]
    options = InputOptions.model_validate(pairs(words, "--input"))
    assert (options.front_end, options.rate, options.centered) == ("whisper", 16000, True)
    assert (options.low_hz, options.mean, options.std) == (0.0, (4.0,), (2.0, 3.0))


def test_an_image_stays_an_image() -> None:
    spec = resolve_input(tensor(1, 28, 28, 1), InputOptions(scale="1/255"), NOTHING, "the model")
    assert isinstance(spec, InputSpec)

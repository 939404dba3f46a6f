import re

import pytest
from pydantic import ValidationError

from edgeflare.errors import ModelError, UsageError
from edgeflare.models import InputOptions, resolve_input
from edgeflare.models.image_input import (
    contradiction,
    options_in_file,
    sample_size,
    scaling_of_range,
)
from edgeflare.models.scaling import parse_scale
from edgeflare_agent.image_spec import TensorInfo

SCALED = InputOptions(scale="1/255")
NOTHING = InputOptions()


def tensor(*shape: int | None, dtype: str = "float32", quantization=None) -> TensorInfo:  # type: ignore[no-untyped-def]
    return TensorInfo("input", shape, dtype, quantization)


@pytest.mark.parametrize(
    ("shape", "layout", "size", "channels", "filled"),
    [
        ((None, 28, 28, 1), "HWC", (28, 28), 1, (1, 28, 28, 1)),
        ((1, 3, 224, 200), "CHW", (224, 200), 3, (1, 3, 224, 200)),
        ((None, 3, 32, 32), "CHW", (32, 32), 3, (1, 3, 32, 32)),
        ((1, 1, 28, 28, 1), "HWC", (28, 28), 1, (1, 1, 28, 28, 1)),
        ((1, 28, 20), "HWC", (28, 20), 1, (1, 28, 20)),
        ((None, 784), "HWC", (28, 28), 1, (1, 784)),
    ],
)
def test_shape_gives_layout_size_and_channels(shape, layout, size, channels, filled) -> None:  # type: ignore[no-untyped-def]
    if len([n for n in shape[-3:] if n in (1, 3)]) == 2:
        pytest.skip("ambiguous on purpose elsewhere")
    spec = resolve_input(tensor(*shape), SCALED, NOTHING, "the model")
    assert (spec.layout, spec.size, spec.channels, spec.shape) == (layout, size, channels, filled)
    assert spec.scale == (1.0, 255.0)


def test_images_for_a_quarter_turn_have_height_and_width_swapped() -> None:
    stated = InputOptions(scale=1, orientation="rotate-90")
    spec = resolve_input(tensor(1, 20, 30, 3), stated, NOTHING, "the model")
    assert spec.size == (20, 30)
    found = sample_size(tensor(1, 20, 30, 3), stated, NOTHING, "the model")
    assert found == (spec.upright_size, 3) == ((30, 20), 3)


def test_open_axes_take_the_stated_size() -> None:
    stated = InputOptions(scale=1, size=(64, 48))
    spec = resolve_input(tensor(None, None, None, 3), stated, NOTHING, "the model")
    assert spec.size == (64, 48)
    assert spec.shape == (1, 64, 48, 3)


def test_what_the_user_states_wins_over_what_is_guessed() -> None:
    stated = InputOptions(mean=(127.0,), std=(128.0,), color="BGR")
    spec = resolve_input(tensor(1, 8, 8, 3), stated, SCALED, "the model")
    assert spec.scale == (1.0, 1.0)
    assert spec.mean == (127.0,)
    assert spec.color == "BGR"


@pytest.mark.parametrize(
    ("shape", "stated", "words"),
    [
        ((1, 28, 28, 1), NOTHING, "--input scale=1/255"),
        ((1, 3, 5, 3), SCALED, "layout=HWC"),
        ((1, None, None, 3), SCALED, "height,width"),
        ((1, 700), SCALED, "height,width"),
        ((1, 8, 8, 1), InputOptions(scale=1, mean=(1.0, 2.0)), "channel"),
        ((1, 8, 8, 1), InputOptions(scale=1, size=(9, 8)), "size=9,8"),
    ],
)
def test_what_nobody_states_is_asked_for(shape, stated, words) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=words):
        resolve_input(tensor(*shape), stated, NOTHING, "the model")


def test_a_fixed_batch_is_refused_with_what_to_do() -> None:
    with pytest.raises(ModelError, match="32 inputs"):
        resolve_input(tensor(32, 8, 8, 1), SCALED, NOTHING, "the model")


@pytest.mark.parametrize(
    ("quantization", "dtype", "expected"),
    [
        ((1 / 255, -128), "int8", InputOptions(scale="1/255")),
        ((1 / 255, 0), "uint8", InputOptions(scale="1/255")),
        ((1.0, -128), "int8", InputOptions(scale="1/1")),
        ((2 / 255, 0), "int8", InputOptions(mean=(127.5,), std=(127.5,))),
        ((0.02, 3), "int8", NOTHING),
        (None, "float32", NOTHING),
    ],
)
def test_an_integer_inputs_range_gives_the_scaling(quantization, dtype, expected) -> None:  # type: ignore[no-untyped-def]
    assert scaling_of_range(tensor(1, 8, 8, 1, dtype=dtype, quantization=quantization)) == expected


SIGNED = tensor(1, 8, 8, 3, dtype="int8", quantization=(2 / 255, 0))
NORMALISED = tensor(1, 8, 8, 3, dtype="uint8", quantization=(4.8 / 255, 113))
IMAGENET = InputOptions(scale="1/255", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


@pytest.mark.parametrize(
    ("of", "stated", "in_file", "words"),
    [
        (SIGNED, SCALED, NOTHING, "scale=1/255, .* 0 to 1, but .* says mean=127.5, std=127.5; "),
        (tensor(1, 8, 8, 3), SCALED, InputOptions(scale=1), "metadata of its file say scale=1"),
        (NORMALISED, SCALED, NOTHING, "its file is quantised for values from -2.127 to 2.673"),
        (NORMALISED, InputOptions(scale=1), NOTHING, "makes pixels 0 to 255, but its file"),
    ],
)
def test_a_stated_scaling_that_contradicts_the_file_is_reported(of, stated, in_file, words) -> None:  # type: ignore[no-untyped-def]
    assert re.search(words, contradiction(of, stated, in_file, "the deployed model"))


@pytest.mark.parametrize(
    ("of", "stated", "in_file"),
    [
        (SIGNED, InputOptions(mean=(127.0,), std=(128.0,)), NOTHING),
        (SIGNED, InputOptions(scale="1/127.5", mean=(1.0,)), NOTHING),
        (SIGNED, InputOptions(color="BGR"), NOTHING),
        (NORMALISED, IMAGENET, NOTHING),
        (tensor(1, 8, 8, 3), SCALED, NOTHING),
        (tensor(1, 8, 8, 3), SCALED, InputOptions(scale=0.00392)),
    ],
)
def test_a_stated_scaling_that_agrees_with_the_file_is_no_news(of, stated, in_file) -> None:  # type: ignore[no-untyped-def]
    assert contradiction(of, stated, in_file, "the deployed model") == ""


def test_a_file_may_state_its_input() -> None:
    assert options_in_file({"edgeflare.input": '{"scale": "1/255"}'}, "m.onnx") == SCALED
    assert options_in_file({}, "m.onnx") == NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"scale": ' * 100_000,
        '{"rate": 1' + "0" * 5000 + "}",
        '{"scale": "1e999999999"}',
    ],
)
def test_what_a_file_states_may_be_hostile(text: str) -> None:
    with pytest.raises(ModelError, match=r"m\.onnx"):
        options_in_file({"edgeflare.input": text}, "m.onnx")


@pytest.mark.parametrize(
    ("text", "value"), [("1/255", (1.0, 255.0)), ("2", (2.0, 1.0)), (0.5, (0.5, 1.0))]
)
def test_scale_is_a_number_or_a_fraction(text, value) -> None:  # type: ignore[no-untyped-def]
    assert parse_scale(text) == value


@pytest.mark.parametrize("text", ["one", "1/0", "0", "0/255", "1e999999999", "1/1e999999999"])
def test_a_scale_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        InputOptions(scale=text)

"""Samples become tensors exactly as the spec says."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import ORIENTATIONS, QUARTER_TURNS, RESIZES, InputSpec
from edgeflare_agent.preprocess import RULES, dequantize, prepare

GREY = InputSpec((1, 4, 6, 1), "float32", (4, 6), 1)
COLOUR = InputSpec((1, 4, 6, 3), "float32", (4, 6), 3)
F = np.float32


def image(height: int = 4, width: int = 6, channels: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)


def test_without_any_step_pixels_stay_as_they_are() -> None:
    tensor = prepare(image(), COLOUR)
    assert (tensor.dtype, tensor.shape) == (np.float32, (1, 4, 6, 3))
    np.testing.assert_array_equal(tensor[0], image())


def test_scale_divides_by_its_denominator() -> None:
    every = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    spec = InputSpec((1, 16, 16, 1), "float32", (16, 16), 1, scale=(1, 255))
    expected = every.astype(F) / F(255)
    assert prepare(every, spec).tobytes() == expected.tobytes()
    assert expected.tobytes() != (every.astype(F) * F(1 / 255)).tobytes()


def test_steps_come_in_order_each_rounded_once() -> None:
    spec = COLOUR._replace(scale=(2, 255), mean=(0.4, 0.5, 0.6), std=(0.2, 0.3, 0.4))
    doubled = image().astype(F) * F(2)
    scaled = doubled / F(255)
    centred = scaled - np.array([0.4, 0.5, 0.6], F)
    expected = centred / np.array([0.2, 0.3, 0.4], F)
    assert prepare(image(), spec).tobytes() == expected.tobytes()


def test_all_steps_together_give_the_same_bits_everywhere() -> None:
    spec = InputSpec(
        (1, 3, 32, 32), "float32", (32, 32), 3, "CHW", "BGR", (1, 255),
        (0.485, 0.456, 0.406), (0.229, 0.224, 0.225), "bilinear",
    )  # fmt: skip
    pixels = (np.arange(20 * 27 * 3) * 37 % 256).astype(np.uint8).reshape(20, 27, 3)
    digest = hashlib.sha256(prepare(pixels, spec).astype("<f4").tobytes()).hexdigest()
    assert digest == "7ff705b090d61330c7f1954f9d1533726879f39fbaf5d4ed9f5db656d0810c72"


TURNED = {
    "upright": lambda pixels: pixels,
    "rotate-90": lambda pixels: np.rot90(pixels, -1),
    "rotate-180": lambda pixels: np.rot90(pixels, 2),
    "rotate-270": np.rot90,
    "mirror": np.fliplr,
    "flip": np.flipud,
    "transpose": lambda pixels: pixels.swapaxes(0, 1),
    "transverse": lambda pixels: np.rot90(pixels, 2).swapaxes(0, 1),
}


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_images_are_turned_once_they_have_their_size(orientation: str) -> None:
    height, width = (6, 4) if orientation in QUARTER_TURNS else (4, 6)
    spec = COLOUR._replace(orientation=orientation, resize="area")
    sample = image(height, width)
    np.testing.assert_array_equal(prepare(sample, spec)[0], TURNED[orientation](sample))
    large = image(3 * height, 2 * width)
    smaller = RULES["area"](large, (height, width))
    np.testing.assert_array_equal(prepare(large, spec)[0], TURNED[orientation](smaller))
    assert InputSpec.from_json(spec.to_json()) == spec


def test_values_are_clipped_after_the_scaling() -> None:
    spec = COLOUR._replace(mean=(100.0,), std=(50.0,), clip=(-1.0, 0.5))
    plain = prepare(image(), spec._replace(clip=None))
    np.testing.assert_array_equal(prepare(image(), spec), np.clip(plain, F(-1), F(0.5)))
    assert plain.min() < -1 < 0.5 < plain.max()
    assert InputSpec.from_json(spec.to_json()) == spec
    for wrong in ((1.0, 1.0), (2.0, 1.0), (0.0, np.inf), (np.nan, 1.0)):
        with pytest.raises(RequestError, match="finite numbers"):
            spec._replace(clip=wrong).validate()


def test_specs_of_earlier_versions_are_of_upright_images() -> None:
    assert not {"orientation", "clip"} & {*COLOUR.to_json()}
    assert InputSpec.from_json(COLOUR.to_json()) == COLOUR
    with pytest.raises(RequestError, match="upright, rotate-90"):
        COLOUR._replace(orientation="left").validate()


def test_bgr_swaps_the_channels_before_mean_and_std() -> None:
    spec = COLOUR._replace(color="BGR", mean=(1, 2, 3))
    expected = image()[:, :, ::-1].astype(F) - np.array([1, 2, 3], F)
    np.testing.assert_array_equal(prepare(image(), spec)[0], expected)


def test_chw_moves_the_channels_to_the_front() -> None:
    tensor = prepare(image(), COLOUR._replace(layout="CHW", shape=(1, 3, 4, 6)))
    np.testing.assert_array_equal(tensor[0, 2], image()[:, :, 2])
    assert tensor.flags["C_CONTIGUOUS"]


@pytest.mark.parametrize("shape", [(1, 24), (1, 4, 6), (24,), (1, 1, 4, 6, 1)])
def test_any_rank_is_filled_in_order(shape: tuple[int, ...]) -> None:
    tensor = prepare(image(channels=1), GREY._replace(shape=shape))
    assert tensor.shape == shape
    np.testing.assert_array_equal(tensor.reshape(-1), image(channels=1).reshape(-1))


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int32", "int64"])
def test_other_dtypes_hold_the_same_pixels(dtype: str) -> None:
    tensor = prepare(image(), COLOUR._replace(dtype=dtype))
    assert tensor.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(tensor[0], image())


def test_quantisation_rounds_half_to_even_then_adds_then_clips() -> None:
    pixels = np.array([0, 1, 2, 3, 5, 7, 250, 255], np.uint8).reshape(2, 4, 1)
    spec = InputSpec((8,), "int8", (2, 4), 1, quantization=(2.0, -1))
    assert prepare(pixels, spec).tolist() == [-1, -1, 0, 1, 1, 3, 124, 127]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_quantised_values_never_wrap_around(dtype: str) -> None:
    pixels = np.array([0, 255], np.uint8).reshape(1, 2, 1)
    spec = InputSpec((2,), dtype, (1, 2), 1, mean=(128,), quantization=(1e-30, 0))
    low, high = prepare(pixels, spec).tolist()
    assert low <= 0 < high
    assert (low < 0) == dtype.startswith("int")


@given(hnp.arrays(np.uint8, (4, 6, 1)), st.sampled_from([("int8", -128), ("uint8", 0)]))
def test_pixels_over_255_quantise_to_themselves(pixels: np.ndarray, kind: tuple[str, int]) -> None:
    dtype, zero_point = kind
    step = float(F(1 / 255))
    spec = GREY._replace(dtype=dtype, scale=(1, 255), quantization=(step, zero_point))
    stored = prepare(pixels, spec)
    np.testing.assert_array_equal(stored.astype(int)[0] - zero_point, pixels)
    real = dequantize(stored, (step, zero_point))
    np.testing.assert_allclose(real[0], pixels / 255, atol=1e-7)


def test_the_sample_is_left_as_it_was() -> None:
    sample = image()
    prepare(sample, COLOUR)[:] = 7
    np.testing.assert_array_equal(sample, image())


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (image().astype(F), "float32 4"),
        (image()[:, :, 0], "uint8 4"),
        (image(channels=1), r"1 channel\(s"),
        (image(5, 6), "6; .*`resize`"),
    ],
)
def test_a_sample_that_does_not_fit_is_refused_with_both_sizes(sample, words) -> None:
    with pytest.raises(RequestError, match=words):
        prepare(sample, COLOUR)


@pytest.mark.parametrize("resize", RESIZES)
def test_resize_brings_other_sizes_to_the_models(resize: str) -> None:
    spec = COLOUR._replace(resize=resize)
    assert prepare(image(9, 5), spec).shape == (1, 4, 6, 3)
    assert prepare(image(), spec).tobytes() == prepare(image(), COLOUR).tobytes()
    with pytest.raises(RequestError, match="5 pixels"):
        prepare(image(0, 5), spec)


@pytest.mark.parametrize(
    ("resize", "digest"), [("bilinear-antialias", "1419e7f727588ce4"), ("area", "74e475053b71119a")]
)
def test_a_resized_sample_has_the_same_bits_on_every_machine(resize: str, digest: str) -> None:
    sample = (np.arange(301 * 203 * 3) * 2654435761 % 2**32 >> 24).astype(np.uint8)
    made = RULES[resize](sample.reshape(301, 203, 3), (96, 224))
    assert hashlib.sha256(made.tobytes()).hexdigest()[:16] == digest


def test_dequantize_keeps_shape_and_passes_real_numbers_on() -> None:
    raw = np.array([[-128, 127]], np.int8)
    np.testing.assert_array_equal(dequantize(raw, (0.5, -128)), [[0.0, 127.5]])
    real = dequantize(np.array([[0.1]], F), None)
    assert real.dtype == np.float64
    assert real[0, 0] == float(F(0.1))

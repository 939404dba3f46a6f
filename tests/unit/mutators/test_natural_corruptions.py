"""The natural corruptions against the same done another way, and what they say of themselves."""

import math

import cv2
import numpy as np
import pytest

from edgeflare_mutators import (
    Brightness,
    Contrast,
    Crop,
    Haze,
    Jpeg,
    NaturalBlur,
    Rotation,
    Sample,
    SampleError,
    Shift,
)


def noise(*shape: int) -> Sample:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def mirrored(sample: Sample, before: tuple[int, int], after: tuple[int, int]) -> np.ndarray:
    sides = [*zip(before, after, strict=True), (0, 0)]
    return np.pad(sample, sides, mode="reflect")


@pytest.mark.parametrize(("by", "levels"), [(0.5, [0, 150, 255]), (-0.5, [0, 50, 100])])
def test_brightness_scales_the_levels_and_keeps_black(by: float, levels: list[int]) -> None:
    sample = np.array([0, 100, 200], np.uint8).reshape(1, 3, 1)
    assert Brightness().apply(sample, {"by": by}).ravel().tolist() == levels


@pytest.mark.parametrize(("by", "levels"), [(0.5, [50, 110, 140]), (-0.5, [90, 110, 120])])
def test_contrast_scales_the_distance_from_the_mean(by: float, levels: list[int]) -> None:
    shifted = np.array([70, 110, 130, 90, 100, 100], np.uint8).reshape(2, 3, 1)
    changed = Contrast().apply(shifted, {"by": by})
    expected = 100 + (np.array([70, 110, 130]) - 100) * (1 + by)
    assert changed[0].ravel().tolist() == np.rint(expected).tolist()
    assert Contrast().apply(shifted, {"by": -1.0}).ravel().tolist() == [100] * 6


def test_haze_is_light_grey_of_a_third_to_all_of_its_density() -> None:
    black = np.zeros((40, 50, 3), np.uint8)
    hazy = Haze().apply(black, {"density": 0.6, "seed": 5})
    assert hazy.max() == round(0.6 * 230)
    assert hazy.min() == round(0.2 * 230)
    assert (hazy == hazy[..., :1]).all()
    assert (Haze().apply(black, {"density": 1.0, "seed": 5}) <= 230).all()
    steps = [np.abs(np.diff(hazy.astype(int), axis=axis)).max() for axis in (0, 1)]
    assert max(steps) < 0.15 * (int(hazy.max()) - int(hazy.min()))


@pytest.mark.parametrize("sigma", [0.01, 0.03, 1 / 16, 0.5])
@pytest.mark.parametrize("shape", [(28, 28, 1), (33, 40, 3), (3, 2, 3)])
def test_natural_blur_is_a_gaussian_in_proportion_to_the_shorter_side(sigma, shape) -> None:
    sample = noise(*shape)
    pixels = sigma * min(shape[:2])
    radius = math.ceil(3 * pixels)
    weights = np.exp(-0.5 * (np.arange(-radius, radius + 1) / pixels) ** 2)
    weights /= weights.sum()
    values = mirrored(sample, (radius, radius), (radius, radius)).astype(float)
    for axis in (0, 1):
        values = np.apply_along_axis(np.convolve, axis, values, weights, "valid")
    blurred = NaturalBlur().apply(sample, {"sigma": sigma})
    assert np.abs(blurred - values).max() < 1.0


def test_jpeg_keeps_the_order_of_the_channels() -> None:
    colours = np.zeros((32, 48, 3), np.uint8)
    for channel in range(3):
        colours[:, 16 * channel : 16 * (channel + 1), channel] = 200
    read = Jpeg().apply(colours, {"quality": 95}).astype(int)
    for channel in range(3):
        middle = read[8:24, 16 * channel + 5 : 16 * channel + 11].mean(axis=(0, 1))
        assert middle.argmax() == channel
        assert middle[channel] == pytest.approx(200, abs=15)


def test_jpeg_of_grey_is_the_coders_own_and_worse_at_a_lower_quality() -> None:
    grey = cv2.GaussianBlur(noise(60, 50, 1), (5, 5), 0)[..., np.newaxis]
    losses = []
    for quality in (5, 37, 95):
        _, coded = cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_QUALITY, quality])
        read = Jpeg().apply(grey, {"quality": quality})
        assert np.array_equal(read[..., 0], cv2.imdecode(coded, cv2.IMREAD_UNCHANGED))
        losses.append(np.linalg.norm(read.astype(float) - grey))
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > 3 * losses[2]


def test_an_image_too_large_for_a_jpeg_is_refused() -> None:
    with pytest.raises(SampleError, match="1 pixels"):
        Jpeg().apply(np.zeros((1, 65_501, 1), np.uint8), {"quality": 50})


@pytest.mark.parametrize(("degrees", "turns"), [(90.0, 1), (-90.0, -1), (180.0, 2), (0.0, 0)])
@pytest.mark.parametrize("side", [1, 8, 9])
def test_rotation_by_right_angles_is_exact(degrees: float, turns: int, side: int) -> None:
    sample = noise(side, side, 3)
    assert np.array_equal(Rotation().apply(sample, {"degrees": degrees}), np.rot90(sample, turns))


def test_rotation_turns_a_line_by_its_degrees() -> None:
    line = np.zeros((101, 101, 1), np.uint8)
    line[50, 10:91] = 255
    turned = Rotation().apply(line, {"degrees": 15.0})[..., 0]
    rows, columns = np.nonzero(turned > 100)
    slope = np.polyfit(columns, rows, 1)[0]
    assert slope == pytest.approx(-math.tan(math.radians(15)), abs=0.01)  # up on the right


def test_shift_by_whole_pixels_is_exact_and_mirrors_what_was_outside() -> None:
    sample = noise(20, 40, 3)
    moved = Shift().apply(sample, {"x": 0.1, "y": -0.05})
    assert np.array_equal(moved, mirrored(sample, (0, 4), (1, 0))[1:, :40])


def test_crop_enlarges_the_window_to_the_whole_picture() -> None:
    ramp = np.add.outer(np.arange(21) * 2, np.arange(41) * 4)[..., np.newaxis].astype(np.uint8)
    cut = Crop().apply(ramp, {"share": 0.5, "x": 1.0, "y": 0.0})
    down, right = np.arange(21) / 2, 20 + np.arange(41) / 2
    expected = np.add.outer(down * 2, right * 4)
    assert np.abs(cut[..., 0] - expected).max() <= 0.5
    assert cut[0, 0, 0] == ramp[0, 20, 0]
    assert cut[-1, -1, 0] == ramp[10, 40, 0]


def test_narrowed_ranges_are_graded_from_their_own_mildest_step() -> None:
    for params, mild, strong in (
        ({"degrees": 7.0}, 5.0, 10.0),
        ({"degrees": 3.0}, 5.0, 10.0),
        ({"degrees": -7.0}, 5.0, 10.0),
    ):
        rotation = Rotation(degrees=(5.0, 10.0))
        assert rotation.graded(params, 0.0) == {"degrees": mild}
        assert rotation.graded(params, 1.0) == {"degrees": strong}
    darker = Brightness(by=(-1.0, -0.3))
    assert darker.graded({"by": -0.5}, 0.0) == {"by": -0.3}
    assert darker.graded({"by": 0.5}, 1.0) == {"by": -1.0}
    assert Rotation(degrees=(5.0, 5.0)).graded({"degrees": 9.0}, 0.7) == {"degrees": 5.0}


def test_a_direction_is_kept_until_the_first_end_and_the_identity_has_the_upper_ones() -> None:
    shift = Shift(x=(-0.1, 0.1), y=(-0.05, 0.2))
    assert shift.graded({"x": 0.02, "y": -0.04}, 1.0) == pytest.approx({"x": 0.025, "y": -0.05})
    assert shift.graded({"x": 0.02, "y": 0.0}, 0.5) == {"x": 0.05, "y": 0.0}
    assert shift.graded({"x": 0.0, "y": 0.0}, 1.0) == {"x": 0.1, "y": 0.2}


def test_quality_is_a_whole_number_from_mild_to_strong() -> None:
    qualities = [Jpeg().graded({"quality": 20}, strength) for strength in (0.0, 0.502, 1.0)]
    assert qualities == [{"quality": 95}, {"quality": 50}, {"quality": 5}]
    assert type(qualities[1]["quality"]) is int

"""Resizing against exact fractions and against OpenCV."""

from fractions import Fraction
from math import floor

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from edgeflare_agent import preprocess
from edgeflare_agent.image_spec import RESIZES

images = hnp.arrays(
    np.uint8, st.tuples(st.integers(1, 7), st.integers(1, 7), st.sampled_from([1, 3]))
)
sizes = st.tuples(st.integers(1, 9), st.integers(1, 9))


def test_each_rule_of_a_spec_has_its_function() -> None:
    assert tuple(preprocess.RULES) == RESIZES


def centre(index: int, old: int, new: int) -> Fraction:
    return Fraction(2 * index + 1, 2) * old / new


def exact_bilinear(image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    height, width = image.shape[:2]
    made = np.empty((*size, image.shape[2]), np.uint8)
    for y, x, c in np.ndindex(made.shape):
        at_y = centre(y, height, size[0]) - Fraction(1, 2)
        at_x = centre(x, width, size[1]) - Fraction(1, 2)
        total = Fraction(0)
        for row in (floor(at_y), floor(at_y) + 1):
            for column in (floor(at_x), floor(at_x) + 1):
                pixel = int(image[min(max(row, 0), height - 1), min(max(column, 0), width - 1), c])
                total += (1 - abs(at_y - row)) * (1 - abs(at_x - column)) * pixel
        made[y, x, c] = floor(total + Fraction(1, 2))
    return made


@given(images, sizes)
def test_bilinear_is_the_exact_sum_rounded_once(image: np.ndarray, size: tuple[int, int]) -> None:
    made = preprocess.bilinear(image, size)
    assert made.dtype == np.uint8
    np.testing.assert_array_equal(made, exact_bilinear(image, size))


@given(images, sizes)
def test_nearest_takes_the_pixel_under_the_centre(image: np.ndarray, size: tuple[int, int]) -> None:
    made = preprocess.nearest(image, size)
    assert made.shape == (*size, image.shape[2])
    for y, x in np.ndindex(size):
        row = floor(centre(y, image.shape[0], size[0]))
        column = floor(centre(x, image.shape[1], size[1]))
        np.testing.assert_array_equal(made[y, x], image[row, column])


def triangle(pixel: int, index: int, old: int, new: int) -> Fraction:
    reach = max(Fraction(old, new), Fraction(1))
    return max(1 - abs(pixel + Fraction(1, 2) - centre(index, old, new)) / reach, Fraction(0))


def overlap(pixel: int, index: int, old: int, new: int) -> Fraction:
    start, end = Fraction(index * old, new), Fraction((index + 1) * old, new)
    return max(min(end, Fraction(pixel + 1)) - max(start, Fraction(pixel)), Fraction(0))


@pytest.mark.parametrize(
    ("rule", "weight"), [(preprocess.bilinear_antialias, triangle), (preprocess.area, overlap)]
)
@settings(max_examples=30)
@given(image=images, size=sizes)
def test_a_mean_is_the_exact_one_rounded(rule, weight, image, size) -> None:  # type: ignore[no-untyped-def]
    made = rule(image, size)
    assert made.dtype == np.uint8
    for y, x in np.ndindex(size):
        rows = [weight(row, y, image.shape[0], size[0]) for row in range(image.shape[0])]
        columns = [weight(one, x, image.shape[1], size[1]) for one in range(image.shape[1])]
        total = sum(
            image[row, column].astype(int) * rows[row] * columns[column]
            for row, column in np.ndindex(image.shape[:2])
        )
        off = made[y, x].astype(int) - total / (sum(rows) * sum(columns))
        assert max(abs(off)) <= Fraction(1, 2) + Fraction(1, 2**16)


PHOTO = np.random.default_rng(0).integers(0, 2, (61, 50, 3), dtype=np.uint8) * np.uint8(255)


@pytest.mark.parametrize("size", [(28, 28), (64, 48), (224, 224), (7, 200), (1, 1)])
def test_antialiased_bilinear_differs_from_pil_by_one_step_at_most(size: tuple[int, int]) -> None:
    theirs = np.asarray(Image.fromarray(PHOTO).resize(size[::-1], Image.Resampling.BILINEAR))
    ours = preprocess.bilinear_antialias(PHOTO, size)
    assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 1


@pytest.mark.parametrize("size", [(28, 28), (61, 48), (7, 50), (1, 1)])
def test_area_differs_from_opencv_by_one_step_at_most(size: tuple[int, int]) -> None:
    theirs = cv2.resize(PHOTO, size[::-1], interpolation=cv2.INTER_AREA)
    ours = preprocess.area(PHOTO, size)
    assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 1


@pytest.mark.parametrize("rule", [preprocess.bilinear_antialias, preprocess.area])
def test_the_longest_sides_do_not_overflow(rule) -> None:  # type: ignore[no-untyped-def]
    column = np.full((2**20, 1, 1), 255, np.uint8)
    assert (rule(column, (3, 2)) == 255).all()
    assert (rule(column.reshape(1, 2**20, 1), (2, 3)) == 255).all()


@pytest.mark.parametrize("size", [(28, 28), (64, 48), (224, 224), (7, 200)])
def test_bilinear_differs_from_opencv_by_one_step_at_most(size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (60, 50, 3), dtype=np.uint8)
    theirs = cv2.resize(image, size[::-1], interpolation=cv2.INTER_LINEAR)
    ours = preprocess.bilinear(image, size)
    assert np.abs(ours.astype(int) - theirs.astype(int)).max() <= 1


@pytest.mark.parametrize("size", [(28, 28), (64, 48), (224, 224), (7, 200)])
def test_nearest_is_opencvs_exact_one(size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (60, 50, 3), dtype=np.uint8)
    theirs = cv2.resize(image, size[::-1], interpolation=cv2.INTER_NEAREST_EXACT)
    np.testing.assert_array_equal(preprocess.nearest(image, size), theirs)

"""Which input samples become, and what the others are given."""

import numpy as np
import pytest

from edgeflare_agent.configuration.fixed_inputs import (
    ONE_INPUT,
    FixedInputs,
    GivenInputs,
    as_stored,
)
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import TensorInfo

IMAGE = TensorInfo("image", (1, 4, 4, 3), "float32")
MASK = TensorInfo("mask", (1, None), "float32")
SIZE = TensorInfo("size", (2,), "int64")
INT8 = TensorInfo("state", (1, 3), "int8", (0.5, 10))
MASKED = np.ones((1, 7))
SIZES = np.array([4, 4])


def test_the_only_input_without_an_array_is_searched() -> None:
    found = FixedInputs.of([MASK, IMAGE, SIZE], GivenInputs((), {"size": SIZES, "mask": MASKED}))
    image = np.zeros((1, 4, 4, 3), np.float32)
    first, second, third = found.tensors(image)
    assert found.searched == [1]
    assert second is image
    assert (first.dtype, first.shape, third.dtype) == (np.float32, (1, 7), np.int64)


def test_an_input_with_one_more_axis_has_a_row_for_each_seed() -> None:
    given = GivenInputs(("image",), {"size": SIZES, "mask": np.arange(14).reshape(2, 1, 7)}, rows=2)
    found = FixedInputs.of([MASK, IMAGE, SIZE], given)
    image = np.zeros((1, 4, 4, 3), np.float32)
    for row in (0, 1):
        mask, _, size = found.tensors(image, row)
        np.testing.assert_array_equal(mask, np.arange(7 * row, 7 * row + 7)[None])
        np.testing.assert_array_equal(size, SIZES)
    with pytest.raises(RequestError, match="2, seeds"):
        FixedInputs.of([MASK, IMAGE, SIZE], given._replace(rows=3))


LEFT = TensorInfo("left", (None, 3, 2, 4), "float32")
RIGHT = LEFT._replace(name="right")


def test_inputs_that_are_searched_together_are_parts_of_a_picture() -> None:
    found = FixedInputs.of([RIGHT, SIZE, LEFT], GivenInputs(("left", "right"), {"size": SIZES}))
    assert found.tensor == TensorInfo("left,right", (None, 3, 2, 8), "float32")
    picture = np.arange(48, dtype=np.float32).reshape(1, 3, 2, 8)
    right, size, left = found.tensors(picture)
    np.testing.assert_array_equal(left, picture[..., :4])
    np.testing.assert_array_equal(right, picture[..., 4:])
    np.testing.assert_array_equal(size, SIZES)
    last = FixedInputs.of([IMAGE, IMAGE._replace(name="b")], GivenInputs(("image", "b"), axis=-2))
    assert last.tensor.shape == (1, 4, 8, 3)


@pytest.mark.parametrize(
    ("inputs", "names", "words"),
    [
        ([LEFT, IMAGE], ("left", "image"), "shape"),
        ([LEFT, RIGHT], ("left",), "samples become"),
        ([LEFT, LEFT], ("left",), "samples become"),
        ([INT8, INT8._replace(name="b", quantization=(0.25, 10))], ("state", "b"), "3, int8"),
        ([LEFT, RIGHT], ("left", "left"), "named twice"),
        ([LEFT, RIGHT], ("left", "rigth"), "input 'rigth'"),
        ([MASK, MASK._replace(name="b")], ("mask", "b"), "take images"),
    ],
)
def test_inputs_that_are_no_pictures_of_one_size_are_refused(inputs, names, words) -> None:
    with pytest.raises(RequestError, match=words):
        FixedInputs.of(inputs, GivenInputs(names))


def test_batches_are_of_one_sample() -> None:
    batched = [LEFT, MASK._replace(shape=(None, 7))]
    assert FixedInputs.of(batched, GivenInputs((), {"mask": MASKED})).arrays[1].shape == (1, 1, 7)
    with pytest.raises(RequestError, match="shape 8"):
        FixedInputs.of(batched, GivenInputs((), {"mask": np.ones((8, 7))}, rows=8))


def test_a_model_of_one_input_needs_nothing() -> None:
    found = FixedInputs.of([IMAGE], ONE_INPUT)
    assert found == ([0], IMAGE, -1, {})


@pytest.mark.parametrize(
    ("name", "fixed", "words"),
    [
        (None, {}, "samples become"),
        (None, {"mask": MASKED}, r"\(2, int64"),
        ("image", {"mask": MASKED}, "model's input"),
        ("picture", {}, "input 'picture'"),
        ("image", {"maks": MASKED}, "input 'maks'"),
        ("image", {"image": MASKED}, "'image'"),
        (None, {"image": SIZES, "mask": SIZES, "size": SIZES}, "inputs"),
    ],
)
def test_what_is_missing_or_unknown_is_named(name, fixed, words) -> None:
    with pytest.raises(RequestError, match=words):
        FixedInputs.of([IMAGE, MASK, SIZE], GivenInputs(() if name is None else (name,), fixed))


def test_real_units_become_what_a_quantised_input_stores() -> None:
    stored = as_stored(np.array([[0.0, 1.25, 1e6]]), INT8)
    np.testing.assert_array_equal(stored, np.array([[10, 12, 127]], np.int8))  # half to even
    assert stored.dtype == np.int8
    as_it_is = as_stored(np.array([[1, 2, 3]], np.int8), INT8)
    np.testing.assert_array_equal(as_it_is, [[1, 2, 3]])


def test_numbers_are_cast_where_nothing_is_lost_of_their_meaning() -> None:
    assert as_stored(np.array([[True, False]]), MASK).tolist() == [[1.0, 0.0]]
    assert as_stored(np.array([[-np.inf, np.nan]]), MASK).dtype == np.float32
    assert as_stored(SIZES.astype(np.uint8), SIZE).dtype == np.int64
    assert as_stored(SIZES.astype(">i8"), SIZE).dtype.isnative
    turned = as_stored(np.asfortranarray(np.ones((1, 4, 4, 3), np.float32)), IMAGE)
    assert turned.flags.c_contiguous


@pytest.mark.parametrize(
    ("array", "info", "words"),
    [
        (np.ones((1, 4, 4)), IMAGE, "shape 1"),
        (np.ones((1, 0)), MASK, "shape 1"),
        (np.ones(2), SIZE, "float64"),
        (np.array([2**63, 1], np.uint64), SIZE, "uint64"),
        (np.array([[1e300]]), MASK, "float64"),
        (np.array([[np.nan, 1, 1]]), INT8, "float64"),
        (np.array([["a", "b"]]), MASK, "input mask"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(array, info, words) -> None:
    with pytest.raises(RequestError, match=words):
        as_stored(array, info)

import json

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgeflare_mutators import (
    Operator,
    ParamsError,
    Sample,
    SampleError,
    SampleSpec,
)

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from((1, 3)))
FILLS = st.sampled_from(("mixed", "black", "white"))


def image(shape: tuple[int, ...], fill: str = "mixed", seed: int = 0) -> Sample:
    if fill == "mixed":
        return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    return np.full(shape, 255 if fill == "white" else 0, np.uint8)


def draw(operator: Operator, sample: Sample, seed: int = 0) -> dict[str, float]:
    return operator.draw(np.random.default_rng(seed), SampleSpec.of(sample))


@given(shape=SHAPES, fill=FILLS, seed=st.integers(0, 2**32))
@example(shape=(224, 224, 3), fill="mixed", seed=3)
@example(shape=(1, 1, 1), fill="white", seed=4)
@settings(deadline=None, derandomize=True, database=None, max_examples=60)
def test_any_image_gives_a_new_valid_image_and_the_same_one_again(
    operator: Operator, shape: tuple[int, ...], fill: str, seed: int
) -> None:
    sample = image(shape, fill, seed)
    before = sample.copy()
    sample.flags.writeable = False
    params = draw(operator, sample, seed)
    mutated = operator.apply(sample, params)
    assert (mutated.shape, mutated.dtype) == (shape, np.uint8)
    assert mutated.flags.writeable
    assert mutated.flags.c_contiguous
    assert not np.shares_memory(mutated, sample)
    assert np.array_equal(sample, before)
    replayed = operator.apply(sample, json.loads(json.dumps(params, allow_nan=False)))
    assert np.array_equal(mutated, replayed)


def test_drawing_is_deterministic_and_stays_within_the_ranges(operator: Operator) -> None:
    spec = SampleSpec("image", (28, 28, 1))
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    draws = [operator.draw(one, spec) for _ in range(200)]
    assert draws == [operator.draw(two, spec) for _ in range(200)]
    assert len({json.dumps(params) for params in draws}) > 1
    for declared in operator.ranges:
        values = [params[declared.name] for params in draws]
        assert declared.low <= min(values) <= max(values) <= declared.high
        assert {type(value) for value in values} == {float if declared.kind == "float" else int}
    assert [list(params) for params in draws] == [[r.name for r in operator.ranges]] * 200


def test_applying_leaves_the_parameters_as_they_were(operator: Operator) -> None:
    params = draw(operator, image((4, 4, 1)))
    before = dict(params)
    operator.apply(image((4, 4, 1)), params)
    assert params == before


def test_strided_images_are_mutated_like_their_copies(operator: Operator) -> None:
    whole = image((20, 24, 3))
    params = draw(operator, whole)
    for view in (whole[::2, ::3], whole[::-1], whole.transpose(1, 0, 2), np.asfortranarray(whole)):
        assert np.array_equal(operator.apply(view, params), operator.apply(view.copy("C"), params))


def test_global_randomness_plays_no_part(operator: Operator) -> None:
    sample = image((9, 9, 3))
    params = draw(operator, sample)
    np.random.seed(1)  # noqa: NPY002
    first = operator.apply(sample, params)
    np.random.seed(2)  # noqa: NPY002
    assert np.array_equal(first, operator.apply(sample, params))


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        (np.zeros((4, 4, 1), np.float32), "uint8 levels"),
        (np.zeros((4, 4), np.uint8), r"\(4, 4\)"),
        (np.zeros((4, 4, 4), np.uint8), "1 or 3 channels"),
        (np.zeros((0, 4, 3), np.uint8), "at least 1 x 1"),
        (np.zeros((1, 4, 4, 3), np.uint8), r"\(1, 4, 4, 3\)"),
        ([[[1]]], "numpy array, not list"),
    ],
    ids=["float", "flat", "rgba", "empty", "batch", "list"],
)
def test_what_is_no_image_is_refused(operator: Operator, sample: Sample, words: str) -> None:
    params = draw(operator, image((4, 4, 1)))
    with pytest.raises(SampleError, match=words):
        operator.apply(sample, params)


def test_incomplete_and_unknown_parameters_are_refused(operator: Operator) -> None:
    sample = image((4, 4, 1))
    params = draw(operator, sample)
    for name in params:
        rest = {key: value for key, value in params.items() if key != name}
        with pytest.raises(ParamsError, match=rf"{operator.name} needs the parameter '{name}'"):
            operator.apply(sample, rest)
    with pytest.raises(ParamsError, match=f"{operator.name} has no parameter 'colour'"):
        operator.apply(sample, params | {"colour": 1})


def test_parameters_beyond_the_limits_are_refused(operator: Operator) -> None:
    sample = image((4, 4, 1))
    params = draw(operator, sample)
    for limit in operator.limits:
        for wrong in (limit.low - 1, limit.high + 2, float("nan"), "1", None, True):
            with pytest.raises(ParamsError, match=f"{operator.name}: {limit.name} must be"):
                operator.apply(sample, params | {limit.name: wrong})


def test_parameters_at_the_limits_of_what_is_drawn_are_taken(operator: Operator) -> None:
    sample = image((6, 5, 3))
    for ends in ("low", "high"):
        params = {drawn.name: getattr(drawn, ends) for drawn in operator.ranges}
        assert operator.apply(sample, params).shape == sample.shape


def test_ranges_lie_within_the_limits(operator: Operator) -> None:
    assert [r.name for r in operator.ranges] == [limit.name for limit in operator.limits]
    for drawn, limit in zip(operator.ranges, operator.limits, strict=True):
        assert limit.low <= drawn.low <= drawn.high <= limit.high

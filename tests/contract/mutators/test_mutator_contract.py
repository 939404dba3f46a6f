import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgeflare_mutators import Kind, Operator, ParamsError, Sample, SampleError, SampleSpec

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from((1, 3)))
FILLS = st.sampled_from(("mixed", "least", "most"))
RATES = (8_000, 16_000, 22_050, 44_100, 48_000)


def filled(kind: Kind, shape: tuple[int, ...], fill: str = "mixed", seed: int = 0) -> Sample:
    """Return an image of this shape, or audio of as many samples; "least" is black, or silence."""
    rng = np.random.default_rng(seed)
    if kind == "image":
        if fill == "mixed":
            return rng.integers(0, 256, shape, dtype=np.uint8)
        return np.full(shape, 255 if fill == "most" else 0, np.uint8)
    if fill == "mixed":
        return rng.uniform(-1, 1, int(np.prod(shape))).astype(np.float32)
    return np.full(int(np.prod(shape)), 1 if fill == "most" else 0, np.float32)


def draw(operator: Operator, sample: Sample, seed: int = 0) -> dict[str, Any]:
    spec = SampleSpec.of(sample, RATES[seed % len(RATES)])
    return operator.draw(np.random.default_rng(seed), spec)


def is_valid(sample: Sample) -> bool:
    if sample.ndim == 3:
        return sample.dtype == np.uint8
    return sample.dtype == np.float32 and bool((np.abs(sample) <= 1).all())


@given(shape=SHAPES, fill=FILLS, seed=st.integers(0, 2**32))
@example(shape=(224, 224, 3), fill="mixed", seed=3)
@example(shape=(1, 1, 1), fill="most", seed=4)
@settings(deadline=None, derandomize=True, database=None, max_examples=40)
def test_any_sample_gives_a_new_valid_sample_and_the_same_one_again(
    operator: Operator, shape: tuple[int, ...], fill: str, seed: int
) -> None:
    sample = filled(operator.kind, shape, fill, seed)
    before = sample.copy()
    sample.flags.writeable = False
    params = draw(operator, sample, seed)
    mutated = operator.apply(sample, params)
    assert is_valid(mutated)
    assert mutated.shape == sample.shape or (not operator.keeps_length and mutated.ndim == 1)
    assert mutated.size
    assert mutated.flags.writeable
    assert mutated.flags.c_contiguous
    assert not np.shares_memory(mutated, sample)
    assert np.array_equal(sample, before)
    replayed = operator.apply(sample, json.loads(json.dumps(params, allow_nan=False)))
    assert np.array_equal(mutated, replayed)


def test_drawing_is_deterministic_and_stays_within_the_ranges(operator, spec) -> None:
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    draws = [operator.draw(one, spec) for _ in range(200)]
    assert draws == [operator.draw(two, spec) for _ in range(200)]
    assert len({json.dumps(params) for params in draws}) > 1
    for declared in operator.ranges:
        values = [params[declared.name] for params in draws]
        assert declared.low <= min(values) <= max(values) <= declared.high
        assert {type(value) for value in values} == {float if declared.kind == "float" else int}
    assert [list(params) for params in draws] == [[r.name for r in operator.ranges]] * 200


def test_applying_leaves_the_parameters_as_they_were(operator: Operator, pattern: Sample) -> None:
    params = draw(operator, pattern)
    before = dict(params)
    operator.apply(pattern, params)
    assert params == before


def test_strided_samples_are_mutated_like_their_copies(operator: Operator) -> None:
    whole = filled(operator.kind, (20, 24, 3))
    params = draw(operator, whole)
    views = (
        (whole[::2, ::3], whole[::-1], whole.transpose(1, 0, 2), np.asfortranarray(whole))
        if operator.kind == "image"
        else (whole[::2], whole[::-1], whole[7:])
    )
    for view in views:
        assert np.array_equal(operator.apply(view, params), operator.apply(view.copy("C"), params))


def test_threads_get_the_same_bits(operator: Operator, pattern: Sample) -> None:
    drawn = [draw(operator, pattern, seed) for seed in range(8)]
    alone = [operator.apply(pattern, params).tobytes() for params in drawn]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda params: operator.apply(pattern, params).tobytes(), drawn * 4)
        assert list(together) == alone * 4


def test_global_randomness_is_neither_used_nor_touched(operator: Operator, pattern: Sample) -> None:
    params = draw(operator, pattern)
    operator.check_libraries()  # an import may draw
    bits = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        before = (random.getstate(), repr(np.random.get_state()))  # noqa: NPY002
        bits.append(operator.apply(pattern, params).tobytes())
        assert (random.getstate(), repr(np.random.get_state())) == before  # noqa: NPY002
    assert bits[0] == bits[1]


NO_SAMPLES: list[tuple[Any, str]] = [
    (np.zeros((4, 4, 1), np.float32), "uint8 levels"),
    (np.zeros((4, 4), np.uint8), r"\(4, 4\)"),
    (np.zeros((4, 4, 4), np.uint8), "1 or 3 channels"),
    (np.zeros((0, 4, 3), np.uint8), "at least 1 x 1"),
    (np.zeros((1, 4, 4, 3), np.uint8), r"\(1, 4, 4, 3\)"),
    ([[[1]]], "numpy array, not list"),
    (np.zeros(9, np.float64), "audio holds float32 values from -1 to 1, not float64"),
    (np.zeros(9, np.uint8), "audio holds float32"),
    (np.zeros(0, np.float32), "at least one"),
]


def test_what_is_no_sample_is_refused(operator: Operator, pattern: Sample) -> None:
    params = draw(operator, pattern)
    for sample, words in NO_SAMPLES:
        with pytest.raises(SampleError, match=words):
            operator.apply(sample, params)


def test_a_sample_of_another_kind_is_refused(operator: Operator, pattern: Sample) -> None:
    other: Kind = "audio" if operator.kind == "image" else "image"
    words = f"{operator.name} mutates samples of kind {operator.kind}, not {other}"
    with pytest.raises(SampleError, match=words):
        draw(operator, filled(other, (4, 4, 1)))
    with pytest.raises(SampleError, match=words):
        operator.apply(filled(other, (4, 4, 1)), draw(operator, pattern))


def test_incomplete_and_unknown_parameters_are_refused(operator: Operator, pattern: Sample) -> None:
    params = draw(operator, pattern)
    for name in params:
        rest = {key: value for key, value in params.items() if key != name}
        with pytest.raises(ParamsError, match=f"parameter '{name}'"):
            operator.apply(pattern, rest)
    with pytest.raises(ParamsError, match=f"{operator.name}"):
        operator.apply(pattern, params | {"colour": 1})


def test_parameters_beyond_the_limits_are_refused(operator: Operator, pattern: Sample) -> None:
    params = draw(operator, pattern)
    for limit in operator.limits:
        for wrong in (limit.low - 1, limit.high + 2, float("nan"), "1", None, True):
            with pytest.raises(ParamsError, match=f"{operator.name}: {limit.name}"):
                operator.apply(pattern, params | {limit.name: wrong})


def test_parameters_at_the_limits_of_what_is_drawn_are_taken(operator, pattern) -> None:
    for ends in ("low", "high"):
        params = {drawn.name: getattr(drawn, ends) for drawn in operator.ranges}
        mutated = operator.apply(pattern, params)
        assert is_valid(mutated)
        assert mutated.shape == pattern.shape or not operator.keeps_length


def test_ranges_lie_within_the_limits(operator: Operator) -> None:
    assert [r.name for r in operator.ranges] == [limit.name for limit in operator.limits]
    for drawn, limit in zip(operator.ranges, operator.limits, strict=True):
        assert limit.low <= drawn.low <= drawn.high <= limit.high

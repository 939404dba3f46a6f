"""The operators of the authors' code: what they do that table 3 does not."""

import numpy as np
import pytest

from edgeflare_mutators import (
    Mutation,
    Operator,
    Sample,
    SampleSpec,
    default_pool,
    mutate,
    reference_pool,
    wrapping,
)
from edgeflare_mutators.dflare import wrapped

GREY = np.random.default_rng(1).integers(0, 256, (20, 30, 1), dtype=np.uint8)
WHITE = np.full((40, 40, 3), 255, np.uint8)


def apply_all(operator: Operator, sample: Sample, number: int = 0) -> Sample:
    params = operator.draw(np.random.default_rng(number), SampleSpec.of(sample))
    return operator.apply(sample, params)


@pytest.mark.parametrize(
    ("value", "level"),
    [(0.0, 0), (254.9, 254), (255.9, 255), (256.2, 0), (300.0, 44), (-0.9, 0), (-1.2, 255), (-300.0, 212)],
)  # fmt: skip
def test_a_cast_drops_the_fraction_and_wraps_around(value: float, level: int) -> None:
    assert wrapped(np.array([value], np.float32)).tolist() == [level]


def test_clipped_noise_keeps_white_bright_and_wrapped_noise_does_not() -> None:
    wrap, clip = reference_pool(wrap=True), reference_pool(wrap=False)
    assert apply_all(clip["gaussian-noise"], WHITE).min() >= 253
    dark = apply_all(wrap["gaussian-noise-wrapped"], WHITE) < 128
    assert 0 < dark.mean() < 0.01  # more than a level above 255: 1.6 in 2,000
    brighter = {"mean": 0.3, "variance": 0.0, "seed": 0}
    assert mutate(WHITE, Mutation("multiplicative-noise", brighter)).min() == 255
    assert (mutate(WHITE, Mutation("multiplicative-noise-wrapped", brighter)) == 331 - 256).all()


def test_wrapped_gaussian_noise_lowers_half_of_the_values() -> None:
    changed = apply_all(reference_pool(wrap=True)["gaussian-noise-wrapped"], GREY).astype(int)
    inside = (GREY > 2) & (GREY < 253)
    assert 0.4 < (changed - GREY == -1)[inside].mean() < 0.6
    assert (np.abs(changed - GREY) <= 2)[inside].all()


def test_salt_and_pepper_sets_as_many_values_as_the_authors_code() -> None:
    changed = apply_all(
        reference_pool(wrap=True)["salt-and-pepper"], np.full((28, 28, 1), 100, np.uint8)
    )
    assert 1 <= (changed == 255).sum() <= 2  # ceil(0.004 * 784 / 2) = 2; a place may be drawn twice
    assert 1 <= (changed == 0).sum() <= 2
    assert (changed == 100).sum() >= 780


@pytest.mark.parametrize("wrap", [True, False])
def test_the_reference_pool_has_seven_operators_that_replay_by_name(wrap: bool) -> None:
    pool = reference_pool(wrap=wrap)
    assert len(pool) == 7
    for name, operator in pool.items():
        for number in range(5):
            params = operator.draw(np.random.default_rng(number), SampleSpec.of(GREY))
            replayed = mutate(GREY, Mutation(name, params))
            assert np.array_equal(replayed, operator.apply(GREY, params))
            assert replayed.dtype == np.uint8
            assert replayed.shape == GREY.shape


def test_wrapping_replaces_the_two_noises_and_keeps_their_ranges() -> None:
    pool = wrapping(default_pool())
    assert list(pool) == [
        name + "-wrapped" if name in ("gaussian-noise", "multiplicative-noise") else name
        for name in default_pool()
    ]
    assert pool["gaussian-noise-wrapped"].ranges == default_pool()["gaussian-noise"].ranges

import numpy as np
import pytest

from edgeflare_mutators import (
    GaussianNoise,
    MultiplicativeNoise,
    RandomPixelChange,
    SampleSpec,
)

GREY = np.full((200, 200, 1), 128, np.uint8)


@pytest.mark.parametrize("sigma", [1.0, 4.0, 16.0])
def test_gaussian_noise_has_mean_zero_and_the_sigma_in_levels(sigma: float) -> None:
    change = GaussianNoise().apply(GREY, {"sigma": sigma, "seed": 1}).astype(float) - 128
    assert abs(change.mean()) < 4 * sigma / 200
    assert change.std() == pytest.approx(np.hypot(sigma, 12**-0.5), rel=0.02)  # rounding adds 1/12


def test_gaussian_noise_clips_at_black_and_white_and_never_wraps() -> None:
    for level, far in ((0, 128), (255, 127)):
        flat = np.full((100, 100, 3), level, np.uint8)
        noisy = GaussianNoise().apply(flat, {"sigma": 16.0, "seed": 2})
        assert np.abs(noisy.astype(int) - level).max() < far
        assert 0.4 < (noisy == level).mean() < 0.6


@pytest.mark.parametrize(("mean", "variance"), [(0.2, 0.01), (-0.4, 0.05), (0.0, 0.02)])
def test_multiplicative_noise_scales_with_the_level(mean: float, variance: float) -> None:
    operator = MultiplicativeNoise()
    for level in (40, 100):
        flat = np.full((200, 200, 1), level, np.uint8)
        params = {"mean": mean, "variance": variance, "seed": 3}
        change = (operator.apply(flat, params).astype(float) - level) / level
        assert change.mean() == pytest.approx(mean, abs=0.005)
        assert change.var() == pytest.approx(variance, rel=0.05)


def test_multiplicative_noise_keeps_black_and_clips_white() -> None:
    params = {"mean": 0.5, "variance": 0.0, "seed": 3}
    image = np.array([0, 1, 3, 100, 170, 200, 255], np.uint8).reshape(1, 7, 1)
    brighter = MultiplicativeNoise().apply(image, params)
    assert brighter.ravel().tolist() == [0, 2, 4, 150, 255, 255, 255]  # 1.5 -> 2, 4.5 -> 4


@pytest.mark.parametrize("count", [0, 1, 9, 1000])
def test_as_many_values_change_as_were_drawn(count: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    changed = {
        seed: (RandomPixelChange().apply(image, {"count": count, "seed": seed}) != image).sum()
        for seed in range(20)
    }
    assert max(changed.values()) <= count  # a drawn level may be the one that was there
    assert sum(changed.values()) >= 0.95 * count * 20


def test_changed_values_lie_anywhere_and_take_any_level() -> None:
    operator = RandomPixelChange()
    places, levels = set(), set()
    for seed in range(1500):
        changed = operator.apply(GREY[:4, :4], {"count": 1, "seed": seed})
        for y, x, _ in np.argwhere(changed != 128):
            places.add((y, x))
            levels.add(int(changed[y, x, 0]))
    assert len(places) == 16
    assert len(levels) > 240
    assert {0, 255} <= levels


def test_default_draws_cover_their_ranges() -> None:
    spec = SampleSpec.of(GREY)
    rng = np.random.default_rng(0)
    counts = [RandomPixelChange().draw(rng, spec)["count"] for _ in range(300)]
    assert set(counts) == set(range(1, 10))
    sigmas = [GaussianNoise().draw(rng, spec)["sigma"] for _ in range(300)]
    assert 1 <= min(sigmas) < 2
    assert 15 < max(sigmas) <= 16
    assert np.mean(sigmas) == pytest.approx(8.5, abs=0.8)
    products = [MultiplicativeNoise().draw(rng, spec) for _ in range(300)]
    assert min(p["mean"] for p in products) < -0.45
    assert max(p["mean"] for p in products) > 0.45
    assert max(p["variance"] for p in products) > 0.045

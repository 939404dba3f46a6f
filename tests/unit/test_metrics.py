"""Distances and likeness of images and audio, by hand and against scikit-image."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from search_models import heard
from skimage import metrics

from edgeflare.answers.metrics import disagreement, total_variation
from edgeflare.errors import UsageError
from edgeflare.metrics import l2, linf, snr_db, ssim


def image(value: int, side: int = 10, channels: int = 1) -> np.ndarray:
    """A picture with a slope."""
    rows = np.arange(side * side * channels).reshape(side, side, channels)
    return (rows % 100 + value).astype(np.uint8)


def test_l2_and_linf() -> None:
    seed = np.array([[[0], [255]], [[10], [10]]], np.uint8)
    sample = np.array([[[255], [0]], [[10], [13]]], np.uint8)
    assert l2(seed, sample) == pytest.approx(math.sqrt(2 + (3 / 255) ** 2))
    assert linf(seed, sample) == 255
    assert (l2(seed, seed), linf(seed, seed)) == (0.0, 0)


def test_total_variation_is_at_most_one() -> None:
    assert total_variation(np.array([0.75, 0.25]), np.array([0.5, 0.5])) == 0.25
    rounded_up = np.array([0.0, 1.0 + 2e-7])
    assert total_variation(np.array([1.0, 0.0]), rounded_up) == 1.0


class TestSsim:
    def test_equal_images_are_the_same(self) -> None:
        assert ssim(image(3), image(3)) == pytest.approx(1.0)

    @pytest.mark.parametrize(("side", "window"), [(3, 3), (4, 3), (5, 5), (6, 5), (7, 7), (20, 7)])
    def test_the_window_is_the_largest_odd_one_that_fits(self, side: int, window: int) -> None:
        seed, sample = image(0, side), image(0, side)
        sample[1, 1] += 60
        theirs = metrics.structural_similarity(
            seed[..., 0], sample[..., 0], win_size=window, data_range=255
        )
        assert ssim(seed, sample) == pytest.approx(theirs)

    def test_of_colours_it_is_the_mean(self) -> None:
        seed, sample = image(0, 9, 3), image(0, 9, 3)
        sample[4, 4, 0] += 90
        sample[2, 2, 1] += 30
        each = [ssim(seed[..., [channel]], sample[..., [channel]]) for channel in range(3)]
        assert ssim(seed, sample) == pytest.approx(np.mean(np.array(each)))

    def test_too_small_an_image_has_none(self) -> None:
        assert ssim(image(0, 2), image(1, 2)) is None

    @given(
        arrays(np.uint8, (7, 9, 1), elements=st.integers(0, 255)),
        arrays(np.uint8, (7, 9, 1), elements=st.integers(0, 255)),
    )
    def test_it_is_the_same_either_way_round(self, one: np.ndarray, other: np.ndarray) -> None:
        value = ssim(one, other)
        assert value is not None
        assert -1 <= value <= 1
        assert ssim(other, one) == pytest.approx(value)

    def test_without_the_library_it_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "skimage", None)
        with pytest.raises(UsageError, match=r"install 'edgeflare\[bench\]'"):
            ssim(image(0), image(1))


def clip(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


class TestAudio:
    def test_l2_is_in_the_samples_own_units(self) -> None:
        assert l2(clip(0.5, -0.5), clip(0.5, 0.25)) == 0.75
        assert l2(clip(1, 1), clip(-1, -1)) == pytest.approx(math.sqrt(8))

    def test_linf_is_in_levels_of_16_bits(self) -> None:
        assert linf(clip(-1, 0), clip(1, 0)) == 65534
        assert linf(clip(0, 0), clip(0, 0.5 / 32767)) == 0
        assert linf(clip(0, 0), clip(-3.2 / 32767, 1 / 32767)) == 3

    def test_silence_follows_the_shorter_one(self) -> None:
        assert l2(clip(0.5), clip(0.5, 0.25)) == l2(clip(0.5, 0.25), clip(0.5)) == 0.25
        assert linf(clip(0.5), clip(0.5, -1)) == linf(clip(0.5, -1), clip(0.5)) == 32767

    def test_snr(self) -> None:
        seed = clip(0.5, -0.5, 0.5, -0.5)
        assert snr_db(seed, seed + np.float32(0.0625)) == pytest.approx(20 * math.log10(8))
        assert snr_db(seed, 2 * seed) == pytest.approx(0)
        assert snr_db(clip(1e-30), clip(1)) == pytest.approx(-600)

    @pytest.mark.parametrize(
        ("seed", "sample"),
        [
            (clip(0.5, 0.5), clip(0.5)),
            (clip(0, 0), clip(0.5, 0)),
            (clip(0.5), clip(0.5)),
            (image(0), image(1)),
        ],
    )
    def test_there_is_no_snr(self, seed: np.ndarray, sample: np.ndarray) -> None:
        assert snr_db(seed, sample) is None

    def test_there_is_no_ssim(self) -> None:
        assert ssim(clip(*range(9)), clip(*range(9))) is None


def test_answers_of_two_kinds_can_not_be_compared() -> None:
    assert disagreement(np.array([0.75, 0.25]), np.array([0.5, 0.5])) == 0.25
    with pytest.raises(TypeError, match="Transcript"):
        disagreement(heard("a"), np.array([0.75, 0.25]))

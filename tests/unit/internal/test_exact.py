"""Elementary functions and transforms made of operations that every processor rounds alike."""

import math
from fractions import Fraction

import numpy as np
import pytest

from edgeflare._internal import exact, fourier

RNG_SEED = 5


def units_off(found: np.ndarray, expected: list[float]) -> float:
    """The largest error in units in the last place of the expected values."""
    right = np.array(expected)
    return float((np.abs(found - right) / np.spacing(np.abs(right))).max())


def test_exp_and_log_are_right_to_two_units() -> None:
    rng = np.random.default_rng(RNG_SEED)
    powers = rng.uniform(-700, 700, 4000)
    assert units_off(exact.exp(powers), [math.exp(one) for one in powers]) <= 2
    values = exact.exp(rng.uniform(-690, 700, 4000))
    logs = [math.log(one) for one in values]
    assert np.abs(exact.log(values) - logs).max() <= 1e-15 * 700
    near = 1 + rng.uniform(-0.3, 0.3, 4000)
    assert np.abs(exact.log(near) - [math.log(one) for one in near]).max() <= 1e-15


def test_logs_of_few_values_are_those_of_many() -> None:
    rng = np.random.default_rng(RNG_SEED)
    spread = exact.exp(rng.uniform(-690, 700, 2000))
    near = np.append(1 + rng.uniform(-0.3, 0.3, 2000), [1.0, math.sqrt(0.5), 2.0, 1e-300, np.nan])
    for values in (spread, near):
        few = np.concatenate([exact.log(part) for part in np.array_split(values, 400)])
        assert few.tobytes() == exact.log(values).tobytes()
    assert exact.log(near[:6].reshape(2, 3)).shape == (2, 3)


def test_the_ends_of_exp() -> None:
    found = exact.exp([-1e9, -709.0, 0.0, 709.0, 1e9, np.nan])
    assert found[:3].tolist() == [0.0, 0.0, 1.0]
    assert found[3] == found[4] == pytest.approx(math.exp(709.0))
    assert np.isnan(found[5])


@pytest.mark.parametrize("value", [0.0, 1e-4, 0.3, 0.99, -0.7])
def test_tanh_and_its_inverse(value: float) -> None:
    assert exact.tanh(value) == pytest.approx(math.tanh(value), abs=1e-15)
    assert exact.atanh(value) == pytest.approx(math.atanh(value), abs=1e-15)


def test_cosine_and_sine_of_shares_of_a_turn() -> None:
    parts = np.random.default_rng(RNG_SEED).integers(-(10**9), 10**9, 3000)
    for whole in (4, 12, 840, 2**20):
        turns = [2 * math.pi * float(Fraction(int(one) % whole, whole)) for one in parts]
        assert np.abs(exact.cos_of_turns(parts, whole) - np.cos(turns)).max() < 2e-15
        assert np.abs(exact.sin_of_turns(parts, whole) - np.sin(turns)).max() < 2e-15
    assert exact.cos_of_turns([0, 1, 2, 3, 4], 4).tolist() == [1.0, 0.0, -1.0, 0.0, 1.0]


def test_cosines_are_orthogonal() -> None:
    rows = exact.cosines(12, 12)
    products = rows @ rows.T
    assert products == pytest.approx(np.diag([12.0] + [6.0] * 11), abs=1e-13)


def test_normal_deviates_have_the_moments_of_the_distribution() -> None:
    drawn = exact.normal(np.random.default_rng(RNG_SEED), (301, 333))
    assert drawn.shape == (301, 333)
    count = drawn.size
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((drawn**power).mean() - moment) < 4 * math.sqrt(spread / count)
    flat = drawn.ravel()
    assert abs(np.corrcoef(flat[: count // 2], flat[count // 2 : -1])[0, 1]) < 0.02


def test_least_norm_solves_and_leaves_dependent_rows_out() -> None:
    rng = np.random.default_rng(RNG_SEED)
    rows, wanted = rng.standard_normal((3, 40)), rng.standard_normal(3)
    expected = np.linalg.lstsq(rows, wanted, rcond=None)[0]
    assert exact.least_norm(rows, wanted, 1e-3) == pytest.approx(expected)
    twice = np.stack([rows[0], 2 * rows[0]])
    found = exact.least_norm(twice, np.array([1.0, 2.0]), 1e-3)
    assert twice @ found == pytest.approx([1.0, 2.0])
    assert not exact.least_norm(np.zeros((2, 4)), np.ones(2), 1e-3).any()


def test_the_inverse_of_a_symmetric_positive_definite_matrix() -> None:
    drawn = np.random.default_rng(RNG_SEED).standard_normal((32, 10)) * 10
    matrix = drawn @ drawn.T + 100 * np.eye(32)
    assert exact.inverse(matrix) @ matrix == pytest.approx(np.eye(32), abs=1e-12)


@pytest.mark.parametrize("size", [2, 8, 1024])
def test_the_fourier_transform_is_numpys(size: int) -> None:
    real, imaginary = np.random.default_rng(RNG_SEED).standard_normal((2, 3, size))
    expected = np.fft.fft(real + 1j * imaginary)
    found = fourier.transform(real, imaginary)
    assert found[0] == pytest.approx(expected.real, abs=1e-11)
    assert found[1] == pytest.approx(expected.imag, abs=1e-11)


@pytest.mark.parametrize(("length", "bands"), [(1, 2), (100, 3), (1000, 8)])
def test_filtered_copies_are_numpys_and_sum_up_to_the_signal(length: int, bands: int) -> None:
    rng = np.random.default_rng(RNG_SEED)
    signal = rng.standard_normal(length)
    size = fourier.transform_size(length)
    gains = rng.random((bands, size // 2 + 1))
    gains /= gains.sum(axis=0)
    found = fourier.filtered(signal, gains)
    expected = np.fft.irfft(np.fft.rfft(signal, size) * gains, size, axis=1)[:, :length]
    assert found == pytest.approx(expected, abs=1e-12)
    assert found.sum(axis=0) == pytest.approx(signal)


def test_sigmoids_tangents_and_softmaxes_of_arrays_are_those_of_each_value() -> None:
    values = np.random.default_rng(3).normal(0, 8, (4, 50))
    values[0, :4] = [0.0, -0.0, 800.0, -800.0]
    for function, exact_one in (
        (exact.tanh, np.tanh),
        (exact.sigmoid, lambda x: 0.5 + np.tanh(x / 2) / 2),
    ):
        found = function(values)
        np.testing.assert_allclose(found, exact_one(values), atol=1e-15)
        for place, value in np.ndenumerate(values):
            assert float(function(value)) == found[place]
        assert np.isnan(function(np.array([np.nan]))).all()
    shares = exact.softmax(values)
    for column in range(50):
        np.testing.assert_array_equal(exact.softmax(values[:, column]), shares[:, column])

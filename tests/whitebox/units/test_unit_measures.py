"""Measures of units against NumPy and scikit-learn, and how often their intervals miss."""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare_whitebox.units.measures import (
    BINS,
    JOINT_RECORDS,
    LogisticF1,
    Measure,
    MutualInformation,
    Pearson,
    design_effects,
    is_scorable,
)

Floats = NDArray[np.float64]


def drawn(count: int, seed: int) -> tuple[Floats, Floats]:
    """Units that go with hypotheses, or don't; the second hypothesis is rare, the third unit is sparse."""
    rng = np.random.default_rng(seed)
    normal, rare = rng.normal(size=count), rng.random(count) < 0.08
    noise = rng.normal(size=(count, 4))
    sparse = np.maximum(noise[:, 2] + 2 * rare - 1, 0)
    units = np.stack([normal + noise[:, 0], noise[:, 1], sparse, 5 * noise[:, 3] - 3 * rare], 1)
    return units, np.stack([normal, rare], 1)


def in_blocks(measure: Measure, units: Floats, values: Floats, size: int = 50) -> Measure:
    for start in range(0, len(units), size):
        some = slice(start, start + size)
        measure.update(units[some], values[some], np.arange(len(units))[some])
    return measure


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_pearson_is_numpys_whatever_the_blocks_and_the_offset(shift: float) -> None:
    units, values = drawn(500, 0)
    found = in_blocks(Pearson(), units + shift, values, 37).scores(0.05)
    expected = np.corrcoef(units.T, values.T)[:4, 4:].T
    np.testing.assert_allclose(found.score, expected, atol=1e-9)
    assert (found.low < found.score).all()
    assert (found.score < found.high).all()


def test_pearson_of_normal_variables_has_fishers_interval_or_a_wider_one() -> None:
    units, values = drawn(5000, 1)
    found = in_blocks(Pearson(), units[:, :1], values[:, :1]).scores(0.05)
    half = 1.959964 / np.sqrt(5000 - 3)
    z = np.arctanh(found.score)
    assert (found.low <= np.tanh(z - half) + 1e-9).all()
    assert found.high - found.low == pytest.approx(np.tanh(z + half) - np.tanh(z - half), rel=0.05)


def test_a_value_that_is_not_known_counts_for_other_hypotheses_only() -> None:
    units, values = drawn(300, 2)
    unknown = np.random.default_rng(3).random(300) < 0.4
    values[unknown, 0] = np.nan
    for make in (Pearson, MutualInformation):
        found = in_blocks(make(), units, values).scores(0.05).score
        alone = make()
        first = np.flatnonzero(~unknown)
        if isinstance(alone, Pearson):
            alone = in_blocks(alone, units[first], values[first])
            np.testing.assert_allclose(found[0], alone.scores(0.05).score[0], atol=1e-12)
        without = in_blocks(make(), units, values[:, 1:]).scores(0.05).score
        np.testing.assert_allclose(found[1], without[0], atol=1e-12)


def test_mutual_information_stays_within_what_so_many_bins_can_tell() -> None:
    rng = np.random.default_rng(12)
    units = rng.normal(size=(12, 40))
    found = in_blocks(MutualInformation(), units, units[:, :1]).scores(0.05)
    for part in found:
        assert (part <= np.log2(BINS)).all()
        assert (part >= 0).all()
    assert (found.low <= found.score).all()
    assert (found.score <= found.high).all()


@pytest.mark.parametrize("column", [0, 1])
def test_mutual_information_is_scikit_learns_less_its_bias(column: int) -> None:
    from sklearn.metrics import mutual_info_score

    units, values = drawn(400, 4)
    found = in_blocks(MutualInformation(), units, values).scores(0.05).score[column]
    shares = np.arange(1, BINS) / BINS
    cuts = np.quantile(values[:50, 0], shares, method="inverted_cdf") if column == 0 else [0.5]
    truth = np.searchsorted(cuts, values[:, column])
    for unit in range(4):
        edges = np.quantile(units[:50, unit], shares, method="inverted_cdf")
        bins = np.searchsorted(edges, units[:, unit])
        cells = len({*zip(bins, truth, strict=True)})
        bias = (cells - len(set(bins)) - len(set(truth)) + 1) / (2 * 400)
        expected = (mutual_info_score(bins, truth) - bias) / log(2)
        assert found[unit] == pytest.approx(max(expected, 0), abs=1e-6)


def test_independent_variables_have_about_no_information() -> None:
    rng = np.random.default_rng(5)
    units, values = rng.normal(size=(600, 40)), rng.normal(size=(600, 1))
    found = in_blocks(MutualInformation(), units, values)
    assert found.scores(0.05).score.mean() < 0.02
    assert (found.scores(0.05 / 40).low == 0).all()


def test_f1_is_scikit_learns_on_the_held_out_half() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    units, values = drawn(600, 6)
    groups = [slice(0, 1), slice(1, 4)]
    measure = in_blocks(LogisticF1(groups), units, values)
    assert isinstance(measure, LogisticF1)
    found = measure.scores(0.05)
    assert np.isnan(found.score[0]).all(), "no binary hypothesis"
    truth = values[:, 1].astype(bool)
    for place, group in enumerate(groups):
        some = units[:, group].astype(np.float32).astype(np.float64)
        train, held = some[::2], some[1::2]
        scaled = [(one - train.mean(0)) / train.std(0) for one in (train, held)]
        model = LogisticRegression(class_weight="balanced").fit(scaled[0], truth[::2])
        expected = f1_score(truth[1::2], model.predict(scaled[1]))
        assert found.score[1, place] == pytest.approx(expected, abs=1e-12)
        assert found.low[1, place] < expected < found.high[1, place]
    always = f1_score(truth, np.ones(600, bool))
    assert measure.guess[1] == pytest.approx(always)
    assert np.isnan(measure.guess[0])


def test_f1_is_of_the_rarer_value() -> None:
    units, values = drawn(600, 7)
    once, other = (
        in_blocks(LogisticF1([slice(0, 4)]), units, one[:, None]).scores(0.05).score
        for one in (values[:, 1], 1 - values[:, 1])
    )
    assert once == other


def test_f1_looks_at_the_first_inputs_alone() -> None:
    units, values = drawn(JOINT_RECORDS + 300, 8)
    every = in_blocks(LogisticF1([slice(0, 4)]), units, values[:, 1:], 1000)
    first = in_blocks(LogisticF1([slice(0, 4)]), units[:JOINT_RECORDS], values[:JOINT_RECORDS, 1:])
    assert every.is_full
    np.testing.assert_array_equal(every.scores(0.05), first.scores(0.05))


@pytest.mark.parametrize("make", [Pearson, MutualInformation])
def test_constant_units_and_hypotheses_have_no_score(make: Callable[[], Measure]) -> None:
    units, values = drawn(200, 9)
    units[:, 1] = 0.1
    values[:, 0] = 7.3
    found = in_blocks(make(), units, values).scores(0.05)
    for part in found:
        assert np.isnan(part[:, 1]).all()
        assert np.isnan(part[0]).all()
        assert np.isfinite(part[1, [0, 2, 3]]).all()


@pytest.mark.parametrize("make", [Pearson, MutualInformation])
def test_a_unit_that_is_the_hypothesis_has_the_highest_score(make: Callable[[], Measure]) -> None:
    units, values = drawn(300, 10)
    units[:, 2] = 3 * values[:, 1] - 1
    found = in_blocks(make(), units, values).scores(0.001)
    assert np.abs(found.score[1]).argmax() == 2
    p = values[:, 1].mean()
    most = 1.0 if make is Pearson else -p * np.log2(p) - (1 - p) * np.log2(1 - p)
    assert found.score[1, 2] == pytest.approx(most, abs=0.01)
    assert found.error[1, 2] < 0.3


def truths(measure: Measure, **kept: Any) -> Floats:
    """The scores over 200,000 inputs, in the bins of the first block where there are bins."""
    for name, value in kept.items():
        setattr(measure, name, value)
    for seed in range(20):
        measure.update(*drawn(10_000, 1000 + seed), np.arange(10_000))
    return measure.scores(0.05).score


def test_pearsons_intervals_hold_at_once_as_often_as_they_say() -> None:
    """With Fisher's standard error alone some interval misses in 24 % of the runs."""
    truth = truths(Pearson())
    missed = []
    for seed in range(300):
        found = in_blocks(Pearson(), *drawn(400, seed)).scores(0.05 / truth.size)
        missed.append(((found.low > truth) | (found.high < truth)).any())
    assert 0 < np.mean(missed) < 0.09


def test_the_intervals_of_information_hold_at_once() -> None:
    first = drawn(128, 5000)
    missed = []
    of_first = MutualInformation()
    of_first.update(*first, np.arange(128))
    of_first._counts[:] = 0
    truth = truths(of_first)
    for seed in range(100):
        one = MutualInformation()
        one.update(*first, np.arange(128))
        one._counts[:] = 0
        found = in_blocks(one, *drawn(400, seed)).scores(0.05 / truth.size)
        missed.append(((found.low > truth) | (found.high < truth)).any())
    assert np.mean(missed) <= 0.05


def alike(seeds: int, seed: int) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Four inputs of each seed, of one class and with units that are alike."""
    rng = np.random.default_rng(seed)
    of_seed = np.repeat(rng.normal(size=(seeds, 3)), 4, axis=0)
    units = of_seed + rng.normal(size=(4 * seeds, 3)) / 2
    values = np.repeat(rng.random((seeds, 1)) < 0.3, 4, axis=0).astype(np.float64)
    return units + values * [[0.5, 0, 0]], values, np.repeat(np.arange(seeds), 4)


def test_intervals_allow_for_inputs_of_one_seed() -> None:
    """Without that some interval misses in more than a fifth of the runs."""
    truth = np.corrcoef(np.concatenate(alike(100_000, 0)[:2], 1).T)[3, :3]
    missed = []
    for seed in range(1, 301):
        units, values, groups = alike(60, seed)
        one = Pearson()
        one.update(units, values, groups)
        both = (one.scores(0.05 / 3, design_effects(values, groups)), one.scores(0.05 / 3))
        missed.append([((s.low[0] > truth) | (s.high[0] < truth)).any() for s in both])
    allowed, plain = np.mean(missed, axis=0)
    assert allowed < 0.08
    assert plain > 0.2


@pytest.mark.parametrize("make", [Pearson, MutualInformation])
def test_an_effect_is_a_smaller_number_of_inputs(make: Callable[[], Measure]) -> None:
    units, values, groups = alike(80, 1)
    one = make()
    one.update(units, values, groups)
    half = one.scores(0.05, np.array([4.0])).error / one.scores(0.05).error
    assert ((half > 1.5) & (half < 4.01)).all()


def test_design_effects_by_hand() -> None:
    groups = np.repeat(np.arange(50), 3)
    constant = np.repeat(np.random.default_rng(0).normal(size=50), 3)
    drawn_anew = np.random.default_rng(1).normal(size=150)
    opposite = np.tile([1.0, 0.0, -1.0], 50)
    some = np.where(np.arange(150) % 3, np.nan, constant)
    found = design_effects(np.stack([constant, drawn_anew, opposite, some], 1), groups)
    assert found[0] == pytest.approx(3)
    assert 1 <= found[1] < 1.3
    assert found[2:].tolist() == [1, 1]


def test_all_inputs_of_a_group_train_or_are_held_out() -> None:
    """A unit that is the seed's number predicts a class drawn for each seed only where both know the seed."""
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(60), 6))
    values = (rng.random(60) < 0.5).astype(np.float64)[groups][:, None]
    units = np.eye(60)[groups]
    of_groups, of_inputs = LogisticF1([slice(0, 60)]), LogisticF1([slice(0, 60)])
    of_groups.update(units, values, groups)
    of_inputs.update(units, values, np.arange(360))
    assert of_inputs.scores(0.05).score[0, 0] > 0.95
    assert of_groups.scores(0.05).score[0, 0] < 0.75


@pytest.mark.parametrize(
    ("values", "scorable"),
    [
        ([0] * 9 + [1] * 90, False),
        ([0] * 10 + [1] * 90, True),
        ([0] * 10 + [1] * 9 + [np.nan] * 50, False),
        ([3.5] * 100, False),
        ([1, 2] * 4, False),
        ([1, 2] * 5, True),
        ([np.nan] * 20, False),
    ],
)
def test_which_hypotheses_can_be_scored(values: list[float], scorable: bool) -> None:
    assert is_scorable(np.array(values, np.float64)) is scorable

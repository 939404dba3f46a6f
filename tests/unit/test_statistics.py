import numpy as np
import pytest
import scipy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from edgeflare.statistics import (
    a12_size,
    binomial_tail,
    bootstrap_interval,
    clustered_interval,
    holm,
    mean_ranks,
    paired_test,
    pearson,
    rank_biserial_size,
    upper_bound,
)

QUERIES = st.lists(st.integers(1, 5000), min_size=1, max_size=40)
PAIRED = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=40)


class TestBootstrapInterval:
    def test_it_is_that_of_scipy_for_one_value_a_seed_input(self) -> None:
        values = np.random.default_rng(3).gamma(1.5, 60, 80)
        theirs = scipy.stats.bootstrap(
            (values,), np.mean, method="percentile", n_resamples=10_000, rng=1
        ).confidence_interval
        low, high = bootstrap_interval([[value] for value in values])
        width = theirs.high - theirs.low
        assert low == pytest.approx(theirs.low, abs=0.05 * width)
        assert high == pytest.approx(theirs.high, abs=0.05 * width)

    def test_repeats_of_a_seed_input_that_are_alike_make_it_no_narrower(self) -> None:
        values = np.random.default_rng(4).gamma(1.5, 60, 50)
        once = bootstrap_interval([[value] for value in values])
        five_times = bootstrap_interval([[value] * 5 for value in values])
        assert five_times == pytest.approx(once)

    def test_it_holds_the_true_mean_about_as_often_as_it_says(self) -> None:
        generator = np.random.default_rng(5)
        held = 0
        for _ in range(200):
            level_of_seed = generator.gamma(2.0, 50.0, (60, 1))
            values = generator.gamma(4.0, level_of_seed / 4.0, (60, 3))
            low, high = bootstrap_interval(values.tolist(), draws=1000)
            held += low <= 100.0 <= high
        assert 0.88 <= held / 200 <= 0.98

    def test_a_higher_level_is_wider(self) -> None:
        groups = [[float(value)] for value in range(30)]
        low, high = bootstrap_interval(groups, level=0.8)
        lower, higher = bootstrap_interval(groups, level=0.99)
        assert lower < low < high < higher

    @given(st.lists(QUERIES, min_size=1, max_size=30))
    def test_it_lies_within_the_values_and_repeats_itself(self, groups: list[list[int]]) -> None:
        low, high = bootstrap_interval(groups, draws=200, seed=7)
        slack = 1e-9
        means = [float(np.mean(group)) for group in groups]
        assert min(means) - slack <= low <= high <= max(means) + slack
        assert bootstrap_interval(groups, draws=200, seed=7) == (low, high)

    def test_empty_groups_count_for_nothing(self) -> None:
        groups = [[1.0], [5.0, 7.0], [9.0]]
        assert bootstrap_interval([*groups, []]) == bootstrap_interval(groups)

    def test_without_any_value_there_is_none(self) -> None:
        with pytest.raises(ValueError, match="no value"):
            bootstrap_interval([[], []])


class TestPairedTest:
    def test_a_case_computed_by_hand(self) -> None:
        # differences 2, -1, 4, 3: ranks 2, 1, 4, 3, of which 9 in favour of a and 1 of b
        test = paired_test([5, 3, 9, 8], [3, 4, 5, 5])
        assert test.n == 4
        assert test.rank_biserial == pytest.approx((9 - 1) / 10)
        # of 16 pairs a is larger in: 5>(3,4), 9>all, 8>all: 10; equal: 3=3, 5=5 twice: 3
        assert test.a12 == pytest.approx((10 + 3 / 2) / 16)
        # of 2^4 signs, those with a smaller rank sum of 0 or 1: 2, on two sides
        assert test.p == pytest.approx(4 / 16)

    @settings(max_examples=25)
    @given(PAIRED)
    def test_p_is_that_of_the_permutation_test(self, pairs: list[tuple[int, int]]) -> None:
        a, b = zip(*pairs, strict=True)
        assume(a != b and 1 < len(a) <= 10)  # scipy counts all permutations of so few
        exact = scipy.stats.permutation_test(
            (a, b), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples"
        )
        assert paired_test(a, b).p == pytest.approx(float(exact.pvalue), abs=0.015)

    @settings(max_examples=25)
    @given(PAIRED)
    def test_a12_is_the_share_of_all_pairs(self, pairs: list[tuple[int, int]]) -> None:
        a, b = (np.array(side) for side in zip(*pairs, strict=True))
        larger = (a[:, None] > b).mean() + 0.5 * (a[:, None] == b).mean()
        assert paired_test(a, b).a12 == pytest.approx(larger)

    @settings(max_examples=25)
    @given(PAIRED)
    def test_the_other_way_round_everything_is_mirrored(self, pairs: list[tuple[int, int]]) -> None:
        a, b = zip(*pairs, strict=True)
        one, other = paired_test(a, b), paired_test(b, a)
        assert one.p == pytest.approx(other.p)
        assert one.rank_biserial == pytest.approx(-other.rank_biserial)
        assert one.a12 == pytest.approx(1 - other.a12)

    def test_the_same_numbers_do_not_differ(self) -> None:
        test = paired_test([3, 4, 5], [3, 4, 5])
        assert (test.p, test.rank_biserial, test.a12, test.n) == (1.0, 0.0, 0.5, 3)

    def test_a_strategy_that_always_needs_more(self) -> None:
        test = paired_test([value + 1000 for value in range(60)], list(range(60)))
        assert test.p < 1e-9
        assert (test.rank_biserial, test.a12) == (1.0, 1.0)

    def test_both_sides_need_the_same_things(self) -> None:
        with pytest.raises(ValueError, match="same number"):
            paired_test([1, 2], [1])

    def test_of_successes_it_is_the_exact_sign_test(self) -> None:
        found, other = [1] * 40 + [0] * 5 + [1] * 15, [0] * 40 + [1] * 5 + [1] * 15
        assert paired_test(found, other).p == pytest.approx(scipy.stats.binomtest(5, 45).pvalue)


class TestMeanRanks:
    def test_what_found_nothing_ranks_above_all_others(self) -> None:
        never = float("inf")
        mine, its = mean_ranks([[[10], [never, 30]], [[30], [never, never]]])
        assert (mine, its) == ([1, (5 + 2.5) / 2], [2.5, 5])


class TestHolm:
    def test_a_case_computed_by_hand(self) -> None:
        assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])

    def test_none_is_none_and_one_stays(self) -> None:
        assert holm([]) == []
        assert holm([0.2]) == [0.2]

    @given(st.lists(st.floats(0, 1), max_size=20))
    def test_it_keeps_the_order_and_never_makes_p_smaller(self, ps: list[float]) -> None:
        adjusted = holm(ps)
        assert all(p <= after <= 1 for p, after in zip(ps, adjusted, strict=True))
        in_order = [adjusted[index] for index in np.argsort(ps)]
        assert in_order == sorted(in_order)


class TestPearson:
    @given(
        st.lists(st.tuples(st.integers(-50, 50), st.integers(-900, 900)), min_size=2, max_size=30)
    )
    def test_it_is_that_of_scipy(self, points: list[tuple[int, int]]) -> None:
        x, y = zip(*points, strict=True)
        if len(set(x)) < 2 or len(set(y)) < 2:
            assert pearson(x, y) is None
        else:
            assert pearson(x, y) == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-9)

    def test_a_falling_line_is_minus_one(self) -> None:
        assert pearson([10, 20, 30, 40, 50], [9, 7, 5, 3, 1]) == pytest.approx(-1.0)

    def test_one_point_has_none(self) -> None:
        assert pearson([10], [9]) is None

    def test_numbers_too_small_to_square_have_none(self) -> None:
        assert pearson([0.0, 5e-324], [0.0, 1.0]) in (None, pytest.approx(1.0))


@pytest.mark.parametrize(
    ("a12", "word"),
    [
        *[(0.5, "negligible"), (0.55, "negligible"), (0.56, "small"), (0.64, "medium")],
        *[(0.71, "large"), (1.0, "large"), (0.29, "large"), (0.36, "medium"), (0.44, "small")],
    ],
)
def test_a12_in_words(a12: float, word: str) -> None:
    assert a12_size(a12) == word


@pytest.mark.parametrize(
    ("correlation", "word"),
    [(0.0, "negligible"), (-0.1, "small"), (0.3, "medium"), (-0.5, "large"), (0.49, "medium")],
)
def test_rank_biserial_correlation_in_words(correlation: float, word: str) -> None:
    assert rank_biserial_size(correlation) == word


COUNTS = st.lists(st.integers(0, 1), min_size=1, max_size=300)


class TestRateBounds:
    @settings(max_examples=25)
    @given(COUNTS)
    def test_of_one_trial_a_group_it_is_the_interval_of_clopper_and_pearson(
        self, found: list[int]
    ) -> None:
        exact = scipy.stats.binomtest(sum(found), len(found)).proportion_ci(method="exact")
        given_ = clustered_interval(found, [1] * len(found))
        assert given_ == pytest.approx((exact.low, exact.high), abs=1e-9)
        one_sided = scipy.stats.binomtest(
            sum(found), len(found), alternative="less"
        ).proportion_ci()
        assert upper_bound(sum(found), len(found)) == pytest.approx(one_sided.high, abs=1e-9)

    def test_inputs_of_one_seed_that_are_alike_tell_less(self) -> None:
        apart = clustered_interval([1] * 12 + [0] * 28, [3] * 40)
        alike = clustered_interval([3] * 4 + [0] * 36, [3] * 40)
        assert alike[0] < apart[0] < 0.1 < apart[1] < alike[1]

    def test_it_holds_the_true_rate_where_inputs_of_one_seed_are_alike(self) -> None:
        rng = np.random.default_rng(1)
        chances = rng.beta(0.1 * 7 / 3, 0.9 * 7 / 3, (150, 60))  # a correlation of .3
        counts = rng.binomial(4, chances).tolist()
        ends = [clustered_interval(row, [4] * 60) for row in counts]
        assert np.mean([low <= 0.1 <= high for low, high in ends]) >= 0.94

    def test_without_a_trial_there_is_none(self) -> None:
        with pytest.raises(ValueError, match="no trial"):
            clustered_interval([], [])


@pytest.mark.parametrize(
    ("successes", "total", "share"),
    [(0, 5, 0.1), (3, 60, 0.02), (10, 10, 0.3), (120, 1000, 0.12), (900, 6000, 0.14), (1, 9, 0.0)],
)
def test_a_binomial_tail_is_that_of_scipy(successes: int, total: int, share: float) -> None:
    theirs = float(scipy.stats.binom.sf(successes - 1, total, share))
    assert binomial_tail(successes, total, share) == pytest.approx(theirs, rel=1e-8, abs=1e-15)

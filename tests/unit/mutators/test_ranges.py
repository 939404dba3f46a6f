import numpy as np
import pytest

from edgeflare_mutators import GaussianNoise, Operator, Range, RangeError, Sample
from edgeflare_mutators.base import Params


@pytest.mark.parametrize(
    ("low", "high", "kind", "words"),
    [
        (5, 1, "int", "the range from 5 to 1 is empty"),
        (0, float("inf"), "float", "a number, not inf"),
        (float("nan"), 1, "float", "a number, not nan"),
        (0.5, 3, "int", "a whole number, not 0.5"),
        (1, 4, "odd", "an odd number, not 4"),
        (True, 4, "int", "a whole number, not True"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(low, high, kind, words) -> None:
    with pytest.raises(RangeError, match=f"width: .*{words}"):
        Range("width", low, high, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("drawn", "values"),
    [
        (Range("n", -1, 1, "int"), {-1, 0, 1}),
        (Range("n", 3, 9, "odd"), {3, 5, 7, 9}),
        (Range("n", 4, 4, "int"), {4}),
        (Range("n", 2.5, 2.5), {2.5}),
    ],
)
def test_draws_reach_both_ends(drawn: Range, values: set[float]) -> None:
    rng = np.random.default_rng(0)
    assert {drawn.draw(rng) for _ in range(200)} == values


def test_a_narrowed_range_lies_within() -> None:
    whole = Range("n", 0, 10, "int")
    assert whole.narrowed(2, 10) == Range("n", 2, 10, "int")
    with pytest.raises(RangeError, match="between 0"):
        whole.narrowed(2, 11)


class Shift(Operator):
    name = "shift"
    limits = (Range("by", -255, 255, "int"),)

    def _apply(self, sample: Sample, params: Params) -> Sample:
        return np.clip(sample.astype(int) + params["by"], 0, 255).astype(np.uint8)


def test_an_operator_takes_ranges_by_name_and_refuses_unknown_ones() -> None:
    assert Shift().ranges == Shift.limits
    assert Shift(by=(1, 2)).ranges == (Range("by", 1, 2, "int"),)
    with pytest.raises(RangeError, match="parameter 'to'"):
        Shift(to=(1, 2))


def test_operators_do_not_share_ranges() -> None:
    GaussianNoise(sigma=(3, 4))
    assert GaussianNoise().ranges[0] == Range("sigma", 1.0, 16.0)

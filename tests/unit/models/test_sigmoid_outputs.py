"""Sigmoids as scores: each divided by the sum of all, a single one as the second of two classes."""

import numpy as np
import pytest

from edgeflare.answers.outputs import OutputKind
from edgeflare.models import OutputReader, TensorInfo

THREE = TensorInfo("scores", (1, 3), "float32")
ONE = TensorInfo("odd", (1, 1), "float32")
QUANTISED = TensorInfo("odd", (1, 1), "int8", (1 / 256, -128))


def read(
    tensor: TensorInfo, kind: OutputKind, values: object, dtype: str = "float32"
) -> list[float]:
    scores = OutputReader(tensor, kind, 3).read(np.array([values], dtype))
    assert isinstance(scores, np.ndarray)
    return [float(one) for one in scores]


def test_independent_sigmoids_become_shares_in_their_order() -> None:
    assert read(THREE, "sigmoid", [0.9, 0.6, 0.0]) == pytest.approx([0.6, 0.4, 0.0])


def test_arguments_of_sigmoids_go_through_them_first() -> None:
    arguments = np.log(np.array([0.9, 0.6, 0.3]) / np.array([0.1, 0.4, 0.7]))
    assert read(THREE, "sigmoid-logits", arguments) == pytest.approx([0.5, 1 / 3, 1 / 6])


def test_without_any_class_there_is_a_tie() -> None:
    assert read(THREE, "sigmoid", [0.0, 0.0, 0.0]) == [1 / 3, 1 / 3, 1 / 3]


@pytest.mark.parametrize("argument", [-700.0, -40.0, -1.0, 0.0, 1.0, 40.0, 700.0])
def test_a_single_one_gives_two_classes_whose_log_odds_are_not_lost(argument: float) -> None:
    no, yes = read(ONE, "sigmoid-logits", [argument])
    assert np.log(yes) - np.log(no) == pytest.approx(argument, rel=1e-9, abs=1e-12)


def test_a_single_quantised_one_is_the_probability_of_class_one() -> None:
    assert read(QUANTISED, "sigmoid", [64], "int8") == pytest.approx([0.25, 0.75])
    assert read(QUANTISED, "sigmoid", [-128], "int8") == [1.0, 0.0]


@pytest.mark.parametrize(("tensor", "values"), [(THREE, [0.5, np.nan, 0.1]), (ONE, [np.inf])])
@pytest.mark.parametrize("kind", ["sigmoid", "sigmoid-logits"])
def test_what_is_not_finite_gives_no_answer(tensor, values, kind) -> None:
    assert np.isnan(read(tensor, kind, values)).all()
    assert len(read(tensor, kind, values)) == (3 if tensor is THREE else 2)

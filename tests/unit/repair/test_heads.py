"""Which operators are the end of a detector's head, and which candidate replaces a detector."""

import pytest

from edgeflare.analysis import Estimate
from edgeflare.models.tensors.graph import Operator
from edgeflare.repair import PRESENT, ObjectDifferences, RecipeFigures
from edgeflare.repair.in_float import head_of
from edgeflare.repair.recipes import winner_of


def operation(text: str) -> Operator:
    """Return the operator of a text such as ``Concat a b -> c``."""
    left, _, made = text.partition(" -> ")
    kind, *read = left.split()
    return Operator(kind, made, tuple(read), tuple(made.split()))


BACKBONE = ("Conv x -> c", "Relu c -> r")


@pytest.mark.parametrize(
    ("head", "after", "last"),
    [
        pytest.param(
            ("Conv r -> b", "Conv r -> s", "Sigmoid s -> p", "Mul b -> m", "Concat m p -> out"),
            {"p", "m", "out"},
            {"b", "s"},
            id="boxes and scores in one output",
        ),
        pytest.param(
            ("Conv r -> s", "Softmax s -> scores", "Conv r -> b", "Exp b -> boxes"),
            {"scores", "boxes"},
            {"s", "b"},
            id="two outputs",
        ),
        pytest.param(
            ("Conv r -> d", "Softmax d -> e", "Conv e -> b", "Conv r -> s", "Concat b s -> out"),
            {"out"},
            {"b", "s"},
            id="sides of boxes by a convolution over a softmax",
        ),
        pytest.param(
            (
                "Conv r -> s",
                "Transpose s -> t",
                "Conv r -> r2",
                "Conv r2 -> s2",
                "Concat t s2 -> o",
            ),
            {"t", "o"},
            {"s", "s2"},
            id="two scales of the image",
        ),
    ],
)
def test_the_head_ends_after_the_last_operators_with_weights(head, after, last) -> None:
    found = head_of([operation(one) for one in (*BACKBONE, *head)])
    assert [{one.outputs[0] for one in part} for part in found] == [after, last]


def figures(name: str, disagreement: float, **kinds: int) -> RecipeFigures:
    estimate = Estimate(disagreement, disagreement, disagreement)
    objects = ObjectDifferences(20, kinds)
    return RecipeFigures(name, "", 100, estimate, None, 0, None, None, objects=objects)


@pytest.mark.parametrize(
    ("others", "winner"),
    [
        pytest.param([("a", 0.1, 4), ("b", 0.2, 3)], "b", id="no more objects than before"),
        pytest.param([("a", 0.31, 0), ("b", 0.3, 3)], None, id="no more disagreement either"),
        pytest.param([("a", 0.27, 3), ("b", 0.3, 1)], "b", id="objects count as much"),
        pytest.param([("a", 0.1, 2), ("b", 0.25, 1)], "a", id="disagreement counts as much"),
    ],
)
def test_the_winner_differs_in_no_more_objects_and_deviates_no_more(others, winner) -> None:
    present = figures(PRESENT, 0.3, lost=2, ghost=1)
    found = winner_of([present, *(figures(*one[:2], shift=one[2]) for one in others)], present)
    assert (found and found.name) == winner

"""How the likeliest preprocessing is worded, and which doubts come with it."""

from typing import Any

import pytest

from edgeflare.campaign import FoundInputs, InputPair
from edgeflare.cli.display.inputs import inputs_document
from edgeflare.models import InputSpec

RAW = InputSpec(shape=(1, 8, 8, 3), dtype="float32", channels=3, size=(8, 8))
MEAN = {"mean": (127.5,), "std": (127.5,)}


def pair(
    original: dict[str, Any], deployed: dict[str, Any], accuracy: float | None = 0.9, **found: float
) -> InputPair:
    figures = {"distance": 0.0, "agreement": 1.0, "information": 0.5, "score": 0.9, **found}
    specs = RAW._replace(**original), RAW._replace(**deployed)
    return InputPair(*specs, accuracy=accuracy, **figures)


def found(
    best: InputPair, stated: InputPair, *others: InputPair, labelled: int = 50
) -> FoundInputs:
    return FoundInputs((best, *others), stated, 50, labelled, "local", 0, 0)


def notes(result: FoundInputs) -> list[str]:
    return [item.text for item in inputs_document(result)[-1].items]


@pytest.mark.parametrize(
    ("likeliest", "before", "words"),
    [
        ({}, MEAN, "mean=127.5, std=127.5"),
        (MEAN, {}, "mean=127.5, std=127.5 instead"),
        ({**MEAN, "scale": (1, 255)}, {"scale": (1, 255)}, "mean=127.5, std=127.5 instead"),
        ({"color": "BGR"}, {}, "color=BGR instead"),
        ({}, {"orientation": "flip"}, "orientation=upright instead"),
        ({"clip": (-1.0, 1.0)}, {}, "clip=-1,1 instead"),
    ],
)
def test_both_sides_of_a_change_are_named(likeliest, before, words) -> None:
    [change] = found(pair({}, likeliest), pair({}, before)).changes()
    assert change.startswith("the deployed")
    assert words in change


def test_numbers_are_shown_as_they_are_typed() -> None:
    means = {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}
    table = str(inputs_document(found(pair(MEAN, means), pair({}, {}))))
    assert "127.5" in table
    assert "123.675,116.28,103.53" in table


def test_what_the_figures_leave_open_is_said() -> None:
    swapped = {"color": "BGR"}
    stated = pair({}, {}, None)
    alike = pair(swapped, swapped, None, score=0.5)
    assert any("color=BGR both" in one for one in notes(found(stated, stated, alike, labelled=0)))
    apart = pair(swapped, swapped, None, score=0.5, distance=0.3)
    assert not any(
        "agree as well" in one for one in notes(found(stated, stated, apart, labelled=0))
    )
    wrong = pair({}, {}, 0.02)
    assert any("--task embedding" in one for one in notes(found(wrong, wrong)))
    assert notes(found(pair({}, {}), pair({}, {}))) == []

"""What can be chosen of the boundary search by name, and what is said of a wrong choice."""

from typing import Any

import numpy as np
import pytest
from search_models import Pair, Run, affine, agreed, moved, played

from edgeflare.errors import UsageError
from edgeflare.strategies import build_strategy, check_search, strategy_names
from edgeflare.types import Decision

ITS_OPTIONS = "its options are crossing, effort, device_budget, candidates, tied_classes, max_l2, max_linf, min_ssim, gradients"


def test_it_is_among_the_strategies() -> None:
    assert "boundary" in strategy_names()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"crossing": "diagonal"}, "option 'crossing': Input should be 'auto', 'least-l2', 'line'"),
        ({"effort": 3}, "option 'effort': Input should be greater than or equal to 4"),
        ({"effort": 1025}, "option 'effort': Input should be less than or equal to 1024"),
        ({"device_budget": 0}, "option 'device_budget': Input should be greater than or equal to 1"),
        ({"device_budget": 2.5}, "option 'device_budget': Input should be a valid integer"),
        ({"candidates": 65}, "option 'candidates': Input should be less than or equal to 64"),
        ({"max_l2": 0}, "option 'max_l2': Input should be greater than 0"),
        ({"max_l2": float("inf")}, "option 'max_l2': Input should be a finite number"),
        ({"max_l2": float("nan")}, "option 'max_l2': "),
        ({"max_linf": 65_535}, "option 'max_linf': Input should be less than or equal to 65534"),
        ({"min_ssim": 1.01}, "option 'min_ssim': Input should be less than or equal to 1"),
        ({"devicebudget": 4}, "there is no option 'devicebudget'"),
        ({"variant": "text"}, r"there is no option 'variant' \(dflare, dflare-d, dflare-r have it\)"),
        ({"population": 9}, r"there is no option 'population' \(diffchaser has it\)"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_named_with_those_that_there_are(options, words) -> None:
    with pytest.raises(UsageError, match=f"{words}.*; {ITS_OPTIONS}"):
        build_strategy("boundary", options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"crossing": "auto", "effort": "64", "device_budget": "3", "max_l2": "2.5"},
        {"crossing": "natural", "candidates": "6", "max_linf": 255, "min_ssim": 0},
    ],
)
def test_what_is_left_open_has_a_choice_and_numbers_may_be_text(options: dict[str, Any]) -> None:
    original = affine((8, 8, 1), 3)
    pair = Pair(original, moved(original, 0.3))
    seed = pair.seed(agreed(pair, (8, 8, 1))[0])
    found = played(build_strategy("boundary", options)(seed, np.random.default_rng(0)), pair, Run())
    assert found.sample is not None
    assert pair.outputs(found.sample).decision is Decision.DEVIATION


def test_the_crossing_by_mutants_draws_from_the_operators_that_are_named() -> None:
    original = affine((8, 8, 1), 3)
    pair = Pair(original, moved(original, 0.3))
    (sample,) = agreed(pair, (8, 8, 1))

    def asked(operators: tuple[str, ...]) -> list[bytes]:
        strategy = build_strategy("boundary", {"crossing": "mutants"}, operators)
        run = Run()
        played(strategy(pair.seed(sample), np.random.default_rng(0)), pair, run)
        return [one.tobytes() for one in run.samples]

    all_of_table_3 = ("random-pixel-change", "gaussian-noise", "multiplicative-noise",
                      "average-blur", "gaussian-blur", "median-blur")  # fmt: skip
    assert asked(()) == asked(all_of_table_3)
    assert asked(()) != asked(("random-pixel-change",))


def test_an_operator_that_there_is_not_is_named() -> None:
    with pytest.raises(UsageError, match="operator 'blurr'"):
        build_strategy("boundary", {"crossing": "mutants"}, ("blurr",))


@pytest.mark.parametrize(
    ("crossing", "operator", "words"),
    [
        ("natural", "average-blur", "average-blur"),
        ("line", "jpeg", "mutation operators"),
        ("auto", "jpeg", "mutation operators"),
    ],
)
def test_operators_that_would_not_be_used_are_refused(crossing, operator, words) -> None:
    with pytest.raises(UsageError, match=words):
        build_strategy("boundary", {"crossing": crossing}, (operator,))


def test_operators_restrict_the_natural_crossing() -> None:
    assert build_strategy("boundary", {"crossing": "natural"}, ("jpeg", "haze"))


def test_operators_of_audio_wait_for_what_the_models_answer() -> None:
    assert build_strategy("boundary", {}, ("tempo", "room"))
    with pytest.raises(UsageError, match="mutation operators"):
        build_strategy("boundary", {"crossing": "line"}, ("tempo",))


@pytest.mark.parametrize(
    ("options", "answered", "words"),
    [
        ({"crossing": "mutants"}, "detections", "crossing mutants"),
        ({"crossing": "mutants"}, "values", "crossing mutants"),
        ({"candidates": 2}, "values", "candidates means"),
        ({"crossing": "mutants"}, "transcript", "crossing mutants"),
    ],
)
def test_options_without_a_meaning_for_the_answers_are_refused_before_any_search(
    options: dict[str, Any], answered: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        check_search("boundary", options, kind="image", answered=answered)
    check_search("boundary", {}, kind="image", answered=answered)


@pytest.mark.parametrize("answered", ["audio", "values"])
def test_a_similarity_of_images_is_refused_for_audio(answered: Any) -> None:
    with pytest.raises(UsageError, match="min_ssim means"):
        check_search("boundary", {"min_ssim": 0.5}, kind="audio", answered=answered)

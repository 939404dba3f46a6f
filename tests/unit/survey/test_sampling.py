"""What a survey asks from one seed: inputs at which the original is sure, of evenly drawn families."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pytest

from edgeflare.answers.oracles import margin
from edgeflare.errors import InferenceFailedError
from edgeflare.survey import families_for
from edgeflare.survey.sampling import Surveyed, SurveySettings, survey
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    Detections,
    Output,
    Outputs,
    Sample,
    Scores,
    Values,
)

FAMILIES = families_for("image", channels=1)
DEFAULTS = SurveySettings()
SEED = np.random.default_rng(3).integers(0, 256, (12, 12, 1), dtype=np.uint8)
PARTNERS = tuple(np.random.default_rng(4).integers(0, 256, (5, 12, 12, 1), dtype=np.uint8))


def sure(sample: Sample) -> Scores:
    return np.array([0.9, 0.1])


def sure_of_dark(sample: Sample) -> Scores:
    """Sure of inputs whose mean is below 128 only."""
    return np.array([0.9, 0.1]) if sample.mean() < 128 else np.array([0.55, 0.45])


class Run(NamedTuple):
    """What a survey returned, and what it asked each model, one entry a request."""

    surveyed: Sequence[Surveyed]
    of_original: list[int]
    of_deployed: list[int]


def run(
    model: Callable[[Sample], Output],
    number: int = 0,
    settings: SurveySettings = DEFAULTS,
    *,
    fails: Callable[[int], bool] = lambda _: False,
) -> Run:
    plan = survey(SEED, np.random.default_rng(number), settings, FAMILIES, PARTNERS)
    asked: dict[str, list[int]] = {"original": [], "deployed": []}
    ask: Ask = next(plan)
    while True:
        asked[ask.of].append(len(ask.samples))
        answers = [
            Outputs(model(one), None, Decision.UNDECIDED)
            if ask.of == "original"
            else Outputs(None, model(one), Decision.UNDECIDED)
            for one in ask.samples
        ]
        try:
            if ask.of == "deployed" and fails(len(asked["deployed"])):
                ask = plan.throw(InferenceFailedError("the device has no answer"))
            else:
                ask = plan.send(Answer(answers))
        except StopIteration as stop:
            return Run(stop.value, asked["original"], asked["deployed"])


def test_the_device_is_asked_about_each_input_alone() -> None:
    found = run(sure, settings=SurveySettings(queries=4))
    assert len(found.surveyed) == 4
    assert found.of_deployed == [1, 1, 1, 1]
    assert found.of_original == [4]


@pytest.mark.parametrize("number", range(5))
def test_only_inputs_at_which_the_original_is_sure_are_asked_about(number: int) -> None:
    found = run(sure_of_dark, number)
    assert found.surveyed
    for one in found.surveyed:
        assert (margin(one.original) or 0) >= 0.3
        assert one.sample.mean() < 128


def test_no_device_query_goes_to_a_seed_at_which_the_original_is_never_sure() -> None:
    found = run(lambda _: np.array([0.6, 0.4]))
    assert found.surveyed == []
    assert found.of_deployed == []
    assert sum(found.of_original) <= DEFAULTS.candidates


def test_nan_of_the_original_is_not_sure() -> None:
    assert run(lambda _: np.array([np.nan, 0.4])).surveyed == []


def test_the_inputs_follow_from_the_parameters_that_are_kept() -> None:
    for one in run(sure, 5).surveyed:
        again = FAMILIES[one.drawn.family].apply(SEED, one.drawn.params, PARTNERS)
        np.testing.assert_array_equal(again, one.sample)


def test_families_and_severities_have_even_shares() -> None:
    families: Counter[str] = Counter()
    severities: Counter[int] = Counter()
    for number in range(600):
        drawn = [one.drawn for one in run(sure, number).surveyed]
        assert len({one.family for one in drawn}) == len({one.severity for one in drawn}) == 3
        families.update(one.family for one in drawn)
        severities.update(one.severity for one in drawn)
    assert set(families) == set(FAMILIES)
    mean = 1800 / len(FAMILIES)
    assert all(abs(count - mean) < 5 * mean**0.5 for count in families.values())
    assert all(abs(count - 360) < 60 for count in severities.values())


def test_an_input_that_the_device_cannot_answer_does_not_end_the_survey() -> None:
    found = run(sure, fails=lambda request: request == 2).surveyed
    assert [one.deployed is None for one in found] == [False, True, False]
    assert "the device has" in found[1].failure


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (Detections(np.zeros((1, 4)), np.zeros(1, np.int64), np.array([0.501])), 3),
        (Values(np.array([1.0, 2.0])), 3),
        (Values(np.array([1.0, np.nan])), 0),
    ],
)
def test_an_answer_without_a_margin_of_its_own_is_surveyed_where_it_is_finite(
    answer: Output, count: int
) -> None:
    assert len(run(lambda _: answer).surveyed) == count

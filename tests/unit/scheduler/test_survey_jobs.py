"""A survey's job: what it counts, what it confirms, and that it can begin anew."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from search_models import Shelf

from edgeflare.answers.oracles import LabelOracle
from edgeflare.errors import InferenceFailedError, StrategyError
from edgeflare.scheduler import SurveyJob, SurveyResult
from edgeflare.survey import Drawn
from edgeflare.survey.sampling import Surveyed, SurveyPlan, asked
from edgeflare.types import Answer, Ask, Decision, Outputs, Sample, Scores

ONE, OTHER = np.array([0.9, 0.1]), np.array([0.2, 0.8])
BROKEN = np.array([np.nan, np.nan])
SAMPLES = [np.full((2, 2, 1), level, np.uint8) for level in (0, 50, 100)]


def plan() -> SurveyPlan:
    """Screen three inputs, then ask the deployed model about each."""
    answer = yield Ask(SAMPLES, "original")
    found = []
    for sample, outputs in zip(SAMPLES, answer.outputs, strict=True):
        assert outputs.original is not None
        one = Surveyed(Drawn("level", 1, {}), sample, outputs.original, None)
        found.append((yield from asked(one)))
    return found


def run(
    deployed: Callable[[Sample], Scores], confirmations: int = 2
) -> tuple[SurveyResult[str], SurveyJob[str]]:
    job = SurveyJob("seed", plan, LabelOracle(1e-3), confirmations, Shelf())
    return answered(job, deployed), job


def answered(job: SurveyJob[str], deployed: Callable[[Sample], Scores]) -> SurveyResult[str]:
    steps = job.run()
    ask = next(steps)
    while True:
        try:
            outputs = [outputs_of(ask, one, deployed) for one in ask.samples]
        except InferenceFailedError as error:
            ask = steps.throw(error)
            continue
        try:
            ask = steps.send(Answer(outputs))
        except StopIteration as stop:
            result: SurveyResult[str] = stop.value
            return result


def outputs_of(ask: Ask, sample: Sample, deployed: Callable[[Sample], Scores]) -> Outputs:
    ours = None if ask.of == "deployed" else ONE
    theirs = None if ask.of == "original" else deployed(sample)
    if ours is None or theirs is None:
        return Outputs(ours, theirs, Decision.UNDECIDED)
    return Outputs(ours, theirs, LabelOracle(1e-3).decide(ours, theirs))


def in_turn(*answers: Scores) -> Callable[[Sample], Scores]:
    left: Iterator[Scores] = iter(answers)
    return lambda _: next(left)


def confident(result: SurveyResult[str]) -> Sequence[bool]:
    return [one.is_confident for one in result.answers]


def test_every_query_is_counted_once() -> None:
    result, _ = run(lambda sample: OTHER if sample.max() == 50 else ONE)
    assert confident(result) == [False, True, False]
    counters = result.counters
    assert (counters.host_only, counters.survey, counters.confirmation) == (3, 3, 2)
    assert counters.search == counters.seed == 0
    assert result.answers[1].confirmed == 2


def test_a_deviation_that_does_not_repeat_is_not_confident() -> None:
    result, _ = run(in_turn(OTHER, ONE, ONE, ONE, ONE))
    assert confident(result) == [False, False, False]
    assert result.answers[0].decision is Decision.DEVIATION
    assert result.answers[0].detail


def test_a_deviation_that_repeats_once_of_three_times_is_not_confident() -> None:
    result, _ = run(in_turn(OTHER, ONE, ONE, OTHER, ONE, ONE), confirmations=3)
    assert confident(result) == [False, False, False]
    assert result.answers[0].confirmed == 1


def test_nan_of_the_deployed_model_is_a_finding() -> None:
    result, _ = run(lambda sample: BROKEN if sample.max() == 100 else ONE)
    assert confident(result) == [False, False, True]
    assert result.answers[2].decision is Decision.NONFINITE


def test_an_input_without_an_answer_is_kept_as_such() -> None:
    def fails(sample: Sample) -> Scores:
        if sample.max() == 0:
            raise InferenceFailedError("the agent died")
        return ONE

    result, _ = run(fails)
    assert [one.decision for one in result.answers] == [
        Decision.UNDECIDED,
        Decision.AGREE,
        Decision.AGREE,
    ]
    assert result.answers[0].detail == "the agent died"


def test_an_original_that_cannot_answer_ends_the_survey_of_its_seed_alone() -> None:
    job = SurveyJob("seed", plan, LabelOracle(1e-3), 2, Shelf())
    steps = job.run()
    next(steps)
    with pytest.raises(StopIteration) as stop:
        steps.throw(InferenceFailedError("the original has no answer"))
    result: SurveyResult[str] = stop.value.value
    assert (list(result.answers), result.detail) == ([], "the original has no answer")


def test_a_job_that_was_moved_begins_anew() -> None:
    result, job = run(lambda _: OTHER)
    again = answered(job, lambda _: OTHER)
    assert again.counters == result.counters
    assert confident(again) == confident(result) == [True, True, True]


def test_a_family_that_fails_is_named() -> None:
    def broken() -> SurveyPlan:
        yield from ()
        raise ZeroDivisionError("by nothing")

    job = SurveyJob("seed", broken, LabelOracle(), 2, Shelf())
    with pytest.raises(StrategyError, match="families: ZeroDivisionError"):
        next(job.run())

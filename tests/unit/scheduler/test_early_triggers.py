"""Searches that have a triggering input and go on for a better one, when that goes wrong."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
from search_models import Device, Linear, Shelf

from edgeflare.answers.oracles import LabelOracle
from edgeflare.devices import Reply
from edgeflare.errors import InferenceFailedError
from edgeflare.scheduler import Budget, Feed, Scheduler, SearchJob, SearchJobResult, SearchSettings
from edgeflare.scheduler.confirmation import NOT_REPEATABLE, UnconfirmedTrigger, confirm
from edgeflare.scheduler.job import Counters
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    Outcome,
    Outputs,
    Sample,
    Scores,
    Search,
    Seed,
    Status,
)

DARK = np.zeros((2, 2, 1), np.uint8)
SURE = np.array([0.875, 0.125])


def picture(strength: int) -> Sample:
    sample = DARK.copy()
    sample[0, 0] = strength
    return sample


def trigger(strength: int, *earlier: Outcome) -> Outcome:
    return Outcome(picture(strength), ({"strength": strength},), earlier)


def strength_of(sample: Sample) -> int:
    return int(sample[0, 0, 0])


class First:
    """Says class 0."""

    def scores(self, samples: Sequence[Sample]) -> list[Scores]:
        return [SURE for _ in samples]

    def answer(self, samples: Sequence[Sample]) -> tuple[list[Scores], list[float]]:
        return self.scores(samples), []


class Board(Device):
    """Says class 1 of what isn't dark; of a moody strength only so often, NaN or nothing of others."""

    def __init__(self, moody: dict[int, int], nan: int | None, mute: int | None) -> None:
        super().__init__(Linear())
        self.moody, self.nan, self.mute = moody, nan, mute
        self.mute_from = 1
        self.seen: Counter[int] = Counter()

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        future: Future[Reply] = Future()
        strengths = [strength_of(sample) for sample in samples]
        self.seen.update(strengths)
        if self.mute in strengths and self.seen[self.mute] >= self.mute_from:
            future.set_exception(InferenceFailedError("the board is mute"))
        else:
            future.set_result(Reply([self._one(one) for one in strengths], [0.0] * len(samples)))
        return future

    def _one(self, strength: int) -> Scores:
        if strength == self.nan:
            return np.array([np.nan, 0.5])
        often = self.moody.get(strength, 1000)
        return SURE[::-1] if strength and self.seen[strength] <= often else SURE


def run(
    strategy: Callable[[Seed, np.random.Generator], Search],
    *,
    queries: int | None = None,
    moody: dict[int, int] | None = None,
    mute_from: int = 1,
    **board: Any,
) -> tuple[SearchJobResult, Shelf]:
    """Search with a query budget; `moody`: how often a strength deviates, then never again."""
    shelf = Shelf()
    device = Board(moody or {}, **{"nan": None, "mute": None, **board})
    device.mute_from = mute_from
    rules = SearchSettings(strategy, Budget(queries, None), 2, 7, shelf)
    chain = SearchJob(Seed("s", DARK, Outputs(SURE, SURE, Decision.AGREE)), rules)
    results: list[SearchJobResult] = []
    Scheduler(First(), [device], [Feed(iter([chain]))], LabelOracle(), workers=1).run(
        lambda result, _: results.append(result)
    )
    return results[0], shelf


def steadily(seed: Seed, rng: np.random.Generator) -> Search:
    """Find one after the other, each stronger; hand over the best and the three before it."""
    found: list[Outcome] = []
    for strength in range(1, 100):
        yield Ask([picture(strength)], best=found[0] if found else None)
        found.insert(0, trigger(strength, *found[:3]))
    return found[0]


def at_once(best: Outcome) -> Callable[[Seed, np.random.Generator], Search]:
    """A search that asks about all its triggering inputs at once and ends with them."""

    def strategy(seed: Seed, rng: np.random.Generator) -> Search:
        samples = [one.sample for one in (best, *best.earlier) if one.sample is not None]
        yield Ask(samples)
        return best

    return strategy


def digest_of(shelf: Shelf, strength: int) -> str:
    (digest,) = (name for name, kept in shelf.kept.items() if strength_of(kept) == strength)
    return digest


class TestAnInputThatTheDeviceCannotAnswerOn:
    def test_the_best_before_it_is_confirmed_and_the_failure_told(self) -> None:
        result, shelf = run(steadily, mute=5)
        assert (result.status, result.confirmed) == (Status.FOUND, 2)
        assert result.sample is not None
        assert strength_of(result.sample) == 4
        assert list(result.mutations) == [{"strength": 4}]
        assert (result.counters.search, result.counters.confirmation) == (5, 2)
        assert result.detail == (
            "the search for a more severe one failed on an input "
            f"(digest {digest_of(shelf, 5)}): the board is mute"
        )

    def test_of_several_inputs_none_is_blamed(self) -> None:
        def strategy(seed: Seed, rng: np.random.Generator) -> Search:
            yield Ask([picture(1)])
            yield Ask([picture(2), picture(3)], best=trigger(1))
            return Outcome(None)

        result, shelf = run(strategy, mute=3)
        assert result.status is Status.FOUND
        assert "severe one failed" in result.detail
        assert {strength_of(kept) for kept in shelf.kept.values()} == {1}

    def test_before_any_triggering_input_the_search_fails_as_ever(self) -> None:
        result, _ = run(steadily, mute=1)
        assert (result.status, result.detail) == (Status.FAILED, "the board is mute")
        assert result.sample is not None
        assert strength_of(result.sample) == 1

    def test_a_confirmation_that_fails_gives_way_to_the_one_before_it(self) -> None:
        result, shelf = run(steadily, queries=3, mute=3, mute_from=2)
        assert (result.status, result.confirmed) == (Status.FOUND, 2)
        assert result.sample_digest == digest_of(shelf, 2)
        assert result.counters.confirmation == 1 + 2
        assert result.detail == (
            f"a more severe input did not repeat (digest {digest_of(shelf, 3)}); the board is mute"
        )

    def test_a_confirmation_that_fails_fails_the_search_where_there_is_no_other(self) -> None:
        result, shelf = run(at_once(trigger(3)), mute=3, mute_from=2)
        assert (result.status, result.detail) == (Status.FAILED, "the board is mute")
        assert result.sample_digest == digest_of(shelf, 3)
        assert (result.confirmed, result.counters.confirmation) == (0, 1)


class TestOneThatDoesNotRepeat:
    def test_gives_way_to_the_one_before_it(self) -> None:
        result, shelf = run(steadily, queries=6, moody={6: 1})
        assert (result.status, result.confirmed) == (Status.FOUND, 2)
        assert result.sample is not None
        assert strength_of(result.sample) == 5
        assert result.sample_digest == digest_of(shelf, 5)
        assert list(result.mutations) == [{"strength": 5}]
        assert result.outputs.decision is Decision.DEVIATION
        assert result.counters.confirmation == 1 + 2
        assert result.detail == (
            f"a more severe input did not repeat (digest {digest_of(shelf, 6)})"
        )

    def test_nor_the_next_one(self) -> None:
        best = trigger(9, trigger(8), trigger(7), trigger(6))
        result, shelf = run(at_once(best), moody={9: 2, 8: 1})
        assert result.status is Status.FOUND
        assert result.sample is not None
        assert strength_of(result.sample) == 7
        assert result.counters.confirmation == 2 + 1 + 2
        digests = f"{digest_of(shelf, 9)}, {digest_of(shelf, 8)}"
        assert result.detail == f"2 more severe inputs did not repeat (digests {digests})"

    def test_is_itself_the_unstable_result_where_none_repeats(self) -> None:
        best = trigger(9, trigger(8))
        result, shelf = run(at_once(best), moody={9: 2, 8: 1})
        assert (result.status, result.confirmed) == (Status.UNSTABLE, 1)
        assert result.sample_digest == digest_of(shelf, 9)
        assert list(result.mutations) == [{"strength": 9}]
        assert result.counters.confirmation == 2 + 1
        assert result.detail == (
            f"a less severe input did not repeat (digest {digest_of(shelf, 8)})"
        )

    @pytest.mark.parametrize(
        ("answers", "status", "confirmed"),
        [
            ([(0.1, 0.8, 0.1), (0.1, 0.8, 0.1)], Status.FOUND, 2),
            ([(0.1, 0.8, 0.1), (0.1, 0.1, 0.8)], Status.UNSTABLE, 1),  # another wrong class
            ([(0.1, 0.8, 0.1), (0.1, 0.5, 0.4)], Status.UNSTABLE, 1),  # other scores
        ],
    )
    def test_a_deviation_repeats_by_the_same_answer_alone(self, answers, status, confirmed) -> None:
        original = np.array([0.8, 0.1, 0.1])
        steps = confirm(UnconfirmedTrigger(Status.FOUND, picture(9)), Shelf(), 2, Counters())
        next(steps)
        ended = None
        for scores in answers:
            outputs = Outputs(original, np.array(scores), Decision.DEVIATION)
            try:
                steps.send(Answer([outputs]))
            except StopIteration as stop:
                ended = stop.value
        assert (ended.status, ended.confirmed) == (status, confirmed)
        assert ended.detail == ("" if status is Status.FOUND else NOT_REPEATABLE)

    def test_is_not_tried_twice(self) -> None:
        result, _ = run(at_once(trigger(9, trigger(9), Outcome(None), trigger(4))), moody={9: 2})
        assert result.status is Status.FOUND
        assert result.counters.confirmation == 1 + 2

    def test_what_ended_the_search_is_reported_as_well(self) -> None:
        result, shelf = run(steadily, mute=5, moody={4: 1})
        assert result.status is Status.FOUND
        assert result.sample is not None
        assert strength_of(result.sample) == 3
        assert result.detail == (
            f"a more severe input did not repeat (digest {digest_of(shelf, 4)}); "
            "the search for a more severe one failed on an input "
            f"(digest {digest_of(shelf, 5)}): the board is mute"
        )

    def test_nor_does_the_device_answer_on_the_one_before_it(self) -> None:
        best = trigger(9, trigger(8))
        result, shelf = run(at_once(best), moody={9: 1}, mute=8, mute_from=2)
        assert result.status is Status.UNSTABLE
        assert result.sample_digest == digest_of(shelf, 9)
        assert result.detail == (
            f"a less severe input did not repeat (digest {digest_of(shelf, 8)}); the board is mute"
        )


def test_a_non_finite_output_ends_the_search_and_reports_what_was_found_before() -> None:
    result, shelf = run(steadily, nan=4)
    assert (result.status, result.confirmed) == (Status.NONFINITE, 2)
    assert result.sample_digest == digest_of(shelf, 4)
    assert result.detail == (
        f"a triggering input had been found before (digest {digest_of(shelf, 3)}, not confirmed)"
    )


def test_a_non_finite_output_before_any_triggering_input_reports_nothing() -> None:
    result, shelf = run(steadily, nan=1)
    assert (result.status, result.confirmed, result.detail) == (Status.NONFINITE, 2, "")
    assert len(shelf.kept) == 1

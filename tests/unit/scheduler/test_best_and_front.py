"""Searches that go on for a better trigger: how a budget ends them, and the front they leave."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from search_models import Device, Linear, Shelf

from edgeflare.answers.oracles import LabelOracle
from edgeflare.scheduler import Budget, Feed, Scheduler, SearchJob, SearchJobResult, SearchSettings
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    FrontPoint,
    Outcome,
    Outputs,
    Sample,
    Scores,
    Search,
    Seed,
    Status,
)

DARK = np.zeros((2, 2, 1), np.uint8)


def picture(strength: int, distance: int = 0) -> Sample:
    """A picture on which the models differ by `strength` levels (0: they agree), `distance` levels off."""
    sample = DARK.copy()
    sample[0, 0] = strength
    sample[1, 1] = distance
    return sample


class First:
    """Says class 0, the surer the brighter the first pixel."""

    def scores(self, samples: Sequence[Sample]) -> list[Scores]:
        return [self.one(sample) for sample in samples]

    def answer(self, samples: Sequence[Sample]) -> tuple[list[Scores], list[float]]:
        return self.scores(samples), []

    def one(self, sample: Sample) -> Scores:
        sure = 0.6 + sample[0, 0, 0] / 1000
        return np.array([sure, 1 - sure])


class Second(First):
    """Says class 1 instead where that pixel isn't dark."""

    def one(self, sample: Sample) -> Scores:
        scores = super().one(sample)
        return scores[::-1] if sample[0, 0, 0] else scores


def run(
    strategy: Callable[[Seed, np.random.Generator], Search],
    budget: Budget,
    *,
    floor: float = 0.0,
    seconds: float = 0.0,
) -> SearchJobResult:
    outputs = Outputs(First().one(DARK), Second().one(DARK), Decision.AGREE)
    oracle = LabelOracle(floor)
    rules = SearchSettings(strategy, budget, 2, 7, Shelf(), oracle)
    results: list[SearchJobResult] = []
    device = Device(Linear(), seconds=seconds)
    device.model = Second()  # type: ignore[assignment]
    feed = Feed(iter([SearchJob(Seed("s", DARK, outputs), rules)]))
    Scheduler(First(), [device], [feed], oracle, workers=1).run(
        lambda result, _: results.append(result)
    )
    return results[0]


def stronger(seed: Seed, rng: np.random.Generator) -> Search:
    """Find a trigger at once, then a stronger one with every second query."""
    del seed, rng
    best = None
    for strength in range(1, 200):
        yield Ask([picture(strength)], best=best)
        best = Outcome(picture(strength), ({"strength": strength},))
        yield Ask([picture(0, strength)], best=best)
    return best or Outcome(None)


class TestBest:
    @pytest.mark.parametrize(("queries", "strength"), [(1, 1), (2, 1), (3, 2), (10, 5)])
    @pytest.mark.parametrize("floor", [0.0, 0.1])
    def test_the_query_budget_ends_a_search_with_it(self, queries, strength, floor) -> None:
        result = run(stronger, Budget(queries, None), floor=floor)
        assert result.status is Status.FOUND
        assert result.sample.tobytes() == picture(strength).tobytes()
        assert list(result.mutations) == [{"strength": strength}]
        assert (result.confirmed, result.counters.search) == (2, queries)
        assert result.detail == ""

    def test_the_host_query_budget_ends_a_search_with_it(self) -> None:
        def strategy(seed: Seed, rng: np.random.Generator) -> Search:
            del rng
            yield Ask([picture(9)])
            while True:
                yield Ask([seed.sample], "original", best=Outcome(picture(9)))

        result = run(strategy, Budget(None, None, 40))
        assert (result.status, result.counters.host_only) == (Status.FOUND, 40)

    @pytest.mark.parametrize(
        ("limit", "strength"),
        [
            (3.5, 2),  # over with an agreeing answer: the best of the question
            (4.5, 3),  # over with a better trigger: the strategy hears of it first
        ],
    )
    def test_the_time_budget_ends_a_search_with_it_and_says_so(self, limit, strength) -> None:
        result = run(stronger, Budget(None, limit), seconds=1.0)
        assert result.status is Status.FOUND
        assert result.sample.tobytes() == picture(strength).tobytes()
        assert "time budget ended" in result.detail

    def test_a_search_without_one_ends_as_ever(self) -> None:
        def strategy(seed: Seed, rng: np.random.Generator) -> Search:
            del rng
            while True:
                yield Ask([seed.sample])

        assert run(strategy, Budget(4, None)).status is Status.EXHAUSTED
        assert run(strategy, Budget(None, 2.5), seconds=1.0).status is Status.TIMEOUT

    def test_one_that_does_not_repeat_is_unstable(self) -> None:
        def strategy(seed: Seed, rng: np.random.Generator) -> Search:
            del rng
            while True:
                yield Ask([seed.sample], best=Outcome(seed.sample))

        result = run(strategy, Budget(4, None))
        assert (result.status, result.confirmed) == (Status.UNSTABLE, 0)


class TestFront:
    @pytest.mark.parametrize("floor", [0.0, 0.1])
    def test_it_has_each_deviation_that_no_earlier_one_beats(self, floor: float) -> None:
        def strategy(seed: Seed, rng: np.random.Generator) -> Search:
            del seed, rng
            yield Ask([picture(0, 7)])  # no deviation
            yield Ask([picture(50, 200), picture(40, 255), picture(50, 200)])  # the first is it
            yield Ask([picture(60, 255)])  # surer, further
            yield Ask([picture(10)])  # nearer
            yield Ask([picture(60)])  # as sure, nearer
            yield Ask([picture(20, 100)], "deployed")  # nobody knows
            return Outcome(picture(60))

        result = run(strategy, Budget(50, None), floor=floor)
        assert result.front == tuple(
            FrontPoint(
                queries,
                pytest.approx(0.2 + 2 * strength / 1000),
                pytest.approx(np.hypot(strength, distance) / 255),
                max(strength, distance),
            )
            for queries, strength, distance in [(2, 50, 200), (5, 60, 255), (6, 10, 0), (7, 60, 0)]
        )
        assert (result.counters.search, result.counters.round_trips) == (8, 6)

    def test_a_search_started_again_begins_a_new_one(self) -> None:
        def strategy(seed: Seed, rng: np.random.Generator) -> Search:
            del seed, rng
            yield Ask([picture(50)])
            return Outcome(None)

        outputs = Outputs(First().one(DARK), Second().one(DARK), Decision.AGREE)
        chain = SearchJob(
            Seed("s", DARK, outputs),
            SearchSettings(strategy, Budget(), 2, 7, Shelf(), LabelOracle()),
        )
        for _ in range(2):
            life = chain.run()
            (ask,) = next(life).samples
            both = First().one(ask), Second().one(ask)
            with pytest.raises(StopIteration) as ended:
                life.send(_answer(*both))
            assert len(ended.value.value.front) == 1


def _answer(original: Scores, deployed: Scores) -> Answer:
    return Answer([Outputs(original, deployed, LabelOracle().decide(original, deployed))])

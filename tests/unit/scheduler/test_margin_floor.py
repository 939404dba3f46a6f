"""Searches with a margin floor: who is asked, what is counted, and what they end with."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

import numpy as np
import pytest
from search_models import Device, Linear, Shelf, make_seeds

from edgeflare.answers.oracles import LabelOracle, margin
from edgeflare.devices import Reply
from edgeflare.errors import InferenceFailedError
from edgeflare.scheduler import (
    Budget,
    Feed,
    FleetLimits,
    Scheduler,
    SearchJob,
    SearchJobResult,
    SearchSettings,
)
from edgeflare.strategies import build_strategy
from edgeflare.types import (
    Answer,
    Ask,
    Decision,
    Outcome,
    Outputs,
    Sample,
    Search,
    Seed,
    Status,
    Strategy,
)

FLOOR = 0.25


class Listed(Device):
    """Remembers what it was asked, request by request."""

    def __init__(self, model: Linear) -> None:
        super().__init__(model)
        self.requests: list[list[Sample]] = []

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        self.requests.append(list(samples))
        return super().submit(samples)


def run(
    seeds: list[Seed],
    device: Device,
    strategy: Strategy,
    *,
    floor: float = FLOOR,
    budget: Budget | None = None,
    original: Linear | None = None,
    concurrency: int = 8,
) -> dict[str, SearchJobResult]:
    oracle = LabelOracle(floor)
    rules = SearchSettings(strategy, budget or Budget(500, None), 2, 7, Shelf(), oracle)
    results: dict[str, SearchJobResult] = {}

    def keep(result: SearchJobResult, _: str) -> None:
        results[result.seed.id] = result

    feed = Feed(SearchJob(seed, rules) for seed in seeds)
    Scheduler(
        original or Linear(), [device], [feed], oracle, workers=2,
        limits=FleetLimits(concurrency=concurrency),
    ).run(keep)  # fmt: skip
    return results


def asking(samples: Sequence[Sample], answers: list[Answer], times: int = 1) -> Strategy:
    """A strategy that asks both models about these samples so often, and gives up."""

    def strategy(seed: Seed, rng: np.random.Generator) -> Search:
        del seed, rng
        for _ in range(times):
            answer = yield Ask(samples, "both")
            answers.append(answer)
        return Outcome(None)

    return strategy


def pictures(count: int, wanted: Callable[[float], bool]) -> list[Sample]:
    """Random pictures whose margin in the original is as wanted."""
    rng = np.random.default_rng(3)
    found: list[Sample] = []
    while len(found) < count:
        sample = rng.integers(0, 256, (8, 8, 1), dtype=np.uint8)
        if wanted(margin(Linear().one(sample)) or 0.0):
            found.append(sample)
    return found


UNSURE = pictures(3, lambda value: value < FLOOR)
SURE = pictures(3, lambda value: value >= FLOOR)


def test_only_inputs_above_the_floor_reach_the_device_and_cost_queries() -> None:
    answers: list[Answer] = []
    device = Listed(Linear(5e-3))
    mixed = [UNSURE[0], SURE[0], UNSURE[1], SURE[1]]
    seeds = make_seeds(1, Linear(), Linear(5e-3))
    counters = run(seeds, device, asking(mixed, answers))["s0"].counters
    (request,) = device.requests
    assert [sample.tobytes() for sample in request] == [one.tobytes() for one in SURE[:2]]
    assert (counters.search, counters.host_only, counters.round_trips) == (2, 2, 1)
    for sample, outputs in zip(mixed, answers[0].outputs, strict=True):
        assert outputs.original.tolist() == Linear().one(sample).tolist()
    unsure, sure = answers[0].outputs[::2], answers[0].outputs[1::2]
    assert [(one.deployed, one.decision) for one in unsure] == [(None, Decision.BELOW_FLOOR)] * 2
    for sample, outputs in zip(SURE, sure, strict=False):
        theirs = Linear(5e-3).one(sample)
        assert outputs.deployed.tolist() == theirs.tolist()
        assert outputs.decision is LabelOracle(FLOOR).decide(Linear().one(sample), theirs)


def test_without_a_sure_input_the_device_is_not_asked_at_all() -> None:
    answers: list[Answer] = []
    device = Listed(Linear())
    counters = run(make_seeds(1, Linear(), Linear()), device, asking(UNSURE, answers))[
        "s0"
    ].counters
    assert device.requests == []
    assert (counters.search, counters.host_only, counters.round_trips) == (0, 3, 0)


@pytest.mark.rounding
@pytest.mark.parametrize("name", ["dflare", "dflare-d", "dflare-r", "diffchaser"])
def test_every_strategy_finds_triggers_on_which_both_models_are_sure(name: str) -> None:
    floor = 0.1
    options = {"population": 40, "batch": 5} if name == "diffchaser" else {"variant": "text"}
    seeds = make_seeds(10, Linear(), Linear(5e-3))
    results = run(
        seeds,
        Device(Linear(5e-3)),
        build_strategy(name, options),
        floor=floor,
        budget=Budget(2000, None),
    )
    found = [one for one in results.values() if one.status is Status.FOUND]
    assert len(found) >= 7
    for one in found:
        assert one.outputs.original is not None
        assert one.outputs.deployed is not None
        assert min(margin(one.outputs.original) or 0, margin(one.outputs.deployed) or 0) >= floor
        assert one.counters.host_only + one.counters.search >= 1
    assert sum(one.counters.host_only for one in results.values()) > 0


def test_a_seed_that_differs_below_the_floor_is_searched_from() -> None:
    model = Linear(5e-3)
    oracle = LabelOracle(FLOOR)
    sample = next(
        one
        for one in np.random.default_rng(1).integers(0, 256, (3000, 8, 8, 1), dtype=np.uint8)
        if oracle.decide(Linear().one(one), model.one(one)) is Decision.BELOW_FLOOR
    )
    outputs = Outputs(Linear().one(sample), model.one(sample), Decision.BELOW_FLOOR)
    answers: list[Answer] = []
    seed = Seed("d", sample, outputs)
    result = run([seed], Device(model), asking(SURE[:1], answers))["d"]
    assert (result.status, len(answers)) == (Status.GAVE_UP, 1)


def test_a_trigger_that_is_below_the_floor_when_it_is_confirmed_is_unstable() -> None:
    def careless(seed: Seed, rng: np.random.Generator) -> Search:
        del seed, rng
        yield Ask(UNSURE[:1], "original")
        return Outcome(UNSURE[0])

    result = run(make_seeds(1, Linear(), Linear()), Device(Linear(5e-3)), careless)["s0"]
    assert (result.status, result.confirmed) == (Status.UNSTABLE, 0)


class Nan(Linear):
    def one(self, sample: Sample) -> np.ndarray:
        return super().one(sample) * np.nan


def test_an_original_that_gives_nan_is_a_finding_whatever_the_floor() -> None:
    seeds = make_seeds(1, Linear(), Linear())
    result = run(seeds, Device(Linear()), asking(SURE[:1], []), original=Nan())["s0"]
    assert (result.status, result.counters.search) == (Status.NONFINITE, 1)


class Refusing(Device):
    """Can't answer on anything."""

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        failed: Future[Reply] = Future()
        failed.set_exception(InferenceFailedError("board: no"))
        return failed


def test_the_only_input_of_a_request_that_reached_a_failing_device_is_kept() -> None:
    seeds = make_seeds(1, Linear(), Linear())
    result = run(seeds, Refusing(Linear()), asking([UNSURE[0], SURE[0]], []))["s0"]
    assert (result.status, result.detail) == (Status.FAILED, "board: no")
    assert result.sample.tobytes() == SURE[0].tobytes()


class TestBudgets:
    def test_queries_count_only_what_the_device_was_given(self) -> None:
        answers: list[Answer] = []
        mixed = [*UNSURE, SURE[0]]
        seeds = make_seeds(1, Linear(), Linear())
        strategy = asking(mixed, answers, 9)
        result = run(seeds, Device(Linear()), strategy, budget=Budget(5, None))["s0"]
        assert (result.status, len(answers)) == (Status.EXHAUSTED, 5)
        assert (result.counters.search, result.counters.host_only) == (5, 15)

    def test_a_batch_that_cannot_be_paid_is_not_asked(self) -> None:
        answers: list[Answer] = []
        seeds = make_seeds(1, Linear(), Linear())
        strategy = asking(SURE, answers, 9)
        result = run(seeds, Device(Linear()), strategy, budget=Budget(5, None))["s0"]
        assert (result.status, len(answers), result.counters.search) == (Status.EXHAUSTED, 1, 3)

    @pytest.mark.parametrize(("limit", "asked"), [(6, 2), (7, 2), (None, 9)])
    def test_host_queries_end_a_search_that_never_gets_above_the_floor(self, limit, asked) -> None:
        answers: list[Answer] = []
        seeds = make_seeds(1, Linear(), Linear())
        strategy = asking(UNSURE, answers, 9)
        budget = Budget(None, None, limit)
        result = run(seeds, Device(Linear()), strategy, budget=budget)["s0"]
        assert result.status is (Status.GAVE_UP if limit is None else Status.EXHAUSTED)
        assert (len(answers), result.counters.search) == (asked, 0)

    def test_questions_to_the_original_never_go_past_it(self) -> None:
        asked = []

        def curious(seed: Seed, rng: np.random.Generator) -> Search:
            del rng
            while True:
                asked.append((yield Ask((seed.sample, seed.sample), "original")))

        seeds = make_seeds(1, Linear(), Linear())
        budget = Budget(None, None, 5)
        result = run(seeds, Device(Linear()), curious, budget=budget, floor=0.0)["s0"]
        assert (result.status, len(asked)) == (Status.EXHAUSTED, 2)
        assert result.counters.host_only == 4

    @pytest.mark.parametrize("budget", [Budget(None, None, 7), Budget(None, 1e-9)])
    def test_a_search_whose_inputs_were_below_the_floor_says_so(self, budget: Budget) -> None:
        seeds = make_seeds(1, Linear(), Linear())
        result = run(seeds, Device(Linear()), asking(UNSURE, [], 9), budget=budget)["s0"]
        assert result.mostly_below_floor
        count = result.counters.host_only
        assert f"{count} of {count}" in result.detail

    def test_a_search_that_asked_the_device_about_most_inputs_says_nothing_of_the_floor(
        self,
    ) -> None:
        seeds = make_seeds(1, Linear(), Linear())
        strategy = asking([*SURE, UNSURE[0]], [], 9)
        result = run(seeds, Device(Linear()), strategy, budget=Budget(5, None))["s0"]
        assert (result.status, result.detail, result.mostly_below_floor) == (
            Status.EXHAUSTED,
            "",
            False,
        )

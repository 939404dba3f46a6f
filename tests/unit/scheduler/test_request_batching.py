"""What several jobs ask a device travels in few requests, and nothing else changes.

All jobs' requests in one-trip mode, some of them where the device is quick.
"""

import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_models import Device, Linear, Shelf, make_seeds

from edgeflare.answers.oracles import LabelOracle
from edgeflare.devices import DeviceState, Reply
from edgeflare.errors import (
    AgentDiedError,
    DeviceAwayError,
    EdgeFlareError,
    InferenceFailedError,
    StrategyError,
)
from edgeflare.scheduler import (
    Budget,
    Feed,
    FleetLimits,
    Scheduler,
    SearchJob,
    SearchJobResult,
    SearchSettings,
)
from edgeflare.scheduler.device_queue import BatchedRequest, parts
from edgeflare.strategies import build_strategy
from edgeflare.types import Ask, Outcome, Sample, Search, Seed, Status

DEPLOYED = Linear(5e-3)
SEEDS = make_seeds(24, Linear(), DEPLOYED)
DFLARE = build_strategy("dflare", {"variant": "text"})
RULES = SearchSettings(DFLARE, Budget(60, None), 2, 7, Shelf())


class Batches(Device):
    """Notes how many samples each request has."""

    def __init__(self, model: Linear = DEPLOYED, **more: Any) -> None:
        super().__init__(model, **more)
        self.requests: list[int] = []

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        self.requests.append(len(samples))
        return super().submit(samples)


def scheduler_over(
    devices: Sequence[Any],
    feeds: Sequence[Feed[SearchJobResult]],
    workers: int = 2,
    limits: FleetLimits = FleetLimits(),  # noqa: B008 - immutable
    **more: Any,
) -> Scheduler[SearchJobResult]:
    stated = {name: more.pop(name) for name in FleetLimits._fields if name in more}
    limits = limits._replace(**{"one_trip": True, "tick_s": 0.02, **stated})
    return Scheduler(
        Linear(), devices, feeds, LabelOracle(), workers=workers, limits=limits, **more
    )


def feed(seeds: Iterable[Seed] = SEEDS, rules: SearchSettings = RULES) -> Feed[SearchJobResult]:
    return Feed(SearchJob(seed, rules) for seed in seeds)


def run(
    device: Any, rules: SearchSettings = RULES, seeds: Iterable[Seed] = SEEDS, **more: Any
) -> dict[str, SearchJobResult]:
    results: dict[str, SearchJobResult] = {}

    def keep(result: SearchJobResult, _: str) -> None:
        assert result.seed.id not in results
        results[result.seed.id] = result

    scheduler_over([device], [feed(seeds, rules)], **more).run(keep)
    return results


def essence(results: dict[str, SearchJobResult]) -> dict[str, tuple[object, ...]]:
    """All of each result but its seconds, scores to the last bit."""
    return {
        name: (
            one.status,
            one.sample_digest,
            one.outputs and [scores.tobytes() for scores in one.outputs[:2] if scores is not None],
            one.counters.search,
            one.counters.confirmation,
            one.counters.host_only,
            one.confirmed,
            list(one.mutations),
            one.detail,
        )
        for name, one in results.items()
    }


SLOW_S = 0.01
"""Seconds of a device for an answer from which on each request travels by itself."""
EXPECTED = essence(run(Batches(seconds=SLOW_S), one_trip=False))


def trips(results: Iterable[SearchJobResult]) -> list[int]:
    """How often each search asked the device; dflare asks about one sample at a time."""
    return [one.counters.search + one.counters.confirmation for one in results]


@pytest.mark.parametrize("workers", [1, 4])
def test_every_search_travels_in_each_request_and_finds_the_same(workers: int) -> None:
    device = Batches()
    results = run(device, workers=workers)
    assert essence(results) == EXPECTED
    asked = trips(results.values())
    assert len(set(asked)) > 3
    assert device.requests == [sum(one > k for one in asked) for k in range(max(asked))]


def test_with_fewer_searches_at_once_the_next_ones_join_the_requests() -> None:
    device = Batches()
    results = run(device, concurrency=5)
    assert essence(results) == EXPECTED
    assert max(device.requests) == 5
    assert sum(device.requests) == sum(trips(results.values()))
    assert len(device.requests) < sum(device.requests) / 3


def test_other_strategies_that_ask_about_many_samples_find_the_same() -> None:
    rules = RULES._replace(
        strategy=build_strategy("diffchaser", {"population": 12}), budget=Budget(150, None)
    )
    alone, together = Batches(seconds=SLOW_S), Batches()
    one_by_one = run(alone, rules, SEEDS[:6], one_trip=False)
    assert essence(run(together, rules, SEEDS[:6])) == essence(one_by_one)
    assert len(together.requests) < len(alone.requests) / 2


def test_a_search_that_still_asks_the_original_is_waited_for() -> None:
    def curious(seed: Seed, rng: np.random.Generator) -> Search:
        for _ in range(int(seed.id[1:]) * 40):
            yield Ask((seed.sample,), of="original")
        yield Ask((seed.sample, seed.sample))
        return Outcome(None)

    device = Batches()
    results = run(device, RULES._replace(strategy=curious), SEEDS[:8])
    assert device.requests == [16]
    assert results["s7"].counters.host_only == 280


def test_a_request_is_divided_only_where_it_would_be_too_large() -> None:
    def greedy(seed: Seed, rng: np.random.Generator) -> Search:
        many = rng.integers(0, 256, (700, 8, 8, 1), dtype=np.uint8)
        answer = yield Ask(tuple(many), of="deployed")
        for sample, outputs in zip(many, answer.outputs, strict=True):
            assert outputs.deployed.tobytes() == DEPLOYED.one(sample).tobytes()
        return Outcome(None)

    device = Batches()
    rules = RULES._replace(strategy=greedy, budget=Budget(None, None))
    assert len(run(device, rules, SEEDS[:7])) == 7
    assert sorted(device.requests) == [700, 1400, 1400, 1400]


@given(sizes=st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=5), max_size=20))
def test_parts_keep_order_and_limits_and_are_as_few_as_that_allows(sizes: list[list[int]]) -> None:
    held: list[BatchedRequest] = [
        ([np.zeros(n, np.uint8) for n in question], Future()) for question in sizes
    ]
    divided = list(parts(held, most_samples=8, most_bytes=64))
    assert [one for part in divided for one in part] == held

    def fits(part: Sequence[BatchedRequest]) -> bool:
        samples = [sample for samples, _ in part for sample in samples]
        return len(samples) <= 8 and sum(sample.nbytes for sample in samples) <= 64

    assert all(fits(part) or len(part) == 1 for part in divided)
    assert not any(fits([*part, after[0]]) for part, after in pairwise(divided))


class Fragile(Batches):
    """Can't answer a request with an input whose first pixel is bright, unless that is a seed."""

    fine = frozenset(seed.sample.tobytes() for seed in SEEDS)

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        if all(one[0, 0, 0] < 128 or one.tobytes() in self.fine for one in samples):
            return super().submit(samples)
        self.requests.append(len(samples))
        failed: Future[Reply] = Future()
        failed.set_exception(InferenceFailedError("board can't answer on an input"))
        return failed


def test_an_input_on_which_the_device_cannot_answer_ends_its_search_alone() -> None:
    alone = run(Fragile(seconds=SLOW_S), one_trip=False)
    failed = [one for one in alone.values() if one.status is Status.FAILED]
    assert 0 < len(failed) < len(SEEDS)
    assert all(one.sample is not None for one in failed)
    assert essence(run(Fragile())) == essence(alone)
    assert essence(run(Fragile(), one_trip=False)) == essence(alone)


@pytest.mark.parametrize("workers", [1, 4])
def test_some_requests_to_a_quick_device_travel_together_and_none_to_a_slow_one(workers) -> None:
    quick, slow = Batches(), Batches(seconds=SLOW_S)
    for device in (quick, slow):
        results = run(device, one_trip=False, workers=workers)
        assert essence(results) == EXPECTED
        assert sum(device.requests) == sum(trips(results.values()))
    assert 1 < max(quick.requests) <= 12
    assert set(slow.requests) == {1}


def test_a_quick_device_that_cannot_answer_requests_together_gets_each_alone() -> None:
    class Single(Batches):
        def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
            if len(samples) == 1:
                return super().submit(samples)
            self.requests.append(len(samples))
            failed: Future[Reply] = Future()
            failed.set_exception(InferenceFailedError("board can't answer on so many inputs"))
            return failed

    device = Single()
    assert essence(run(device, one_trip=False, workers=1)) == EXPECTED
    assert sum(count > 1 for count in device.requests) == 1


def test_seconds_of_a_shared_request_are_counted_for_each_search_alone() -> None:
    same = Linear()
    seeds = make_seeds(6, same, same)
    results = run(Batches(same, seconds=0.5), RULES._replace(budget=Budget(None, 2.2)), seeds)
    assert {one.status for one in results.values()} == {Status.TIMEOUT}
    assert {(one.counters.search, one.counters.device_seconds) for one in results.values()} == {
        (5, 2.5)
    }


class Going(Batches):
    """Goes away once it has taken so many requests, for good or for a moment."""

    def __init__(self, *, after: int, returns: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.after = after
        self.returns = returns
        self.kept: list[tuple[Sequence[Sample], Future[Reply]]] = []

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        if len(self.requests) < self.after:
            return super().submit(samples)
        self.requests.append(len(samples))
        future: Future[Reply] = Future()
        self.kept.append((list(samples), future))
        self.state, self.away_s, self.detail = DeviceState.AWAY, 99.0, "the cable is out"
        if self.returns:
            threading.Timer(0.1, self.back).start()
        return future

    def back(self) -> None:
        self.state, self.away_s, self.after = DeviceState.UP, 0.0, 10**9
        for samples, future in self.kept:
            future.set_result(Reply(self.model.scores(samples), [0.0] * len(samples)))

    def give_up(self, error: EdgeFlareError) -> None:
        raise error

    def withdraw(self) -> None:
        kept, self.kept = self.kept, []
        for _, future in kept:
            future.set_exception(DeviceAwayError(f"{self.name} is away"))


def test_a_device_that_goes_away_for_good_leaves_its_searches_to_the_others() -> None:
    devices = [Going(after=3, name="a"), Batches(name="b")]
    found: list[SearchJobResult] = []
    limits = FleetLimits(handover_s=0.0, patience_s=600)
    scheduler_over(devices, [feed()] * 2, limits=limits).run(lambda one, _: found.append(one))
    assert essence({one.seed.id: one for one in found}) == EXPECTED
    assert len(found) == len(SEEDS)


def test_with_no_device_left_the_run_ends_and_keeps_what_was_done() -> None:
    device = Going(after=20)
    kept: list[SearchJobResult] = []
    scheduler = scheduler_over([device], [feed()], limits=FleetLimits(patience_s=0.0))
    with pytest.raises(DeviceAwayError, match=r"left.*the cable"):
        scheduler.run(lambda one, _: kept.append(one))
    assert 0 < len(kept) < len(SEEDS)


def test_a_question_that_is_held_when_its_device_stays_away_is_given_back_with_its_job() -> None:
    """One job of a computes until b has gone on alone for a while; a is lost meanwhile, nothing sent."""
    computing, resumed = threading.Event(), threading.Event()

    def slow(seed: Seed, rng: np.random.Generator) -> Search:
        if seed.id == "s0" and not computing.is_set():
            computing.set()
            assert resumed.wait(60)
        yield Ask((seed.sample,))
        return Outcome(None)

    class Lost(Batches):
        def withdraw(self) -> None:
            withdrawn.set()

    withdrawn = threading.Event()
    first, second = Lost(name="a"), Batches(name="b")
    done: list[tuple[str, str]] = []

    def look() -> None:
        if computing.is_set() and not withdrawn.is_set():
            first.state, first.away_s = DeviceState.AWAY, 99.0
        if withdrawn.is_set() and len(done) >= 3:
            first.state, first.away_s = DeviceState.UP, 0.0
            resumed.set()

    rules = RULES._replace(strategy=slow)
    scheduler_over(
        [first, second],
        [feed(SEEDS[:4], rules)] * 2,
        limits=FleetLimits(handover_s=0.0, patience_s=600),
    ).run(lambda one, name: done.append((one.seed.id, name)), look)
    assert sorted(seed for seed, _ in done) == ["s0", "s1", "s2", "s3"]
    assert dict(done)["s2"] == "b"


@pytest.mark.parametrize(
    "limits", [FleetLimits(device_queries=150), FleetLimits(total_queries=150)], ids=["own", "all"]
)
def test_a_limit_on_queries_holds(limits: FleetLimits) -> None:
    device = Batches()
    found: dict[str, SearchJobResult] = {}
    stopped: list[int] = []

    def keep(result: SearchJobResult, _: str) -> None:
        found[result.seed.id] = result

    scheduler = scheduler_over(
        [device], [feed()], limits=limits, on_stopped=lambda _, count: stopped.append(count)
    )
    scheduler.run(keep)
    spent = [one.counters.search + one.counters.confirmation for one in found.values()]
    assert sum(spent) + sum(stopped) == sum(device.requests) <= 150
    assert scheduler.left
    assert essence(found) == {name: EXPECTED[name] for name in found}


class Dying(Batches):
    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        if len(self.requests) < 10:
            return super().submit(samples)
        gone: Future[Reply] = Future()
        gone.set_exception(AgentDiedError("the agent is gone"))
        return gone


class Refusing(Batches):
    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        raise EdgeFlareError("this is refused")


@pytest.mark.parametrize(
    ("device", "error", "words"),
    [(Dying, AgentDiedError, "is gone"), (Refusing, EdgeFlareError, "is refused")],
)
def test_an_error_of_a_shared_request_ends_the_run(device, error, words) -> None:
    with pytest.raises(error, match=words):
        run(device())


def test_a_strategys_error_ends_the_run_while_others_wait() -> None:
    def faulty(seed: Seed, rng: np.random.Generator) -> Search:
        if seed.id == "s3":
            raise ZeroDivisionError("in the strategy")
        yield Ask((seed.sample,))
        return Outcome(None)

    device = Batches()
    with pytest.raises(StrategyError, match=r"s3 .*ZeroDivisionError"):
        run(device, RULES._replace(strategy=faulty))
    assert device.requests == []


def test_ctrl_c_ends_a_run_that_waits_for_a_slow_request_and_keeps_what_was_done() -> None:
    kept: list[SearchJobResult] = []

    class Slow(Batches):
        def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
            if len(self.requests) < 20:
                return super().submit(samples)
            waits.set()
            return Future()

    def tick() -> None:
        if waits.is_set():
            raise KeyboardInterrupt

    waits = threading.Event()
    with pytest.raises(KeyboardInterrupt):
        scheduler_over([Slow()], [feed()]).run(lambda one, _: kept.append(one), tick)
    found = essence({one.seed.id: one for one in kept})
    assert 0 < len(found) < len(SEEDS)
    assert found == {name: EXPECTED[name] for name in found}

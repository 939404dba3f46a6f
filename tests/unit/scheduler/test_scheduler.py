"""The scheduler over real strategies and a small linear classifier whose device answers out of order."""

import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future

import numpy as np
import pytest
from search_models import Device, Linear, Shelf, make_seeds

from edgeflare.answers.oracles import LabelOracle
from edgeflare.devices import Reply
from edgeflare.errors import AgentDiedError, InferenceFailedError, StrategyError
from edgeflare.scheduler import (
    Budget,
    Feed,
    FleetLimits,
    Scheduler,
    SearchJob,
    SearchJobResult,
    SearchSettings,
    chain_seed,
)
from edgeflare.scheduler.job import answer_of
from edgeflare.strategies import build_strategy
from edgeflare.types import (
    Answer,
    Ask,
    JointObjective,
    Outcome,
    Outputs,
    Sample,
    Scores,
    Search,
    Seed,
    Status,
    Strategy,
)


def scheduler_over(
    seeds: Iterable[Seed],
    device: Device,
    *,
    original: Linear | None = None,
    strategy: Strategy | None = None,
    concurrency: int | None = 8,
    budget: Budget | None = None,
    confirmations: int = 2,
    workers: int = 2,
    tick_s: float = 0.5,
) -> Scheduler[SearchJobResult]:
    rules = SearchSettings(
        strategy or build_strategy("dflare", {"variant": "text"}),
        budget or Budget(500, None),
        confirmations,
        7,
        Shelf(),
    )
    return Scheduler(
        original or Linear(),
        [device],
        [Feed(SearchJob(seed, rules) for seed in seeds)],
        LabelOracle(),
        workers=workers,
        limits=FleetLimits(concurrency=concurrency, tick_s=tick_s),
    )


def run(seeds: list[Seed], device: Device, **more: object) -> dict[str, SearchJobResult]:
    results: dict[str, SearchJobResult] = {}

    def keep(result: SearchJobResult, name: str) -> None:
        assert name == device.name
        assert result.seed.id not in results
        results[result.seed.id] = result

    scheduler_over(seeds, device, **more).run(keep)  # type: ignore[arg-type]
    return results


def essence(results: dict[str, SearchJobResult]) -> dict[str, tuple[object, ...]]:
    return {
        name: (
            result.status,
            result.sample_digest,
            result.counters.search,
            result.counters.confirmation,
            list(result.mutations),
        )
        for name, result in results.items()
    }


def test_finds_confirmed_triggers_and_counts_every_query() -> None:
    seeds = make_seeds(12, Linear(), Linear(5e-3))
    results = run(seeds, Device(Linear(5e-3)))
    found = [result for result in results.values() if result.status is Status.FOUND]
    assert len(results) == 12
    assert len(found) >= 10
    for result in found:
        assert result.sample is not None
        assert result.outputs is not None
        assert Linear().one(result.sample).argmax() != Linear(5e-3).one(result.sample).argmax()
        assert result.confirmed == result.counters.confirmation == 2
        assert result.counters.seed == 1
        assert result.counters.search >= 1
        assert result.chain_seed == chain_seed(7, result.seed.id)


@pytest.mark.parametrize("workers", [1, 4])
def test_results_do_not_depend_on_concurrency(workers: int) -> None:
    seeds = make_seeds(16, Linear(), Linear(5e-3))
    alone = run(seeds, Device(Linear(5e-3)), concurrency=1, workers=1)
    together = run(seeds[::-1], Device(Linear(5e-3)), concurrency=16, workers=workers)
    assert essence(alone) == essence(together)


def test_many_requests_wait_at_the_device() -> None:
    device = Device(Linear(5e-3), hold=8)
    run(make_seeds(16, Linear(), Linear(5e-3)), device, concurrency=8)
    assert device.most_waiting == 8


def test_the_query_budget_is_exact() -> None:
    seeds = make_seeds(4, Linear(), Linear())
    results = run(
        seeds, Device(Linear()), budget=Budget(37, None)
    )  # identical models: nothing to find
    assert {result.status for result in results.values()} == {Status.EXHAUSTED}
    assert {result.counters.search for result in results.values()} == {37}


def test_the_time_budget_counts_the_devices_time_and_not_the_queue() -> None:
    seeds = make_seeds(6, Linear(), Linear())
    results = run(seeds, Device(Linear(), seconds=0.5), budget=Budget(None, 2.2), concurrency=6)
    assert {result.status for result in results.values()} == {Status.TIMEOUT}
    assert {result.counters.search for result in results.values()} == {5}


def test_a_seed_that_deviates_is_confirmed_and_not_searched() -> None:
    model = Linear(5e-3)
    sample = next(
        s
        for s in np.random.default_rng(1).integers(0, 256, (3000, 8, 8, 1), dtype=np.uint8)
        if Linear().one(s).argmax() != model.one(s).argmax()
    )
    answers = Linear().one(sample), model.one(sample)
    seed = Seed("d", sample, Outputs(*answers, LabelOracle().decide(*answers)))
    result = run([seed], Device(model))["d"]
    assert result.status is Status.SEED_DEVIATES
    assert result.counters.search == 0
    assert result.confirmed == 2


class Moody(Linear):
    """Deviates the first time it is asked about an image, never again."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[bytes] = set()

    def one(self, sample: Sample) -> Scores:
        scores = super().one(sample)
        if sample.tobytes() in self.seen:
            return scores
        self.seen.add(sample.tobytes())
        return np.roll(scores, 1)


def test_a_flip_that_does_not_repeat_is_unstable() -> None:
    results = run(make_seeds(3, Linear(), Linear()), Device(Moody()))
    assert {result.status for result in results.values()} == {Status.UNSTABLE}
    assert {result.confirmed for result in results.values()} == {0}


class Broken(Linear):
    """Gives NaN for every image but the seeds."""

    def __init__(self, seeds: list[Seed]) -> None:
        super().__init__()
        self.seeds = {seed.sample.tobytes() for seed in seeds}

    def one(self, sample: Sample) -> Scores:
        scores = super().one(sample)
        return scores if sample.tobytes() in self.seeds else scores * np.nan


def test_nan_ends_a_chain_as_a_finding_of_its_own_kind() -> None:
    seeds = make_seeds(3, Linear(), Linear())
    results = run(seeds, Device(Broken(seeds)))
    for result in results.values():
        assert result.status is Status.NONFINITE
        assert result.sample is not None
        assert result.confirmed == 2


def test_searches_that_wait_for_the_host_end_one_after_the_other() -> None:
    """So that one that is interrupted has kept some."""

    def patient(seed: Seed, rng: np.random.Generator) -> Search:
        for _ in range(50):
            yield Ask((seed.sample,), of="original")
        return Outcome(None)

    seeds = make_seeds(20, Linear(), Linear())
    original = Linear()
    asked = 0

    def counted(samples: Sequence[Sample]) -> tuple[list[Scores], list[float]]:
        nonlocal asked
        asked += len(samples)
        time.sleep(0.002)  # results are counted meanwhile
        return original.scores(samples), []

    original.answer = counted  # type: ignore[method-assign]
    rules = SearchSettings(patient, Budget(500, None), 2, 7, Shelf())
    feed = Feed(SearchJob(seed, rules) for seed in seeds)
    scheduler = Scheduler(
        original, [Device(Linear())], [feed], LabelOracle(), workers=1,
        limits=FleetLimits(concurrency=20),
    )  # fmt: skip
    queries_before: list[int] = []
    scheduler.run(lambda *_: queries_before.append(asked))
    assert len(queries_before) == 20
    assert queries_before[0] < asked / 2


def test_questions_to_the_original_alone_cost_no_query() -> None:
    def curious(seed: Seed, rng: np.random.Generator) -> Search:
        for _ in range(5000):
            answer: Answer = yield Ask((seed.sample, seed.sample), of="original")
            assert answer.outputs[0].deployed is None
        yield Ask((seed.sample,), of="both")
        return Outcome(None)

    result = run(make_seeds(1, Linear(), Linear()), Device(Linear()), strategy=curious)["s0"]
    assert result.counters.host_only == 10_000
    assert result.counters.search == 1
    assert result.status is Status.GAVE_UP


def test_a_dying_device_loses_no_finished_chain() -> None:
    class Dying(Device):
        asked = 0

        def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
            self.asked += 1
            if self.asked > 150:
                gone: Future[Reply] = Future()
                gone.set_exception(AgentDiedError("the agent is gone"))
                return gone
            return super().submit(samples)

    seeds = make_seeds(40, Linear(), Linear(5e-3))
    kept: list[SearchJobResult] = []
    scheduler = scheduler_over(seeds, Dying(Linear(5e-3)), concurrency=4)
    with pytest.raises(AgentDiedError, match="gone"):
        scheduler.run(lambda result, _: kept.append(result))
    assert kept
    assert len({result.seed.id for result in kept}) == len(kept) < 40


def test_a_long_search_is_seen_to_move() -> None:
    ticks = threading.Semaphore(0)

    class OneAnswerATick(Device):
        def _answer(self, samples: Sequence[Sample], pause: float) -> Reply:
            assert ticks.acquire(timeout=60)
            return super()._answer(samples, 0.0)

    seen: list[int] = []

    def tick() -> None:
        seen.append(sum(job.counters.search for job in scheduler.under_way))
        ticks.release()

    scheduler = scheduler_over(
        make_seeds(2, Linear(), Linear()), OneAnswerATick(Linear()), budget=Budget(5, None),
        concurrency=2, workers=1, tick_s=0.01,
    )  # fmt: skip
    scheduler.run(lambda *_: None, tick)
    assert len(set(seen)) > 2
    assert 0 < max(seen) <= 10


def test_a_strategys_own_error_names_the_seed() -> None:
    def faulty(seed: Seed, rng: np.random.Generator) -> Search:
        yield Ask((seed.sample,))
        raise ZeroDivisionError("in the strategy")

    with pytest.raises(StrategyError, match=r"s\d .*ZeroDivisionError"):
        run(make_seeds(2, Linear(), Linear()), Device(Linear()), strategy=faulty)


def test_by_default_a_device_gets_as_many_searches_as_its_depth_asks_for() -> None:
    seeds = make_seeds(40, Linear(), Linear(5e-3))
    shallow, deep = Device(Linear(5e-3)), Device(Linear(5e-3), hold=24)
    deep.depth = 24
    assert essence(run(seeds, shallow, concurrency=None)) == essence(
        run(seeds, deep, concurrency=None)
    )
    assert shallow.most_waiting < deep.most_waiting
    assert deep.most_waiting >= 24


def test_an_input_on_which_the_device_cannot_answer_ends_its_search_alone() -> None:
    class Fragile(Device):
        """Can't answer on inputs whose first pixel is bright, unless they are seeds."""

        def __init__(self, model: Linear, seeds: list[Seed]) -> None:
            super().__init__(model)
            self.fine = {seed.sample.tobytes() for seed in seeds}

        def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
            if all(one[0, 0, 0] < 128 or one.tobytes() in self.fine for one in samples):
                return super().submit(samples)
            failed: Future[Reply] = Future()
            failed.set_exception(InferenceFailedError("board can't answer on an input"))
            return failed

    seeds = make_seeds(20, Linear(), Linear(5e-3))
    results = run(seeds, Fragile(Linear(5e-3), seeds))
    assert len(results) == 20
    failed = [result for result in results.values() if result.status is Status.FAILED]
    assert failed
    assert len(failed) < 20
    for result in failed:
        assert result.sample[0, 0, 0] >= 128
        assert "can't answer" in result.detail


@pytest.mark.parametrize("one_trip", [False, True])
@pytest.mark.parametrize("of", ["both", "original"])
def test_an_input_on_which_the_original_cannot_answer_ends_its_search_alone(of, one_trip) -> None:
    class Picky(Linear):
        """Can't answer on inputs whose first pixel is bright."""

        def scores(self, samples: Sequence[Sample]) -> list[Scores]:
            if any(sample[0, 0, 0] >= 128 for sample in samples):
                raise InferenceFailedError("original model: too bright")
            return super().scores(samples)

    def one_look(seed: Seed, rng: np.random.Generator) -> Search:
        yield Ask((seed.sample,), of=of)
        return Outcome(None)

    seeds = make_seeds(20, Linear(), Linear())
    rules = SearchSettings(one_look, Budget(500, None), 2, 7, Shelf())
    device = Device(Linear())
    scheduler = Scheduler(
        Picky(),
        [device],
        [Feed(SearchJob(seed, rules) for seed in seeds)],
        LabelOracle(),
        workers=2,
        limits=FleetLimits(one_trip=one_trip),
    )
    results: dict[str, SearchJobResult] = {}
    scheduler.run(lambda result, _: results.update({result.seed.id: result}))
    bright = {seed.id for seed in seeds if seed.sample[0, 0, 0] >= 128}
    assert 0 < len(bright) < len(results) == 20
    assert {name for name, one in results.items() if one.status is Status.FAILED} == bright
    for name in bright:
        assert results[name].sample is not None
        assert "original model: too" in results[name].detail


def test_an_error_while_a_result_is_kept_stops_the_run() -> None:
    def refuse(result: SearchJobResult, name: str) -> None:
        raise OSError("the disk is gone")

    scheduler = scheduler_over(make_seeds(30, Linear(), Linear(5e-3)), Device(Linear(5e-3)))
    with pytest.raises(OSError, match="the disk"):
        scheduler.run(refuse)


def test_what_a_probe_answers_is_in_the_field_of_its_kind() -> None:
    oracle, found = LabelOracle(), [np.zeros((1, 2, 2, 1))]
    sample, joint = np.zeros((2, 2, 1), np.uint8), JointObjective(("a.onnx",), 0, 1, 2.0)
    ask = Ask([sample], of="original", want="gradient", classes=(0, 1))
    outputs, gradients, none, probed = answer_of(ask, found, None, oracle)
    assert (len(outputs), gradients, len(none), probed) == (1, found, 0, found)
    answer = answer_of(ask._replace(joint=joint), found, None, oracle)
    assert (answer.joint, len(answer.gradients), answer.probed) == (found, 0, found)

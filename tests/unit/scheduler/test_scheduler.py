"""The scheduler over real strategies and a small linear classifier whose device answers out of order."""

import hashlib
import random
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

from edgeflare.errors import AgentDiedError, StrategyError
from edgeflare.oracles import LabelOracle
from edgeflare.scheduler import Budget, ChainResult, Reply, Rules, Scheduler, chain_seed
from edgeflare.search import build_strategy
from edgeflare.types import (
    Answer,
    Ask,
    Outcome,
    Outputs,
    Sample,
    Scores,
    Search,
    Seed,
    Status,
    Strategy,
)

WEIGHTS = np.random.default_rng(0).normal(size=(64, 4)) / 100


def softmax(logits: Scores) -> Scores:
    powers = np.exp(logits - logits.max())
    return np.asarray(powers / powers.sum())


class Linear:
    """A classifier of 8 x 8 x 1 images; `step` rounds its weights, as a quantised copy would."""

    def __init__(self, step: float = 0.0) -> None:
        self.weights = np.round(WEIGHTS / step) * step if step else WEIGHTS

    def one(self, sample: Sample) -> Scores:
        return softmax(sample.reshape(-1).astype(np.float64) @ self.weights)

    def scores(self, samples: Sequence[Sample]) -> list[Scores]:
        return [self.one(sample) for sample in samples]


class Device:
    """Answers from threads of its own, in an order of its own."""

    def __init__(self, model: Linear, *, seconds: float = 0.0) -> None:
        self.model = model
        self.seconds = seconds
        self.pool = ThreadPoolExecutor(3)
        self.shuffle = random.Random(0)
        self.waiting = 0
        self.most_waiting = 0
        self.lock = threading.Lock()

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        with self.lock:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
            pause = self.shuffle.random() * 2e-3
        return self.pool.submit(self._answer, samples, pause)

    def _answer(self, samples: Sequence[Sample], pause: float) -> Reply:
        threading.Event().wait(pause)
        with self.lock:
            self.waiting -= 1
        return Reply(self.model.scores(samples), [self.seconds] * len(samples))


class Shelf:
    """A vault in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Sample] = {}

    def put_sample(self, sample: Sample) -> str:
        digest = hashlib.sha256(sample.tobytes()).hexdigest()
        self.kept[digest] = sample.copy()
        return digest

    def get_sample(self, digest: str) -> Sample:
        return self.kept[digest]


def make_seeds(count: int, original: Linear, deployed: Linear) -> list[Seed]:
    rng = np.random.default_rng(9)
    seeds = []
    while len(seeds) < count:
        sample = rng.integers(0, 256, (8, 8, 1), dtype=np.uint8)
        answers = original.one(sample), deployed.one(sample)
        outputs = Outputs(*answers, LabelOracle().decide(*answers))
        if outputs.decision == "agree":
            seeds.append(Seed(f"s{len(seeds)}", sample, outputs))
    return seeds


def run(
    seeds: list[Seed],
    device: Device,
    *,
    original: Linear | None = None,
    strategy: Strategy | None = None,
    concurrency: int = 8,
    budget: Budget | None = None,
    confirmations: int = 2,
    workers: int = 2,
) -> dict[str, ChainResult]:
    rules = Rules(
        strategy or build_strategy("dflare", {}),
        budget or Budget(500, None),
        confirmations,
        7,
        Shelf(),
    )
    scheduler = Scheduler(
        original or Linear(),
        device,
        LabelOracle(),
        rules,
        concurrency=concurrency,
        workers=workers,
    )
    results: dict[str, ChainResult] = {}

    def keep(result: ChainResult) -> None:
        assert result.seed.id not in results
        results[result.seed.id] = result

    scheduler.run(seeds, keep)
    return results


def essence(results: dict[str, ChainResult]) -> dict[str, tuple[object, ...]]:
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
    device = Device(Linear(5e-3))
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
    device = Dying(Linear(5e-3))
    rules = Rules(build_strategy("dflare", {}), Budget(500, None), 2, 7, Shelf())
    kept: list[ChainResult] = []
    scheduler = Scheduler(Linear(), device, LabelOracle(), rules, concurrency=4, workers=2)
    with pytest.raises(AgentDiedError, match="gone"):
        scheduler.run(seeds, kept.append)
    assert kept
    assert len({result.seed.id for result in kept}) == len(kept) < 40


def test_a_long_search_is_seen_to_move() -> None:
    class Slow(Device):
        def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
            return self.pool.submit(self._late, samples)

        def _late(self, samples: Sequence[Sample]) -> Reply:
            threading.Event().wait(0.3)
            return Reply(self.model.scores(samples), [0.3])

    seeds = make_seeds(2, Linear(), Linear())
    rules = Rules(build_strategy("dflare", {}), Budget(5, None), 2, 7, Shelf())
    seen: list[int] = []
    scheduler = Scheduler(Linear(), Slow(Linear()), LabelOracle(), rules, concurrency=2, workers=1)
    scheduler.run(seeds, lambda result: None, lambda: seen.append(scheduler.queries_in_flight))
    assert seen == sorted(seen)
    assert 0 < max(seen) <= 10


def test_a_strategys_own_error_names_the_seed() -> None:
    def faulty(seed: Seed, rng: np.random.Generator) -> Search:
        yield Ask((seed.sample,))
        raise ZeroDivisionError("in the strategy")

    with pytest.raises(StrategyError, match=r"seed s\d .*ZeroDivisionError: in the strategy"):
        run(make_seeds(2, Linear(), Linear()), Device(Linear()), strategy=faulty)

"""One-trip mode: how many searches run at once, and what counts for the limits."""

from collections.abc import Iterable, Sequence
from concurrent.futures import Future

import numpy as np
import pytest
from search_models import Device, Linear, Shelf, make_seeds

from edgeflare.answers.oracles import LabelOracle
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
from edgeflare.types import Ask, Outcome, Sample, Search, Seed

SEEDS = make_seeds(24, Linear(), Linear())


def asks_once(seed: Seed, rng: np.random.Generator) -> Search:
    yield Ask((SEEDS[0].sample,), of="deployed")  # a small one, whatever the seed's size
    return Outcome(None)


RULES = SearchSettings(asks_once, Budget(60, None), 2, 7, Shelf())


class Batches(Device):
    """Notes how many samples each request has."""

    def __init__(self, name: str = "board") -> None:
        super().__init__(Linear(), name=name)
        self.requests: list[int] = []

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        self.requests.append(len(samples))
        return super().submit(samples)


class Single(Batches):
    """Can't answer on two inputs at once."""

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        if len(samples) == 1:
            return super().submit(samples)
        self.requests.append(len(samples))
        failed: Future[Reply] = Future()
        failed.set_exception(InferenceFailedError("board can't answer on an input"))
        return failed


def run(
    devices: Sequence[Batches],
    seeds: Iterable[Seed],
    limits: FleetLimits | None = None,
    concurrency: int | None = None,
    rules: SearchSettings = RULES,
) -> tuple[list[str], bool]:
    """Search in one-trip mode, one feed for all; return the seeds that are done and whether some are left."""
    feed: Feed[SearchJobResult] = Feed(SearchJob(seed, rules) for seed in seeds)
    scheduler = Scheduler(
        Linear(),
        devices,
        [feed] * len(devices),
        LabelOracle(),
        workers=2,
        limits=(limits or FleetLimits())._replace(one_trip=True, concurrency=concurrency),
    )
    done: list[str] = []
    scheduler.run(lambda one, _: done.append(one.seed.id))
    return done, scheduler.left


@pytest.mark.parametrize(
    "limits", [FleetLimits(device_queries=10), FleetLimits(total_queries=10)], ids=["own", "all"]
)
def test_what_is_sent_again_alone_counts_for_the_limits(limits: FleetLimits) -> None:
    device = Single()
    rules = RULES._replace(budget=Budget(1, None))
    done, left = run([device], SEEDS, limits, concurrency=2, rules=rules)
    assert device.requests == [2, 1, 1, 2, 1, 1, 1, 1], "the last ones alone: 3 each at most"
    assert len(done) == 6
    assert left


@pytest.mark.parametrize(
    ("mebibytes", "devices", "most"), [(0.25, 1, 40), (0.5, 1, 25), (0.5, 2, 16), (3.0, 1, 16)]
)
def test_of_large_samples_fewer_are_searched_from_at_once(mebibytes, devices, most) -> None:
    sample = np.zeros((1024, int(mebibytes * 1024), 1), np.uint8)
    seeds = [Seed(f"s{k}", sample, SEEDS[0].outputs) for k in range(40)]
    boards = [Batches(f"d{k}") for k in range(devices)]
    done, _ = run(boards, seeds)
    assert len(done) == 40
    assert max(max(board.requests) for board in boards) == most


def test_a_stated_concurrency_holds_for_large_samples_too() -> None:
    sample = np.zeros((1024, 3072, 1), np.uint8)
    board = Batches()
    run([board], [Seed(f"s{k}", sample, SEEDS[0].outputs) for k in range(40)], concurrency=30)
    assert max(board.requests) == 30

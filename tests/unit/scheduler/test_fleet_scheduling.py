"""Several devices in one run: shared feeds, feeds of their own, devices that go, come back or retire."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from search_models import Device, Linear, Shelf, make_seeds

from edgeflare.answers.oracles import LabelOracle
from edgeflare.devices import DeviceState, Reply
from edgeflare.errors import (
    DeviceAwayError,
    DeviceBusyError,
    DeviceError,
    DeviceRuntimeError,
    EdgeFlareError,
    ModelError,
    UsageError,
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
from edgeflare.strategies import build_strategy
from edgeflare.types import Ask, Outcome, Sample, Search, Seed

DEPLOYED = Linear(5e-3)
SEEDS = make_seeds(16, Linear(), DEPLOYED)
RULES = SearchSettings(
    build_strategy("dflare", {"variant": "text"}), Budget(60, None), 2, 7, Shelf()
)
SLOW_S = 0.01
"""Seconds of a device for an answer from which on each request travels by itself."""
AT_ONCE = FleetLimits(handover_s=0.0, patience_s=0.0)


class Controlled:
    """A device whose answers, absences and returns the test decides on."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = DeviceState.UP
        self.detail = ""
        self.away_s = 0.0
        self.depth = 2
        self.withdrawn = 0
        self._pending: list[tuple[list[Sample], Future[Reply]]] = []
        self._lock = threading.Lock()

    def submit(self, samples: Sequence[Sample]) -> "Future[Reply]":
        future: Future[Reply] = Future()
        with self._lock:
            retired = self.state is DeviceState.RETIRED
            if not retired:
                self._pending.append((list(samples), future))
        if retired:
            future.set_exception(DeviceError(f"{self.name} is retired"))
        return future

    def give_up(self, error: EdgeFlareError) -> None:
        self.state, self.detail = DeviceState.RETIRED, str(error)
        self._fail(error)

    def withdraw(self) -> None:
        self._fail(DeviceAwayError(f"{self.name} is away"))
        self.withdrawn += 1

    def answer(self, which: int) -> bool:
        """Answer one pending request, of any place in the queue."""
        with self._lock:
            if self.state is not DeviceState.UP or not self._pending:
                return False
            samples, future = self._pending.pop(which % len(self._pending))
        future.set_result(Reply(DEPLOYED.scores(samples), [SLOW_S] * len(samples)))
        return True

    def refuse(self, error: EdgeFlareError) -> None:
        """Answer what is pending with an error, as an agent may with any of its codes."""
        self._fail(error)

    def lose(self) -> None:
        if self.state is DeviceState.UP:
            self.state, self.away_s, self.detail = DeviceState.AWAY, 99.0, "the cable is out"

    def back(self) -> None:
        if self.state is DeviceState.AWAY:
            self.state, self.away_s = DeviceState.UP, 0.0

    def retire(self) -> None:
        with self._lock:
            self.state, self.detail = DeviceState.RETIRED, "it came back as another"
        self._fail(DeviceError(f"{self.name} is retired"))

    def _fail(self, error: EdgeFlareError) -> None:
        with self._lock:
            pending, self._pending = self._pending, []
        for _, future in pending:
            future.set_exception(error)


def essence(result: SearchJobResult) -> tuple[object, ...]:
    return result.status, result.sample_digest, result.counters.search, result.confirmed


def undisturbed() -> dict[str, tuple[object, ...]]:
    found = {}

    def keep(result: SearchJobResult, _: str) -> None:
        found[result.seed.id] = essence(result)

    feed = Feed(SearchJob(seed, RULES) for seed in SEEDS)
    Scheduler(Linear(), [Device(DEPLOYED)], [feed], LabelOracle(), workers=1).run(keep)
    return found


EXPECTED = undisturbed()


def shared_feed(devices: int) -> list[Feed[SearchJobResult]]:
    return [Feed(iter([SearchJob(seed, RULES) for seed in SEEDS]))] * devices


class Answering(threading.Thread):
    """Answers what waits on the devices until it is told to stop; `before` is called ahead of each answer."""

    def __init__(
        self, devices: Sequence[Controlled], before: Callable[[int], None] = lambda _: None
    ) -> None:
        super().__init__(daemon=True)
        self.devices = devices
        self.before = before
        self.answered = 0
        self.stopping = threading.Event()
        self.start()

    def run(self) -> None:
        while not self.stopping.is_set():
            answers = [device.answer(0) for device in self.devices]
            if True not in answers:
                self.stopping.wait(1e-3)
                continue
            self.answered += 1
            self.before(self.answered)

    def __enter__(self) -> "Answering":
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.join()


def test_devices_that_share_a_feed_do_every_job_once_and_find_the_same() -> None:
    devices = [Device(DEPLOYED, name=f"d{k}") for k in range(4)]
    found: dict[str, tuple[object, ...]] = {}
    by_device: Counter[str] = Counter()

    def keep(result: SearchJobResult, name: str) -> None:
        assert result.seed.id not in found
        found[result.seed.id] = essence(result)
        by_device[name] += 1

    Scheduler(
        Linear(), devices, shared_feed(4), LabelOracle(), workers=2,
        limits=FleetLimits(concurrency=2),
    ).run(keep)  # fmt: skip
    assert found == EXPECTED
    assert len(by_device) == 4


def test_with_feeds_of_their_own_every_device_does_every_job() -> None:
    devices = [Device(DEPLOYED, name=f"d{k}") for k in range(3)]
    feeds = [Feed(SearchJob(seed, RULES) for seed in SEEDS) for _ in devices]
    found: dict[tuple[str, str], tuple[object, ...]] = {}

    def keep(result: SearchJobResult, name: str) -> None:
        found[name, result.seed.id] = essence(result)

    Scheduler(Linear(), devices, feeds, LabelOracle(), workers=2).run(keep)
    assert found == {(d.name, seed): value for d in devices for seed, value in EXPECTED.items()}


def run_controlled(
    devices: list[Controlled],
    feeds: list[Feed[SearchJobResult]],
    limits: FleetLimits,
    before: Callable[[int], None] = lambda _: None,
    concurrency: int | None = None,
) -> tuple[dict[str, list[tuple[object, ...]]], Scheduler[SearchJobResult]]:
    found: dict[str, list[tuple[object, ...]]] = {}

    def keep(result: SearchJobResult, _: str) -> None:
        found.setdefault(result.seed.id, []).append(essence(result))

    scheduler: Scheduler[SearchJobResult] = Scheduler(
        Linear(),
        devices,
        feeds,
        LabelOracle(),
        workers=2,
        limits=limits._replace(concurrency=concurrency, tick_s=0.02),
    )
    with Answering(devices, before):
        scheduler.run(keep)
    return found, scheduler


def test_the_jobs_of_a_device_that_stays_away_begin_again_on_the_others() -> None:
    devices = [Controlled("a"), Controlled("b")]

    def before(answered: int) -> None:
        if answered == 40:
            devices[0].lose()

    found, _ = run_controlled(
        devices, shared_feed(2), FleetLimits(handover_s=0.0, patience_s=600), before
    )
    assert devices[0].withdrawn
    assert found == {seed: [value] for seed, value in EXPECTED.items()}


def test_with_no_device_left_the_run_ends_and_says_why() -> None:
    devices = [Controlled("a"), Controlled("b")]

    def before(answered: int) -> None:
        if answered == 100:
            for device in devices:
                device.lose()

    with pytest.raises(DeviceAwayError, match=r"left.*a"):
        run_controlled(devices, shared_feed(2), AT_ONCE, before)


def test_with_every_device_retired_the_run_ends_and_says_why() -> None:
    devices = [Controlled("a")]
    with pytest.raises(DeviceAwayError, match="came back"):
        run_controlled(
            devices,
            shared_feed(1),
            FleetLimits(),
            lambda answered: devices[0].retire() if answered == 30 else None,
        )


@pytest.mark.parametrize("error", [UsageError, ModelError, DeviceBusyError, DeviceRuntimeError])
def test_what_a_device_refuses_the_others_do(error: type[EdgeFlareError]) -> None:
    devices = [Controlled("a"), Controlled("b")]

    def before(answered: int) -> None:
        if answered >= 40:
            devices[0].refuse(error("says the device"))

    found, _ = run_controlled(devices, shared_feed(2), FleetLimits(), before)
    assert devices[0].state is DeviceState.RETIRED
    assert found == {seed: [value] for seed, value in EXPECTED.items()}
    alone = Controlled("c")
    with pytest.raises(error, match="the device"):
        run_controlled(
            [alone], shared_feed(1), FleetLimits(), lambda _: alone.refuse(error("says the device"))
        )


def test_a_device_alone_with_its_feed_is_waited_for() -> None:
    devices = [Controlled("a"), Controlled("b")]
    feeds = [Feed(iter([SearchJob(seed, RULES) for seed in SEEDS])) for _ in devices]
    lost = threading.Event()

    def before(answered: int) -> None:
        if answered == 60 and not lost.is_set():
            lost.set()
            devices[0].lose()
            threading.Timer(0.3, devices[0].back).start()

    found, _ = run_controlled(devices, feeds, FleetLimits(handover_s=0.0, patience_s=600), before)
    assert devices[0].withdrawn == 0
    assert found == {seed: [value, value] for seed, value in EXPECTED.items()}


@pytest.mark.parametrize("concurrency", [1, 4, None])
@pytest.mark.parametrize(
    "limits", [FleetLimits(device_queries=100), FleetLimits(total_queries=200)]
)
def test_a_limit_holds_and_a_larger_one_goes_on(limits, concurrency) -> None:
    devices = [Device(DEPLOYED, name=name) for name in "ab"]
    asked, found = Counter[str](), dict[str, SearchJobResult]()

    def keep(result: SearchJobResult, name: str) -> None:
        assert result.seed.id not in found
        found[result.seed.id] = result
        asked[name] += result.counters.search + result.counters.confirmation

    def stopped(name: str, queries: int) -> None:
        asked[name] += queries

    def run(limits: FleetLimits) -> bool:
        feed = Feed(SearchJob(seed, RULES) for seed in SEEDS if seed.id not in found)
        scheduler = Scheduler(
            Linear(),
            devices,
            [feed] * 2,
            LabelOracle(),
            workers=2,
            limits=limits._replace(concurrency=concurrency, asked=dict(asked)),
            on_stopped=stopped,
        )
        scheduler.run(keep)
        return scheduler.left

    assert run(limits)
    assert 0 < len(found) < len(SEEDS)
    assert asked.total() <= 200
    assert max(asked.values()) <= (limits.device_queries or 200)
    run(limits)
    assert asked.total() <= 200
    assert not run(FleetLimits(total_queries=5000))
    assert {seed: essence(one) for seed, one in found.items()} == EXPECTED


class Fleets(RuleBasedStateMachine):
    """Three devices share a feed and come, go and answer as Hypothesis likes; the model: every job once."""

    @initialize(own=st.booleans(), one_trip=st.booleans())
    def begin(self, own: bool, one_trip: bool) -> None:
        self.own = own
        self.devices = [Controlled(name) for name in "abc"]
        self.found: dict[tuple[str, str], list[tuple[object, ...]]] = {}
        feeds = (
            [Feed(iter([SearchJob(seed, RULES) for seed in SEEDS[:6]])) for _ in self.devices]
            if own
            else [Feed(self.chains())] * 3
        )
        limits = FleetLimits(handover_s=0.0, patience_s=600)
        self.error: BaseException | None = None
        self.scheduler: Scheduler[SearchJobResult] = Scheduler(
            Linear(),
            self.devices,
            feeds,
            LabelOracle(),
            workers=2,
            limits=limits._replace(tick_s=1e-3, one_trip=one_trip),
        )
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def chains(self) -> Iterator[SearchJob]:
        yield from (SearchJob(seed, RULES) for seed in SEEDS[:6])

    def work(self) -> None:
        def keep(result: SearchJobResult, name: str) -> None:
            key = (name if self.own else "", result.seed.id)
            self.found.setdefault(key, []).append(essence(result))

        try:
            self.scheduler.run(keep)
        except BaseException as error:  # noqa: BLE001 - looked at in the end
            self.error = error

    @rule(which=st.integers(0, 2), place=st.integers(0, 9), times=st.integers(1, 30))
    def answer(self, which: int, place: int, times: int) -> None:
        for _ in range(times):
            if not self.devices[which].answer(place):
                threading.Event().wait(1e-4)

    @rule(which=st.integers(0, 2))
    def lose(self, which: int) -> None:
        self.devices[which].lose()

    @rule(which=st.integers(0, 2))
    def back(self, which: int) -> None:
        self.devices[which].back()

    @rule(which=st.integers(1, 2))
    def retire(self, which: int) -> None:
        self.devices[which].retire()

    @invariant()
    def nothing_is_counted_twice_or_wrong(self) -> None:
        for (_, seed), results in list(self.found.items()):
            assert results == [EXPECTED[seed]]

    def teardown(self) -> None:
        if not hasattr(self, "thread"):
            return
        with Answering(self.devices):
            for device in self.devices:
                device.back()
            self.thread.join(60)
        assert not self.thread.is_alive()
        assert self.error is None
        kept = (
            [one.name for one in self.devices if one.state is DeviceState.UP] if self.own else [""]
        )
        for name in kept:
            done = {seed for replica, seed in self.found if replica == name}
            assert done == {seed.id for seed in SEEDS[:6]}
        self.nothing_is_counted_twice_or_wrong()


Fleets.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


def test_seeds_are_taken_only_when_they_can_be_started() -> None:
    """Ten thousand seeds are never in memory at once."""

    def idle(seed: Seed, rng: np.random.Generator) -> Search:
        yield Ask((seed.sample,))
        return Outcome(None)

    rules = RULES._replace(strategy=idle)
    taken = done = most = 0

    def chains() -> Iterator[SearchJob]:
        nonlocal taken
        for k in range(1000):
            taken += 1
            yield SearchJob(Seed(f"s{k}", SEEDS[0].sample, SEEDS[0].outputs), rules)

    def keep(result: SearchJobResult, _: str) -> None:
        nonlocal done, most
        most = max(most, taken - done)
        done += 1

    Scheduler(
        Linear(), [Device(DEPLOYED)], [Feed(chains())], LabelOracle(), workers=1,
        limits=FleetLimits(concurrency=2),
    ).run(keep)  # fmt: skip
    assert done == 1000
    assert most <= 2 + 64 + 2  # under way, and on the way to the store

"""A reconnecting session configured, withdrawn from, looked at and closed."""

import random
import threading

import numpy as np
import pytest
from fake_sessions import SPEC, Bench, FakeSession, Steps, sample

from edgeflare.devices import DeviceState
from edgeflare.devices.session.reconnect_policy import Backoff
from edgeflare.devices.session.reconnecting import ReconnectingSession
from edgeflare.devices.telemetry import Health
from edgeflare.errors import DeviceAwayError, DeviceError, UnreachableError, UsageError
from edgeflare_agent.configuration.fixed_inputs import GivenInputs

CUT = UnreachableError("no route to pi4")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_configuration_is_sent_to_new_sessions_before_what_is_kept(bench: Bench) -> None:
    bench.reconnecting.configure(SPEC, "total")
    bench.reconnecting.submit([sample(1)])
    bench.first.fail(CUT)
    second = FakeSession()
    configured_at: list[int] = []
    second.before_submit = lambda _: configured_at.append(len(second.configurations))
    bench.come_back(second)
    assert second.configurations == [(SPEC, "total")]
    assert configured_at == [1]


def test_fixed_inputs_and_reduction_are_set_on_new_sessions(bench: Bench) -> None:
    keep = {"count": 5, "scores": 0, "axis": [1, 1]}
    mask = {"mask": np.ones((1, 4))}
    bench.reconnecting.configure(SPEC, ["y", "z"], keep=keep, given=GivenInputs(("image",), mask))
    bench.first.fail(CUT)
    second = FakeSession()
    bench.come_back(second)
    assert second.configurations == [(SPEC, ["y", "z"])]
    assert second.kept == [keep]
    assert second.inputs == [GivenInputs(("image",), mask)]


def test_configuration_while_away_is_noted_for_later(bench: Bench) -> None:
    bench.first.fail(CUT)
    bench.reconnecting.configure(SPEC, "total")
    second = FakeSession()
    bench.come_back(second)
    assert second.configurations == [(SPEC, "total")]


def test_wrong_configuration_is_refused_and_forgotten(bench: Bench) -> None:
    bench.reconnecting.configure(SPEC, "total")
    bench.first.configuring = UsageError("no such output")
    with pytest.raises(UsageError, match="such output"):
        bench.reconnecting.configure(SPEC, "nothing")
    bench.first.fail(CUT)
    second = FakeSession()
    bench.come_back(second)
    assert second.configurations == [(SPEC, "total")]


def test_configuration_waits_for_no_pending_request(bench: Bench) -> None:
    bench.reconnecting.submit([sample(1)])
    with pytest.raises(UsageError, match="answers 1"):
        bench.reconnecting.configure(SPEC, None)


def test_link_that_breaks_while_configuring_is_a_loss_like_any_other(bench: Bench) -> None:
    bench.first.configuring = CUT
    bench.reconnecting.configure(SPEC, None)
    assert bench.reconnecting.state is DeviceState.AWAY
    second = FakeSession()
    bench.come_back(second)
    assert second.configurations == [(SPEC, None)]


def test_withdrawn_requests_fail_with_why_and_the_device_is_tried_on(bench: Bench) -> None:
    pending = bench.reconnecting.submit([sample(1)])
    bench.first.fail(CUT)
    bench.reconnecting.withdraw()
    with pytest.raises(DeviceAwayError, match="to pi4"):
        pending.result(0)
    second = FakeSession()
    bench.come_back(second)
    assert second.submitted == []
    assert bench.reconnecting.state is DeviceState.UP


def test_session_that_had_failed_before_it_was_taken_over() -> None:
    session = FakeSession()
    session.fail(CUT)
    reconnecting = ReconnectingSession(
        session, FakeSession, rng=random.Random(1), background=Steps()
    )
    assert reconnecting.state is DeviceState.AWAY


def test_clock_that_jumped_is_reported_once(bench: Bench) -> None:
    bench.reconnecting.submit([sample(1)])
    bench.first.health = Health(clock_jump_s=-3600.0)
    bench.now = 2.0
    bench.first.answer()
    assert len(bench.told) == 1
    assert "pi4 jumped" in bench.told[0]
    bench.reconnecting.status()
    bench.first.fail(CUT)
    bench.come_back(FakeSession())
    bench.reconnecting.status()
    assert sum("clock" in text for text in bench.told) == 1
    assert bench.reconnecting.clock_jump_s == -3600.0


def test_status_reports_rates_and_health(bench: Bench) -> None:
    bench.first.health = Health(
        busy_s=2.0, uptime_s=10.0, temperature_c=61.0, throttled=True, round_trip_s=0.003
    )
    for n in range(4):
        bench.reconnecting.submit([sample(n), sample(n)])
    bench.now = 2.0
    bench.first.answer()
    bench.first.answer()
    status = bench.reconnecting.status()
    assert (status.queries, status.queries_per_s, status.in_flight, status.depth) == (4, 2.0, 2, 4)
    assert (status.latency_median_s, status.latency_p99_s, status.busy) == (2.0, 2.0, 0.2)
    assert (status.temperature_c, status.throttled) == (61.0, True)
    assert bench.reconnecting.round_trip_s == 0.003
    bench.first.fail(CUT)
    status = bench.reconnecting.status()
    assert (status.state, status.in_flight, status.busy, status.temperature_c) == (
        DeviceState.AWAY,
        0,
        None,
        None,
    )
    assert status.queries == 4


def test_close_ends_the_wait_between_tries_at_once() -> None:
    tried = threading.Event()

    def reopen() -> FakeSession:
        tried.set()
        raise CUT

    first = FakeSession()
    reconnecting = ReconnectingSession(
        first, reopen, rng=random.Random(3), backoff=Backoff(3600.0, 3600.0)
    )
    before = set(threading.enumerate())
    pending = reconnecting.submit([sample(1)])
    first.fail(CUT)
    reconnecting.close()
    with pytest.raises(DeviceError, match="closed"):
        pending.result(0)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()
    assert not tried.is_set()


def test_session_that_is_opened_after_close_is_closed() -> None:
    opening, go_on, closed = threading.Event(), threading.Event(), threading.Event()

    class Late(FakeSession):
        def close(self) -> None:
            super().close()
            closed.set()

    def reopen() -> FakeSession:
        opening.set()
        assert go_on.wait(60)
        return Late()

    first = FakeSession()
    reconnecting = ReconnectingSession(
        first, reopen, rng=random.Random(3), backoff=Backoff(0.001, 0.001)
    )
    first.fail(CUT)
    assert opening.wait(60)
    reconnecting.close()
    go_on.set()
    assert closed.wait(60)
    assert reconnecting.state is DeviceState.RETIRED


def test_lost_session_that_is_slow_to_close_holds_nobody_up() -> None:
    go_on = threading.Event()

    class Slow(FakeSession):
        def close(self) -> None:
            assert go_on.wait(60)
            super().close()

    first, second = Slow(), FakeSession()
    asked_again = threading.Event()
    second.before_submit = lambda _: asked_again.set()
    reconnecting = ReconnectingSession(
        first, lambda: second, rng=random.Random(3), backoff=Backoff(0.001, 0.001)
    )
    reconnecting.submit([sample(1)])
    first.fail(CUT)
    assert asked_again.wait(60)
    assert not first.closed
    go_on.set()
    reconnecting.close()


def test_callback_may_close_withdraw_and_look(bench: Bench) -> None:
    seen: list[DeviceState] = []
    pending = bench.reconnecting.submit([sample(1)])
    other = bench.reconnecting.submit([sample(2)])

    def look(_: object) -> None:
        bench.reconnecting.withdraw()
        bench.reconnecting.status()
        bench.reconnecting.close()
        seen.append(bench.reconnecting.state)

    pending.add_done_callback(look)
    bench.first.answer()
    assert seen == [DeviceState.RETIRED]
    assert isinstance(other.exception(0), DeviceAwayError)

"""What a reconnecting session says and does around losses, step by step."""

import pytest
from fake_sessions import FINGERPRINT, SPEC, Bench, FakeSession, sample
from shown_numbers import numbers

from edgeflare.devices import DeviceState
from edgeflare.errors import (
    AgentCrashedError,
    AgentDiedError,
    AuthenticationError,
    DeviceBusyError,
    DeviceChangedError,
    DeviceError,
    DeviceProtocolError,
    DevicePythonError,
    DeviceTimeoutError,
    HostKeyError,
    InferenceFailedError,
    InferenceTimeoutError,
    ModelError,
    UnreachableError,
    UsageError,
)

DIED = AgentCrashedError("the agent on pi4 was ended by SIGSEGV; its last lines on stderr:\n  boom")
CUT = UnreachableError("no route to pi4")


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_loss_and_return_are_reported_with_cause_next_try_and_what_is_asked_again(bench) -> None:
    futures = [bench.reconnecting.submit([sample(n)]) for n in range(3)]
    bench.first.answer()
    bench.first.fail(DIED)
    bench.reconnecting.submit([sample(3)])
    bench.steps.step()
    wait = bench.steps.waits[-1]
    cause = "the agent on pi4 was ended by SIGSEGV; its last lines on stderr: boom"
    assert bench.told == [f"pi4 is lost: {cause}; next try in {wait:.1f} s"]
    assert f"try in {wait:.1f}" in bench.reconnecting.status().detail
    bench.now = 42.0
    assert bench.reconnecting.away_s == 42.0
    second = FakeSession()
    bench.come_back(second)
    assert numbers("\n".join(bench.told[1:])) == "4 42 2"
    assert second.submitted == [1, 2, 3]
    assert futures[0].done()
    assert not futures[1].done()
    status = bench.reconnecting.status()
    assert (status.state, status.detail, status.reconnects) == (DeviceState.UP, "", 1)


def test_a_cause_may_ask_for_a_pause(bench: Bench) -> None:
    taken = UnreachableError("somebody took it")
    taken.retry_after_s = 45.0
    bench.first.fail(taken)
    bench.steps.step()
    assert bench.steps.waits == [45.0]
    assert numbers("\n".join(bench.told)) == "4 45"


def test_long_loss_is_reported_once_a_minute(bench: Bench) -> None:
    bench.first.fail(CUT)
    for second in range(150):
        bench.now = float(second)
        bench.come_back(UnreachableError(f"off at {second} s"))
    assert numbers("\n".join([text.split(";")[0] for text in bench.told])) == "4 4 4 60 4 120"


def test_trouble_that_goes_on_is_not_reported_each_time_and_waits_longer_and_longer(bench) -> None:
    bench.first.fail(CUT)
    for second in range(30):
        bench.now = float(second)
        session = FakeSession()
        bench.come_back(session)
        assert bench.reconnecting.away_s == 0.0
        session.fail(CUT)
        assert bench.reconnecting.away_s == float(second)
    assert len(bench.told) == 2
    assert max(bench.steps.waits) > 30.0
    session = FakeSession()
    bench.come_back(session)
    bench.reconnecting.submit([sample(1)])
    session.answer()
    session.fail(CUT)
    bench.steps.step()
    assert bench.reconnecting.away_s == 0.0
    assert bench.steps.waits[-1] <= 1.0
    assert len(bench.told) == 3


def test_a_device_that_lives_but_does_not_answer_is_started_anew_at_once_and_three_times_at_most(
    bench: Bench,
) -> None:
    """A pause would help a link or a device that is off; this one is neither."""
    late = InferenceTimeoutError("pi4 did not answer within 8 s")
    inputs = [bench.reconnecting.submit([sample(n)]) for n in range(4)]
    session = bench.first
    for _ in range(12):
        waits = len(bench.steps.waits)
        session.fail(late)
        bench.steps.step()
        assert bench.steps.waits[waits:] == [0.0]
        session = FakeSession()
        bench.come_back(session)
    for future in inputs:
        with pytest.raises(InferenceFailedError, match="3 times"):
            future.result(0)
    session.fail(late)
    bench.come_back(UnreachableError("off"), UnreachableError("off"))
    assert bench.steps.waits[-1] > 0.0


@pytest.mark.parametrize(
    "error",
    [
        HostKeyError("the key changed"),
        UsageError("no"),
        ModelError("there is no model file"),
        DeviceChangedError("another board"),
    ],
)
@pytest.mark.parametrize("configuring", [False, True])
def test_what_another_try_would_meet_again_retires(bench, error, configuring) -> None:
    bench.reconnecting.configure(SPEC, None)
    pending = bench.reconnecting.submit([sample(1)])
    bench.first.fail(CUT)
    bench.come_back(FakeSession(configuring=error) if configuring else error)
    for future in (pending, bench.reconnecting.submit([sample(2)])):
        with pytest.raises(type(error), match=str(error)):
            future.result(0)
    assert bench.reconnecting.state is DeviceState.RETIRED
    assert bench.reconnecting.detail == str(error)
    assert f"part: {error}" in bench.told[-1]
    assert bench.steps.tasks == []
    with pytest.raises(type(error)):
        bench.reconnecting.configure(SPEC, None)


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError("off"), AuthenticationError("refused"), DevicePythonError("none"),
        DeviceProtocolError("garbled"), AgentDiedError("died"), DeviceTimeoutError("silent"),
        DeviceBusyError("held"), DeviceError("something"), OSError(5, "input/output error"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("configuring", [False, True])
def test_all_else_is_tried_again(bench: Bench, error: Exception, configuring: bool) -> None:
    bench.reconnecting.configure(SPEC, None)
    pending = bench.reconnecting.submit([sample(1)])
    bench.first.fail(CUT)
    refused = FakeSession(configuring=error)
    last = FakeSession()
    bench.come_back(refused if configuring else error)
    assert bench.reconnecting.state is DeviceState.AWAY
    assert refused.closed is configuring
    bench.come_back(last)
    last.answer()
    assert int(pending.result(0).outputs[0][0]) == -1


def test_a_fault_of_our_own_is_named_with_its_type_and_kept_as_the_cause(bench: Bench) -> None:
    fault = AttributeError("'NoneType' object has no attribute 'shape'")

    def read(_: object) -> object:
        raise fault

    bench.reconnecting.read_with(read)
    pending = bench.reconnecting.submit([sample(1)])
    bench.first.answer()
    with pytest.raises(ModelError, match=r"AttributeError: .*'shape'") as caught:
        pending.result(0)
    assert caught.value.__cause__ is fault
    bench.first.fail(CUT)
    bench.next.append(TypeError("no such argument"))
    while bench.next:
        bench.steps.step()
    assert "TypeError: no such" in bench.reconnecting.status().detail


def test_device_that_came_back_as_another_is_retired_and_let_go(bench: Bench) -> None:
    pending = bench.reconnecting.submit([sample(1)])
    bench.first.fail(CUT)
    runtime = {"name": "onnx", "threads": 4}
    other = FakeSession({**FINGERPRINT, "kernel": "6.6", "runtime": runtime})
    bench.come_back(other)
    with pytest.raises(DeviceChangedError, match=r"'6\.6'; runtime\.threads"):
        pending.result(0)
    assert other.closed
    assert other.submitted == []


def test_usage_error_of_a_link_that_breaks_while_configuring_is_tried_again(bench: Bench) -> None:
    bench.reconnecting.configure(SPEC, None)
    bench.first.fail(CUT)
    broken = FakeSession(configuring=UsageError("garbled"))
    broken.failure = DIED
    bench.come_back(broken)
    assert bench.reconnecting.state is DeviceState.AWAY


def test_input_at_which_the_agent_dies_three_times_is_given_up_alone(bench: Bench) -> None:
    poison, *others = [bench.reconnecting.submit([sample(n)]) for n in range(4)]
    bench.first.fail(DIED)
    second, third, fourth = FakeSession(), FakeSession(), FakeSession()
    bench.come_back(second)
    assert second.submitted == [0, 1, 2, 3]
    second.fail(DIED)
    bench.come_back(third)
    assert third.submitted == [0]
    third.fail(DIED)
    with pytest.raises(InferenceFailedError, match="input 3"):
        poison.result(0)
    bench.come_back(fourth)
    assert fourth.submitted == [1, 2, 3]
    for _ in others:
        fourth.answer()
    assert [int(one.result(0).outputs[0][0]) for one in others] == [-1, -2, -3]


@pytest.mark.parametrize("refused", [False, True])
def test_suspect_that_is_answered_lets_the_others_follow(bench: Bench, refused: bool) -> None:
    suspect, other = [bench.reconnecting.submit([sample(n)]) for n in range(2)]
    third = FakeSession()
    bench.first.fail(DIED)
    bench.come_back(second := FakeSession())
    second.fail(DIED)
    bench.come_back(third)
    late = bench.reconnecting.submit([sample(2)])
    assert third.submitted == [0]
    if refused:
        third.refuse(DeviceError("bad input"))
    else:
        third.answer()
    assert third.submitted == [0, 1, 2]
    third.answer()
    third.answer()
    assert all(future.done() for future in (suspect, other, late))


def test_cuts_and_deaths_elsewhere_do_not_add_up(bench: Bench) -> None:
    first, second = [bench.reconnecting.submit([sample(n)]) for n in range(2)]
    session = bench.first
    for error in [DIED, DIED, CUT] * 3:
        session.fail(error)
        session = FakeSession()
        bench.come_back(session)
    session.answer()
    session.fail(DIED)
    bench.come_back(session := FakeSession())
    session.fail(DIED)
    bench.come_back(session := FakeSession())
    session.answer()
    assert first.exception(0) is None
    assert second.exception(0) is None


def test_failed_inference_is_its_requests_own(bench: Bench) -> None:
    futures = [bench.reconnecting.submit([sample(n)]) for n in range(3)]
    bench.first.refuse(DeviceError("pi4: the runtime says no"))
    bench.first.refuse(UsageError("pi4: wrong shape"))
    bench.first.answer()
    with pytest.raises(InferenceFailedError, match="runtime says"):
        futures[0].result(0)
    with pytest.raises(UsageError, match="wrong shape"):
        futures[1].result(0)
    assert futures[2].exception(0) is None
    assert bench.reconnecting.state is DeviceState.UP


def test_samples_that_can_not_be_sent_fail_alone(bench: Bench) -> None:
    def refuse(samples: object) -> None:
        raise UsageError("a request of 9 GB is over the limit")

    bench.first.before_submit = refuse
    with pytest.raises(UsageError, match="the limit"):
        bench.reconnecting.submit([sample(0)]).result(0)
    bench.first.before_submit = lambda _: None
    bench.reconnecting.submit([sample(1)])
    assert bench.first.submitted == [1]


def test_request_that_comes_while_another_is_handed_over_follows_it(bench: Bench) -> None:
    def another(_: object) -> None:
        bench.first.before_submit = lambda _: None
        bench.reconnecting.submit([sample(2)])

    bench.first.before_submit = another
    bench.reconnecting.submit([sample(1)])
    assert bench.first.submitted == [1, 2]

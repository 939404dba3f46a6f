"""Agents that misbehave, each a script of its own: every fault becomes its sentence, nothing hangs."""

import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from edgeflare.devices import DeviceSession, Lease, Reply
from edgeflare.devices.provisioning.upload import Provisioned
from edgeflare.devices.session.agent_link import Limits
from edgeflare.devices.transports.local import LocalTransport
from edgeflare.errors import (
    AgentCrashedError,
    AgentDiedError,
    DeviceBusyError,
    DeviceError,
    DeviceProtocolError,
    DeviceTimeoutError,
    EdgeFlareError,
)
from edgeflare_agent.wire import VERSION

Start = Callable[..., DeviceSession]
SAMPLE = np.zeros((2, 2, 1), np.uint8)


def test_agent_that_dies_at_once_is_quoted(start: Start) -> None:
    with pytest.raises(AgentDiedError, match="status 3") as caught:
        start("sys.exit(print('no such\\nluck', file=sys.stderr) or 3)")
    assert "luck" in str(caught.value)


def test_what_was_printed_instead_of_a_handshake_is_quoted(start: Start) -> None:
    with pytest.raises(AgentDiedError, match="printed") as caught:
        start("print('This account is closed\\n\\na\\nb\\nc')")
    assert "  b" in str(caught.value)
    assert "  c" not in str(caught.value)


def test_endless_text_is_no_handshake(start: Start) -> None:
    with pytest.raises(DeviceProtocolError, match="came: menu"):
        start("while True: print('menu')")


def test_start_that_hangs_is_given_up(nothing_there: Provisioned) -> None:
    asking = LocalTransport("fake", "sh -c 'echo Password:; exec sleep 600'")
    with pytest.raises(DeviceTimeoutError, match=r"within 1\.5"):
        DeviceSession.open(asking, nothing_there, "fake", {}, limits=Limits(timeout_s=1.5))


def test_another_protocol_version_is_named(start: Start) -> None:
    with pytest.raises(DeviceProtocolError, match="prune --all"):
        start("old = bytearray(encode(Kind.HELLO, {})[0]); old[4] = 9; wire.write(old); greet()")
    with pytest.raises(DeviceProtocolError, match=f"host {VERSION}"):
        start("send(Kind.HELLO, {'protocol': 7, 'device': {}}); next_request()")


def test_answers_out_of_order_reach_their_requests(start: Start) -> None:
    session = start(
        """
greet()
frames = [next_request() for _ in range(3)]
for frame in reversed(frames):
    send(Kind.RESULT, {"id": frame.header["id"], "seconds": [0.5]}, [frame.arrays[0] + 1])
next_request()
"""
    )
    replies = [session.submit([np.full(2, n, np.uint8)]) for n in range(3)]
    assert [int(one.result(60).outputs[0][0]) for one in replies] == [1, 2, 3]


def test_window_bounds_what_is_under_way(start: Start) -> None:
    session = start(
        """
greet()
seen = []
while True:
    frame = next_request()
    seen.append(frame)
    if len(seen) == 4:
        for one in seen:
            send(Kind.RESULT, {"id": one.header["id"], "seconds": [0.0]}, one.arrays)
        seen = []
""",
        window=4,
    )
    replies = [session.submit([SAMPLE]) for _ in range(12)]
    assert session.in_flight <= 4
    for reply in replies:
        reply.result(60)


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (signal.SIGKILL, "perhaps the device ran out of memory"),
        (signal.SIGSEGV, "the runtime crashed"),
    ],
)
def test_agent_killed_in_a_request_fails_all_with_the_cause(start, number, cause) -> None:
    session = start(
        "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); greet(); next_request(); "
        "print('last words', file=sys.stderr, flush=True); "
        f"os.kill(os.getpid(), {int(number)}); time.sleep(60)",
        window=2,
    )
    pending = [session.submit([SAMPLE]) for _ in range(5)]
    errors = [one.exception(60) for one in pending]
    assert all(isinstance(error, AgentDiedError) for error in errors)
    assert number.name in str(errors[-1])
    assert cause in str(errors[0])
    assert "last words" in str(errors[0])
    assert isinstance(session.submit([SAMPLE]).exception(60), AgentDiedError)


@pytest.mark.parametrize(
    ("status", "sentence"), [(64, "than 3.8"), (65, "missing"), (66, "protocol"), (67, "suspended")]
)
def test_exit_statuses_are_explained(start: Start, status: int, sentence: str) -> None:
    session = start(f"greet(); next_request(); os._exit({status})")
    with pytest.raises(AgentDiedError, match=sentence):
        session.submit([SAMPLE]).result(60)


def test_what_comes_twice_counts_once(start: Start) -> None:
    session = start(
        """
plain_send = send
def send(*arguments):
    plain_send(*arguments)
    plain_send(*arguments)
greet()
while True:
    frame = next_request()
    send(Kind.RESULT, {"id": frame.header["id"], "seconds": [0]}, frame.arrays)
"""
    )
    pending = [session.submit([np.full(3, n, np.uint8)]) for n in range(40)]
    assert [int(one.result(60).outputs[0][0]) for one in pending] == list(range(40))
    assert session.ping() > 0
    assert session.failure is None


def test_failure_is_reported_once_before_what_is_pending_fails(start: Start) -> None:
    session = start("greet(); next_request(); os._exit(7)")
    told: list[EdgeFlareError] = []
    pending: list[Future[Reply]] = []
    unsettled: list[bool] = []
    submitted = threading.Event()

    def note(error: EdgeFlareError) -> None:
        submitted.wait(60)
        unsettled.extend(not one.done() for one in pending)
        assert session.failure is not None
        told.append(error)

    session.on_failure(note)
    assert session.failure is None
    pending += [session.submit([SAMPLE]) for _ in range(3)]
    submitted.set()
    for one in pending:
        assert isinstance(one.exception(60), AgentDiedError)
    assert (unsettled, [type(error) for error in told]) == ([True] * 3, [AgentCrashedError])
    assert "exit status 7" in str(session.failure)
    session.on_failure(told.append)
    session.close()
    assert [str(error) for error in told] == [str(session.failure)] * 2


def test_nonsense_reply_is_reported_before_its_own_future_fails(start: Start) -> None:
    session = start("greet(); f = next_request(); send(Kind.LOADED, f.header); next_request()")
    order: list[str] = []
    session.on_failure(lambda _: order.append("session"))
    reply = session.submit([SAMPLE])
    reply.add_done_callback(lambda _: order.append("request"))
    assert isinstance(reply.exception(60), DeviceProtocolError)
    session.close()
    assert order == ["session", "request"]


def test_closing_is_no_failure_to_be_told(start: Start) -> None:
    session = start("greet(); next_request(); next_request()")
    told: list[EdgeFlareError] = []
    session.on_failure(told.append)
    pending = session.submit([SAMPLE])
    session.close()
    session.on_failure(told.append)
    assert isinstance(pending.exception(60), DeviceError)
    assert told == []


def test_busy_device_is_refused_before_the_model_is_loaded(
    fake_agent: Callable[[str], LocalTransport], nothing_there: Provisioned, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    transport = fake_agent(
        f"""
greet()
while True:
    frame = receive()
    if frame.kind is Kind.LEASE:
        message = "in use by " + repr(sorted(frame.header.items()))
        send(Kind.ERROR, {{"id": frame.header["id"], "code": "busy", "message": message}})
    else:
        open({str(seen)!r}, "a").write(frame.kind.name + " ")
        answer(frame)
"""
    )
    lease = Lease("night", "night/0", "campaign night", share=True)
    with pytest.raises(DeviceBusyError, match=r"'night/0'.*'share', True") as caught:
        DeviceSession.open(transport, nothing_there, "fake", {}, lease=lease)
    assert "campaign night" in str(caught.value)
    assert "LOAD" not in seen.read_text()


def test_devices_clock_that_is_set_is_noticed(start: Start) -> None:
    session = start(
        """
ahead = 0
def receive(plain=receive):
    global ahead
    frame = plain()
    if frame.kind is Kind.PING:
        frame.header["wall"] = time.time() + ahead
    elif frame.kind is Kind.INFER:
        ahead = 3600
        send(Kind.RESULT, {"id": frame.header["id"], "seconds": [0]}, frame.arrays)
    return frame
greet()
while True:
    next_request()
"""
    )
    session.ping()
    assert session.health.clock_jump_s == 0.0
    session.submit([SAMPLE]).result(60)
    session.ping()
    assert session.health.clock_jump_s == pytest.approx(3600, abs=60)

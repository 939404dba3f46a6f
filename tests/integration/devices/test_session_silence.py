"""Agents that fall silent, hang or are slow: nothing hangs with them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from edgeflare.devices import DeviceSession
from edgeflare.devices.provisioning.probe import probe
from edgeflare.devices.provisioning.upload import Provisioned, provision
from edgeflare.devices.session.agent_link import Limits
from edgeflare.devices.transports.local import LocalStream, LocalTransport
from edgeflare.errors import DeviceTimeoutError, EdgeFlareError, InferenceTimeoutError
from edgeflare_agent.wire import Frame
from edgeflare_lab.testing import FakeAgent, Replace

Start = Callable[..., DeviceSession]
Fake = Callable[..., DeviceSession]
SAMPLE = np.zeros((2, 2, 1), np.uint8)


@pytest.fixture
def fake(nothing_there: Provisioned) -> Iterator[Fake]:
    """Open a session with an agent in this process: it is there at once, however busy this machine is."""
    with ExitStack() as stack:

        def opened(agent: FakeAgent, **limits: float) -> DeviceSession:
            session = DeviceSession.open(
                agent.transport(), nothing_there, "onnx", {}, limits=Limits(**limits)
            )  # type: ignore[arg-type]
            stack.callback(session.close)
            return session

        yield opened


def test_agent_that_falls_silent_is_given_up(fake: Fake) -> None:
    def pong(honest: Frame) -> Frame | None:
        return None if agent.received["INFER"] else honest

    agent = FakeAgent(Replace("RESULT", lambda _: None), Replace("PONG", pong))
    session = fake(agent, heartbeat_s=0.5)
    with pytest.raises(DeviceTimeoutError, match="nothing came"):
        session.submit([SAMPLE]).result(60)


def test_inference_that_hangs_behind_answered_pings_is_given_up(fake: Fake) -> None:
    session = fake(FakeAgent(Replace("RESULT", lambda _: None)), timeout_s=1.0)
    with pytest.raises(DeviceTimeoutError, match="infer within"):
        session.submit([SAMPLE]).result(60)


def test_one_inference_that_hangs_in_a_request_of_many_is_noticed_in_time(fake: Fake) -> None:
    def pong(honest: Frame) -> Frame:
        since = 2.5 if agent.received["INFER"] else None
        return honest._replace(header={**honest.header, "inferring_s": since})

    agent = FakeAgent(Replace("RESULT", lambda _: None), Replace("PONG", pong))
    session = fake(agent, timeout_s=2.0)
    with pytest.raises(InferenceTimeoutError, match="within 2"):
        session.submit([SAMPLE] * 512).result(60)


TELLING = """
def answer_all(inferring_s, until):
    while time.monotonic() < until:
        frame = receive()
        if frame.kind is Kind.PING:
            send(Kind.PONG, {**frame.header, "inferring_s": inferring_s})
"""
"""A fake agent that tells with each heartbeat since when it works on one sample."""


@pytest.mark.extended
def test_many_samples_may_take_longer_than_one(start: Start) -> None:
    session = start(
        f"""
{TELLING}
greet()
request = next_request()
answer_all(0.5, time.monotonic() + 6)
send(Kind.RESULT, {{"id": request.header["id"], "seconds": [0.6] * 10}}, request.arrays)
answer_all(None, time.monotonic() + 600)
""",
        timeout_s=4.0,
    )
    assert len(session.submit([SAMPLE] * 10).result(60).outputs) == 10


@pytest.mark.extended
def test_deadline_counts_each_request_from_when_its_turn_came(start: Start) -> None:
    session = start(
        """
import threading, queue
requests, lock = queue.Queue(), threading.Lock()
plain_send = send
def send(*arguments):
    with lock:
        plain_send(*arguments)
def work():
    while True:
        frame = requests.get()
        time.sleep(0.25)
        send(Kind.RESULT, {"id": frame.header["id"], "seconds": [0.25]}, frame.arrays)
greet()
threading.Thread(target=work, daemon=True).start()
while True:
    requests.put(next_request())
""",
        timeout_s=4.0,
    )
    replies = [session.submit([SAMPLE]) for _ in range(24)]  # 6 s together, 0.25 s each
    for reply in replies:
        reply.result(60)


def test_loading_may_hold_the_agents_interpreter(start: Start) -> None:
    session = start(
        """
greet()
while True:
    frame = receive()
    if frame.kind is Kind.LOAD:
        time.sleep(1.5)
    answer(frame)
""",
        heartbeat_s=0.4,
    )
    assert session.model.runtime == {"name": "fake"}


class SlowStream(LocalStream):
    """A link that takes a piece of a large request only every 0.3 s."""

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        if sum(map(len, blocks)) > 100_000:
            threading.Event().wait(0.3)
        super().write(blocks)


class SlowTransport(LocalTransport):
    def open(self, arguments: Sequence[str]) -> LocalStream:
        return SlowStream(self._start(arguments))


def test_slow_upload_is_no_dead_link(device, onnx_model, pair_input) -> None:
    transport = SlowTransport("bench")
    there = provision(transport, probe(transport, device), device, onnx_model)
    session = DeviceSession.open(transport, there, "onnx", {}, limits=Limits(heartbeat_s=1.0))
    session.configure(pair_input._replace(resize="nearest"), "total")
    large = np.full((2048, 1024, 1), 255, np.uint8)
    reply = session.submit([large]).result(60)
    session.close()
    assert reply.outputs[0] == pytest.approx(16.0)


def test_failed_session_ends_its_agent(start: Start, tmp_path: Path) -> None:
    session = start(
        f"greet(); f = next_request(); open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); "
        "print('garbage' * 9, flush=True); time.sleep(600)"
    )
    assert isinstance(session.submit([SAMPLE]).exception(60), EdgeFlareError)
    session.close()
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()

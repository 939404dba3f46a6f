"""Agents that answer nonsense, frame by frame: each ends in the stated error, in time, and leaves nothing behind."""

import itertools
import json
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fake_sessions import meet

from edgeflare.devices import DeviceSession, Reply, Stream
from edgeflare.devices.provisioning.upload import Provisioned
from edgeflare.devices.session.agent_link import Limits
from edgeflare.errors import (
    AgentDiedError,
    DeviceProtocolError,
    DeviceTimeoutError,
    EdgeFlareError,
    UnreachableError,
)
from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.wire import Frame, Kind
from edgeflare_lab.testing import FakeAgent, Replace, raw_frame

SAMPLE = np.zeros((4, 4, 1), np.uint8)
SPEC = InputSpec((1, 4, 4, 1), "float32", (4, 4), 1)
DEEP = "[" * 200_000 + "]" * 200_000
MUTATIONS = 300
WAIT_S = 20.0
"""Far longer than any deadline of these sessions: what waits for so long hangs."""

Use = Callable[[FakeAgent], Reply]


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No thread of a link ends in a traceback, and none outlives its link."""
    broken: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", broken.append)
    before = set(threading.enumerate())
    yield
    left = [one for one in threading.enumerate() if one not in before]
    for thread in left:
        thread.join(WAIT_S)
    assert [one.name for one in left if one.is_alive()] == []
    assert [one.exc_value for one in broken] == []


@pytest.fixture
def use(nothing_there: Provisioned) -> Use:
    """Run a session on an agent from its start to one answer, and close it."""

    def run(agent: FakeAgent) -> Reply:
        session = DeviceSession.open(
            agent.transport(),
            nothing_there,
            "onnx",
            {},
            limits=Limits(heartbeat_s=10.0, timeout_s=10.0),
        )
        try:
            session.configure(SPEC, None)
            session.ping()
            return session.submit([SAMPLE]).result(WAIT_S)
        finally:
            session.close()

    return run


def tensor(**fields: Any) -> dict[str, Any]:
    return {"name": "y", "shape": [1, 10], "dtype": "float32", "quantization": None, **fields}


def result(**fields: Any) -> Replace:
    return Replace("RESULT", fields)


def raw(kind: str, fields: str, body: bytes = b"") -> Replace:
    """Fields in JSON as they are written, beside the id or number of the honest frame."""

    def change(honest: Frame) -> bytes:
        own = {name: honest.header[name] for name in ("id", "ping") if name in honest.header}
        return raw_frame(kind, json.dumps(own)[:-1] + ("," if own else "") + fields + "}", body)

    return Replace(kind, change)


def answers(*arrays: Any, **fields: Any) -> Replace:
    """A RESULT of other arrays."""
    return Replace(
        "RESULT", lambda honest: Frame(honest.kind, {**honest.header, **fields}, tuple(arrays))
    )


def test_an_honest_agent_answers(use: Use) -> None:
    agent = FakeAgent(infer=lambda sample: np.full((1, 10), sample.max(), np.float32))
    assert use(agent).outputs[0].shape == (1, 10)  # type: ignore[union-attr]
    assert agent.received["INFER"] == 1


NONSENSE = {
    "HELLO is nested deep": raw("HELLO", '"protocol": 2, "device": {"board": ' + DEEP + "}"),
    "HELLO device is a list": Replace("HELLO", {"device": []}),
    "HELLO board is a number": Replace("HELLO", {"device": {"board": 4}}),
    "HELLO board is a list": Replace("HELLO", {"device": {"board": [[[]]]}}),
    "HELLO is a list": Replace("HELLO", lambda _: raw_frame("HELLO", "[]")),
    "HELLO with a body": raw("HELLO", '"protocol": 2, "device": {}', b"x" * 99),
    "LOADED infinite axis": raw(
        "LOADED",
        '"inputs": [], "runtime": {}, "metadata": {}, "outputs": [{"name": "y", "dtype": "float32", '
        '"quantization": null, "shape": [1e400, 2]}]',
    ),
    "LOADED huge axis": Replace("LOADED", {"outputs": [tensor(shape=[10**400, 2])]}),
    "LOADED axes overflow": Replace("LOADED", {"outputs": [tensor(shape=[2**62] * 9)]}),
    "LOADED negative axis": Replace("LOADED", {"outputs": [tensor(shape=[-1, 2])]}),
    "LOADED fractional axis": Replace("LOADED", {"outputs": [tensor(shape=[1.5, 2])]}),
    "LOADED axis is text": Replace("LOADED", {"outputs": [tensor(shape="12")]}),
    "LOADED NaN scale": Replace("LOADED", {"outputs": [tensor(quantization=[float("nan"), 0])]}),
    "LOADED scale of 0": Replace("LOADED", {"outputs": [tensor(quantization=[0.0, 0])]}),
    "LOADED negative scale": Replace("LOADED", {"outputs": [tensor(quantization=[-0.5, 0])]}),
    "LOADED no inputs": Replace("LOADED", {"inputs": []}),
    "LOADED no outputs": Replace("LOADED", {"outputs": []}),
    "LOADED outputs is a number": Replace("LOADED", {"outputs": 10**400}),
    "LOADED metadata is no text": Replace("LOADED", {"metadata": {"labels": [1, 2]}}),
    "LOADED runtime is text": Replace("LOADED", {"runtime": "onnx"}),
    "LOADED runtime is nested": Replace(
        "LOADED", {"runtime": {"a": json.loads("[" * 99 + "]" * 99)}}
    ),
    "LOADED decoder of no kind": Replace("LOADED", {"decoder": {}}),
    "STATE infinite memory": raw("STATE", '"memory_available_bytes": Infinity'),
    "STATE negative memory": Replace("STATE", {"memory_available_bytes": -1}),
    "PONG huge temperature": Replace("PONG", {"temperature_c": 10**400}),
    "PONG NaN uptime": Replace("PONG", {"uptime_s": float("nan")}),
    "PONG negative uptime": Replace("PONG", {"uptime_s": -1}),
    "PONG more memory than 64 bits": Replace("PONG", {"rss_bytes": 2**80}),
    "PONG nested deep": raw("PONG", '"load": ' + DEEP),
    "PONG reasons are a number": Replace("PONG", {"throttle_reasons": 1}),
    "PONG throttled is text": Replace("PONG", {"throttled": "no"}),
    "PONG of another ping": Replace("RESULT", lambda _: Frame(Kind.PONG, {"ping": 4711})),
    "HELLO once more": Replace("RESULT", lambda _: Frame(Kind.HELLO, {"id": 1})),
    "LOADED as a result": Replace("RESULT", lambda honest: Frame(Kind.LOADED, honest.header)),
    "RESULT of another request": result(id=4711),
    "RESULT huge seconds": result(seconds=[10**400]),
    "RESULT NaN seconds": result(seconds=[float("nan")]),
    "RESULT infinite seconds": result(seconds=[float("inf")]),
    "RESULT negative seconds": result(seconds=[-1.0]),
    "RESULT endless seconds": result(seconds=[1e300]),
    "RESULT seconds of text": result(seconds=["1"]),
    "RESULT no seconds": result(seconds=[]),
    "RESULT id is a list": result(id=[]),
    "RESULT id is null": result(id=None),
    "RESULT too few values": answers(np.zeros((1, 3), np.float32)),
    "RESULT too many values": answers(np.zeros((1, 20), np.float32)),
    "RESULT other dtype": answers(np.zeros((1, 10), np.int32)),
    "RESULT wider dtype": answers(np.zeros((1, 5), np.int64)),
    "RESULT empty": answers(np.zeros((0, 10), np.float32)),
    "RESULT of none": answers(),
    "RESULT of two": answers(*[np.zeros((1, 5), np.float32)] * 2, seconds=[0.1] * 2),
    "RESULT of 40 MB": answers(np.zeros((1, 10_000_000), np.float32)),
    "RESULT decoded, unasked": answers(
        np.zeros((0, 2)), np.frombuffer(b"[[]]" + b" " * 36, np.uint8), decoded=True
    ),
    "RESULT nested deep": raw("RESULT", '"seconds": ' + DEEP),
    "unknown kind": Replace("RESULT", lambda honest: raw_frame(99, "{}")),
    "unknown dtype": raw(
        "RESULT", '"seconds": [1], "arrays": [{"dtype": "|O8", "shape": [1]}]', b"x" * 8
    ),
    "error about nothing": Replace("RESULT", lambda _: Frame(11, {"message": "x" * 8000})),  # type: ignore[arg-type]
}
"""Replies that make no sense, by what is wrong with them."""


@pytest.mark.parametrize("case", NONSENSE)
def test_what_makes_no_sense_is_a_protocol_error(use: Use, case: str) -> None:
    with pytest.raises(EdgeFlareError) as caught:
        use(FakeAgent(NONSENSE[case]))
    assert len(str(caught.value)) < 3000
    if case != "error about nothing":
        assert type(caught.value) is DeviceProtocolError


WRITES = "\x1b]0;owned\x07\x1b[2J\x9b31mboard\u202e \ud800\x07" + "x" * 8000


def harmless(text: str, longest: int = 2200) -> bool:
    return "board" in text and "owned" not in text and len(text) < longest and text.isprintable()


@pytest.fixture
def session(nothing_there: Provisioned) -> Iterator[Callable[[FakeAgent], DeviceSession]]:
    opened: list[DeviceSession] = []

    def start(agent: FakeAgent) -> DeviceSession:
        opened.append(
            DeviceSession.open(
                agent.transport(), nothing_there, "onnx", {}, limits=Limits(timeout_s=10.0)
            )
        )
        return opened[-1]

    yield start
    for one in opened:
        one.close()


Start = Callable[[FakeAgent], DeviceSession]


def test_text_of_an_agent_can_not_write_to_the_terminal(session: Start) -> None:
    agent = FakeAgent(
        Replace("HELLO", {"device": {"board": WRITES}}),
        Replace("PONG", {"throttle_reasons": [WRITES]}),
        Replace("RESULT", lambda honest: Frame(Kind.ERROR, {**honest.header, "message": WRITES})),
        loaded={"runtime": {"name": WRITES}},
    )
    opened = session(agent)
    opened.ping()
    (reason,) = opened.health.throttle_reasons
    error = opened.submit([SAMPLE]).exception(WAIT_S)
    assert harmless(str(opened.device["board"]), 201)
    assert harmless(str(opened.fingerprint["runtime"]["name"]), 1001)
    assert harmless(reason, 101)
    assert harmless(str(error))


def test_text_of_an_agent_that_ends_can_not_write_to_the_terminal(use: Use) -> None:
    stderr = "\n".join([WRITES] * 20)
    with pytest.raises(AgentDiedError, match="status 3") as caught:
        use(FakeAgent(Replace("LOADED", lambda _: "end"), stderr=stderr, status=3))
    assert all(harmless("board" + line, 500) for line in str(caught.value).splitlines())


def test_what_is_printed_instead_of_a_handshake_can_not_write_to_the_terminal(use: Use) -> None:
    printed = (WRITES.encode("utf-8", "replace") + b"\n") * 9
    with pytest.raises(DeviceProtocolError) as caught:
        use(FakeAgent(Replace("HELLO", lambda _: [printed, b"y" * 70_000])))
    assert harmless(str(caught.value))


def test_lists_of_a_device_are_bounded_in_number_and_length(session: Start) -> None:
    reasons = [f"reason {number} ".ljust(1000, "x") for number in range(900)]
    opened = session(FakeAgent(Replace("PONG", {"throttle_reasons": reasons})))
    opened.ping()
    told = opened.health.throttle_reasons
    assert [" ".join(one.split()[:2]) for one in told] == [f"reason {n}" for n in range(16)]
    assert max(map(len, told)) == 100


class Deaf:
    """A stream on which nothing is taken any more from the first request on, while old heartbeats come for ever."""

    def __init__(self, inner: Stream) -> None:
        self._inner = inner
        self._deaf, self._closed = threading.Event(), threading.Event()

    def read(self, n: int) -> bytes:
        if not self._deaf.is_set():
            return self._inner.read(n)
        again = b"" if self._closed.wait(0.05) else raw_frame("PONG", '{"ping": 0}')
        return again if len(again) <= n else again[:n]

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        if any(b"INFER" in bytes(block) for block in blocks):
            self._deaf.set()
            self._inner.write([raw_frame("PING", '{"ping": 0}')])  # wakes the reader
            self._closed.wait()
        if self._closed.is_set():
            raise UnreachableError("closed")
        self._inner.write(blocks)

    def stderr_tail(self) -> str:
        return ""

    def exit_status(self, timeout: float) -> int | None:
        del timeout
        return None

    def close(self) -> None:
        self._closed.set()
        self._inner.close()


def test_an_agent_that_takes_nothing_but_goes_on_talking_is_given_up(
    nothing_there: Provisioned, monkeypatch: pytest.MonkeyPatch
) -> None:
    transport = FakeAgent().transport()
    open_inner = transport.open
    monkeypatch.setattr(transport, "open", lambda arguments: Deaf(open_inner(arguments)))
    session = DeviceSession.open(
        transport, nothing_there, "onnx", {}, limits=Limits(heartbeat_s=30.0, timeout_s=1.0)
    )
    try:
        marked = np.frombuffer(b"INFER" * 3, np.uint8)
        with pytest.raises(DeviceTimeoutError, match="within 1"):
            session.submit([marked]).result(WAIT_S)
    finally:
        session.close()


def test_mutated_frames_are_answers_or_stated_errors(nothing_there: Provisioned) -> None:
    with ThreadPoolExecutor(16) as pool:
        ends = Counter(pool.map(lambda seed: meet(seed, nothing_there), range(MUTATIONS)))
    assert sum(ends.values()) == MUTATIONS
    assert set(ends) >= {"answered", "DeviceProtocolError", "AgentDiedError"}


@pytest.mark.slow
def test_ten_minutes_of_mutated_frames(nothing_there: Provisioned) -> None:
    ends: Counter[str] = Counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    until = time.monotonic() + float(os.environ.get("EDGEFLARE_FUZZ_S", "600"))
    with ThreadPoolExecutor(16) as pool:
        for begin in itertools.count(MUTATIONS, MUTATIONS):
            seeds = range(begin, begin + MUTATIONS)
            ends.update(pool.map(lambda seed: meet(seed, nothing_there), seeds))
            if time.monotonic() > until:
                break
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{ends.total()} executions, {dict(ends)}, {grown_mb:.0f} MB")
    assert grown_mb < 400

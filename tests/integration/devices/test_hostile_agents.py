"""Agents that answer nonsense, frame by frame: each ends in the stated error, in time, and leaves nothing behind."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from edgeflare.devices import DeviceSession, Reply
from edgeflare.devices.provision import Provisioned
from edgeflare.errors import DeviceProtocolError, EdgeFlareError
from edgeflare.testing import FakeAgent, Replace, raw_frame
from edgeflare_agent.spec import InputSpec
from edgeflare_agent.wire import Frame

SAMPLE = np.zeros((4, 4, 1), np.uint8)
SPEC = InputSpec((1, 4, 4, 1), "float32", (4, 4), 1)
DEEP = "[" * 200_000 + "]" * 200_000
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
            agent.transport(), nothing_there, "onnx", {}, heartbeat_s=2.0, timeout_s=2.0
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

"""How the agent ends, and what keeps it alive."""

import signal
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_process import AgentProcess

from edgeflare_agent.wire import MAGIC, VERSION, Kind, encode

FOR_EVER = 2**62
Begin = Callable[[AgentProcess, int], None]


def test_pings_are_answered_while_an_inference_runs(agent, begin_slow_inference) -> None:
    begin_slow_inference(agent, 500_000)
    for number in range(5):
        pong = agent.ask(Kind.PING, {"number": number})
        assert (pong.kind, pong.header["number"]) == (Kind.PONG, number)
    result = agent.receive()
    assert (result.kind, result.header["id"]) == (Kind.RESULT, "slow")


def test_a_ping_is_answered_before_start(tmp_path: Path) -> None:
    with AgentProcess(tmp_path) as agent:
        assert agent.ping()["served"] == 0


def test_ends_with_the_stream(agent: AgentProcess) -> None:
    agent.process.stdin.close()
    assert agent.ended() == (0, "")


def test_ends_with_the_stream_while_an_inference_hangs(agent, begin_slow_inference) -> None:
    begin_slow_inference(agent, FOR_EVER)
    assert agent.ask(Kind.PING, {}).kind is Kind.PONG
    agent.process.stdin.close()
    assert agent.ended() == (0, "")


def test_bye_ends_it_while_an_inference_hangs(agent, begin_slow_inference) -> None:
    begin_slow_inference(agent, FOR_EVER)
    agent.send(Kind.BYE, {})
    assert agent.ended() == (0, "")


def test_ends_quietly_when_nobody_reads(agent: AgentProcess) -> None:
    agent.process.stdout.close()
    agent.send(Kind.PING, {})
    assert agent.ended() == (0, "")


@pytest.mark.parametrize("hanging", [False, True])
def test_ends_when_the_host_goes_silent(agent, begin_slow_inference, hanging) -> None:
    if hanging:
        begin_slow_inference(agent, FOR_EVER)
    agent.start(heartbeat_s=0.5)
    status, stderr = agent.ended()
    assert status == 67
    assert "0.5 s; giving" in stderr


def test_a_host_that_sends_anything_is_not_silent(agent: AgentProcess) -> None:
    agent.start(heartbeat_s=2.0)
    for _ in range(10):  # twice the heartbeat in all
        with pytest.raises(subprocess.TimeoutExpired):
            agent.process.wait(0.3)
        assert agent.ask(Kind.PING, {}).kind is Kind.PONG


@pytest.mark.parametrize("before_start", [True, False])
def test_an_oversized_frame_is_refused_before_it_is_read(tmp_path, before_start) -> None:
    with AgentProcess(tmp_path) as agent:
        if not before_start:
            agent.start(max_body=1000)
        length = 1 << 40 if before_start else 1001
        agent.write(struct.pack("<4sBBHIQI", MAGIC, VERSION, Kind.INFER, 0, 2, length, 0))
        status, stderr = agent.ended()
    assert status == 66
    limit = 1 << 16 if before_start else 1000
    assert f"2 + {length} bytes, over the limit of 1048576 + {limit}" in stderr


def test_garbage_on_the_wire_ends_it_with_a_sentence(agent: AgentProcess) -> None:
    agent.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    status, stderr = agent.ended()
    assert status == 66
    assert "lost step: b'GET" in stderr
    assert stderr.count("\n") == 1


def test_a_damaged_frame_ends_it(agent: AgentProcess) -> None:
    frame = bytearray(b"".join(encode(Kind.PING, {"number": 1})))
    frame[-2] ^= 1
    agent.write(bytes(frame))
    words = "a frame's checksum is wrong: the link changed its bytes"
    assert agent.ended() == (66, f"edgeflare agent: {words}\n")


def test_a_host_of_another_version_ends_it(agent: AgentProcess) -> None:
    frame = bytearray(b"".join(encode(Kind.PING, {})))
    frame[len(MAGIC)] = VERSION + 1
    agent.write(bytes(frame))
    words = f"the other end speaks protocol version {VERSION + 1}, this one {VERSION}"
    assert agent.ended() == (66, f"edgeflare agent: {words}\n")


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"heartbeat_s": float("nan"), "max_body": 1},
        {"heartbeat_s": 1, "max_body": -1},
        {"heartbeat_s": 1, "max_body": 1, "max_queue": 0},
    ],
)
def test_limits_that_make_no_sense_end_it(tmp_path: Path, limits: dict[str, object]) -> None:
    with AgentProcess(tmp_path) as agent:
        agent.send(Kind.START, limits)
        status, stderr = agent.ended()
    assert status == 66
    assert "START makes" in stderr


def test_more_requests_than_the_queue_holds_are_refused(agent, begin_slow_inference) -> None:
    agent.start(max_queue=2)
    begin_slow_inference(agent, FOR_EVER)
    for number in range(4):
        agent.send(Kind.LOAD, {"id": number})
    agent.send(Kind.PING, {})
    answers = []
    while (answer := agent.receive()).kind is Kind.ERROR:
        answers.append(answer)
    assert answer.header["waiting"] == 2
    assert {answer.header["message"] for answer in answers} == {
        "2 requests wait already, the limit"
    }
    assert {answer.header["code"] for answer in answers} == {"bad-request"}
    refused = [answer.header["id"] for answer in answers]
    # The slow one may be waiting still when some of them come.
    assert refused in ([2, 3], [1, 2, 3], [1, 3], [1, 2])


def test_ctrl_c_is_the_hosts_business(agent: AgentProcess) -> None:
    agent.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        agent.process.wait(1)
    assert agent.ask(Kind.PING, {}).kind is Kind.PONG
    agent.process.stdin.close()
    assert agent.ended() == (0, "")

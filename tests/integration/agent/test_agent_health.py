"""What the agent tells of itself and its device, and that it answers each request once."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from agent_process import AgentProcess, bare_environment
from small_models import TFLITE, dense_onnx

from edgeflare_agent.image_spec import InputSpec
from edgeflare_agent.telemetry import Sensors
from edgeflare_agent.wire import Kind, encode

PIXELS = InputSpec((1, 8, 8, 1), "float32", (8, 8), 1, scale=(1, 255))
FOR_EVER = 2**62
SAMPLE = np.zeros((8, 8, 1), np.uint8)
Begin = Callable[[AgentProcess, int], None]


def test_heartbeats_tell_how_the_agent_fares(agent: AgentProcess) -> None:
    before = agent.ping()
    assert set(before) == {
        *("uptime_s", "busy_s", "served", "waiting", "inferring_s", "wall"),
        *("rss_bytes", *Sensors.UNKNOWN),
    }
    assert (before["busy_s"], before["served"], before["waiting"]) == (0.0, 0, 0)
    assert before["inferring_s"] is None
    assert abs(before["wall"] - time.time()) < 60
    agent.load(TFLITE / "float.tflite", "tflite")
    agent.configure(PIXELS)
    seconds = [seconds for _ in range(3) for seconds in agent.infer([SAMPLE] * 4).header["seconds"]]
    after = agent.ping()
    assert after["served"] == 3
    assert after["inferring_s"] is None
    assert sum(seconds) < after["busy_s"] < after["uptime_s"]
    assert before["uptime_s"] < after["uptime_s"]
    while after["rss_bytes"] is None:  # read beside, so that no heartbeat waits for it
        after = agent.ping()
    assert after["rss_bytes"] > 1 << 20


def test_the_request_under_way_counts_as_busy_and_those_behind_it_wait(
    agent: AgentProcess, begin_slow_inference: Begin
) -> None:
    begin_slow_inference(agent, FOR_EVER)
    for number in range(3):
        agent.send(Kind.INFER, {"id": number}, [SAMPLE])
    first = agent.ping()
    while first["waiting"] != 3:
        first = agent.ping()
    second = agent.ping()
    assert 0 < first["inferring_s"] < second["inferring_s"]
    worked, passed = (second[name] - first[name] for name in ("busy_s", "uptime_s"))
    assert worked > 0
    assert abs(worked - passed) < 1e-6
    assert second["served"] == 0


def test_the_state_of_a_device_is_reported_without_lease_and_model(agent: AgentProcess) -> None:
    answer = agent.request(Kind.STATUS, {})
    assert answer.kind is Kind.STATE
    state = answer.header
    assert set(state) == {
        *("id", "leases", "rss_bytes", *Sensors.UNKNOWN),
        *("disk_free_bytes", "memory_available_bytes", "load"),
    }
    assert state["leases"] == []
    assert state["disk_free_bytes"] > 0
    assert state["memory_available_bytes"] > 1 << 20


def test_a_request_that_comes_twice_is_answered_once(agent: AgentProcess) -> None:
    agent.load(TFLITE / "float.tflite", "tflite")
    agent.configure(PIXELS)
    for number in (1, 2, 1, 1, 2, 3):
        agent.send(Kind.INFER, {"id": number}, [SAMPLE])
    assert [agent.receive().header["id"] for _ in range(3)] == [1, 2, 3]
    agent.send(Kind.INFER, {"id": 2}, [SAMPLE])
    assert agent.ask(Kind.INFER, {"id": 4}, [SAMPLE]).header["id"] == 4
    assert agent.ping()["served"] == 4


def test_a_request_that_was_refused_is_not_answered_again(agent: AgentProcess) -> None:
    assert agent.ask(Kind.INFER, {"id": 7}, [SAMPLE]).header["code"] == "bad-request"
    agent.send(Kind.INFER, {"id": 7}, [SAMPLE])
    assert agent.ask(Kind.STATUS, {"id": 8}).header["id"] == 8


def test_an_id_is_a_number_or_a_text(agent: AgentProcess) -> None:
    for id_ in (None, [1], {"a": 1}, 1.5):
        answer = agent.ask(Kind.STATUS, {"id": id_})
        assert (answer.header["id"], answer.header["code"]) == (id_, "bad-request")


def test_samples_may_come_compressed(agent: AgentProcess) -> None:
    agent.load(TFLITE / "float.tflite", "tflite")
    agent.configure(PIXELS)
    samples = [np.full((8, 8, 1), value, np.uint8) for value in range(40)]
    plain = agent.infer(samples)
    blocks = encode(Kind.INFER, {"id": 1}, samples, compress=True)
    assert len(b"".join(blocks)) < sum(sample.nbytes for sample in samples)
    agent.write(b"".join(blocks))
    assert [raw.tobytes() for raw in agent.receive().arrays] == [
        raw.tobytes() for raw in plain.arrays
    ]


def test_a_wall_clock_that_jumps_is_reported_and_changes_nothing_else(tmp_path: Path) -> None:
    package = tmp_path / "shim" / "onnxruntime"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import time\nright = time.time\ntime.time = lambda: right() + 7200\nraise LookupError\n"
    )
    environment = {**bare_environment(), "PYTHONPATH": str(package.parent)}
    with AgentProcess(tmp_path, environment=environment) as agent:
        agent.start(heartbeat_s=2.0)
        before = agent.ping()
        agent.load(dense_onnx(tmp_path / "m.onnx", [1, 8, 8, 1]), "onnx")  # the clock jumps
        for _ in range(15):  # longer than the heartbeat
            time.sleep(0.15)
            after = agent.ping()
        assert after["wall"] - before["wall"] > 7200
        assert after["uptime_s"] - before["uptime_s"] < 3600
        status, stderr = agent.ended()
    assert (status, "host for 2" in stderr) == (67, True)

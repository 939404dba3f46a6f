"""A real local agent that is killed, stopped or can't come back: what it owed is answered, or told."""

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from edgeflare.devices import Device, DeviceState, Lease, ReconnectingSession, Reply, open_device
from edgeflare.devices.session.reconnect_policy import Backoff
from edgeflare.errors import DeviceError, ModelError
from edgeflare.types import Sample
from edgeflare_agent.image_spec import InputSpec

LEASE = Lease("a campaign", "one use of bench", "campaign reconnecting on this machine")
DEADLINE_S = 120


class Bench:
    """A reconnecting session with a real agent; `told` is what the user was told."""

    def __init__(self, device: Device, model: Path, spec: InputSpec) -> None:
        self.told: list[str] = []
        self.settled: dict[int, int] = {}
        self._cache = Path(str(device.cache))
        self._lock = threading.Lock()
        reopen = partial(open_device, device, model, lease=LEASE)
        self.reconnecting = ReconnectingSession(
            reopen(),
            reopen,
            rng=random.Random(1),
            on_notice=self.told.append,
            backoff=Backoff(0.01, 0.1),
        )
        self.reconnecting.configure(spec, "total")

    @property
    def agent(self) -> int:
        """The process that holds the lease."""
        (path,) = self._cache.glob("**/leases/*.json")
        return int(json.loads(path.read_text())["pid"])

    def ask(self, value: int) -> "Future[Reply]":
        future = self.reconnecting.submit([image(value)])

        def settled(_: "Future[Reply]") -> None:
            with self._lock:
                self.settled[value] = self.settled.get(value, 0) + 1

        future.add_done_callback(settled)
        return future


def image(value: int) -> Sample:
    return np.full((4, 4, 1), value, np.uint8)


def total(future: "Future[Reply]") -> float:
    return float(future.result(DEADLINE_S).outputs[0])


def until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def bench(device: Device, onnx_model: Path, pair_input: InputSpec) -> Iterator[Bench]:
    bench = Bench(device, onnx_model, pair_input)
    yield bench
    bench.reconnecting.close()


def test_killed_agent_owes_fifty_answers_and_all_come_once(bench: Bench) -> None:
    os.kill(bench.agent, signal.SIGSTOP)  # so that nothing is answered before it is killed
    futures = [bench.ask(value) for value in range(50)]
    os.kill(bench.agent, signal.SIGKILL)
    expected = [value * 16 / 255 for value in range(50)]
    assert [total(future) for future in futures] == pytest.approx(expected, rel=1e-6)
    assert bench.settled == dict.fromkeys(range(50), 1)
    lost, back = bench.told
    assert "ended by SIGKILL" in lost
    assert "50 requests sent" in back
    status = bench.reconnecting.status()
    assert (status.state, status.reconnects, status.queries) == (DeviceState.UP, 1, 50)


def test_old_agent_that_hangs_is_ended_before_another_takes_its_place(bench: Bench) -> None:
    hanging = bench.agent
    os.kill(hanging, signal.SIGSTOP)
    future = bench.ask(7)
    session = bench.reconnecting._latest
    session._link._stream.close()  # type: ignore[attr-defined]  # the link is cut; the agent doesn't notice
    assert total(future) == pytest.approx(7 * 16 / 255, rel=1e-6)
    assert bench.agent != hanging
    until(lambda: not Path(f"/proc/{hanging}").exists())


def test_model_that_is_missing_retires_the_device_and_reports(bench, onnx_model) -> None:
    os.kill(bench.agent, signal.SIGSTOP)
    future = bench.ask(1)
    onnx_model.unlink()
    os.kill(bench.agent, signal.SIGKILL)
    with pytest.raises(ModelError, match="model file"):
        future.result(DEADLINE_S)
    assert bench.reconnecting.state is DeviceState.RETIRED
    until(lambda: bench.told[-1].startswith("bench takes no more part: there is no model file"))


def test_close_ends_the_agent_and_fails_what_is_pending(bench: Bench) -> None:
    agent = bench.agent
    os.kill(agent, signal.SIGSTOP)
    future = bench.ask(1)
    os.kill(agent, signal.SIGCONT)
    bench.reconnecting.close()
    if (error := future.exception(0)) is not None:
        assert isinstance(error, DeviceError)
    assert not Path(f"/proc/{agent}").exists()

"""Seeded schedules of faults against a real agent: every request is answered, rightly, and once."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_models import save_onnx

from edgeflare.devices import Device, DeviceSession, DeviceState, Reply, connect, open_device
from edgeflare.devices.provisioning.probe import probe
from edgeflare.devices.provisioning.upload import Provisioned, provision
from edgeflare.devices.session.agent_link import Limits
from edgeflare.devices.session.reconnect_policy import Backoff
from edgeflare.devices.session.reconnecting import ReconnectingSession
from edgeflare.devices.session.session import Lease
from edgeflare.errors import DeviceError
from edgeflare.types import Sample
from edgeflare_agent.image_spec import InputSpec
from edgeflare_lab.testing import Fault, FaultPlan, connecting

REQUESTS = 300
FAULTS = 6
PATIENCE_S = 300
LIMITS = {"heartbeat_s": 2.0, "timeout_s": 10.0}
LEASE = Lease(holder="a campaign", session="the first", about="fault schedules")
AT_ONCE = Backoff(first_s=0.01, most_s=0.05)

Reopen = Callable[[], DeviceSession]


@pytest.fixture(scope="module")
def provisioned(tmp_path_factory: pytest.TempPathFactory) -> Provisioned:
    """Agent and model on this machine, put there once for all schedules; `total` is the pixels' sum."""
    folder = tmp_path_factory.mktemp("device")
    model = save_onnx(
        folder / "sum.onnx",
        [helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0)],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4, 1])],
        [helper.make_tensor_value_info("total", TensorProto.FLOAT, [])],
    )
    device = Device(name="bench", transport="local", cache=str(folder / "cache"))
    transport = connect(device)
    return provision(transport, probe(transport, device), device, model)


def sample_of(n: int) -> Sample:
    """Return a 4 x 4 grey image whose pixels' sum is n, at most 510."""
    image = np.zeros((4, 4, 1), np.uint8)
    image[0, :2, 0] = min(n, 255), max(0, n - 255)
    return image


def is_answer_of(n: int, reply: Reply) -> bool:
    """Tell whether this is what the model says of `sample_of(n)`; no other n has the same answer."""
    (total,) = reply.outputs
    return len(reply.seconds) == 1 and float(total) == pytest.approx(n / 255, rel=1e-6)


def open_at_last(reopen: Reopen) -> DeviceSession:
    """Return the first session that the plan lets stand."""
    for _ in range(10 * FAULTS):
        with suppress(DeviceError):
            return reopen()
    pytest.fail("the plan has no end")


def ask_everything(
    reopen: Reopen, spec: InputSpec, rng: random.Random
) -> tuple[list[int], list[int], ReconnectingSession]:
    """Ask for all answers; return the requests wrongly answered, and how often each was answered."""
    answered = [0] * REQUESTS
    counting = threading.Lock()

    def count(n: int, _: "Future[Reply]") -> None:
        with counting:
            answered[n] += 1

    reconnecting = ReconnectingSession(open_at_last(reopen), reopen, rng=rng, backoff=AT_ONCE)
    try:
        reconnecting.configure(spec, "total")
        replies = [reconnecting.submit([sample_of(n)]) for n in range(REQUESTS)]
        for n, reply in enumerate(replies):
            reply.add_done_callback(partial(count, n))
        wrong = [n for n, one in enumerate(replies) if not is_answer_of(n, one.result(PATIENCE_S))]
        assert reconnecting.status().queries == REQUESTS
    finally:
        reconnecting.close()
    return wrong, answered, reconnecting


SEEDS = [
    *range(2),
    *(pytest.param(n, marks=pytest.mark.extended) for n in range(2, 4)),
    *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 206)),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_wrong_or_twice_under(seed, provisioned, device, pair_input) -> None:
    plan = FaultPlan(seed, faults=FAULTS, span=4_096, spare=0)

    def reopen() -> DeviceSession:
        transport = plan.wrap(connect(device))
        return DeviceSession.open(
            transport, provisioned, "onnx", {}, lease=LEASE, owns_transport=True,
            limits=Limits(**LIMITS),
        )  # fmt: skip

    try:
        wrong, answered, reconnecting = ask_everything(reopen, pair_input, random.Random(seed))
    except BaseException:
        print(plan)
        raise
    assert (wrong, answered) == ([], [1] * REQUESTS), str(plan)
    assert plan.fired, str(plan)
    assert reconnecting.state is DeviceState.RETIRED


def test_a_device_that_is_opened_anew_each_time_loses_nothing(
    device: Device, onnx_model: Path, pair_input: InputSpec
) -> None:
    plan = FaultPlan.of(
        [
            Fault("kill", 0, "to device", 4_000),
            Fault("refuse", 1, count=2),
            Fault("cut", 1, "to device", 3_000),
            Fault("corrupt", 2, "to device", 4_000, mask=4),
            Fault("duplicate", 3, "to device", 4_000, count=0),
        ]
    )
    reopen = partial(
        open_device, device, onnx_model, connect=connecting({device.name: plan}, connect)
    )
    wrong, answered, _ = ask_everything(reopen, pair_input, random.Random(1))
    assert (wrong, answered) == ([], [1] * REQUESTS), str(plan)
    assert sorted(map(repr, plan.fired)) == sorted(map(repr, plan.faults))

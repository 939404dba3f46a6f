"""A campaign's session with a phone that is unplugged, falls offline or is replugged meanwhile."""

import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from adb_server import FakeAdbServer, Phone
from onnx import TensorProto, helper
from ssh_servers import SshServer

from edgeflare.devices import Device, ReconnectingSession, check_device, open_device
from edgeflare.devices.session.reconnect_policy import Backoff
from edgeflare.devices.transports.ssh.trust import trust_host_key
from edgeflare_agent.image_spec import InputSpec

INPUT = InputSpec(shape=(1, 4, 4, 1), dtype="float32", size=(4, 4), channels=1, scale=(1.0, 255.0))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Sums the 16 values of its input."""
    graph = helper.make_graph(
        [helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0)],
        "sum",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4, 1])],
        [helper.make_tensor_value_info("total", TensorProto.FLOAT, [])],
    )
    opset = helper.make_opsetid("", 17)
    path = tmp_path / "sum.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=8), str(path))
    return path


@pytest.fixture(params=["shell", pytest.param("ssh", marks=pytest.mark.extended)])
def phone(
    request: pytest.FixtureRequest,
    asyncssh_server: SshServer,
    adb_server: FakeAdbServer,
    tmp_path: Path,
) -> Device:
    """The phone R58M by either way; it answers and is trusted."""
    ports = {8022: asyncssh_server.port}
    adb_server.phones.append(Phone("R58M", ports=ports, home=tmp_path))
    fields = {
        "name": "phone",
        "transport": "adb",
        "serial": "R58M",
        "cache": str(tmp_path / "cache"),
        "python": sys.executable,
    }
    if request.param == "shell":
        return Device.model_validate({**fields, "adb_shell": True})
    login = {"user": asyncssh_server.user, "key": asyncssh_server.key}
    device = Device.model_validate({**fields, **login})
    trust_host_key(device, asyncssh_server.fingerprint)
    return device


@pytest.fixture
def session(phone: Device, model: Path) -> Iterator[ReconnectingSession]:
    reopen = partial(open_device, phone, model)
    session = ReconnectingSession(
        reopen(), reopen, rng=random.Random(1), backoff=Backoff(0.01, 0.1)
    )
    session.configure(INPUT, "total")
    yield session
    session.close()


def ask(session: ReconnectingSession, values: range) -> list[float]:
    pending = [session.submit([np.full((4, 4, 1), value, np.uint8)]) for value in values]
    return [float(one.result(120).outputs[0]) for one in pending]


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("offline", marks=pytest.mark.extended),
        "unplugged",
        pytest.param("link cut", marks=pytest.mark.extended),
    ],
)
def test_what_was_asked_is_answered_after_the_phone_is_back(session, adb_server, loss) -> None:
    expected = [value * 16 / 255 for value in range(60)]
    assert ask(session, range(10)) == pytest.approx(expected[:10], rel=1e-6)
    phone = adb_server.phone("R58M")
    pending = [session.submit([np.full((4, 4, 1), value, np.uint8)]) for value in range(10, 50)]
    if loss == "unplugged":
        adb_server.cut("R58M")
        adb_server.phones.append(Phone("9A"))  # another one is plugged in meanwhile
        adb_server.phones.append(phone)
    else:
        phone.comes_back = loss == "offline"
        adb_server.cut("R58M", "offline" if loss == "offline" else "device")
    answers = [float(one.result(120).outputs[0]) for one in pending]
    assert answers == pytest.approx(expected[10:50], rel=1e-6)
    assert ask(session, range(50, 60)) == pytest.approx(expected[50:], rel=1e-6)
    assert session.status().reconnects >= 1


def test_check_reports_how_the_phone_is_reached(phone: Device) -> None:
    lines = check_device(phone)
    assert all(line.ok for line in lines), lines
    assert lines[0].name == "connection"
    assert "adb to" in lines[0].detail


def test_check_of_a_locked_phone_does_not_blame_the_key(phone, adb_server) -> None:
    adb_server.phone("R58M").state = "unauthorized"
    (line,) = check_device(phone)
    assert (line.name, line.ok) == ("connection", False)
    assert "phone R58M" in line.detail
    assert line.fix is not None
    assert "confirm the dialog" in line.fix

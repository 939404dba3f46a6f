"""Real devices of this machine, small models, and agents that misbehave."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from ssh_servers import SshServer

from edgeflare.devices import Device, DeviceSession
from edgeflare.devices.provisioning.upload import Provisioned
from edgeflare.devices.session.agent_link import Limits
from edgeflare.devices.transports.local import LocalTransport
from edgeflare_agent.image_spec import InputSpec

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PAIR = InputSpec(shape=(1, 4, 4, 1), dtype="float32", size=(4, 4), channels=1, scale=(1.0, 255.0))

PRELUDE = f"""
import os, signal, sys, time
sys.path.insert(0, {str(ROOT / "agent")!r})
import numpy as np
from edgeflare_agent.wire import Frame, Kind, VERSION, encode, read_frame
wire = sys.stdout.buffer
def send(kind, header, arrays=()):
    for block in encode(kind, header, arrays):
        wire.write(block)
    wire.flush()
def receive():
    return read_frame(sys.stdin.buffer.read1)
def greet():
    send(Kind.HELLO, {{"protocol": VERSION, "python": "3.9.9", "numpy": "1.26.0", "pid": os.getpid(),
        "device": {{"board": "fake"}}, "runtimes": {{}}}})
def answer(frame):
    if frame.kind is Kind.PING:
        send(Kind.PONG, frame.header)
    elif frame.kind is Kind.LOAD:
        tensor = {{"name": "x", "shape": [None], "dtype": "uint8", "quantization": None}}
        send(Kind.LOADED, {{"id": frame.header["id"], "inputs": [tensor], "outputs": [tensor],
            "runtime": {{"name": "fake"}}, "metadata": {{}}}})
    elif frame.kind is Kind.STATUS:
        send(Kind.STATE, {{"id": frame.header["id"], "leases": []}})
    elif frame.kind is Kind.BYE:
        sys.exit(0)
    else:
        return frame
    return None
def next_request():
    while True:
        frame = answer(receive())
        if frame is not None and frame.kind is not Kind.START:
            return frame
"""
"""What scripted agents share: they speak the wire, load anything, and leave the rest to the test."""

FakeAgent = Callable[[str], LocalTransport]


@pytest.fixture(
    scope="session",
    params=[pytest.param("openssh", marks=[pytest.mark.sshd, pytest.mark.extended]), "asyncssh"],
)
def ssh_server(request: pytest.FixtureRequest) -> SshServer:
    """Each of both servers in turn; here one is enough by default, as `integration/ssh` has both."""
    server: SshServer = request.getfixturevalue(f"{request.param}_server")
    return server


NOTHING_THERE = Provisioned("agent.pyz", "nowhere", f"{'0' * 64}.onnx", "0" * 64, Path("m.onnx"))
"""What a scripted agent is told to load; it looks at none of it."""


@pytest.fixture
def fake_agent(tmp_path: Path) -> FakeAgent:
    """A transport whose Python command is a script of the test's own, after PRELUDE."""

    def make(script: str) -> LocalTransport:
        path = tmp_path / "fake_agent.py"
        path.write_text(PRELUDE + script)
        return LocalTransport("fake", shlex.join([sys.executable, str(path)]))

    return make


@pytest.fixture
def nothing_there() -> Provisioned:
    return NOTHING_THERE


@pytest.fixture
def device(tmp_path: Path) -> Device:
    """This machine, with a cache of the test's own."""
    return Device(name="bench", transport="local", cache=str(tmp_path / "cache"))


@pytest.fixture
def pair_input() -> InputSpec:
    """The input of `onnx_model`: 4 x 4 grey pixels, divided by 255."""
    return PAIR


@pytest.fixture
def onnx_model(tmp_path: Path) -> Path:
    """An ONNX model with two outputs: `total`, the sum of the 16 values, and `doubled`, twice that."""
    graph = helper.make_graph(
        [
            helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0),
            helper.make_node("Mul", ["total", "two"], ["doubled"]),
        ],
        "sum",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4, 1])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [])
            for name in ("total", "doubled")
        ],
        [numpy_helper.from_array(np.float32(2), "two")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path / "sum.onnx"
    onnx.save(model, str(path))
    return path


@pytest.fixture
def with_banner(tmp_path: Path) -> str:
    """A Python command behind a shell that prints five lines first, and one afterwards."""
    script = tmp_path / "login.sh"
    python = shlex.quote(sys.executable)
    script.write_text(
        'echo "Welcome to Board OS"; echo; echo "2 updates"; echo "no mail"; echo "bye now"\n'
        f'{python} "$@"; status=$?; echo "logged out"; exit $status\n'
    )
    return shlex.join([shutil.which("sh") or "/bin/sh", str(script)])


def interpreter(version: str) -> str | None:
    """Return a working interpreter of this version, such as ``2.7``, if this machine has one."""
    candidates = [
        shutil.which(f"python{version}"),
        *map(str, sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))),
    ]
    for candidate in filter(None, candidates):
        asked = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([candidate, "-c", asked], capture_output=True, text=True)
        if done.stdout.strip() == version:
            return candidate
    return None


@pytest.fixture(params=["2.7", "3.6", "3.7"])
def old_python(request: pytest.FixtureRequest) -> str:
    """An interpreter that is too old for the agent."""
    found = interpreter(request.param)
    if found is None:
        pytest.skip(f"no Python {request.param} on this machine")
    return found


@pytest.fixture
def start(
    fake_agent: Callable[[str], LocalTransport], nothing_there: Provisioned
) -> Iterator[Callable[..., DeviceSession]]:
    """Open a session with a scripted agent; it is closed after the test."""
    opened: list[DeviceSession] = []

    def make(script: str, **limits: float) -> DeviceSession:
        session = DeviceSession.open(
            fake_agent(script), nothing_there, "fake", {}, limits=Limits(**limits)
        )  # type: ignore[arg-type]
        opened.append(session)
        return session

    yield make
    for session in opened:
        session.close()

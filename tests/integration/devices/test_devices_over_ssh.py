"""The same session through real SSH servers: same bits as the local one, and faults told apart."""

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ssh_servers import SshServer, start_asyncssh

from edgeflare.devices import Device, check_device, open_device, prune_device
from edgeflare.errors import AgentDiedError, UnreachableError
from edgeflare_agent.image_spec import InputSpec


@pytest.fixture
def remote(ssh_server: SshServer, tmp_path: Path) -> Device:
    """This machine through an SSH server, with a cache of the test's own."""
    return ssh_server.device(name="bench", cache=str(tmp_path / "remote cache"))


def images(count: int) -> list[Any]:
    return list(np.random.default_rng(3).integers(0, 256, (count, 4, 4, 1), np.uint8))


def test_answers_are_the_local_ones_bit_for_bit(remote, device, onnx_model, pair_input) -> None:
    answers = []
    for entry in (device, remote):
        session = open_device(entry, onnx_model)
        session.configure(pair_input, "doubled")
        pending = [session.submit([one]) for one in images(100)]
        answers.append([float(one.result(60).outputs[0]) for one in pending])
        session.close()
    assert answers[0] == answers[1]


def test_check_and_prune(remote: Device) -> None:
    lines = check_device(remote)
    assert all(line.ok for line in lines), lines
    assert lines[-1].name == "lease"
    assert prune_device(remote, everything=True).files == 4  # the agent and three small models


def test_killed_agent_is_reported(remote: Device, onnx_model: Path, pair_input: InputSpec) -> None:
    session = open_device(remote, onnx_model)
    session.configure(pair_input, "total")
    os.kill(session._link.hello["pid"], signal.SIGKILL)
    error = session.submit(images(1)).exception(60)
    session.close()
    assert isinstance(error, AgentDiedError)
    assert "out of memory" in str(error)


def test_lost_connection_fails_what_is_pending(onnx_model, pair_input, tmp_path) -> None:
    with start_asyncssh() as server:
        remote = server.device(name="bench", cache=str(tmp_path / "cache"))
        session = open_device(remote, onnx_model)
        session.configure(pair_input, "total")
        pending = [session.submit(images(200)) for _ in range(20)]
        server.kill()
        errors = {type(one.exception(60)) for one in pending}
        session.close()
    assert errors & {AgentDiedError, UnreachableError}
    assert errors <= {AgentDiedError, UnreachableError, type(None)}

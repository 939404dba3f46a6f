"""What sessions and inquiries tell of a real device: its health, its window, and who uses it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ssh_servers import SshServer

from edgeflare.devices import (
    Device,
    DeviceSession,
    Lease,
    check_device,
    connect,
    device_status,
    open_device,
)
from edgeflare.devices.provisioning.probe import probe
from edgeflare.devices.provisioning.upload import provision
from edgeflare.devices.session.agent_link import Limits
from edgeflare.errors import DeviceBusyError
from edgeflare_agent.image_spec import InputSpec

NIGHT = Lease("night", "night on bench", "campaign night on laptop")
DAY = Lease("day", "day on bench", "campaign day on desk")


def images(count: int) -> list[Any]:
    return list(np.random.default_rng(5).integers(0, 256, (count, 4, 4, 1), np.uint8))


@pytest.fixture
def night(device: Device, onnx_model: Path) -> Iterator[DeviceSession]:
    session = open_device(device, onnx_model, lease=NIGHT)
    yield session
    session.close()


def test_health_follows_the_work(device: Device, onnx_model: Path, pair_input: InputSpec) -> None:
    session = open_device(device, onnx_model)
    session.configure(pair_input, "total")
    session.ping()
    before = session.health
    for pending in [session.submit([image]) for image in images(300)]:
        pending.result(60)
    session.ping()
    after = session.health
    session.close()
    assert after.served == before.served + 300
    assert 0 < after.busy_s - before.busy_s <= after.uptime_s - before.uptime_s
    assert after.round_trip_s is not None
    assert after.round_trip_s > 0
    assert (after.waiting, after.clock_jump_s) == (0, 0.0)


@pytest.mark.extended
def test_window_adapts_to_a_fast_device_unless_it_is_fixed(device, onnx_model, pair_input) -> None:
    session = open_device(device, onnx_model)
    session.configure(pair_input, "total")
    first = session.window
    for pending in [session.submit([image]) for image in images(300)]:
        pending.result(60)
    adapted = session.window
    session.close()
    assert adapted != first

    transport = connect(device)
    there = provision(transport, probe(transport, device), device, onnx_model)
    fixed = DeviceSession.open(transport, there, "onnx", {}, limits=Limits(window=3))
    fixed.configure(pair_input, "total")
    for pending in [fixed.submit([image]) for image in images(100)]:
        pending.result(60)
    assert fixed.window == 3
    fixed.close()


def test_device_in_use_is_refused_until_its_session_ends(night, device, onnx_model) -> None:
    with pytest.raises(DeviceBusyError, match="campaign night"):
        open_device(device, onnx_model, lease=DAY)
    open_device(device, onnx_model, lease=replace(NIGHT, session="night, another")).close()
    assert night.failure is None
    night.close()
    open_device(device, onnx_model, lease=DAY).close()


def test_status_names_who_holds_the_device(night: DeviceSession, device: Device) -> None:
    report = device_status(device)
    (held,) = report.leases
    assert (held.about, held.holder, held.share) == (NIGHT.about, NIGHT.holder, False)
    assert held.since_s >= 0
    assert (report.name, report.numpy) == ("bench", np.__version__)
    assert report.disk_free_bytes
    assert report.memory_available_bytes
    assert report.round_trip_s > 0
    assert report.to_json()["leases"][0]["about"] == NIGHT.about
    lease = next(line for line in check_device(device) if line.name == "lease")
    assert lease.ok
    assert "campaign night" in lease.detail
    night.close()
    assert device_status(device).leases == ()


@pytest.mark.parametrize(
    "compression",
    ["on", *(pytest.param(how, marks=pytest.mark.extended) for how in ("auto",))],
)
def test_compressed_samples_give_the_same_bits(
    ssh_server: SshServer,
    tmp_path: Path,
    device: Device,
    onnx_model: Path,
    pair_input: InputSpec,
    compression: str,
) -> None:
    samples = [*images(20), *(np.full((4, 4, 1), n, np.uint8) for n in range(20))]
    answers = []
    cache = str(tmp_path / "remote")
    for entry in (device, ssh_server.device(cache=cache, compression=compression)):
        session = open_device(entry, onnx_model)
        session.configure(pair_input, "doubled")
        pending = [session.submit([one] * 40) for one in samples]
        answers.append([bytes(one.result(60).outputs[-1]) for one in pending])
        session.close()
    assert answers[0] == answers[1]

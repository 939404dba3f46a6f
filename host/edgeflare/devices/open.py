"""A device from its description: connected, probed, provisioned, its model loaded."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edgeflare.devices.doctor.check import CheckLine, check
from edgeflare.devices.inventory import Device
from edgeflare.devices.provisioning.probe import probe, require
from edgeflare.devices.provisioning.upload import PruneReport, provision, provision_agent, prune
from edgeflare.devices.runtimes import calibration_file, check_runtime, runtime_for
from edgeflare.devices.session.agent_link import AgentLink, Limits
from edgeflare.devices.session.device_report import DeviceReport, request_report
from edgeflare.devices.session.session import DeviceSession, Lease
from edgeflare.devices.transports.base import Transport
from edgeflare.devices.transports.connect import Prompt, connect
from edgeflare.errors import ModelError


def open_device(
    device: Device,
    model: Path,
    *,
    runtime: str | None = None,
    options: Mapping[str, Any] | None = None,
    ask: Prompt | None = None,
    progress: Callable[[str], None] | None = None,
    lease: Lease | None = None,
    connect: Callable[[Device, Prompt | None], Transport] = connect,
) -> DeviceSession:
    """Return a session with the model loaded on the device; the session owns its connection.

    The runtime is the one given, else the device's, else by the model's extension; `options` win
    over the device's. `progress` is called with a message for each upload. The lease is taken
    before the model is loaded, and shared where the device is. `connect` reaches the device. Raises
    UsageError, ModelError, DeviceError and its kinds; DeviceBusyError where another holds the
    device.
    """
    chosen = runtime or device.runtime or runtime_for(model)
    check_runtime(chosen)
    if not model.is_file():
        raise ModelError(f"there is no model file {model}")
    wanted = {**device.options, **(options or {})}
    calibration = calibration_file(chosen, wanted)
    transport = connect(device, ask)
    try:
        probed = probe(transport, device)
        require(probed, chosen)

        there = provision(
            transport, probed, device, model, calibration, runtime=chosen, progress=progress
        )
        return DeviceSession.open(
            transport,
            there,
            chosen,
            wanted if there.data is None else {**wanted, "calibration": there.data.name},
            compression="off" if device.transport == "local" else device.compression,
            lease=lease,
            share=device.share,
            heartbeat_s=device.heartbeat_s,
            timeout_s=device.timeout_s,
            owns_transport=True,
        )
    except BaseException:
        transport.close()
        raise


def check_device(
    device: Device,
    *,
    model: Path | None = None,
    ask: Prompt | None = None,
    tell: Callable[[CheckLine], None] | None = None,
) -> list[CheckLine]:
    """Try a device step by step, with a model or small ones of EdgeFlare's own; see `check`."""
    return check(device, lambda: connect(device, ask), model=model, tell=tell)


def prune_device(
    device: Device, *, everything: bool = False, ask: Prompt | None = None
) -> PruneReport:
    """Remove cached agents and models from a device; see `prune`."""
    transport = connect(device, ask)
    try:
        return prune(transport, probe(transport, device), everything)
    finally:
        transport.close()


def device_status(device: Device, *, ask: Prompt | None = None) -> DeviceReport:
    """Return a device's health and who uses it, without disturbing them.

    Puts the agent there where it is missing. Raises DeviceError and its kinds, InventoryError.
    """
    transport = connect(device, ask)
    try:
        probed = probe(transport, device)
        require(probed)
        path = provision_agent(transport, probed, device)
        link = AgentLink.open(transport, path, probed.root, Limits())
        try:
            return request_report(link)
        finally:
            link.close()
    finally:
        transport.close()

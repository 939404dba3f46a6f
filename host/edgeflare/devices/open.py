"""A device from its description: connected, probed, provisioned, its model loaded.

A user's transport is an entry point of the group ``edgeflare.transports`` with the name of its URL
scheme: a function of the `Device`, whose `url` is ``scheme://...``, and of what asks the user, that
returns an open `Transport`. That of ``labgrid`` opens devices with a labgrid place, too, and has
`held`: a context manager of the `Device` that holds its place and gives it with its SSH address.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgeflare._internal import plugins
from edgeflare._internal.text import duration
from edgeflare.devices.doctor.check import CheckLine, check
from edgeflare.devices.inventory import BUILT_IN_TRANSPORTS, Device, is_managed
from edgeflare.devices.provisioning.probe import probe, require
from edgeflare.devices.provisioning.upload import PruneReport, provision, provision_agent, prune
from edgeflare.devices.runtimes import calibration_file, check_runtime, runtime_for
from edgeflare.devices.session.agent_link import AgentLink, Limits
from edgeflare.devices.session.device_report import DeviceReport, request_report
from edgeflare.devices.session.session import DeviceSession, Lease
from edgeflare.devices.transports.base import Connect as Connect  # noqa: PLC0414 - an earlier place
from edgeflare.devices.transports.base import ConnectOptions, Prompt, Transport
from edgeflare.devices.transports.local import LocalTransport
from edgeflare.errors import (
    DeviceError,
    EdgeFlareError,
    InventoryError,
    ModelError,
    UnreachableError,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack


def connect(device: Device, ask: Prompt | None = None) -> Transport:
    """Return an open transport to a device. Raises DeviceError and its kinds, InventoryError.

    A labgrid place is acquired first, and given back when the transport is closed.
    """
    if device.transport == "local":
        return LocalTransport(device.name, device.python)
    if device.transport not in BUILT_IN_TRANSPORTS:
        return _by_plugin(device.transport, device, ask)
    if device.adb_shell:
        from edgeflare.devices.transports.adb.transport import AdbShellTransport

        return AdbShellTransport.connect(device)
    if device.labgrid is not None:
        return _by_plugin(_LABGRID, device, ask)
    from edgeflare.devices.transports.ssh.transport import SshTransport

    try:
        return SshTransport.connect(device, ask=ask)
    except UnreachableError as error:
        if is_managed(device):
            raise UnreachableError(
                f"{error}; it is a virtual board, which `edgeflare devices virtual up --name "
                f"{device.name}` starts again"
            ) from error
        raise


_LABGRID = "labgrid"


def held_place(device: Device) -> AbstractContextManager[Device]:
    """Hold a device's labgrid place for a block; gives the device with its SSH address.

    Any other device is given as it is. Raises DeviceBusyError where others have the place,
    UnreachableError where coordinator or exporter don't answer, InventoryError, DeviceError.
    """
    if device.labgrid is None:
        return nullcontext(device)
    held: AbstractContextManager[Device] = _plugin(_LABGRID, device).held(device)
    return held


def _by_plugin(name: str, device: Device, ask: Prompt | None) -> Transport:
    plugin = _plugin(name, device)
    try:
        transport: Transport = plugin(device, ask)
    except EdgeFlareError:
        raise
    except Exception as error:  # the user's code: it may raise anything
        why = f"can't reach {device.name}: {type(error).__name__}: {error}"
        raise DeviceError(str(plugins.unusable("transport", name, why))) from error
    return transport


def _plugin(name: str, device: Device) -> Any:
    plugin = plugins.load("transport", name)
    if plugin is None:
        raise InventoryError(
            f"{device.name} is reached by {name}, and no installed distribution has that transport"
        )
    return plugin


def open_device(
    device: Device,
    model: Path,
    *,
    runtime: str | None = None,
    options: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
    lease: Lease | None = None,
    **reach: "Unpack[ConnectOptions]",
) -> DeviceSession:
    """Return a session with the model loaded on the device; the session owns its connection.

    The runtime is the one given, else the device's, else by the model's extension; `options` win
    over the device's. `progress` is called with a message for each upload. The lease is taken
    before the model is loaded, and shared where the device is. `reach`: see `ConnectOptions`.
    Raises UsageError, ModelError, DeviceError and its kinds; DeviceBusyError where another holds
    the device.
    """
    chosen = runtime or device.runtime or runtime_for(model)
    check_runtime(chosen)
    if not model.is_file():
        raise ModelError(f"there is no model file {model}")
    wanted = {**device.options, **(options or {})}
    calibration = calibration_file(chosen, wanted)
    if device.labgrid is not None and device.labgrid.wait_s and progress is not None:
        progress(
            f"{device.name}: waiting for labgrid place {device.labgrid.place}, "
            f"{duration(device.labgrid.wait_s)} at most"
        )
    transport = reach.get("connect", connect)(device, reach.get("ask"))
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
            wanted if there.data is None else {**wanted, "calibration": there.data[0]},
            compression="off" if device.transport == "local" else device.compression,
            lease=None if lease is None else replace(lease, share=device.share),
            limits=Limits(None, device.heartbeat_s, device.timeout_s),
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
    on_line: Callable[[CheckLine], None] | None = None,
) -> list[CheckLine]:
    """Try a device step by step, with a model or small ones of EdgeFlare's own; see `check`."""
    return check(device, lambda: connect(device, ask), model=model, on_line=on_line)


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

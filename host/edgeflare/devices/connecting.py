"""The way to a device, by what its description says."""

from collections.abc import Callable

from edgeflare.devices.device import Device
from edgeflare.devices.local import LocalTransport
from edgeflare.devices.managed import is_managed
from edgeflare.devices.transport import Transport
from edgeflare.errors import UnreachableError

Prompt = Callable[[str], str | None]
"""Asks the user for a passphrase or password; None where nobody answers."""


def connect(device: Device, ask: Prompt | None = None) -> Transport:
    """Return an open transport to a device. Raises DeviceError and its kinds, InventoryError."""
    if device.transport == "local":
        return LocalTransport(device.name, device.python)
    if device.adb_shell:
        from edgeflare.devices.adb_shell import AdbShellTransport

        return AdbShellTransport.connect(device)
    from edgeflare.devices.ssh import SshTransport

    try:
        return SshTransport.connect(device, ask=ask)
    except UnreachableError as error:
        if is_managed(device):
            raise UnreachableError(
                f"{error}; it is a virtual board, which `edgeflare devices virtual up --name "
                f"{device.name}` starts again"
            ) from error
        raise

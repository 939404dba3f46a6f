"""The way to a device, by what its description says."""

from collections.abc import Callable

from edgeflare.devices.device import Device
from edgeflare.devices.local import LocalTransport
from edgeflare.devices.transport import Transport

Prompt = Callable[[str], str | None]
"""Asks the user for a passphrase or password; None where nobody answers."""


def connect(device: Device, ask: Prompt | None = None) -> Transport:
    """Return an open transport to a device. Raises DeviceError and its kinds, InventoryError."""
    if device.transport == "local":
        return LocalTransport(device.name, device.python)
    from edgeflare.devices.ssh import SshTransport

    return SshTransport.connect(device, ask=ask)

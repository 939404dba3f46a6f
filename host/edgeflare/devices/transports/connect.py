"""The way to a device, by what its description says.

A user's transport is an entry point of the group ``edgeflare.transports`` with the name of its URL
scheme: a function of the `Device`, whose `url` is ``scheme://...``, and of what asks the user, that
returns an open `Transport`.
"""

from collections.abc import Callable

from edgeflare._internal import plugins
from edgeflare.devices.inventory import BUILT_IN_TRANSPORTS, Device, is_managed
from edgeflare.devices.transports.base import Transport
from edgeflare.devices.transports.local import LocalTransport
from edgeflare.errors import DeviceError, EdgeFlareError, InventoryError, UnreachableError

Prompt = Callable[[str], str | None]
"""Asks the user for a passphrase or password; None where nobody answers."""


def connect(device: Device, ask: Prompt | None = None) -> Transport:
    """Return an open transport to a device. Raises DeviceError and its kinds, InventoryError."""
    if device.transport == "local":
        return LocalTransport(device.name, device.python)
    if device.transport not in BUILT_IN_TRANSPORTS:
        return _users(device, ask)
    if device.adb_shell:
        from edgeflare.devices.transports.adb.shell_protocol import AdbShellTransport

        return AdbShellTransport.connect(device)
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


def _users(device: Device, ask: Prompt | None) -> Transport:
    found = plugins.load("transport", device.transport)
    if found is None:
        raise InventoryError(
            f"{device.name} is reached by {device.transport}, and no installed distribution has that transport"
        )
    try:
        transport: Transport = found(device, ask)
    except EdgeFlareError:
        raise
    except Exception as error:  # the user's code: it may raise anything
        why = f"can't reach {device.name}: {type(error).__name__}: {error}"
        raise DeviceError(str(plugins.unusable("transport", device.transport, why))) from error
    return transport

"""How to reach a device's SSH server: over the network, or that of a phone (Termux's) through adb.

SSH goes over a stream of the adb server to the port on the phone: what ``adb forward`` opens for
each connection, without a listener on this machine.
"""

import re
import shlex
import socket
from dataclasses import replace
from functools import partial

from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.adb.phones import choose
from edgeflare.devices.transports.adb.server import AdbRefusedError, AdbServer
from edgeflare.devices.transports.base import Deadline
from edgeflare.devices.transports.ssh.config import Endpoint, resolve_endpoint, resolve_over_link
from edgeflare.errors import UnreachableError

TERMUX_PORT = 8022


def endpoint_of(device: Device) -> Endpoint:
    """Return how to reach a device's SSH server, over the network or through adb.

    A phone is ``adb-SERIAL`` in the SSH config and in known_hosts; adb lists the attached ones.
    Raises InventoryError; of a phone UnreachableError, AuthenticationError, DeviceTimeoutError,
    DeviceProtocolError, too.
    """
    if device.transport != "adb":
        return resolve_endpoint(device)
    server = AdbServer.from_environment()
    serial = choose(server, device.serial, device.connect_timeout_s).serial
    found = resolve_over_link(device, alias_of(serial), TERMUX_PORT)
    phone = f"adb -s {shlex.quote(serial)}"
    return replace(
        found,
        open_link=partial(_open, server, serial, found),
        host_key_file="$PREFIX/etc/ssh/ssh_host_ed25519_key.pub",
        copy_id=(
            f"{phone} forward tcp:{found.port} tcp:{found.port} && "
            f"ssh-copy-id -p {found.port} {found.user}@127.0.0.1"
        ),
    )


def alias_of(serial: str) -> str:
    """Return the name of a phone in the SSH config and in known_hosts."""
    return "adb-" + re.sub(r"[^A-Za-z0-9._:-]", "_", serial)


def _open(server: AdbServer, serial: str, endpoint: Endpoint) -> socket.socket:
    port = endpoint.port
    try:
        return server.open(serial, f"tcp:{port}", Deadline(endpoint.connect_timeout))
    except AdbRefusedError as error:
        if "device" in error.reason:
            raise UnreachableError(f"adb lost the phone {serial}: {error.reason}") from error
        raise UnreachableError(
            f"nothing listens on port {port} of the phone {serial}; open Termux there and run sshd "
            "(once: pkg install openssh), or give its port as `port` in the inventory"
        ) from error

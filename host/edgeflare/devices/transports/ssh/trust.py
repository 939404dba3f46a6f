"""Fetches a device's host key, and trusts it when the user confirms its fingerprint."""

import os
from pathlib import Path

import paramiko

from edgeflare._internal.files import make_folder
from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.ssh.auth import Ask
from edgeflare.devices.transports.ssh.config import Endpoint
from edgeflare.devices.transports.ssh.connection import Connection
from edgeflare.devices.transports.ssh.endpoint import endpoint_of
from edgeflare.devices.transports.ssh.known_hosts import (
    HostKey,
    check_host_key,
    fingerprint_of,
    known_keys,
)
from edgeflare.errors import HostKeyError, InventoryError

__all__ = ["HostKey", "fetch_host_key", "trust_host_key"]


def fetch_host_key(device: Device, *, ask: Ask | None = None) -> HostKey:
    """Return the host key that the device presents now, or that of an untrusted jump host.

    Behind a jump host, the jump host's key must be trusted first.
    `ask` is for logging in at jump hosts. Nothing is sent to a server that is not trusted.
    Raises UnreachableError, DeviceTimeoutError, AuthenticationError (at a jump host), and
    HostKeyError where another key is known for the host, or this one is revoked.
    """
    endpoint, key = _connect_and_read(device, ask)
    return _host_key(endpoint, key)._replace(trusted=_is_known(endpoint, key))


def trust_host_key(device: Device, fingerprint: str, *, ask: Ask | None = None) -> Path:
    """Add the host key that is presented now to known_hosts, if it has this fingerprint.

    `fingerprint` is ``SHA256:...``. Returns the file: the device's `known_hosts`, else the user's.
    What it holds stays as it is; a key that is in it already is not added again. The key is that
    of `fetch_host_key`. Raises HostKeyError where the fingerprint is another, where another key is
    known for this host, or where the file can't be written.
    """
    endpoint, key = _connect_and_read(device, ask)
    presented = _host_key(endpoint, key)
    if presented.fingerprint != fingerprint.strip().rstrip("="):
        raise HostKeyError(
            f"nothing was trusted: {endpoint.address} presents {presented.fingerprint} "
            f"({presented.type}), not {fingerprint}; compare with the device's own "
            f"(on the device: ssh-keygen -lf {endpoint.host_key_file})"
        )
    file = _file(endpoint)
    if _is_known(endpoint, key):
        return file
    try:
        _append(file, f"{endpoint.known_as} {key.get_name()} {key.get_base64()}\n")
    except OSError as error:
        raise HostKeyError(f"can't write the host key to {file}: {error.strerror}") from error
    return file


def _connect_and_read(device: Device, ask: Ask | None) -> tuple[Endpoint, paramiko.PKey]:
    """Connect as far as keys are trusted; return the last server reached and its key."""
    if device.transport not in ("ssh", "adb") or device.adb_shell:
        ways = {"local": "the local device", "adb": "adb's shell"}
        way = ways.get(device.transport, f"a device on {device.transport}://")
        raise InventoryError(f"{way} has no host key; there is nothing to trust")
    if device.labgrid is not None and device.host is None:
        raise InventoryError(
            f"the address of {device.name} is known while its place is held: see held_place"
        )
    checked: list[tuple[Endpoint, paramiko.PKey]] = []

    def check(endpoint: Endpoint, key: paramiko.PKey) -> None:
        checked.append((endpoint, key))
        check_host_key(endpoint, key)

    connection = Connection(endpoint_of(device))
    try:
        connection.connect(check, ask)
    except HostKeyError:
        if not checked:
            raise
    finally:
        connection.close()
    return checked[-1]


def _is_known(endpoint: Endpoint, key: paramiko.PKey) -> bool:
    """Whether this key is trusted; raise HostKeyError where another is, or this one is revoked."""
    known = known_keys(endpoint.known_as, endpoint.known_hosts)
    if not any(not entry.marker or entry.blob == key.asbytes() for entry in known):
        return False
    check_host_key(endpoint, key)
    return True


def _host_key(endpoint: Endpoint, key: paramiko.PKey) -> HostKey:
    return HostKey(
        endpoint.host,
        endpoint.port,
        key.get_name(),
        fingerprint_of(key.asbytes()),
        file=endpoint.host_key_file,
    )


def _file(endpoint: Endpoint) -> Path:
    if not endpoint.known_hosts:
        raise HostKeyError("the SSH config names no known_hosts file to write to")
    return endpoint.known_hosts[0]


def _append(file: Path, line: str) -> None:
    """Append a line; the file ends in a newline before and after, whatever it was."""
    make_folder(file.parent, 0o700)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "rb+") as known:
        if known.seek(0, os.SEEK_END):
            known.seek(-1, os.SEEK_END)
            if known.read(1) != b"\n":
                line = f"\n{line}"
        known.write(line.encode())

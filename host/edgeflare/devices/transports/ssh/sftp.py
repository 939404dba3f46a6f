"""Copies a file to the device by SFTP."""

from pathlib import Path

import paramiko
from paramiko.sftp import SFTPError

from edgeflare.devices.transports.ssh.config import Endpoint
from edgeflare.devices.transports.ssh.errors import explain
from edgeflare.devices.transports.ssh.stream import WINDOW, time_limit
from edgeflare.devices.transports.upload import STALL_S
from edgeflare.errors import DeviceTimeoutError


def put_by_sftp(transport: paramiko.Transport, local: Path, remote: str, timeout: float) -> None:
    """Copy a file over SFTP with pipelined writes and check its size.

    Raises what paramiko raises; SFTPError too where a login shell's banner spoils the protocol.
    """
    with transport.open_session(WINDOW, timeout=timeout) as channel:
        channel.settimeout(timeout)
        with time_limit(channel, timeout):
            channel.invoke_subsystem("sftp")
        with paramiko.SFTPClient(channel) as sftp, local.open("rb") as source:
            channel.settimeout(STALL_S)
            sftp.putfo(source, remote, local.stat().st_size, confirm=True)


def link_lost(
    error: Exception, transport: paramiko.Transport, endpoint: Endpoint
) -> Exception | None:
    """Return the error to raise if a failed SFTP transfer means a lost or stuck link, else None."""
    if isinstance(error, TimeoutError):
        return DeviceTimeoutError(
            f"a file transfer to {endpoint.address} made no progress for {STALL_S:.0f} s"
        )
    return None if transport.is_active() else explain(error, endpoint)


SFTP_ERRORS = (paramiko.SSHException, SFTPError, EOFError, OSError)

"""Translates errors of paramiko, sockets and the file transfer to sentences for the user."""

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from paramiko import ssh_exception as ssh
from paramiko.sftp import SFTPError
from paramiko.ssh_exception import SSHException

from edgeflare._internal.text import clean_text
from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.transports.ssh.config import Endpoint
from edgeflare.errors import (
    AuthenticationError,
    DeviceError,
    DeviceProtocolError,
    DeviceTimeoutError,
    HostKeyError,
    InventoryError,
    UnreachableError,
)

Kind = type[DeviceError] | type[InventoryError]

_CHECK_CONFIG = "look at ~/.ssh/config; `ssh -G HOST` shows what it says"

MAPPED: dict[type[Exception], tuple[Kind, str]] = {
    ssh.AuthenticationException: (
        AuthenticationError,
        "login as {user} failed at {address}: {why}",
    ),
    ssh.BadAuthenticationType: (
        AuthenticationError,
        "{address} doesn't accept this way to log in as {user}: {why}",
    ),
    ssh.BadHostKeyException: (
        HostKeyError,
        "the host key of {address} is not the known one: {why}",
    ),
    ssh.ChannelException: (
        DeviceError,
        (
            "{address} refused to open another session: {why}; "
            "end other sessions there or raise MaxSessions in its sshd_config"
        ),
    ),
    ssh.ConfigParseError: (
        InventoryError,
        "the SSH config makes no sense: {why}; " + _CHECK_CONFIG,
    ),
    ssh.CouldNotCanonicalize: (
        InventoryError,
        "the SSH config wants a canonical name and none was found: {why}; " + _CHECK_CONFIG,
    ),
    ssh.IncompatiblePeer: (
        UnreachableError,
        (
            "{address} and this program share no method of encryption: {why}; "
            "bring the device's SSH server up to date"
        ),
    ),
    ssh.MessageOrderError: (
        UnreachableError,
        "{address} broke the order of the SSH protocol: {why}; the link may have been tampered with",
    ),
    ssh.NoValidConnectionsError: (UnreachableError, "no connection to {address}: {why}"),
    ssh.PartialAuthentication: (
        AuthenticationError,
        "{address} wants one more step to log in as {user}: {why}",
    ),
    ssh.PasswordRequiredException: (
        AuthenticationError,
        "a key for {address} is locked by a passphrase; unlock it first with: ssh-add KEY",
    ),
    ssh.ProxyCommandFailure: (
        UnreachableError,
        "the ProxyCommand for {address} failed: {why}; try it by hand",
    ),
    SSHException: (UnreachableError, "the SSH connection to {address} failed: {why}"),
    ssh.UnableToAuthenticate: (AuthenticationError, "login as {user} failed at {address}: {why}"),
    SFTPError: (DeviceError, "the file transfer to {address} failed: {why}"),
    socket.gaierror: (
        UnreachableError,
        "the name {host!r} can't be resolved ({why}); check the spelling, the network, or give an address",
    ),
    UnicodeDecodeError: (DeviceProtocolError, "{address} sent text that is not UTF-8: {why}"),
    UnicodeError: (
        UnreachableError,
        (
            "{host!r} is no host name: each part between its dots has 1 to 63 characters; "
            "check HostName in ~/.ssh/config"
        ),
    ),
    TimeoutError: (
        DeviceTimeoutError,
        (
            "no answer from {address} in time; is the device on and in this network, "
            "and is a firewall in the way?"
        ),
    ),
    ConnectionRefusedError: (
        UnreachableError,
        (
            "{address} refused the connection: no SSH server listens there; "
            "check the port, or start sshd on the device"
        ),
    ),
    EOFError: (UnreachableError, "{address} closed the connection; is it shutting down or full?"),
    OSError: (UnreachableError, "no connection to {address}: {why}"),
}
"""The error to raise and its sentence; an unlisted subclass has its nearest parent's."""

_NO_ROUTE = (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)


def explain(error: Exception, endpoint: Endpoint) -> DeviceError | InventoryError:
    """Return the error to raise instead of this one of paramiko, a socket or SFTP."""
    kind, sentence = next(MAPPED[parent] for parent in type(error).__mro__ if parent in MAPPED)
    if isinstance(error, OSError) and error.errno in _NO_ROUTE:
        sentence = (
            "no route to {address} ({why}); is the device on, and this machine in its network?"
        )
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    why = clean_text(text.rstrip("."), LONGEST_LINE)
    return kind(
        sentence.format(address=endpoint.address, host=endpoint.host, user=endpoint.user, why=why)
    )


@contextmanager
def explained(endpoint: Endpoint) -> Iterator[None]:
    """Turn what paramiko, sockets and SFTP raise inside into errors for the user."""
    try:
        yield
    except (SSHException, SFTPError, EOFError, OSError, UnicodeError) as error:
        raise explain(error, endpoint) from error

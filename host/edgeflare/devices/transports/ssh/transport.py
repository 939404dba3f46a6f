"""The SSH transport: streams, commands and files over one connection to a device."""

import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import paramiko
from paramiko.sftp import SFTPError

from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.base import (
    STDERR_LIMIT,
    Completed,
    Deadline,
    Login,
    check_ran,
    read_output,
    start_feeder,
)
from edgeflare.devices.transports.ssh.auth import Ask, authenticate
from edgeflare.devices.transports.ssh.config import Endpoint
from edgeflare.devices.transports.ssh.connection import Connection
from edgeflare.devices.transports.ssh.endpoint import endpoint_of
from edgeflare.devices.transports.ssh.errors import explain
from edgeflare.devices.transports.ssh.known_hosts import check_host_key, fingerprint_of
from edgeflare.devices.transports.ssh.stream import (
    PACKET,
    WINDOW,
    SshStream,
    StderrCollector,
    kill,
    start_program,
    time_limit,
    write_all,
)
from edgeflare.devices.transports.upload import STALL_S, put_by_python
from edgeflare.errors import DeviceProtocolError, DeviceTimeoutError, UnreachableError

_LOST_LINK = (UnreachableError, paramiko.SSHException, EOFError, OSError)
_SFTP_ERRORS = (paramiko.SSHException, SFTPError, EOFError, OSError)


def _run_program(
    transport: paramiko.Transport,
    endpoint: Endpoint,
    command: str,
    stdin: Iterable[bytes],
    deadline: Deadline,
) -> Completed:
    """Run a command line with this stdin (blocks) until it ends.

    Raises DeviceTimeoutError, DeviceProtocolError, UnreachableError, DeviceError.
    """
    channel = start_program(transport, endpoint, command, max(deadline.remaining(), 0.1))
    stderr = StderrCollector(channel, STDERR_LIMIT)

    def read(seconds: float) -> bytes:
        channel.settimeout(max(seconds, 0.01))
        return channel.recv(PACKET * 4)

    try:
        start_feeder(
            partial(write_all, channel, endpoint), channel.shutdown_write, stdin, _LOST_LINK
        )
        stdout = read_output(read, deadline, endpoint.address)
        _await_status(channel, deadline)
        stderr.join(deadline.remaining())
    except TimeoutError as error:
        kill(channel)
        raise DeviceTimeoutError(
            f"a command on {endpoint.address} did not end within {deadline.seconds:.0f} s: "
            f"{command if len(command) <= 120 else f'{command[:117]}...'}"
        ) from error
    except DeviceProtocolError:
        kill(channel)
        raise
    except _LOST_LINK as error:
        raise explain(error, endpoint) from error
    finally:
        channel.close()
    if channel.exit_status == -1 and not transport.is_active():
        raise UnreachableError(
            f"the connection to {endpoint.address} was lost while a command ran there"
        )
    return Completed(channel.exit_status, stdout, stderr.text())


def _await_status(channel: paramiko.Channel, deadline: Deadline) -> None:
    if not channel.status_event.wait(deadline.remaining()):
        raise TimeoutError


def _put_by_sftp(transport: paramiko.Transport, local: Path, remote: str, timeout: float) -> None:
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


def _link_lost(
    error: Exception, transport: paramiko.Transport, endpoint: Endpoint
) -> Exception | None:
    """Return the error to raise if a failed SFTP transfer means a lost or stuck link, else None."""
    if isinstance(error, TimeoutError):
        return DeviceTimeoutError(
            f"a file transfer to {endpoint.address} made no progress for {STALL_S:.0f} s"
        )
    return None if transport.is_active() else explain(error, endpoint)


__all__ = ["Ask", "SshTransport"]

_START_S = 60.0


class SshTransport:
    """A connection to one device, see `Transport`; `login` describes the login."""

    def __init__(self, device: Device, connection: Connection, by: str = "") -> None:
        self.name = device.name
        self.login = _login(connection, by)
        self._python = device.python
        self._connection = connection
        self._endpoint: Endpoint = connection.endpoint
        # Where Python is behind a wrapper (a container, proot), SFTP sees other files than it does.
        self._sftp = len(shlex.split(device.python)) == 1

    @classmethod
    def connect(
        cls, device: Device, *, ask: Ask | None = None, password: str | None = None
    ) -> "SshTransport":
        """Connect, check the host key and log in.

        `ask(prompt)` asks the user for a passphrase or password and returns None where nobody
        answers; None: there is no terminal. `password` is the user's at this device, if known; jump
        hosts don't get it. Raises UnreachableError, DeviceTimeoutError,
        HostKeyError, AuthenticationError; InventoryError where the SSH config makes no sense.
        """
        connection = Connection(endpoint_of(device))
        try:
            connection.connect(check_host_key, ask)
            by = authenticate(connection.transport, connection.endpoint, ask, password)
        except BaseException:
            connection.close()
            raise
        return cls(device, connection, by)

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the device's Python command with these arguments and wait for it."""
        return self._run(arguments, (stdin,), timeout)

    def open(self, arguments: Sequence[str]) -> SshStream:
        """Start the device's Python command with these arguments; no pty, stderr separate.

        A Python command that doesn't exist shows as exit status 127, and in `stderr_tail`.
        """
        channel = start_program(
            self._connection.transport, self._endpoint, self._command(arguments), _START_S
        )
        return SshStream(channel, self._endpoint)

    def put(self, local: Path, remote: str) -> None:
        """Copy a file's bytes to this path, whose folder exists.

        By SFTP; where that fails, through the device's Python, which also says what is wrong.
        Raises DeviceDiskFullError, UnreachableError, DeviceTimeoutError, DeviceError.
        """
        transport = self._connection.transport
        if self._sftp:
            try:
                _put_by_sftp(transport, local, remote, self._endpoint.connect_timeout)
            except _SFTP_ERRORS as error:
                lost = _link_lost(error, transport, self._endpoint)
                if lost is not None:
                    raise lost from error
            else:
                return
        put_by_python(self._run, self._endpoint.address, local, remote)

    def close(self) -> None:
        """End the connection and those it goes through. Safe to repeat."""
        self._connection.close()

    def _run(self, arguments: Sequence[str], stdin: Iterable[bytes], timeout: float) -> Completed:
        done = _run_program(
            self._connection.transport,
            self._endpoint,
            self._command(arguments),
            stdin,
            Deadline(timeout),
        )
        check_ran(done, self._python, self.name)
        return done

    def _command(self, arguments: Sequence[str]) -> str:
        return " ".join([self._python, *map(shlex.quote, arguments)])


def _login(connection: Connection, by: str) -> Login:
    key = connection.transport.get_remote_server_key()
    return Login(
        address=connection.endpoint.address,
        user=connection.endpoint.user,
        server=connection.transport.remote_version.removeprefix("SSH-2.0-"),
        by=by,
        host_key=f"{key.get_name()} {fingerprint_of(key.asbytes())}",
        key_command=connection.endpoint.key_command,
    )

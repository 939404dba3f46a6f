"""SSH connections by paramiko, its login fixed: one service request, no race, bounded waits."""

import contextlib
import logging
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any

import paramiko
from paramiko.auth_handler import AuthOnlyHandler
from paramiko.common import cMSG_SERVICE_REQUEST, cMSG_USERAUTH_REQUEST

from edgeflare.devices.transports.base import KEEPALIVE_S, Deadline, enable_keepalive
from edgeflare.devices.transports.ssh.auth import Ask, authenticate
from edgeflare.devices.transports.ssh.config import Endpoint
from edgeflare.devices.transports.ssh.errors import explain, explained
from edgeflare.devices.transports.ssh.known_hosts import known_keys, prefer_known_types
from edgeflare.errors import UnreachableError

_POLL_S = 0.005


class _AuthHandler(AuthOnlyHandler):
    """Creates its event before the request is sent; paramiko misses an answer in between."""

    def send_auth_request(
        self,
        username: str,
        method: str,
        finish_message: Callable[[paramiko.Message], None] | None = None,
    ) -> Any:
        """Send one attempt to log in and wait for its answer."""
        self.auth_method = method
        self.username = username
        message = paramiko.Message()
        message.add_byte(cMSG_USERAUTH_REQUEST)
        message.add_string(username)
        message.add_string("ssh-connection")
        message.add_string(method)
        if finish_message is not None:
            finish_message(message)
        self.auth_event = threading.Event()
        with self.transport.lock:
            self.transport._send_message(message)  # type: ignore[attr-defined]
        return self.wait_for_response(self.auth_event)


class ClientTransport(paramiko.ServiceRequestingTransport):  # type: ignore[name-defined,misc]
    """A transport that asks for the login service once.

    `paramiko.Transport` asks before every attempt to log in, which some servers (asyncssh) answer
    by closing the connection. `ServiceRequestingTransport` asks once, but waits for ever where the
    connection ends meanwhile.
    """

    def ensure_session(self) -> None:
        """Ask for the login service, once. Raises what ended the connection, or TimeoutError."""
        if self._service_userauth_accepted:
            return
        message = paramiko.Message()
        message.add_byte(cMSG_SERVICE_REQUEST)
        message.add_string("ssh-userauth")
        self._send_message(message)
        deadline = Deadline(self.auth_timeout)
        while not self._service_userauth_accepted:
            if not self.is_active():
                raise self.get_exception() or EOFError
            if deadline.expired:
                raise TimeoutError
            time.sleep(_POLL_S)
        self.auth_handler = _AuthHandler(self)


HostKeyCheck = Callable[[Endpoint, paramiko.PKey], None]
"""Checks a presented host key: returns, or raises HostKeyError."""

_MARGIN_S = 5  # paramiko's own limits are later, so that ours raise

logging.getLogger("paramiko").addHandler(logging.NullHandler())


class Connection:
    """One SSH connection and those that it goes through (jump hosts, a ProxyCommand)."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._closers: list[Callable[[], None]] = []
        self._transport: paramiko.Transport | None = None

    @property
    def transport(self) -> paramiko.Transport:
        """The paramiko transport to the endpoint itself."""
        if self._transport is None:
            raise UnreachableError(f"no connection to {self.endpoint.address}")
        return self._transport

    def close(self) -> None:
        """Close everything, innermost first. Safe to repeat."""
        while self._closers:
            self._closers.pop()()

    def connect(self, check: HostKeyCheck, ask: Ask | None) -> None:
        """Connect, through jump hosts (logging in there), and check each host key.

        Raises UnreachableError, DeviceTimeoutError, HostKeyError; AuthenticationError at a jump
        host.
        """
        link = self._open_socket(check, ask)
        transport = ClientTransport(link)
        self._closers.append(transport.close)
        self._transport = transport
        self._handshake(transport, Deadline(self.endpoint.connect_timeout))
        transport.set_keepalive(KEEPALIVE_S)
        check(self.endpoint, transport.get_remote_server_key())

    def _open_socket(
        self, check: HostKeyCheck, ask: Ask | None
    ) -> "socket.socket | paramiko.Channel":
        endpoint = self.endpoint
        if endpoint.open_link is not None:
            link = endpoint.open_link()
            self._closers.append(link.close)
            return link
        if endpoint.jump is not None:
            hop = Connection(endpoint.jump)
            self._closers.append(hop.close)
            hop.connect(check, ask)
            authenticate(hop.transport, hop.endpoint, ask)
            return hop.open_channel_to(endpoint)
        if endpoint.proxy_command is not None:
            return self._through_command(endpoint.proxy_command)
        with explained(endpoint):
            link = socket.create_connection(
                (endpoint.host, endpoint.port), timeout=endpoint.connect_timeout
            )
        self._closers.append(link.close)
        enable_keepalive(link)
        return link

    def open_channel_to(self, target: Endpoint) -> paramiko.Channel:
        """Open a channel from this server on to another one."""
        try:
            return self.transport.open_channel(
                "direct-tcpip",
                (target.host, target.port),
                ("127.0.0.1", 0),
                timeout=target.connect_timeout,
            )
        except paramiko.ChannelException as error:
            raise UnreachableError(
                f"the jump host {self.endpoint.address} can't reach {target.address}: {error.text}"
            ) from error
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise explain(error, self.endpoint) from error

    def _through_command(self, command: str) -> socket.socket:
        """Start the ProxyCommand with one end of a socket pair as its stdin and stdout."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: S602 - the user's own command line, as ssh runs it
                f"exec {command}",
                shell=True,
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                start_new_session=True,
            )
        self._closers += [lambda: _terminate(process), ours.close]
        return ours

    def _handshake(self, transport: paramiko.Transport, deadline: Deadline) -> None:
        endpoint = self.endpoint
        timeout = deadline.seconds
        transport.auth_timeout = transport.channel_timeout = timeout
        transport.banner_timeout = transport.handshake_timeout = timeout + _MARGIN_S
        prefer_known_types(transport, known_keys(endpoint.known_as, endpoint.known_hosts))
        _prefer_fast_ciphers(transport)
        finished = threading.Event()
        with explained(endpoint):
            transport.start_client(event=finished)
            if not finished.wait(deadline.remaining()):
                raise TimeoutError
            if not transport.is_active():
                raise _handshake_error(transport)


def _prefer_fast_ciphers(transport: paramiko.Transport) -> None:
    """Offer AES-GCM first: it encrypts and authenticates in half the time of CTR and HMAC.

    Nothing is offered that paramiko doesn't offer by itself.
    """
    options = transport.get_security_options()
    options.ciphers = sorted(options.ciphers, key=lambda name: "-gcm@" not in name)


def _handshake_error(transport: paramiko.Transport) -> Exception:
    """Return why a handshake failed."""
    error = transport.get_exception()
    text = str(error)
    if isinstance(error, paramiko.SSHException) and ("banner" in text or "Indecipherable" in text):
        return _NoBannerError("something else than an SSH server answers there; check the port")
    return error or EOFError()


class _NoBannerError(paramiko.SSHException):
    """The peer did not begin as an SSH server does."""


def _terminate(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

"""paramiko's client transport with its login mended: one service request, no race, waits bounded."""

import threading
import time
from collections.abc import Callable
from typing import Any

import paramiko
from paramiko.auth_handler import AuthOnlyHandler
from paramiko.common import cMSG_SERVICE_REQUEST, cMSG_USERAUTH_REQUEST

from edgeflare.devices.deadline import Deadline

_POLL_S = 0.005


class _Login(AuthOnlyHandler):
    """paramiko's own creates its event after it has sent the request, and misses a fast answer."""

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

    `paramiko.Transport` asks before every attempt to log in, which some servers (asyncssh) answer by
    closing the connection. `ServiceRequestingTransport` asks once, but waits for ever where the
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
        self.auth_handler = _Login(self)

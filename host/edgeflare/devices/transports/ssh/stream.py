"""A program on the device as a byte stream: one SSH session channel without a terminal."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import paramiko
from paramiko.common import cMSG_CHANNEL_REQUEST

from edgeflare.devices.transports.base import Deadline
from edgeflare.devices.transports.ssh.config import Endpoint
from edgeflare.devices.transports.ssh.errors import explained
from edgeflare.errors import UnreachableError

WINDOW = 8 << 20
"""Bytes that may be sent to us unread; paramiko's 2 MiB is 14 audio samples of 150 kB."""
PACKET = 32 << 10
TAIL_LINES = 20
_TAIL_BYTES = 64 << 10
_GRACE_S = 2.0
_SHUTDOWN_S = 5.0
_LINK_CHECK_S = 0.5
_NO_STATUS = -1


def start_program(
    transport: paramiko.Transport, endpoint: Endpoint, command: str, timeout: float
) -> paramiko.Channel:
    """Start a command line of the device's login shell; stdin, stdout and stderr apart.

    Raises UnreachableError, DeviceTimeoutError, DeviceError.
    """
    with explained(endpoint):
        channel = transport.open_session(WINDOW, PACKET, timeout=timeout)
        with time_limit(channel, timeout):
            channel.exec_command(command)
    return channel


@contextmanager
def time_limit(channel: paramiko.Channel, seconds: float) -> Iterator[None]:
    """Bound calls of paramiko that wait without a deadline: TimeoutError after so many seconds."""
    deadline = Deadline(seconds)
    timer = threading.Timer(seconds, channel.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (paramiko.SSHException, EOFError) as error:
        if deadline.expired:
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()


def write_all(
    channel: paramiko.Channel, endpoint: Endpoint, blocks: Sequence[bytes | memoryview]
) -> None:
    """Write blocks to a program's stdin; raises UnreachableError when it or the link has ended."""
    for block in blocks:
        rest, cause = memoryview(block), None
        while rest:
            try:
                sent = channel.send(bytes(rest[:PACKET]))  # 0: nobody reads
            except (paramiko.SSHException, EOFError, OSError) as error:
                sent, cause = 0, error
            if sent == 0:
                raise UnreachableError(
                    f"the program on {endpoint.address} takes no more input: it ended or the link is lost"
                ) from cause
            rest = rest[sent:]


class StderrCollector(threading.Thread):
    """Reads a channel's stderr to its end, so that the program never waits for a reader."""

    def __init__(self, channel: paramiko.Channel, limit: int) -> None:
        super().__init__(name="edgeflare-stderr", daemon=True)
        self._channel = channel
        self._limit = limit
        self._tail = bytearray()
        self._lock = threading.Lock()
        self.start()

    def run(self) -> None:
        """Read until the channel closes."""
        while True:
            try:
                chunk = self._channel.recv_stderr(PACKET)
            except TimeoutError:  # the channel's timeout is for another thread, which reads stdout
                continue
            if not chunk:
                return
            with self._lock:
                self._tail += chunk
                del self._tail[: -self._limit]

    def text(self) -> str:
        """Return the last bytes read so far, as text."""
        with self._lock:
            return self._tail.decode(errors="replace")


class SshStream:
    """A running program's stdin and stdout; see `Stream`."""

    def __init__(self, channel: paramiko.Channel, endpoint: Endpoint) -> None:
        self._channel = channel
        self._endpoint = endpoint
        self._stderr = StderrCollector(channel, _TAIL_BYTES)
        self._closing = threading.Lock()
        self._closed = False

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes; ``b""`` at the end or when the link is lost."""
        return self._channel.recv(n)

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Write all blocks; raises UnreachableError where program or link have ended."""
        write_all(self._channel, self._endpoint, blocks)

    def stderr_tail(self) -> str:
        """Return the last lines, at most 20, that the program wrote to stderr."""
        return "\n".join(self._stderr.text().splitlines()[-TAIL_LINES:])

    def exit_status(self, timeout: float) -> int | None:
        """Wait at most `timeout` seconds for the end; None if it runs on or the link is lost.

        -1 where the server sends no status, as for a program that a signal ended.
        """
        if not self._channel.status_event.wait(timeout):
            return None
        self._stderr.join(timeout)
        status = self._channel.exit_status
        return None if status == _NO_STATUS and self._link_is_lost() else status

    def _link_is_lost(self) -> bool:
        """Whether the channel ended with the connection; paramiko marks that a moment later."""
        deadline = Deadline(_LINK_CHECK_S)
        while self._channel.get_transport().is_active():
            if deadline.expired:
                return False
            time.sleep(_LINK_CHECK_S / 50)
        return True

    def close(self) -> None:
        """End the program: close its stdin, then kill it after a grace time where possible.

        OpenSSH refuses to kill for root logins; there a program that ignores the end of its stdin
        and a closed stdout runs on. Safe to repeat, and from another thread than the reader's.
        """
        with self._closing:
            if self._closed:
                return
            self._closed = True
            thread = threading.Thread(target=self._shut_down, daemon=True)
            thread.start()
            thread.join(_GRACE_S + _SHUTDOWN_S)
            if thread.is_alive():
                self._channel.get_transport().close()

    def _shut_down(self) -> None:
        try:
            self._channel.shutdown_write()
            if not self._channel.status_event.wait(_GRACE_S):
                kill(self._channel)
            self._channel.close()
        except (paramiko.SSHException, EOFError, OSError):
            self._channel.get_transport().close()


def kill(channel: paramiko.Channel) -> None:
    """Ask the server to kill the channel's program (RFC 4254, 6.9); paramiko has no call for it."""
    message = paramiko.Message()
    message.add_byte(cMSG_CHANNEL_REQUEST)
    message.add_int(channel.remote_chanid)
    message.add_string("signal")
    message.add_boolean(False)
    message.add_string("KILL")
    channel.get_transport()._send_user_message(message)  # type: ignore[attr-defined]

"""A command on the device, run to its end with a deadline."""

import threading
from collections.abc import Iterable

import paramiko

from edgeflare.devices.deadline import Deadline
from edgeflare.devices.ssh_config import Endpoint
from edgeflare.devices.ssh_errors import explain
from edgeflare.devices.ssh_stream import PACKET, StderrCollector, kill, send_some, start_program
from edgeflare.devices.transport import Completed
from edgeflare.errors import DeviceTimeoutError, UnreachableError

_STDERR_BYTES = 1 << 20


def run_program(
    transport: paramiko.Transport,
    endpoint: Endpoint,
    command: str,
    stdin: Iterable[bytes],
    deadline: Deadline,
) -> Completed:
    """Run a command line with this stdin (blocks) until it ends; stderr's last MiB is kept.

    Raises DeviceTimeoutError, UnreachableError, DeviceError.
    """
    channel = start_program(transport, endpoint, command, max(deadline.remaining(), 0.1))
    stderr = StderrCollector(channel, _STDERR_BYTES)
    feeder = threading.Thread(target=_feed, args=(channel, stdin), daemon=True)
    stdout = bytearray()
    try:
        feeder.start()
        channel.settimeout(max(deadline.remaining(), 0.01))
        while chunk := channel.recv(PACKET * 4):
            stdout += chunk
            channel.settimeout(max(deadline.remaining(), 0.01))
        _await_status(channel, deadline)
        stderr.join(deadline.remaining())
    except TimeoutError as error:
        kill(channel)
        raise DeviceTimeoutError(
            f"a command on {endpoint.address} did not end within {deadline.seconds:.0f} s: "
            f"{_short(command)}"
        ) from error
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise explain(error, endpoint) from error
    finally:
        channel.close()
    if channel.exit_status == -1 and not transport.is_active():
        raise UnreachableError(
            f"the connection to {endpoint.address} was lost while a command ran there"
        )
    return Completed(channel.exit_status, bytes(stdout), stderr.text())


def _await_status(channel: paramiko.Channel, deadline: Deadline) -> None:
    if not channel.status_event.wait(deadline.remaining()):
        raise TimeoutError


def _feed(channel: paramiko.Channel, blocks: Iterable[bytes]) -> None:
    """Write stdin and end it; a program that ends before it has read all is no error."""
    try:
        for block in blocks:
            rest = memoryview(block)
            while rest:
                sent = send_some(channel, rest)
                if sent == 0:
                    return
                rest = rest[sent:]
        channel.shutdown_write()
    except (paramiko.SSHException, EOFError, OSError):
        return


def _short(command: str) -> str:
    return command if len(command) <= 120 else f"{command[:117]}..."

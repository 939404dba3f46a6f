"""A command on the device, run to its end with a deadline."""

import threading
from collections.abc import Iterable

import paramiko

from edgeflare.devices.deadline import Deadline
from edgeflare.devices.ssh_config import Endpoint
from edgeflare.devices.ssh_errors import explain
from edgeflare.devices.ssh_stream import PACKET, StderrCollector, kill, send_some, start_program
from edgeflare.devices.transport import STDERR_LIMIT, Completed, read_output
from edgeflare.errors import DeviceProtocolError, DeviceTimeoutError, UnreachableError


def run_program(
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
    feeder = threading.Thread(target=_feed, args=(channel, stdin), daemon=True)

    def read(seconds: float) -> bytes:
        channel.settimeout(max(seconds, 0.01))
        return channel.recv(PACKET * 4)

    try:
        feeder.start()
        stdout = read_output(read, deadline, endpoint.address)
        _await_status(channel, deadline)
        stderr.join(deadline.remaining())
    except TimeoutError as error:
        kill(channel)
        raise DeviceTimeoutError(
            f"a command on {endpoint.address} did not end within {deadline.seconds:.0f} s: "
            f"{_short(command)}"
        ) from error
    except DeviceProtocolError:
        kill(channel)
        raise
    except (paramiko.SSHException, EOFError, OSError) as error:
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

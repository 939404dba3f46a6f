"""A command on the device, run to its end with a deadline."""

from collections.abc import Iterable
from functools import partial

import paramiko

from edgeflare.devices.deadline import Deadline
from edgeflare.devices.ssh_config import Endpoint
from edgeflare.devices.ssh_errors import explain
from edgeflare.devices.ssh_stream import PACKET, StderrCollector, kill, start_program, write_all
from edgeflare.devices.transport import STDERR_LIMIT, Completed, read_output, start_feeder
from edgeflare.errors import DeviceProtocolError, DeviceTimeoutError, UnreachableError

_LOST_LINK = (UnreachableError, paramiko.SSHException, EOFError, OSError)


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
            f"{_short(command)}"
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


def _short(command: str) -> str:
    return command if len(command) <= 120 else f"{command[:117]}..."

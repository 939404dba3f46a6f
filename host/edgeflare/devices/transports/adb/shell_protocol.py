"""The shell of a phone as a transport: adb alone, where the shell user has a Python."""

import shlex
import threading
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from edgeflare.devices.inventory import Device
from edgeflare.devices.transports.adb.phones import choose
from edgeflare.devices.transports.adb.server import PACKET, ShellProgram
from edgeflare.devices.transports.adb.transport import AdbRefusedError, AdbServer
from edgeflare.devices.transports.base import (
    STDERR_LIMIT,
    Completed,
    Deadline,
    check_ran,
    read_output,
    start_feeder,
)
from edgeflare.devices.transports.ssh.upload import put_by_python
from edgeflare.errors import DeviceError, DeviceTimeoutError, UnreachableError

_START_S = 60.0
_NO_PYTHON = (
    "; a phone has none for adb's shell by itself, so rather use the SSH server of an app such as "
    "Termux: without ?shell or `adb_shell`"
)


class AdbShellTransport:
    """The shell user of one phone; see `Transport`. Made by `connect`. Each program has its own link."""

    def __init__(self, device: Device, server: AdbServer, serial: str) -> None:
        self.name = device.name
        self._python = device.python
        self._server = server
        self._serial = serial
        self._lock = threading.Lock()
        self._programs: list[ShellProgram] = []

    @classmethod
    def connect(cls, device: Device) -> "AdbShellTransport":
        """Find the phone and see that its shell keeps stdout, stderr and exit status apart.

        Raises UnreachableError, AuthenticationError, DeviceTimeoutError, DeviceProtocolError,
        DeviceError.
        """
        server = AdbServer.from_environment()
        serial = choose(server, device.serial, device.connect_timeout_s).serial
        deadline = Deadline(device.connect_timeout_s)
        features = server.ask(f"host-serial:{serial}:features", deadline).split(",")
        if "shell_v2" not in features:
            raise DeviceError(
                f"the shell of the phone {serial} does not tell stdout from stderr (its Android is "
                "older than 7); use an SSH server on it, such as Termux's"
            )
        return cls(device, server, serial)

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the phone's Python command with these arguments and wait for it."""
        return self._run(arguments, (stdin,), timeout)

    def open(self, arguments: Sequence[str]) -> ShellProgram:
        """Start the phone's Python command with these arguments; no terminal, stderr kept apart.

        A Python command that doesn't exist shows as exit status 127, and in `stderr_tail`.
        """
        program = self._start(arguments, Deadline(_START_S))
        with self._lock:
            self._programs.append(program)
        return program

    def put(self, local: Path, remote: str) -> None:
        """Copy a file's bytes to this path, whose folder exists, through the phone's Python.

        Raises DeviceDiskFullError, UnreachableError, DeviceTimeoutError, DeviceError.
        """
        put_by_python(self._run, f"the phone {self._serial}", local, remote)

    def close(self) -> None:
        """End the programs that were opened. Safe to repeat."""
        with self._lock:
            programs, self._programs = self._programs, []
        for program in programs:
            program.close()

    def _run(self, arguments: Sequence[str], stdin: Iterable[bytes], timeout: float) -> Completed:
        deadline = Deadline(timeout)
        program = self._start(arguments, deadline, keep=STDERR_LIMIT)
        feeder = start_feeder(program.write, program.end_stdin, stdin)
        try:
            stdout = read_output(partial(program.read_within, PACKET), deadline, self.name)
            status = program.exit_status(deadline.remaining())
        except TimeoutError as error:
            raise DeviceTimeoutError(
                f"a command on {self.name} did not end within {timeout:.0f} s: "
                f"{self._command(arguments)[:120]}"
            ) from error
        finally:
            program.kill()
            feeder.join()
        if status is None:
            raise UnreachableError(
                f"adb lost the phone {self._serial} while a command ran there; check the cable"
            )
        done = Completed(status, stdout, program.stderr_text())
        check_ran(done, self._python, self.name, _NO_PYTHON)
        return done

    def _start(
        self, arguments: Sequence[str], deadline: Deadline, keep: int = 64 << 10
    ) -> ShellProgram:
        service = f"shell,v2,raw:{self._command(arguments)}"
        try:
            link = self._server.open(self._serial, service, deadline)
        except AdbRefusedError as error:
            raise UnreachableError(
                f"no shell on the phone {self._serial}: {error.reason}; check the cable"
            ) from error
        return ShellProgram(link, self.name, keep)

    def _command(self, arguments: Sequence[str]) -> str:
        return " ".join([self._python, *map(shlex.quote, arguments)])

"""How a device is reached: a byte stream, a file put there, a command run. Nothing else knows how."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Completed(NamedTuple):
    """A command that ended: exit status, everything on stdout, everything on stderr as text."""

    status: int
    stdout: bytes
    stderr: str


class Stream(Protocol):
    """A running program's stdin and stdout as one byte stream. Reads and writes may be in two threads."""

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes, waiting for them; ``b""`` at the end."""
        ...

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Write all blocks, one after the other. Raises UnreachableError where the link is gone."""
        ...

    def stderr_tail(self) -> str:
        """Return the last lines (at most 20) that the program wrote to stderr."""
        ...

    def exit_status(self, timeout: float) -> int | None:
        """Wait at most `timeout` seconds for the program to end; None if it runs on."""
        ...

    def close(self) -> None:
        """Close stdin and stdout and end the program if it does not end by itself. Safe to repeat."""
        ...


class Transport(Protocol):
    """A way to one device, open until `close`. All paths are the device's own."""

    name: str
    """What to call the device in messages, such as ``pi4`` or ``ssh://pi@10.0.0.7``."""

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the device's Python command with these arguments and wait for it.

        Raises DeviceTimeoutError, UnreachableError; DevicePythonError where the command doesn't exist.
        """
        ...

    def open(self, arguments: Sequence[str]) -> Stream:
        """Start the device's Python command with these arguments; no pty, stderr kept apart."""
        ...

    def put(self, local: Path, remote: str) -> None:
        """Copy a file's bytes to this path, whose folder exists.

        Raises DeviceDiskFullError, UnreachableError, DeviceError.
        """
        ...

    def close(self) -> None:
        """End the connection. Safe to repeat."""
        ...

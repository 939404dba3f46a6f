"""A way to a device on which a plan's faults happen."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from edgeflare.devices import Completed, Device, Transport
from edgeflare.devices import connect as connect_to
from edgeflare.errors import DeviceError, UnreachableError
from edgeflare.testing.fake_agent import FakeAgent
from edgeflare.testing.plan import FaultPlan
from edgeflare.testing.stream import FaultyStream

_KILL_S = 30.0
_KILLED = 0

KILL = """
import os, signal, subprocess, sys
pid, wanted = sys.argv[1], " ".join(sys.argv[2:])
try:
    with open("/proc/" + pid + "/cmdline", "rb") as file:
        command = file.read().replace(b"\\0", b" ")
except OSError:
    command = subprocess.run(["ps", "-p", pid, "-o", "command="], stdout=subprocess.PIPE).stdout
if wanted not in command.decode(errors="replace"):
    sys.exit(1)
os.kill(int(pid), signal.SIGKILL)
"""
"""Ends a process on the device, if it is the one that was started with these arguments."""

Connect = Callable[[Device, Callable[[str], str | None] | None], Transport]


class FaultyTransport:
    """A transport whose streams meet the faults of a plan; fulfils `edgeflare.devices.Transport`.

    `run` and `put` are left alone. `close` closes the transport within. To kill a program, the
    device's Python command is run beside it, which makes sure first that the process id still is
    that program's; a device that can't be reached for that keeps it.
    """

    def __init__(self, inner: Transport, plan: FaultPlan) -> None:
        self.name = inner.name
        self._inner = inner
        self._plan = plan

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the device's Python command, without faults; see `Transport`."""
        return self._inner.run(arguments, stdin, timeout=timeout)

    def open(self, arguments: Sequence[str]) -> FaultyStream:
        """Start the device's Python command; its stream is the plan's next. Raises UnreachableError."""
        refuse(self._plan, self.name)
        stream = self._inner.open(arguments)
        faults = self._plan.next_stream()
        return FaultyStream(
            stream,
            faults,
            name=self.name,
            kill=lambda pid: self._kill(pid, arguments),
            happened=self._plan.happened,
        )

    def put(self, local: Path, remote: str) -> None:
        """Copy a file, without faults; see `Transport`."""
        self._inner.put(local, remote)

    def close(self) -> None:
        """Close the transport within. Safe to repeat."""
        self._inner.close()

    def _kill(self, pid: int, arguments: Sequence[str]) -> bool:
        try:
            done = self._inner.run(["-c", KILL, str(pid), *arguments], timeout=_KILL_S)
        except DeviceError:
            return False
        return done.status == _KILLED


def refuse(plan: FaultPlan, name: str) -> None:
    """Raise UnreachableError where the plan refuses this attempt."""
    if plan.refuses():
        raise UnreachableError(f"{name} refused the connection, as its fault plan says")


def connecting(
    plans: Mapping[str, FaultPlan | FakeAgent], connect: Connect = connect_to
) -> Connect:
    """Return a `connect` for `open_device` and campaigns in which devices meet their plans' faults.

    `plans`: by the device's name; a device without one is reached as ever. Refusals come at once, before
    anything is asked of the device. A fake agent takes the place of the device's own.
    """

    def connect_with_faults(
        device: Device, ask: Callable[[str], str | None] | None = None
    ) -> Transport:
        plan = plans.get(device.name)
        if plan is None:
            return connect(device, ask)
        if isinstance(plan, FaultPlan):
            refuse(plan, device.name)
        return plan.wrap(connect(device, ask))

    return connect_with_faults

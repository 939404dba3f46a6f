"""A transport with the faults of a plan."""

import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from edgeflare.devices import Completed, Device, Stream, Transport
from edgeflare.devices import connect as connect_to
from edgeflare.errors import DeviceError, UnreachableError
from edgeflare_lab.testing.fake_agent import FakeAgent
from edgeflare_lab.testing.fault_plan import Fault, FaultInjector, FaultPlan

_PID = re.compile(rb'"pid":\s*(\d+)\D')
_PID_WITHIN = 64 << 10
_CLOSE_S = 30.0


class FaultyStream:
    """A stream that meets these faults; fulfils `edgeflare.devices.Stream`.

    `kill` kills the process with this id on the device and returns whether it did; `on_fault` is
    called with every fault that happens. Where a fault has ended the direction from the device,
    `exit_status` is None.
    """

    def __init__(
        self,
        inner: Stream,
        faults: Iterable[Fault],
        *,
        name: str,
        kill: Callable[[int], bool],
        on_fault: Callable[[Fault], None],
    ) -> None:
        self._inner = inner
        self._name = name
        self._kill = kill
        self._happened = on_fault
        mine = tuple(faults)
        self._to_device, self._from_device = (
            FaultInjector((fault for fault in mine if fault.direction == direction), on_fault)
            for direction in ("to device", "from device")
        )
        self._received: deque[bytes | Fault] = deque()
        self._pid_wanted = any(fault.kind == "kill" for fault in mine)
        self._first = bytearray()
        self._pid: int | None = None
        self._to_kill: list[Fault] = []
        self._killing = threading.Lock()
        self._read_ended = threading.Event()
        self._write_ended = threading.Event()
        self._closed = threading.Event()
        self._closer: threading.Thread | None = None

    def read(self, n: int) -> bytes:
        """Return 1 to n bytes; ``b""`` at the end, which a fault may bring about."""
        while not self._read_ended.is_set():
            if not self._received and not self._fetch(n):
                return b""
            if not self._received:
                continue  # all that came was dropped
            piece = self._received.popleft()
            if isinstance(piece, Fault):
                self._execute(piece)
                continue
            if self._read_ended.is_set():
                break
            if len(piece) > n:
                self._received.appendleft(piece[n:])
            return piece[:n]
        return b""

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Write all blocks, or what the faults leave of them. Raises UnreachableError."""
        self._check_writable()
        if self._to_device.clear:
            self._inner.write(blocks)
            return
        data = b"".join(memoryview(block).cast("B") for block in blocks if len(block))
        for piece in self._to_device.apply(data):
            if isinstance(piece, Fault):
                self._execute(piece)
                self._check_writable()
            else:
                self._inner.write([piece])

    def stderr_tail(self) -> str:
        """Return the last lines that the program wrote to stderr."""
        return self._inner.stderr_tail()

    def exit_status(self, timeout: float) -> int | None:
        """Wait at most `timeout` seconds for the end; None where a fault ended the stream."""
        return None if self._read_ended.is_set() else self._inner.exit_status(timeout)

    def close(self) -> None:
        """Close the stream within. Safe to repeat."""
        self._closed.set()
        self._inner.close()
        closer = self._closer
        if closer is not None and closer is not threading.current_thread():
            closer.join(_CLOSE_S)

    def _fetch(self, n: int) -> bool:
        data = self._inner.read(n)
        if not data:
            return False
        if self._pid_wanted:
            self._find_pid(data)
        if self._from_device.clear:
            self._received.append(data)
        else:
            self._received.extend(self._from_device.apply(data))
        return True

    def _check_writable(self) -> None:
        if self._write_ended.is_set():
            raise UnreachableError(f"the link to {self._name} was cut, as its fault plan says")

    def _execute(self, fault: Fault) -> None:
        if fault.kind == "kill":
            with self._killing:
                self._to_kill.append(fault)
            self._kill_if_known()
            return
        self._happened(fault)
        if fault.kind == "delay":
            self._closed.wait(fault.seconds)
        elif fault.kind == "truncate" and fault.direction == "from device":
            self._read_ended.set()
        else:
            self._write_ended.set()
            if fault.kind == "cut":
                self._read_ended.set()
            closer = threading.Thread(target=self._inner.close, daemon=True)
            closer.start()
            self._closer = closer  # others join it: only once it runs

    def _find_pid(self, data: bytes) -> None:
        self._first += data
        match = _PID.search(self._first)
        if match is not None:
            self._pid = int(match[1])
            self._kill_if_known()
        if match is not None or len(self._first) > _PID_WITHIN:
            self._pid_wanted = False

    def _kill_if_known(self) -> None:
        with self._killing:
            if self._pid is None:
                return
            due, self._to_kill = self._to_kill, []
            for fault in due:
                if self._kill(self._pid):
                    self._happened(fault)


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

    `run` and `put` are without faults. To kill a program, the device's Python command is run, which
    first checks that the process id is still that program's; a device that can't be reached for
    that keeps running it.
    """

    def __init__(self, inner: Transport, plan: FaultPlan) -> None:
        self.name = inner.name
        self._inner = inner
        self._plan = plan

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the device's Python command, without faults; see `Transport`."""
        return self._inner.run(arguments, stdin, timeout=timeout)

    def open(self, arguments: Sequence[str]) -> FaultyStream:
        """Start the device's Python command on the plan's next stream. Raises UnreachableError."""
        refuse(self._plan, self.name)
        stream = self._inner.open(arguments)
        faults = self._plan.next_stream()
        return FaultyStream(
            stream,
            faults,
            name=self.name,
            kill=lambda pid: self._kill(pid, arguments),
            on_fault=self._plan.on_fault,
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

    `plans`: by the device's name; a device without one is connected unchanged. Refusals come before
    the connection. A fake agent replaces the device's own.
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

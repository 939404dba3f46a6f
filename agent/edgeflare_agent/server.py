"""The agent's request loop: frames on stdin and stdout, text for people on stderr.

The reader thread answers PING, so that heartbeats go on during an inference; requests are executed
one at a time, in order, on the main thread. Each reply is written before the next request starts,
so that a crash loses no other reply. BYE and the end of the stream end the process at once, even
while an inference hangs.
"""

import argparse
import os
import platform
import queue
import signal
import sys
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, Optional, Sequence, Set, Tuple

import numpy as np

from edgeflare_agent import connection, identity, telemetry
from edgeflare_agent.connection import Link
from edgeflare_agent.errors import ProtocolError, RequestError
from edgeflare_agent.leases import Leases
from edgeflare_agent.telemetry.sampler import Sampler
from edgeflare_agent.wire import VERSION, EndOfStreamError, Frame, Kind, read_frame
from edgeflare_agent.worker import Worker, refusal


class WorkCounter:
    """Counts time at work and requests answered; one thread works, any may read."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._state: Tuple[float, int, Optional[float]] = (0.0, 0, None)  # replaced as a whole

    def begin(self) -> None:
        """Record the start of work on a request."""
        busy_s, served, _ = self._state
        self._state = (busy_s, served, time.monotonic())

    def end(self, served: bool) -> None:
        """Record the end; `served`: whether the request counts."""
        busy_s, count, begun = self._state
        if begun is not None:
            busy_s += time.monotonic() - begun
        self._state = (busy_s, count + served, None)

    def so_far(self) -> Dict[str, Any]:
        """Return `uptime_s`, `busy_s` (with the request under way) and `served`."""
        busy_s, served, begun = self._state
        now = time.monotonic()
        if begun is not None:
            busy_s += now - begun
        return {"uptime_s": now - self._since, "busy_s": busy_s, "served": served}


class SeenIds:
    """Remembers the last `most` ids of requests, to recognise one that comes twice."""

    def __init__(self, most: int = 1 << 14) -> None:
        self._order: Deque[Any] = deque()
        self._ids: Set[Any] = set()
        self._most = most

    def add(self, id_: Any) -> bool:
        """Remember an id; return whether it is new. Raises TypeError for what can't be an id."""
        if id_ in self._ids:
            return False
        self._ids.add(id_)
        self._order.append(id_)
        if len(self._order) > self._most:
            self._ids.discard(self._order.popleft())
        return True


START_MAX_BODY = 1 << 16
DEFAULT_MAX_QUEUE = 1024


def serve(wire_in: int, wire_out: int, arguments: Sequence[str]) -> None:
    """Serve one host on two file descriptors until it leaves; does not return."""
    sys.stdout = sys.stderr
    sys.excepthook = connection.exit_on_fault
    threading.excepthook = lambda hook: connection.exit_on_fault(
        hook.exc_type, hook.exc_value, hook.exc_traceback
    )
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the host's; it ends the stream
    root = _parse(arguments).root
    link, leases = Link(wire_in, wire_out), Leases(root)
    connection.before_exit(leases.release)
    link.send(Kind.HELLO, hello())
    signs = telemetry.Sensors()
    connection.before_exit(signs.end)
    sampler = Sampler(
        lambda: {**signs.read(), "rss_bytes": telemetry.rss_bytes()},
        {**signs.UNKNOWN, "rss_bytes": None},
    )
    server = _Server(link, Worker(root, leases, sampler.latest), sampler)
    for task in (server.read, link.watch, sampler.run):
        threading.Thread(target=task, daemon=True).start()
    server.execute()


def hello() -> Dict[str, Any]:
    """Return the handshake's header: protocol, interpreter, this device and its runtimes."""
    return {
        "protocol": VERSION,
        "python": platform.python_version(),
        "executable": sys.executable,
        "numpy": np.__version__,
        "pid": os.getpid(),
        "device": identity.device(),
        "runtimes": identity.runtimes(),
    }


class _Server:
    """Two loops around one queue of requests; `max_body` (bytes) is small until START sets it."""

    def __init__(self, link: Link, worker: Worker, sampler: Sampler) -> None:
        self._link = link
        self._worker = worker
        self._sampler = sampler
        self._counter = WorkCounter()
        self._seen = SeenIds()
        self._max_body = START_MAX_BODY
        self._max_queue = DEFAULT_MAX_QUEUE
        self._requests: "queue.SimpleQueue[Frame]" = queue.SimpleQueue()

    def read(self) -> None:
        """Take frames off the wire until the host leaves or the stream breaks."""
        try:
            while True:
                frame = read_frame(self._link.read, self._max_body)
                if frame.kind is Kind.PING:
                    self._link.send(Kind.PONG, {**frame.header, **self._health()})
                elif frame.kind is Kind.START:
                    self._start(frame.header)
                elif frame.kind is Kind.BYE:
                    connection.exit_process(connection.DONE)
                elif not isinstance(frame.header.get("id"), (int, str)):
                    self._refuse(frame, "a request needs an id: a number or a text")
                elif not self._seen.add(frame.header["id"]):
                    pass  # it came twice, and is answered once
                elif self._requests.qsize() >= self._max_queue:
                    self._refuse(
                        frame, "{} requests wait already, the limit".format(self._max_queue)
                    )
                else:
                    self._requests.put(frame)
        except (EndOfStreamError, ConnectionResetError):
            connection.exit_process(connection.DONE)
        except ProtocolError as error:
            connection.exit_process(connection.BROKEN_STREAM, str(error))

    def execute(self) -> None:
        """Answer requests, one at a time, for ever."""
        while True:
            frame = self._requests.get()
            self._counter.begin()
            reply = self._worker.reply(frame)
            self._counter.end(frame.kind is Kind.INFER)
            self._link.write(reply)

    def _health(self) -> Dict[str, Any]:
        return {
            **self._sampler.latest(),
            **self._counter.so_far(),
            "waiting": self._requests.qsize(),
            "inferring_s": self._worker.inferring_s,
            "wall": time.time(),
        }

    def _refuse(self, frame: Frame, message: str) -> None:
        self._link.write(refusal(frame, RequestError.code, message))

    def _start(self, header: Dict[str, Any]) -> None:
        try:
            heartbeat_s = float(header["heartbeat_s"])
            max_body = int(header["max_body"])
            max_queue = int(header.get("max_queue", DEFAULT_MAX_QUEUE))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ProtocolError("START makes no sense: {!r}".format(error)) from error
        if not (0 < heartbeat_s <= threading.TIMEOUT_MAX) or max_body < 0 or max_queue < 1:
            raise ProtocolError("START makes no sense: its limits must be positive")
        self._link.heartbeat_s = heartbeat_s
        self._max_body, self._max_queue = max_body, max_queue


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    above = os.path.dirname(os.path.dirname(os.path.abspath(sys.argv[0])))
    parser = argparse.ArgumentParser(prog="edgeflare agent", description=__doc__)
    parser.add_argument(
        "--root",
        default=above,
        metavar="DIR",
        help="the folder that holds models/ and leases/ (%(default)s)",
    )
    return parser.parse_args(arguments)

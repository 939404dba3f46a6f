"""The host's end of the wire to one agent: handshake, pipelined requests, heartbeats.

Three threads: the writer sends frames, the reader settles futures, the watch sends heartbeats and
ends the link when the agent hangs. When one of them ends, the link ends, and every pending future
fails.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import Future
from contextlib import suppress
from copy import copy
from typing import Any, NamedTuple

from numpy.typing import NDArray

from edgeflare._internal.text import clean_text
from edgeflare.devices import reported
from edgeflare.devices.reported import WrongValueError
from edgeflare.devices.session import agent_errors
from edgeflare.devices.session.flow_control import LARGEST, Compression
from edgeflare.devices.session.health import AgentMonitor, Ping, boot_clock
from edgeflare.devices.session.replies import check_hello
from edgeflare.devices.session.requests import REPLIES, Request, RequestTable
from edgeflare.devices.session.streams import BufferedReads, TimedWrites
from edgeflare.devices.telemetry import Health
from edgeflare.devices.transports.base import Stream, Transport
from edgeflare.errors import DeviceError, EdgeFlareError, UnreachableError, UsageError
from edgeflare_agent.errors import ProtocolError
from edgeflare_agent.wire import (
    DEFAULT_MAX_BODY,
    PREFIX_SIZE,
    VERSION,
    EndOfStreamError,
    Frame,
    Kind,
    NonsenseError,
    TooLargeError,
    encode,
    find_first_frame,
    read_frame,
)


class Limits(NamedTuple):
    """Maxima: requests in flight (None: as many as keep the device busy), seconds of silence,
    seconds for one inference, bytes of a frame's body."""

    window: int | None = None
    heartbeat_s: float = 20.0
    timeout_s: float = 60.0
    max_body: int = DEFAULT_MAX_BODY


FailureCallback = Callable[[EdgeFlareError], None]


class LinkFailure:
    """The first error of a link, and the callbacks if the host did not close it; no locks."""

    def __init__(self) -> None:
        self.failure: EdgeFlareError | None = None
        self.unexpected = False
        self._waiting: list[FailureCallback] = []

    def end(self, error: EdgeFlareError, unexpected: bool) -> list[FailureCallback]:
        """Record why the link ended; return the callbacks to call. Only the first call counts."""
        if self.failure is not None:
            return []
        self.failure, self.unexpected = error, unexpected
        waiting, self._waiting = self._waiting, []
        return waiting if unexpected else []

    def add_callback(self, callback: FailureCallback) -> bool:
        """Register a callback; False where the link has ended, so that the caller must call it."""
        if self.failure is None:
            self._waiting.append(callback)
        return self.failure is None


_BYE_S = 2.0
_STATUS_S = 5.0
_BEAT_S = 2.0
_BATCH_BYTES = 32 << 10
_SHOWN_LINES = 3
_HELLO = 0
_MAY_HOLD_THE_INTERPRETER = (Kind.HELLO, Kind.LOAD)


class AgentLink:
    """A running agent. `hello` is its handshake's header; `name` the device's, for messages.

    `user_paths` maps paths on the device to the user's own, for messages.
    `compression` decides which requests are compressed.
    """

    hello: dict[str, Any]

    def __init__(self, stream: Stream, name: str, limits: Limits) -> None:
        self.name = name
        self.limits = limits
        self.user_paths: dict[str, str] = {}
        self.compression = Compression("off")
        self._stream = stream
        self._changed = threading.Condition()
        self._monitor = AgentMonitor(limits.window)
        self._table = RequestTable(self._monitor.window)
        self._control: deque[Frame | Ping] = deque()
        self._next_id = _HELLO
        self._failure = LinkFailure()
        self._closing = False
        self._on_health: Callable[[Health], None] = lambda _: None
        self._most_reply_bytes = 0
        self._stopped = threading.Event()
        self._from_agent = BufferedReads(stream)
        self._to_agent = TimedWrites(stream)
        self._greeting = Request(_HELLO, Kind.HELLO, [], 0, limits.timeout_s, lambda frame: frame)
        self._table.add(self._greeting)
        self._table.send_next()
        self._greeting.written_at = time.monotonic()
        self._threads = [
            threading.Thread(
                target=self._run, args=[task], name=f"edgeflare-{task.__name__[1:]}", daemon=True
            )
            for task in (self._reader, self._writer, self._watch)
        ]

    @classmethod
    def open(cls, transport: Transport, agent: str, root: str, limits: Limits) -> "AgentLink":
        """Start the agent at this path, find its handshake after any shell output, send START.

        Raises AgentDiedError, DeviceProtocolError, DeviceTimeoutError and what the transport
        raises.
        """
        link = cls(transport.open([agent, "--root", root]), transport.name, limits)
        for thread in link._threads:
            thread.start()
        try:
            link.hello = link._greeting.future.result()
            start = {
                "heartbeat_s": limits.heartbeat_s,
                "max_body": limits.max_body,
                "max_queue": max(LARGEST, limits.window or 0) + 1,
            }
            link._send(Frame(Kind.START, start))
        except BaseException:
            link.close()
            raise
        return link

    @property
    def in_flight(self) -> int:
        """Requests on the wire or at the agent."""
        with self._changed:
            return self._table.in_flight

    @property
    def window(self) -> int:
        """Requests that may be under way right now."""
        return self._monitor.window.size

    @property
    def health(self) -> Health:
        """The values of the last heartbeat."""
        return self._monitor.health

    @property
    def failure(self) -> EdgeFlareError | None:
        """Why the link ended; None while it is up."""
        return self._failure.failure

    def on_failure(self, callback: FailureCallback) -> None:
        """Register a callback for the link's unexpected end, called before the requests fail."""
        with self._changed:
            waits = self._failure.add_callback(callback)
        if not waits and self._failure.failure is not None and self._failure.unexpected:
            callback(copy(self._failure.failure))

    def on_health(self, callback: Callable[[Health], None]) -> None:
        """Register a callback for the health: called now, then after each heartbeat."""
        self._on_health = callback
        callback(self.health)

    def adapt_window(self, *, bytes_per_s: float | None = None, memory: int | None = None) -> None:
        """Set the link's bandwidth, and the bytes of memory that the device has available."""
        with self._changed:
            if bytes_per_s is not None:
                self._monitor.window.set_bandwidth(bytes_per_s)
            if memory is not None:
                self._monitor.window.set_memory(memory)
            if self._table.can_send():
                self._changed.notify()

    def request(
        self,
        kind: Kind,
        header: dict[str, Any],
        arrays: Sequence[NDArray[Any]] = (),
        *,
        read: Callable[[Frame], Any],
        allowance_s: float | None = None,
        most_bytes: int = 0,
    ) -> "Future[Any]":
        """Queue a request without waiting for anything; the future has `read(reply)`.

        `most_bytes`: how large the body of its reply may be; a larger one is refused before it is
        read. The future's callbacks run in the reader's thread: they must be short. Its errors are
        those of ERROR frames and of the link; a link that has failed gives a failed future. The
        arrays must not change until it is done. Raises UsageError for a body over the limit.
        """
        size = sum(array.nbytes for array in arrays)
        if size > self.limits.max_body:
            raise UsageError(
                f"a request of {size} bytes to {self.name} is over the limit of "
                f"{self.limits.max_body}; send fewer samples at once"
            )
        with self._changed:
            self._next_id += 1
            id_ = self._next_id
        blocks = encode(kind, {"id": id_, **header}, arrays, self.compression.wanted(arrays))
        allowance = self.limits.timeout_s if allowance_s is None else allowance_s
        request = Request(id_, kind, blocks, sum(map(len, blocks)), allowance, read)
        with self._changed:
            failure = self._failure.failure
            if failure is None:
                self._table.add(request)
                largest = max(self._most_reply_bytes, most_bytes)
                self._most_reply_bytes = min(largest, DEFAULT_MAX_BODY)
                if self._table.can_send():
                    self._changed.notify()
        if failure is not None:
            request.future.set_exception(copy(failure))  # tracebacks accumulate in a shared one
        return request.future

    def ping(self, size: int = 0) -> "Future[float]":
        """Send a heartbeat now, with `size` bytes; the future has the round trip in seconds."""
        with self._changed:
            failure = self._failure.failure
            if failure is None:
                ping = self._monitor.pings.new(size)
                self._control.append(ping)
                self._changed.notify()
                return ping.future
        failed: Future[float] = Future()
        failed.set_exception(copy(failure))
        return failed

    def round_trip(self, size: int = 0) -> float:
        """Return a heartbeat's round trip (s). Raises the link's error or DeviceTimeoutError."""
        try:
            return self.ping(size).result(self.limits.timeout_s)
        except futures.TimeoutError:
            raise agent_errors.heartbeat_error(self.name, self.limits.timeout_s) from None

    def close(self) -> None:
        """End the agent and fail the pending requests. Safe to repeat, and from a callback."""
        with self._changed:
            self._closing = True
        self._send(Frame(Kind.BYE, {}))
        self._join(self._threads[:1], _BYE_S)
        self._fail(DeviceError(f"the session with {self.name} was closed"))
        self._join(self._threads, _STATUS_S)

    def _join(self, threads: Sequence[threading.Thread], timeout: float) -> None:
        for thread in threads:
            if thread is not threading.current_thread() and thread.ident is not None:
                thread.join(timeout)

    def _send(self, frame: Frame) -> None:
        with self._changed:
            self._control.append(frame)
            self._changed.notify()

    def _run(self, task: Callable[[], None]) -> None:
        """Run one of the threads; any error ends the link."""
        try:
            task()
        except UnreachableError as error:
            self._fail(error)
        except (ProtocolError, WrongValueError) as error:
            self._fail(self._protocol_error(error))
        except Exception as error:  # noqa: BLE001  any error ends the link: no caller waits for ever
            self._fail(
                DeviceError(
                    f"the link to {self.name} ended by a fault of EdgeFlare's own, "
                    f"{type(error).__name__}: {clean_text(str(error), reported.LONGEST_LINE)}"
                )
            )

    def _reader(self) -> None:
        try:
            _, frame = find_first_frame(self._from_agent.read, 0)
            self._greet(frame)
            while self._failure.failure is None:
                begun = self._from_agent.read(PREFIX_SIZE)
                # Requests that were sent while it waited have raised the limit.
                frame = read_frame(self._from_agent.read, self._most_reply_bytes, begun)
                frame = frame._replace(header=reported.checked(frame.header, frame.kind.name))
                if frame.kind is Kind.PONG:
                    self._pong(frame)
                elif frame.kind is not Kind.HELLO:
                    self._settle(frame)
                elif frame.header != self._greeting.future.result():
                    raise NonsenseError("another handshake in the middle")
        except EndOfStreamError:
            self._stream_ended()

    def _greet(self, frame: Frame) -> None:
        header = reported.checked(frame.header, frame.kind.name)
        if frame.kind is not Kind.HELLO:
            raise NonsenseError(f"{frame.kind.name} in place of its handshake")
        if not isinstance(about := header.get("device", reported.MISSING), dict):
            raise WrongValueError("HELLO device", about, "an object")
        version = reported.count(header, "protocol")
        if version is None:
            raise WrongValueError("HELLO protocol", None, f"{VERSION}, the protocol's version")
        if version != VERSION:
            self._fail(agent_errors.other_version_error(self.name, version))
            return
        check_hello(header)
        with self._changed:
            waited_for = self._table.take(self._greeting)
        if waited_for:  # else the link has failed
            self._greeting.future.set_result(header)

    def _settle(self, frame: Frame) -> None:
        """Settle a request with its reply; until that is read it stays, to fail with the link."""
        failed = frame.kind is Kind.ERROR
        if failed and frame.header.get("id") is None:
            self._fail(self._reported(frame))
            return
        id_ = reported.count(frame.header, "id")
        if id_ is None:
            raise WrongValueError(f"{frame.kind.name} id", None, "the number of a request")
        try:
            with self._changed:
                request = self._table.find(id_)
        except KeyError as error:
            raise WrongValueError(
                f"{frame.kind.name} id", id_, "the number of a request"
            ) from error
        if request is None:
            return
        if not failed and frame.kind is not REPLIES[request.kind]:
            raise NonsenseError(f"{frame.kind.name} as reply to {request.kind.name}")
        result = self._reported(frame) if failed else request.read(frame)
        with self._changed:
            if frame.kind is Kind.RESULT:
                self._monitor.window.record_reply(sum(frame.header["seconds"]), request.size)
            if not self._table.take(request):
                return  # the link has failed
            if self._table.can_send():
                self._changed.notify()
        if failed:
            request.future.set_exception(result)
        else:
            request.future.set_result(result)

    def _pong(self, frame: Frame) -> None:
        received = boot_clock()
        with self._changed:
            ping = self._monitor.record_pong(frame, received)
            if self._table.can_send():
                self._changed.notify()
        if ping is not None:
            self._on_health(self.health)
            ping.future.set_result(received - ping.sent)

    def _reported(self, frame: Frame) -> EdgeFlareError:
        message = reported.text(frame.header, "message") or "an error without a message"
        code = reported.text(frame.header, "code") or ""
        for word, users in self.user_paths.items():
            message = message.replace(word, users)
        return agent_errors.reported_error(self.name, code, message)

    def _protocol_error(self, error: ProtocolError | WrongValueError) -> EdgeFlareError:
        why = clean_text(str(error), reported.LONGEST_LINE)
        version = self._from_agent.first_version()
        if version not in (None, VERSION):
            return agent_errors.other_version_error(self.name, version)
        if isinstance(error, WrongValueError):
            return agent_errors.wrong_value_error(self.name, why, error.advice)
        if isinstance(error, NonsenseError | TooLargeError):
            advice = agent_errors.MORE_THAN_STATED if isinstance(error, TooLargeError) else ""
            return agent_errors.wrong_value_error(self.name, why, advice)
        if self._greeting.future.done():
            return agent_errors.damage_error(self.name, why)
        return agent_errors.no_handshake_error(self.name, why, self._printed())

    def _writer(self) -> None:
        try:
            while self._failure.failure is None:
                self._write_next()
        except UnreachableError:
            self._stream_ended()

    def _write_next(self) -> None:
        with self._changed:
            while (
                self._failure.failure is None and not self._control and not self._table.can_send()
            ):
                self._changed.wait()
            if self._failure.failure is not None:
                return
            control = list(self._control)
            self._control.clear()
            requests = self._table.send_next(_BATCH_BYTES)
        blocks: list[bytes] = []
        for one in control:
            blocks += encode(*(one.frame() if isinstance(one, Ping) else one))
        for request in requests:
            blocks += request.blocks
        self._to_agent.write(blocks)
        for request in requests:
            request.written_at = time.monotonic()
            request.blocks = []

    def _watch(self) -> None:
        tick = min(self.limits.heartbeat_s / 4, self.limits.timeout_s / 4, _BEAT_S)
        while not self._stopped.wait(tick):
            self._send_heartbeat()
            with self._changed:
                overdue = self._table.overdue(self._to_agent.last_write_at)
                head = self._table.head
                inferring_s = self._monitor.health.inferring_s or 0.0
            silent_s = time.monotonic() - max(
                self._from_agent.last_read_at, self._to_agent.last_write_at
            )
            patient = head is not None and head.kind in _MAY_HOLD_THE_INTERPRETER
            if overdue is not None:
                kind, allowance_s = overdue.kind, overdue.allowance_s
                self._fail(agent_errors.hang_error(self.name, kind, allowance_s, self._printed()))
            elif inferring_s > self.limits.timeout_s:  # one sample of a request of many
                timeout_s = self.limits.timeout_s
                self._fail(
                    agent_errors.hang_error(self.name, Kind.INFER, timeout_s, self._printed())
                )
            elif silent_s > self.limits.heartbeat_s and not patient:
                self._fail(agent_errors.silence_error(self.name, silent_s))

    def _send_heartbeat(self) -> None:
        with self._changed:
            waits = any(isinstance(one, Ping) for one in self._control)
            if self._greeting.future.done() and self._failure.failure is None and not waits:
                self._control.append(self._monitor.pings.new())
                self._changed.notify()

    def _printed(self) -> list[str]:
        """Return the lines received in place of a handshake, for messages."""
        return [] if self._greeting.future.done() else self._from_agent.first_lines(_SHOWN_LINES)

    def _stream_ended(self) -> None:
        """Fail with the agent's exit status, at the end of its stream."""
        if self._closing:
            self._fail(DeviceError(f"the session with {self.name} was closed"))
            return
        status = self._stream.exit_status(_STATUS_S)
        lines = self._stream.stderr_tail().splitlines()
        stderr = [clean_text(line, reported.LONGEST_LINE) for line in lines]
        self._fail(agent_errors.died_error(self.name, status, stderr, self._printed()))

    def _fail(self, error: EdgeFlareError) -> None:
        """End the link: call back, fail all futures, wake the threads, end the agent."""
        pending: list[Future[Any]]
        with self._changed:
            callbacks = self._failure.end(error, unexpected=not self._closing)
            pending = [one.future for one in self._table.drain()] + self._monitor.pings.drain()
            self._changed.notify_all()
        self._stopped.set()
        first = self._failure.failure or error
        try:
            for callback in callbacks:
                callback(copy(first))
        finally:
            for future in pending:
                future.set_exception(copy(first))
            with suppress(EdgeFlareError, OSError):  # it may be broken already
                self._stream.close()

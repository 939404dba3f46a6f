"""The host's end of the wire to one agent: handshake, pipelined requests, heartbeats.

Three threads: the writer waits for frames to send, the reader settles futures, the watch sends
heartbeats and ends the link when the agent hangs.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from numpy.typing import NDArray

from edgeflare.devices.agent_errors import died, reported
from edgeflare.devices.read_ahead import ReadAhead
from edgeflare.devices.request_table import Request, RequestTable
from edgeflare.devices.transport import Stream, Transport
from edgeflare.errors import (
    DeviceError,
    DeviceProtocolError,
    DeviceTimeoutError,
    EdgeFlareError,
    UnreachableError,
    UsageError,
)
from edgeflare_agent.errors import ProtocolError
from edgeflare_agent.wire import (
    DEFAULT_MAX_BODY,
    VERSION,
    EndOfStreamError,
    Frame,
    Kind,
    encode,
    find_first_frame,
    read_frame,
)

_GRACE_S = 2.0
_STATUS_S = 5.0
_PIECE = 256 << 10
_SHOWN_LINES = 3
_HELLO = 0
_MAY_HOLD_THE_INTERPRETER = (Kind.HELLO, Kind.LOAD)


class Limits(NamedTuple):
    """Requests under way at most; seconds of silence, and for one inference; bytes of a frame's body."""

    window: int = 16
    heartbeat_s: float = 20.0
    timeout_s: float = 60.0
    max_body: int = DEFAULT_MAX_BODY


class AgentLink:
    """A running agent. `hello` is its handshake's header; `name` the device's, for messages.

    `users_words` replaces words in the agent's messages: paths on the device by the user's own.
    """

    hello: dict[str, Any]

    def __init__(self, stream: Stream, name: str, limits: Limits) -> None:
        self.name = name
        self.limits = limits
        self.users_words: dict[str, str] = {}
        self._stream = stream
        self._changed = threading.Condition()
        self._table = RequestTable(limits.window)
        self._control: deque[Frame] = deque()
        self._pings: deque[tuple[float, Future[float]]] = deque()
        self._next_id = _HELLO
        self._failure: EdgeFlareError | None = None
        self._closing = False
        self._stopped = threading.Event()
        self._from_agent = ReadAhead(stream)
        self._wrote_at = time.monotonic()
        self._greeting = Request(_HELLO, Kind.HELLO, [], limits.timeout_s, lambda frame: frame)
        self._table.add(self._greeting)
        self._table.send_next()
        self._table.written(self._greeting)
        self._threads = [
            threading.Thread(target=task, name=f"edgeflare-{task.__name__[1:]}", daemon=True)
            for task in (self._reader, self._writer, self._watch)
        ]

    @classmethod
    def open(cls, transport: Transport, agent: str, root: str, limits: Limits) -> "AgentLink":
        """Start the agent at this path, find its handshake behind what a shell prints, send START.

        Raises AgentDiedError, DeviceProtocolError, DeviceTimeoutError and what the transport raises.
        """
        link = cls(transport.open([agent, "--root", root]), transport.name, limits)
        for thread in link._threads:
            thread.start()
        try:
            link.hello = link._greeting.future.result().header
            start = {
                "heartbeat_s": limits.heartbeat_s,
                "max_body": limits.max_body,
                "max_queue": limits.window + 1,
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
    def queued(self) -> int:
        """Requests that wait on the host for room in the window."""
        with self._changed:
            return self._table.queued

    def request(
        self,
        kind: Kind,
        header: dict[str, Any],
        arrays: Sequence[NDArray[Any]] = (),
        *,
        read: Callable[[Frame], Any],
        allowance_s: float | None = None,
    ) -> "Future[Any]":
        """Queue a request without waiting for anything; the future has `read(reply)`.

        The future's callbacks run in the reader's thread: they must be short. Its errors are those of
        ERROR frames and of the link; a link that has failed gives a failed future. The arrays must not
        change until it is done. Raises UsageError for a body over the limit.
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
        blocks = encode(Frame(kind, {"id": id_, **header}, tuple(arrays)))
        allowance = self.limits.timeout_s if allowance_s is None else allowance_s
        request = Request(id_, kind, blocks, allowance, read)
        with self._changed:
            failure = self._failure
            if failure is None:
                self._table.add(request)
                self._changed.notify_all()
        if failure is not None:
            request.future.set_exception(_copy(failure))
        return request.future

    def ping(self) -> "Future[float]":
        """Send a heartbeat now; the future has the round trip in seconds."""
        future: Future[float] = Future()
        with self._changed:
            failure = self._failure
            if failure is None:
                self._control.append(Frame(Kind.PING, {}))
                self._pings.append((time.monotonic(), future))
                self._changed.notify_all()
        if failure is not None:
            future.set_exception(_copy(failure))
        return future

    def close(self) -> None:
        """Say goodbye, end the agent, fail what is pending. Safe to repeat, and from a callback."""
        with self._changed:
            self._closing = True
        self._send(Frame(Kind.BYE, {}))
        self._join(self._threads[:1], _GRACE_S)
        self._fail(DeviceError(f"the session with {self.name} was closed"))
        self._join(self._threads, _STATUS_S)

    def _join(self, threads: Sequence[threading.Thread], timeout: float) -> None:
        for thread in threads:
            if thread is not threading.current_thread() and thread.ident is not None:
                thread.join(timeout)

    def _send(self, frame: Frame) -> None:
        with self._changed:
            self._control.append(frame)
            self._changed.notify_all()

    def _reader(self) -> None:
        try:
            _, frame = find_first_frame(self._from_agent.read, self.limits.max_body)
            self._greet(frame)
            while self._failure is None:
                self._dispatch(read_frame(self._from_agent.read, self.limits.max_body))
        except EndOfStreamError:
            self._ended()
        except ProtocolError as error:
            self._fail(self._out_of_step(str(error)))
        except (LookupError, TypeError, ValueError) as error:
            self._fail(self._out_of_step(f"a reply makes no sense ({error!r})"))
        except UnreachableError as error:
            self._fail(error)

    def _greet(self, frame: Frame) -> None:
        if frame.kind is not Kind.HELLO or frame.header.get("protocol") != VERSION:
            raise ProtocolError(
                f"its handshake says protocol version {frame.header.get('protocol')}, this host "
                f"speaks {VERSION}"
            )
        if not isinstance(frame.header.get("device"), dict):
            raise ProtocolError("its handshake doesn't describe the device")
        with self._changed:
            self._table.take(_HELLO)
        self._greeting.future.set_result(frame)

    def _dispatch(self, frame: Frame) -> None:
        if frame.kind is Kind.PONG:
            with self._changed:
                sent, pinged = self._pings.popleft()
            pinged.set_result(time.monotonic() - sent)
            return
        if frame.kind is Kind.ERROR and frame.header.get("id") is None:
            self._fail(self._reported(frame))
            return
        with self._changed:
            request = self._table.take(frame.header["id"])
            self._changed.notify_all()
        if frame.kind is Kind.ERROR:
            request.future.set_exception(self._reported(frame))
            return
        try:
            result = request.result_of(frame)
        except (LookupError, TypeError, ValueError) as error:
            wrong = self._out_of_step(f"a reply makes no sense ({error!r})")
            request.future.set_exception(wrong)
            self._fail(wrong)
        else:
            request.future.set_result(result)

    def _reported(self, frame: Frame) -> EdgeFlareError:
        message = str(frame.header.get("message", "an error without a message"))
        for word, users in self.users_words.items():
            message = message.replace(word, users)
        return reported(self.name, str(frame.header.get("code")), message)

    def _writer(self) -> None:
        try:
            while self._failure is None:
                self._write_next()
        except UnreachableError:
            self._ended()

    def _write_next(self) -> None:
        with self._changed:
            self._changed.wait_for(
                lambda: self._failure is not None or self._control or self._table.can_send()
            )
            if self._failure is not None:
                return
            control = self._control.popleft() if self._control else None
            request = self._table.send_next() if control is None else None
        if control is not None:
            self._stream.write(encode(control))
        elif request is not None:
            self._write_in_pieces(request.blocks)
            with self._changed:
                self._table.written(request)
            request.blocks = []

    def _write_in_pieces(self, blocks: list[bytes]) -> None:
        """Write a request; each piece that the link takes shows that it lives, however slow it is."""
        if sum(map(len, blocks)) <= _PIECE:
            self._stream.write(blocks)
            self._wrote_at = time.monotonic()
            return
        for block in blocks:
            view = memoryview(block)
            for begin in range(0, len(view), _PIECE):
                self._stream.write([view[begin : begin + _PIECE]])
                self._wrote_at = time.monotonic()

    def _watch(self) -> None:
        tick = min(self.limits.heartbeat_s, self.limits.timeout_s) / 4
        beat = 0.0
        while not self._stopped.wait(tick):
            beat -= tick
            if beat <= 0:
                self._heartbeat()
                beat = self.limits.heartbeat_s / 4
            with self._changed:
                overdue = self._table.overdue()
                head = self._table.head
            silent = time.monotonic() - max(self._from_agent.heard_at, self._wrote_at)
            patient = head is not None and head.kind in _MAY_HOLD_THE_INTERPRETER
            if overdue is not None:
                self._fail(self._hanging(overdue))
            elif silent > self.limits.heartbeat_s and not patient:
                self._fail(
                    DeviceTimeoutError(
                        f"nothing came from the agent on {self.name} for {silent:.0f} s: the device "
                        "hangs or the link is cut"
                    )
                )

    def _heartbeat(self) -> None:
        with self._changed:
            if self._greeting.future.done() and not any(f.kind is Kind.PING for f in self._control):
                self._control.append(Frame(Kind.PING, {}))
                self._pings.append((time.monotonic(), Future()))
                self._changed.notify_all()

    def _hanging(self, request: Request) -> DeviceTimeoutError:
        allowed = f"within {request.allowance_s:g} s"
        if request.kind is Kind.HELLO:
            return DeviceTimeoutError(
                f"the agent on {self.name} did not start {allowed}{self._shown()}"
            )
        work = {Kind.LOAD: "load the model", Kind.CONFIGURE: "take the input's description"}
        return DeviceTimeoutError(
            f"the agent on {self.name} lives, but did not {work.get(request.kind, 'infer')} {allowed}"
        )

    def _out_of_step(self, why: str) -> DeviceProtocolError:
        return DeviceProtocolError(
            f"not what the agent says came from {self.name}: {why}{self._shown()}"
        )

    def _shown(self) -> str:
        """Return what came in place of a handshake, for messages."""
        lines = self._printed()
        return f"; instead came: {' | '.join(lines)}" if lines else ""

    def _printed(self) -> list[str]:
        return [] if self._greeting.future.done() else self._from_agent.first_lines(_SHOWN_LINES)

    def _ended(self) -> None:
        """Fail with how the agent ended, its stream being at its end."""
        if self._closing:
            self._fail(DeviceError(f"the session with {self.name} was closed"))
            return
        status = self._stream.exit_status(_STATUS_S)
        stderr = self._stream.stderr_tail().splitlines()
        self._fail(died(self.name, status, stderr, self._printed()))

    def _fail(self, error: EdgeFlareError) -> None:
        """End the link: settle every future with this error, wake the threads, end the agent."""
        with self._changed:
            if self._failure is None:
                self._failure = error
            pending: list[Future[Any]] = [one.future for one in self._table.drain()]
            pending += [future for _, future in self._pings]
            self._pings.clear()
            self._changed.notify_all()
        self._stopped.set()
        for future in pending:
            future.set_exception(_copy(self._failure))
        self._stream.close()


def _copy(error: EdgeFlareError) -> EdgeFlareError:
    """Return an error of the same class and text; one that many raise would gather their tracebacks."""
    return type(error)(str(error))

"""An agent in the test's process that speaks the wire protocol and replies as defined."""

import json
import os
import queue
import struct
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.devices import Completed, Transport
from edgeflare.errors import UnreachableError
from edgeflare_agent.decoding import Decoded, RawOutput
from edgeflare_agent.wire import MAGIC, VERSION, EndOfStreamError, Frame, Kind, encode, read_frame

Answer: TypeAlias = bytes | Frame | Literal["end"] | None
"""Raw bytes for the wire, a frame, the end of the agent, or nothing."""

Change: TypeAlias = Mapping[str, Any] | Callable[[Frame], Answer | Sequence[Answer]]
"""What becomes of a reply: fields to be set in its header, or a function of the honest frame."""

_END = b""
_SINGLE = (bytes, Frame, str)


@dataclass(frozen=True)
class Replace:
    """One kind of reply, replaced.

    `kind` names the frame, such as ``"LOADED"``; see `edgeflare_agent.wire.Kind` for all. `by` is
    set in the header of the honest reply, or called with that reply: it returns a frame, bytes for
    the wire, ``"end"`` for the end of the agent, None for no answer, or several of these. The
    replies of one kind are counted from 0 over all streams of the agent; those from `first` on are
    replaced, `times` of them, None: all.
    """

    kind: str
    by: Change
    first: int = 0
    times: int | None = None

    def applies_to(self, kind: Kind, number: int) -> bool:
        """Whether the reply of this kind and number is replaced."""
        end = float("inf") if self.times is None else self.first + self.times
        return kind is Kind[self.kind] and self.first <= number < end


class FakeAgent:
    """A device that answers nonsense wherever a test says so, and else is an honest agent.

    It loads anything. Its model is `loaded`, fields of a LOADED header over those of a model with
    one float32 input [1, 4, 4, 1] and one float32 output [1, 10]; `infer` returns the array for one
    raw sample (default: zeros), a tuple of them for several outputs, or what a decoder made of it. `stderr` is what the program leaves
    there, `status` its exit status, None: it is not known. `received` counts the frames that came,
    by kind, `replaced` the replies that were replaced.

    `transport` is a device that consists of the agent alone, for a `DeviceSession`; `wrap` puts the
    agent in the place of another device's, so that a whole campaign meets it; `serve` makes a
    program of it::

        agent = FakeAgent(Replace("LOADED", {"outputs": [
            {"name": "y", "shape": [1e400, 2], "dtype": "float32", "quantization": None}]}))
        with pytest.raises(DeviceProtocolError, match="sent outputs"):
            open_device(LOCAL, model, connect=connecting({"local": agent}))

    A header that no JSON encoder writes, such as one nested 100,000 deep, is made by `raw_frame`::

        deep = raw_frame("PONG", '{"ping": 0, "load": ' + "[" * 100_000 + "]" * 100_000 + "}")
        agent = FakeAgent(Replace("PONG", lambda honest: deep))
    """

    def __init__(
        self,
        *plan: Replace,
        loaded: Mapping[str, Any] | None = None,
        infer: Callable[[NDArray[Any]], RawOutput] | None = None,
        stderr: str = "",
        status: int | None = 0,
    ) -> None:
        self.plan = plan
        self.loaded = {**_loaded(), **(loaded or {})}
        self.stderr = stderr
        self.status = status
        self.received: Counter[str] = Counter()
        self.replaced: Counter[str] = Counter()
        output = self.loaded["outputs"][0]
        self._infer = infer or (lambda _: np.zeros(output["shape"], output["dtype"]))
        self._sent: Counter[Kind] = Counter()
        self._lock = threading.Lock()

    def transport(self, name: str = "fake") -> "FakeTransport":
        """Return a device that consists of this agent: no file is uploaded, no command run."""
        return FakeTransport(self, name)

    def wrap(self, transport: Transport) -> "FakeTransport":
        """Return a device whose commands and files are another's, and whose agent is this one."""
        return FakeTransport(self, transport.name, transport)

    def serve(self) -> NoReturn:
        """Be the agent on this process's own stdin and stdout, and end as it is to end.

        For a script that stands in for a device's Python command: it hands what begins with ``-``
        to a real one, and calls this for the rest.
        """
        stream = FakeStream(self)

        def take() -> None:
            try:
                while data := os.read(sys.stdin.fileno(), 1 << 16):
                    stream.write([data])
            except UnreachableError:
                pass
            finally:
                stream.close()

        threading.Thread(target=take, daemon=True).start()
        while piece := stream.read(1 << 20):
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        sys.stderr.write(self.stderr)
        sys.stderr.flush()
        os._exit(self.status or 0)

    def greeting(self) -> list[bytes]:
        """Return what comes unasked when the agent starts, in the form of `reply`."""
        hello = {
            "protocol": VERSION,
            "python": "3.11.2",
            "executable": "/usr/bin/python3",
            "numpy": "1.26.4",
            "pid": 4711,
            "device": {"board": "Fake Board", "cpu": "fake", "cpu_flags": [], "arch": "x86_64"},
            "runtimes": {"onnxruntime": "1.17.0"},
        }
        return self._replaced(Frame(Kind.HELLO, hello))

    def reply(self, frame: Frame) -> list[bytes]:
        """Return the agent's answer to a frame of the host, empty for none; ``b""``: it ends."""
        self.received[frame.kind.name] += 1
        default = self._default_reply(frame)
        return [] if default is None else self._replaced(default)

    def _default_reply(self, frame: Frame) -> Frame | None:
        id_ = {"id": frame.header.get("id")}
        if frame.kind is Kind.PING:
            return Frame(Kind.PONG, {**frame.header, **_HEALTH})
        if frame.kind is Kind.LOAD:
            return Frame(Kind.LOADED, {**id_, **self.loaded})
        if frame.kind is Kind.CONFIGURE:
            return Frame(Kind.CONFIGURED, id_)
        if frame.kind is Kind.LEASE:
            return Frame(Kind.LEASED, id_)
        if frame.kind is Kind.STATUS:
            return Frame(Kind.STATE, {**id_, "leases": [], **_RESOURCES})
        if frame.kind is Kind.INFER:
            answers = [self._infer(sample) for sample in frame.arrays]
            header: dict[str, Any] = {**id_, "seconds": [0.001] * len(answers)}
            pieces = [answer.pieces for answer in answers if isinstance(answer, Decoded)]
            arrays: list[NDArray[Any]] = []
            for answer in answers:
                if isinstance(answer, Decoded):
                    arrays.append(answer.scores)
                elif isinstance(answer, np.ndarray):
                    arrays.append(answer)
                else:
                    header["outputs"] = len(answer)
                    arrays += answer
            if pieces:
                header["decoded"] = True
                arrays.append(np.frombuffer(json.dumps(pieces).encode(), np.uint8))
            return Frame(Kind.RESULT, header, tuple(arrays))
        return None

    def _replaced(self, frame: Frame) -> list[bytes]:
        with self._lock:
            number = self._sent[frame.kind]
            self._sent[frame.kind] += 1
        for replace in self.plan:
            if replace.applies_to(frame.kind, number):
                self.replaced[frame.kind.name] += 1
                return list(_replacement(replace.by, frame))
        return [_bytes(frame)]


class FakeTransport:
    """The connection to a fake agent; fulfils `edgeflare.devices.Transport`.

    `run` and `put` are those of `inner`; without one they raise UnreachableError.
    """

    def __init__(self, agent: FakeAgent, name: str, inner: Transport | None = None) -> None:
        self.name = name
        self._agent = agent
        self._inner = inner

    def run(self, arguments: Sequence[str], stdin: bytes = b"", *, timeout: float) -> Completed:
        """Run the device's Python command; see `Transport`."""
        return self._inner_transport().run(arguments, stdin, timeout=timeout)

    def open(self, arguments: Sequence[str]) -> "FakeStream":
        """Start the agent, whatever was to be started."""
        del arguments
        return FakeStream(self._agent)

    def put(self, local: Path, remote: str) -> None:
        """Copy a file; see `Transport`."""
        self._inner_transport().put(local, remote)

    def close(self) -> None:
        """Close the transport within. Safe to repeat."""
        if self._inner is not None:
            self._inner.close()

    def _inner_transport(self) -> Transport:
        if self._inner is None:
            raise UnreachableError(f"{self.name} is a fake agent and nothing else")
        return self._inner


class FakeStream:
    """A fake agent's stdin and stdout, an `edgeflare.devices.Stream` without a thread."""

    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent
        self._out: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._buffer = b""
        self._in = bytearray()
        self._closed = threading.Event()
        for piece in agent.greeting():
            self._out.put(piece)

    def read(self, n: int) -> bytes:
        """Return 1 to n bytes, waiting for them; ``b""`` when the stream is closed."""
        if not self._buffer and not self._closed.is_set():
            self._buffer = self._out.get()
            if not self._buffer:
                self._closed.set()
        piece, self._buffer = self._buffer[:n], self._buffer[n:]
        return piece

    def write(self, blocks: Sequence[bytes | memoryview]) -> None:
        """Take bytes and answer the complete frames. Raises UnreachableError when closed."""
        if self._closed.is_set():
            raise UnreachableError("the fake agent has ended")
        for block in blocks:
            self._in += block
        for frame in self._frames():
            if frame.kind is Kind.BYE:
                self.close()
                return
            for piece in self._agent.reply(frame):
                self._out.put(piece)

    def stderr_tail(self) -> str:
        """Return what the program wrote to stderr."""
        return self._agent.stderr

    def exit_status(self, timeout: float) -> int | None:
        """Return the status that the agent was given; waits for nothing."""
        del timeout
        return self._agent.status

    def close(self) -> None:
        """End the stream. Safe to repeat."""
        self._closed.set()
        self._out.put(_END)

    def _frames(self) -> Iterator[Frame]:
        while self._in:
            data, at = bytes(self._in), 0

            def read(n: int, data: bytes = data) -> bytes:
                nonlocal at
                piece = data[at : at + n]
                at += len(piece)
                return piece

            try:
                frame = read_frame(read)
            except EndOfStreamError:
                return
            del self._in[:at]
            yield frame


def raw_frame(kind: str | int, header: str, body: bytes = b"") -> bytes:
    """Return a frame, checksum and all, with this text for a header: it needs to be no JSON."""
    number = Kind[kind] if isinstance(kind, str) else kind
    text = header.encode("utf-8", "surrogatepass")
    front = struct.pack("<4sBBHIQ", MAGIC, VERSION, number, 0, len(text), len(body))
    checksum = struct.pack("<I", zlib.crc32(front + bytes(4) + text + body))
    return front + checksum + text + body


def _replacement(change: Change, default: Frame) -> Iterator[bytes]:
    if not callable(change):
        yield _bytes(default._replace(header={**default.header, **change}))
        return
    answers = change(default)
    for one in [answers] if answers is None or isinstance(answers, _SINGLE) else answers:
        if isinstance(one, Frame):
            yield _bytes(one)
        elif one is not None:
            yield _END if isinstance(one, str) else one


def _bytes(frame: Frame) -> bytes:
    return b"".join(encode(*frame))


def _loaded() -> dict[str, Any]:
    tensor = {"dtype": "float32", "quantization": None}
    return {
        "inputs": [{"name": "x", "shape": [1, 4, 4, 1], **tensor}],
        "outputs": [{"name": "y", "shape": [1, 10], **tensor}],
        "runtime": {"name": "onnx", "package": "onnxruntime", "version": "1.17.0", "threads": 1},
        "metadata": {},
        "decoder": None,
    }


_RESOURCES = {"memory_available_bytes": 1 << 30, "disk_free_bytes": 1 << 30, "load": 0.5}
_HEALTH: dict[str, Any] = {
    "uptime_s": 1.0,
    "busy_s": 0.5,
    "served": 0,
    "waiting": 0,
    "inferring_s": None,
    "rss_bytes": 1 << 20,
    "temperature_c": 40.0,
    "throttled": False,
    "throttle_reasons": [],
}

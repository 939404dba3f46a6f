"""A model that runs on this machine, one request at a time, in a process of its own or in this one."""

import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Any, cast

from numpy.typing import NDArray

from edgeflare._internal import plugins
from edgeflare._internal.processes import MEMORY_ADVICE, described_status, python_calling
from edgeflare.errors import (
    DeviceError,
    DeviceTimeoutError,
    EdgeFlareError,
    InferenceFailedError,
    ModelError,
)
from edgeflare.types import Sample
from edgeflare_agent import connection
from edgeflare_agent import errors as agent
from edgeflare_agent.child import FileWorker, serve
from edgeflare_agent.runtimes import RUNTIMES
from edgeflare_agent.wire import DEFAULT_MAX_BODY, Frame, Kind, encode, read_frame
from edgeflare_agent.worker import described

ORIGINAL_FAILED = "original model: "
"""With this begins each error of the original, as stored where it could not answer."""
_READ_AT_ONCE = 1 << 20
_LAST_BYTES = 2000
_MOST_PRINTED = 1 << 20
_TRIMMED_EVERY = 1000
_ENDING_S = 5.0
_MOMENT_S = 0.5
_SLACK_S = 5.0
"""An overdue process ends itself; where it can't, the host ends it this many seconds later."""
_RAISED: dict[str, type[EdgeFlareError]] = {
    agent.ModelError.code: ModelError,
    agent.RequestError.code: ModelError,
    agent.InferenceError.code: InferenceFailedError,
}


class ProcessEndedError(Exception):
    """The process of a model ended at a request, or could not be started; the text says how.

    It says nothing yet about what was asked: the process may have been killed for want of memory.
    `may_pass`: it is for want of memory or processes, as far as is known. `more`: what to do, or the
    last that the process printed.
    """

    def __init__(self, text: str, *, may_pass: bool = False, more: str = "") -> None:
        super().__init__(text)
        self.may_pass = may_pass
        self.more = more


class LoadedModel(ABC):
    """One loaded model; used by one thread at a time, except for `end`.

    `loaded` is the header of the reply to LOAD; `idle_since` is the user's.
    """

    loaded: Mapping[str, Any]
    idle_since = 0.0
    _configuration: Mapping[str, Any] | None = None
    _arrays: Sequence[NDArray[Any]] = ()

    @property
    def alive(self) -> bool:
        """Whether it can take requests."""
        return True

    def configure(
        self, configuration: Mapping[str, Any], arrays: Sequence[NDArray[Any]] = ()
    ) -> None:
        """Send the header and arrays of CONFIGURE unless the last ones were these.

        Arrays are compared by identity. Raises ModelError.
        """
        same = configuration is self._configuration or configuration == self._configuration
        if same and (arrays is self._arrays or not (arrays or self._arrays)):
            return
        self._configuration = None
        self.ask(Kind.CONFIGURE, configuration, arrays)
        self._configuration, self._arrays = configuration, arrays

    @abstractmethod
    def ask(self, kind: Kind, header: Mapping[str, Any], arrays: Sequence[Sample] = ()) -> Frame:
        """Return the reply to a request.

        Raises ModelError for a request that does not fit the model; InferenceFailedError for a
        failed inference; ProcessEndedError.
        """

    def has_died(self, moment_s: float = _MOMENT_S) -> bool:
        """Return whether it ended while idle; not checked so soon after a request."""
        del moment_s
        return False

    def end(self) -> None:  # noqa: B027
        """End it at once. Safe to repeat, from any thread."""


class ModelHere(LoadedModel):
    """A model in this process, which it may cost: for one that others start again.

    Where the runtime crashes this process ends; it ends with status `connection.LATE` where an
    inference takes longer than `timeout_s`.
    """

    def __init__(self, load: Mapping[str, Any], timeout_s: float) -> None:
        """Load it by the header of LOAD. Raises ModelError."""
        self._worker = FileWorker()
        self.loaded = self.ask(Kind.LOAD, {**load, "timeout_s": timeout_s}).header
        threading.Thread(target=self._worker.end_if_late, daemon=True).start()

    def ask(self, kind: Kind, header: Mapping[str, Any], arrays: Sequence[Sample] = ()) -> Frame:
        """Return the reply to a request; raises as `LoadedModel.ask`."""
        try:
            return self._worker.answer(Frame(kind, dict(header), tuple(arrays)))
        except Exception as error:
            raise _raised(*described(error)) from error


class ModelProcess(LoadedModel):
    """One process with one loaded model."""

    def __init__(self, path: str, load: Mapping[str, Any], timeout_s: float) -> None:
        """Start it and send LOAD with the header `load`.

        Raises ModelError, DeviceTimeoutError, ProcessEndedError.
        """
        users = json.dumps(users_runtime(load["runtime"]))
        load = {**load, "timeout_s": timeout_s}
        self._path = path
        self._timeout_s = timeout_s
        self._ahead = memoryview(b"")
        with ExitStack() as opened:  # closed where no process can be started
            try:
                self._printed = opened.enter_context(tempfile.TemporaryFile("a+b"))
                self._stream, its = map(opened.enter_context, socket.socketpair())
                self._process = subprocess.Popen(
                    python_calling(serve, users),
                    stdin=its.fileno(),
                    stdout=its.fileno(),
                    stderr=self._printed,
                    start_new_session=True,  # Ctrl-C is the host's
                )
            except OSError as error:
                raise ProcessEndedError(
                    f"no process can be started for {path}: {error.strerror}",
                    may_pass=True,
                    more="free memory, or end other programs",
                ) from error
            opened.pop_all()
        its.close()
        self._asked = 0
        self._limited_to = 0
        try:
            self.loaded = self.ask(Kind.LOAD, load).header
        except BaseException:
            self.end()
            raise

    @property
    def alive(self) -> bool:
        """Whether it can take requests."""
        return self._process.returncode is None

    def has_died(self, moment_s: float = _MOMENT_S) -> bool:
        """Return whether it ended while idle; not checked so soon after a request."""
        return time.monotonic() - self.idle_since > moment_s and self._process.poll() is not None

    def ask(self, kind: Kind, header: Mapping[str, Any], arrays: Sequence[Sample] = ()) -> Frame:
        """Return the reply to a request; whatever goes wrong on the way, the process is ended.

        Raises as `LoadedModel.ask`. A process that does not answer raises InferenceFailedError, too,
        where it infers, else DeviceTimeoutError.
        """
        self._asked += 1
        if (
            self._asked % _TRIMMED_EVERY == 0
            and os.fstat(self._printed.fileno()).st_size > _MOST_PRINTED
        ):
            os.ftruncate(self._printed.fileno(), 0)  # it is written at its end, so it starts again
        try:
            self._limit_to(len(arrays) or 1)
            self._write(encode(kind, {"id": 0, **header}, arrays))
            reply = read_frame(self._read, DEFAULT_MAX_BODY)
        except BlockingIOError as error:
            self.end()
            raise self._late(kind) from error
        except (agent.ProtocolError, OSError) as error:  # half a frame, too, or none
            raise self._ended(kind) from error
        except BaseException:
            self.end()
            raise
        if reply.kind is Kind.ERROR:
            raise _raised(reply.header["code"], reply.header["message"])
        return reply

    def end(self) -> None:
        """End the process at once. Safe to repeat, from any thread."""
        self._process.kill()
        self._process.wait()
        self._stream.close()
        self._printed.close()

    def _limit_to(self, count: int) -> None:
        """Set the socket's timeouts for a request of this many samples, unless they are set."""
        if count == self._limited_to:
            return
        limit_s = self._timeout_s * count + _SLACK_S
        limit = struct.pack("@ll", int(limit_s), int(limit_s % 1 * 1e6))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            self._stream.setsockopt(socket.SOL_SOCKET, option, limit)
        self._limited_to = count

    def _write(self, blocks: Sequence[bytes]) -> None:
        rest = memoryview(blocks[0] if len(blocks) == 1 else b"".join(blocks))
        while rest:
            rest = rest[self._stream.send(rest) :]

    def _read(self, n: int) -> bytes:
        if not self._ahead:
            self._ahead = memoryview(self._stream.recv(_READ_AT_ONCE))
        chunk, self._ahead = self._ahead[:n], self._ahead[n:]
        return cast("bytes", chunk)

    def _ended(self, kind: Kind) -> EdgeFlareError | ProcessEndedError:
        """Return the error for a process that ended by itself, or says what is no answer."""
        with suppress(OSError):
            self._stream.shutdown(socket.SHUT_RDWR)  # one that lives ends with it
        try:
            status = self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            status = 0
        if status == connection.LATE:
            self.end()
            return self._late(kind)
        output = self._last_output()
        self.end()
        doing = "loading" if kind is Kind.LOAD else "running"
        how = described_status(status)
        if status == -signal.SIGKILL:
            text = f"the process {doing} {self._path} was killed by {how}"
            return ProcessEndedError(text, may_pass=True, more=MEMORY_ADVICE)
        text = f"the runtime crashed {doing} {self._path} ({how})"
        return ProcessEndedError(text, more=f"it said: {output}" if output else "")

    def _last_output(self) -> str:
        with suppress(ValueError):  # closed: another thread has ended it
            size = self._printed.seek(0, os.SEEK_END)
            self._printed.seek(max(0, size - _LAST_BYTES))
            lines = self._printed.read().decode(errors="replace").split("\n")
            return " | ".join(line.strip() for line in lines if line.strip())
        return ""

    def _late(self, kind: Kind) -> EdgeFlareError:
        advice = "raise original_timeout_s (--original-timeout) if it needs longer"
        if kind is Kind.INFER:
            return InferenceFailedError(
                f"{ORIGINAL_FAILED}{self._path} did not answer within {self._timeout_s:g} s; "
                f"{advice}"
            )
        return DeviceTimeoutError(
            f"{ORIGINAL_FAILED}{self._path} was not loaded within {self._timeout_s:g} s; {advice}"
        )


def _raised(code: str, message: str) -> EdgeFlareError:
    return _RAISED.get(code, DeviceError)(f"{ORIGINAL_FAILED}{message}")


def users_runtime(name: str) -> dict[str, str]:
    """Return {name: "module:class"} of a user's runtime, {} of a built-in. Raises UsageError."""
    found = None if name in RUNTIMES else plugins.load("runtime", name)
    return {} if found is None else {name: f"{found.__module__}:{found.__qualname__}"}

"""The agent's end of the wire: frames, the watch over the host's heartbeat, and exit statuses.

The statuses 64 and 65 (Python too old, numpy missing) are in `__main__`, which old interpreters
parse.
"""

import os
import sys
import threading
import time
import traceback
from types import TracebackType
from typing import Any, Callable, Dict, List, Optional, Sequence, Type

from edgeflare_agent.arrays import Array
from edgeflare_agent.wire import Kind, encode

DONE = 0  # BYE, or the end of the stream
BROKEN_STREAM = 66
LOST_HEARTBEAT = 67
LATE = 68  # an inference took longer than it may
FAULT = 70  # a fault of the agent's own

_last: List[Callable[[], None]] = []


def before_exit(action: Callable[[], None]) -> None:
    """Register a quick action for the end of the process by `exit_process`, from any thread."""
    _last.append(action)


def exit_process(status: int, sentence: str = "") -> None:
    """End the process at once, whatever its threads are doing, after a sentence on stderr."""
    try:
        while _last:
            _last.pop()()
        if sentence:
            sys.stderr.write("edgeflare agent: {}\n".format(sentence))
        sys.stderr.flush()
    finally:
        os._exit(status)


def exit_on_fault(
    kind: Type[BaseException], error: Optional[BaseException], trace: Optional[TracebackType]
) -> None:
    """End the process for an uncaught exception of any thread."""
    traceback.print_exception(kind, error, trace)
    exit_process(FAULT, "a fault of its own, {}: {}".format(kind.__name__, error))


START_HEARTBEAT_S = 60.0
_READ_AHEAD = 64 << 10
_READ_AT_ONCE = 1 << 20
_POLLS = 16
_LONGEST_POLL_S = 0.25


class Link:
    """Both directions of the wire.

    `heartbeat_s` (seconds) is small until the host's START sets it. One thread calls `read`; any
    may call `send` and `write`.
    """

    def __init__(self, wire_in: int, wire_out: int) -> None:
        self.heartbeat_s = START_HEARTBEAT_S
        self._in = wire_in
        self._out = wire_out
        self._ahead = b""
        self._at = 0
        self._writing = threading.Lock()
        self._reads = 0

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes, buffered ones or as many as come at once."""
        if self._at == len(self._ahead):
            self._ahead = os.read(self._in, min(max(n, _READ_AHEAD), _READ_AT_ONCE))
            self._at = 0
            self._reads += 1
        chunk = self._ahead[self._at : self._at + n]
        self._at += len(chunk)
        return chunk

    def send(self, kind: Kind, header: Dict[str, Any], arrays: Sequence[Array] = ()) -> None:
        """Write one frame; ends the process where the host reads no more."""
        self.write(encode(kind, header, arrays))

    def write(self, blocks: List[bytes]) -> None:
        """Write an encoded frame; ends the process where the host reads no more."""
        with self._writing:
            try:
                for block in blocks:
                    written = os.write(self._out, block)
                    while written < len(block):
                        written += os.write(self._out, memoryview(block)[written:])
            except (BrokenPipeError, ConnectionResetError):
                exit_process(DONE)

    def watch(self) -> None:
        """End the process when no byte came for `heartbeat_s`; runs in a thread of its own.

        It counts polls of the stream instead of reading a clock, so that a clock that is set, a
        suspended process, or one busy loading a model is not taken for a silent host. (`time.sleep`
        does not depend on the wall clock; waiting for a lock or an event does, up to Python 3.10.)
        """
        reads, silent_s = self._reads, 0.0
        while silent_s < self.heartbeat_s:
            poll_s = min(self.heartbeat_s / _POLLS, _LONGEST_POLL_S)
            time.sleep(poll_s)
            silent_s = silent_s + poll_s if reads == self._reads else 0.0
            reads = self._reads
        exit_process(
            LOST_HEARTBEAT,
            "nothing came from the host for {:g} s; giving up".format(self.heartbeat_s),
        )

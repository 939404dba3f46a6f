"""The agent's end of the wire: frames in, frames out, and the watch over the host's heartbeat."""

import os
import threading
from typing import Any, Dict, Sequence

from edgeflare_agent import exits
from edgeflare_agent.arrays import Array
from edgeflare_agent.wire import Frame, Kind, encode, read_frame

START_HEARTBEAT_S = 60.0
START_MAX_BODY = 1 << 16
_READ_AT_ONCE = 1 << 20
_LOOKS = 16


class Link:
    """Both directions of the wire.

    `max_body` (bytes) and `heartbeat_s` (seconds) are small until the host's START sets them. One
    thread calls `receive`; any may call `send`.
    """

    def __init__(self, wire_in: int, wire_out: int) -> None:
        self.max_body = START_MAX_BODY
        self.heartbeat_s = START_HEARTBEAT_S
        self._in = os.fdopen(wire_in, "rb")
        self._out = os.fdopen(wire_out, "wb")
        self._writing = threading.Lock()
        self._limits_changed = threading.Event()
        self._heard = 0

    def set_limits(self, heartbeat_s: float, max_body: int) -> None:
        """Set what the host's START says; the watch begins anew."""
        self.heartbeat_s, self.max_body = heartbeat_s, max_body
        self._limits_changed.set()

    def receive(self) -> Frame:
        """Return the next frame. Raises EndOfStreamError or ProtocolError."""
        return read_frame(self._read, self.max_body)

    def send(self, kind: Kind, header: Dict[str, Any], arrays: Sequence[Array] = ()) -> None:
        """Write one frame; ends the process where nobody reads any more."""
        blocks = encode(Frame(kind, header, tuple(arrays)))
        with self._writing:
            try:
                for block in blocks:
                    self._out.write(block)
                self._out.flush()
            except (BrokenPipeError, ConnectionResetError):
                exits.leave(exits.DONE)

    def watch(self) -> None:
        """End the process when no byte came for `heartbeat_s`; runs in a thread of its own.

        It counts looks at the stream, not seconds, so that a process that was suspended, or busy
        loading a model, is not taken for a host that went silent.
        """
        heard, silent = self._heard, 0
        while silent < _LOOKS:
            if self._limits_changed.wait(self.heartbeat_s / _LOOKS):
                self._limits_changed.clear()
                silent = 0
            else:
                silent = silent + 1 if heard == self._heard else 0
            heard = self._heard
        exits.leave(
            exits.LOST_HEARTBEAT,
            "nothing came from the host for {:g} s; giving up".format(self.heartbeat_s),
        )

    def _read(self, n: int) -> bytes:
        chunk = self._in.read1(min(n, _READ_AT_ONCE))
        self._heard += 1
        return chunk

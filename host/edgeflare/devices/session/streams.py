"""Buffered reads and timed writes on an agent's stream."""

import time
from collections.abc import Sequence

from edgeflare._internal.text import clean_text
from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.transports.base import Stream
from edgeflare_agent.wire import MAGIC, SCAN_LIMIT

_AT_LEAST = 64 << 10


class BufferedReads:
    """Reads large pieces and returns small ones; for one thread.

    `last_read_at` is the monotonic time of the last bytes, `first` the first bytes of all (a
    shell's banner and the handshake).
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._buffer = b""
        self._offset = 0
        self.first = bytearray()
        self.last_read_at = time.monotonic()

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes; ``b""`` at the end."""
        if self._offset == len(self._buffer):
            self._buffer, self._offset = self._stream.read(max(n, _AT_LEAST)), 0
            self.last_read_at = time.monotonic()
            if len(self.first) < SCAN_LIMIT:
                self.first += self._buffer[:SCAN_LIMIT]
        chunk = self._buffer[self._offset : self._offset + n]
        self._offset += len(chunk)
        return chunk

    def first_lines(self, count: int) -> list[str]:
        """Return the first lines that aren't blank, as text."""
        lines = self.first.decode(errors="replace").splitlines()
        return [clean_text(line.strip(), LONGEST_LINE) for line in lines if line.strip()][:count]

    def first_version(self) -> int | None:
        """Return the protocol version of the first frame; None without one."""
        _, magic, rest = self.first.partition(MAGIC)
        return rest[0] if magic and rest else None


_PIECE = 256 << 10
_TOGETHER = 64 << 10
_SMALL = 4 << 10


class TimedWrites:
    """Writes frames; for one thread.

    `last_write_at` is the monotonic time at which the link last accepted a piece, a sign of life of
    a slow link. Small pieces don't count: heartbeats fit in a buffer that nobody reads.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.last_write_at = time.monotonic()

    def write(self, blocks: Sequence[bytes]) -> None:
        """Write blocks, small ones as one, large ones piece by piece.

        Raises UnreachableError where the link is gone.
        """
        size = sum(map(len, blocks))
        if size <= _PIECE:
            self._stream.write([b"".join(blocks)] if size <= _TOGETHER else blocks)
            if size > _SMALL:
                self.last_write_at = time.monotonic()
            return
        for block in blocks:
            view = memoryview(block)
            for begin in range(0, len(view), _PIECE):
                self._stream.write([view[begin : begin + _PIECE]])
                self.last_write_at = time.monotonic()

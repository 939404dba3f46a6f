"""A stream written in pieces, which remembers when it last took something."""

import time
from collections.abc import Sequence

from edgeflare.devices.transport import Stream

_PIECE = 256 << 10
_SMALL = 4 << 10


class WriteOut:
    """Writes frames; for one thread.

    `wrote_at` is the monotonic time at which the link last took a piece, which shows that it lives,
    however slow it is. Small pieces don't count: heartbeats to nobody only fill a buffer.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.wrote_at = time.monotonic()

    def write(self, blocks: Sequence[bytes]) -> None:
        """Write blocks, large ones piece by piece. Raises UnreachableError where the link is gone."""
        size = sum(map(len, blocks))
        if size <= _PIECE:
            self._stream.write(blocks)
            if size > _SMALL:
                self.wrote_at = time.monotonic()
            return
        for block in blocks:
            view = memoryview(block)
            for begin in range(0, len(view), _PIECE):
                self._stream.write([view[begin : begin + _PIECE]])
                self.wrote_at = time.monotonic()

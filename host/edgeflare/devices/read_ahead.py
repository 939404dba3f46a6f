"""A stream read ahead, which remembers when something came and what came first."""

import time

from edgeflare.devices.reported import LONGEST_LINE
from edgeflare.devices.transport import Stream
from edgeflare.text import clean_text
from edgeflare_agent.wire import MAGIC, SCAN_LIMIT

_AT_LEAST = 64 << 10


class ReadAhead:
    """Reads in large pieces and gives out small ones; for one thread.

    `heard_at` is the monotonic time of the last bytes, `first` the first bytes of all (at
    most a shell's banner and the handshake).
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._ahead = b""
        self._at = 0
        self.first = bytearray()
        self.heard_at = time.monotonic()

    def read(self, n: int) -> bytes:
        """Return at least one and at most n bytes; ``b""`` at the end."""
        self.wait(n)
        chunk = self._ahead[self._at : self._at + n]
        self._at += len(chunk)
        return chunk

    def wait(self, n: int = 1) -> None:
        """Wait until there is something to read, or the end; `n` is how many bytes will be wanted."""
        if self._at == len(self._ahead):
            self._ahead, self._at = self._stream.read(max(n, _AT_LEAST)), 0
            self.heard_at = time.monotonic()
            if len(self.first) < SCAN_LIMIT:
                self.first += self._ahead[:SCAN_LIMIT]

    def first_lines(self, count: int) -> list[str]:
        """Return the first lines that aren't blank, as text."""
        lines = self.first.decode(errors="replace").splitlines()
        return [clean_text(line.strip(), LONGEST_LINE) for line in lines if line.strip()][:count]

    def first_version(self) -> int | None:
        """Return the protocol version of the first frame; None where none began."""
        _, magic, rest = self.first.partition(MAGIC)
        return rest[0] if magic and rest else None

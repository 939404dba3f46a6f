"""What becomes of the bytes of one direction of one stream."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from edgeflare.testing.faults import Fault


class Course:
    """Passes bytes on, changed by the faults that change bytes; for one thread at a time.

    `happened` is told of those. The others are yielded between the bytes, for the stream to carry out.
    """

    def __init__(self, faults: Iterable[Fault], happened: Callable[[Fault], None]) -> None:
        self._faults = deque(sorted(faults, key=lambda fault: fault.at))
        self._happened = happened
        self._position = 0
        self._dropping = 0
        self._mask = 0
        self._repeating = 0
        self._copy = b""

    @property
    def clear(self) -> bool:
        """True where all bytes pass unchanged from now on."""
        return not (self._faults or self._dropping or self._mask or self._repeating)

    def passing(self, data: bytes) -> Iterator[bytes | Fault]:
        """Yield what comes of these bytes, the next ones of the direction: pieces, never empty, and faults."""
        begin = self._position
        self._position += len(data)
        done = 0
        twice = False
        while self._faults and self._faults[0].at < self._position:
            fault = self._faults.popleft()
            yield from self._through(data[done : fault.at - begin])
            done = fault.at - begin
            if fault.kind == "drop":
                self._dropping += fault.count
            elif fault.kind == "corrupt":
                self._mask ^= fault.mask
            elif fault.kind == "duplicate" and fault.count == 0:
                twice = True
            elif fault.kind == "duplicate":
                self._repeating, self._copy = fault.count, b""
            else:
                yield fault
                continue
            self._happened(fault)
        yield from self._through(data[done:])
        if twice:
            yield data

    def _through(self, data: bytes) -> Iterator[bytes]:
        lost = min(self._dropping, len(data))
        self._dropping -= lost
        rest = data[lost:]
        if rest and self._mask:
            rest = bytes([rest[0] ^ self._mask]) + rest[1:]
            self._mask = 0
        if rest and self._repeating:
            head, rest = rest[: self._repeating], rest[self._repeating :]
            self._repeating -= len(head)
            self._copy += head
            yield head
            if not self._repeating:
                yield self._copy
        if rest:
            yield rest

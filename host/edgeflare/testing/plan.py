"""Which faults a device's streams meet, one after the other."""

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from edgeflare.devices import Transport
from edgeflare.errors import UsageError
from edgeflare.testing.drawing import draw
from edgeflare.testing.faults import KINDS, Fault, Kind

if TYPE_CHECKING:
    from edgeflare.testing.transport import FaultyTransport


class FaultPlan:
    """A finite schedule of faults for the successive streams of one device; safe to use from threads.

    `faults` faults are drawn from a generator of the plan's own, seeded with `seed`: each of one of
    `kinds`, all equally often, in either direction, and up to `span` bytes after the one before it or
    after the stream's beginning; every fourth within 1,024 bytes, where the handshake is. After a fault
    that breaks a stream (drop, truncate, corrupt, cut, kill) the next ones are for the next stream; a
    delay or a duplicate is followed by more on the same stream, a refusal concerns the next stream.
    So a device breaks down about once in every `span` / 2 bytes of a direction, until the plan is
    used up; then it lets everything through, and a campaign ends.

    To choose `span`, see how many bytes go each way (a request is its samples' bytes and about 100
    more, a reply the output's and about 100 more) and divide by the number of faults that all
    are to be met in that time: for 300 requests of 16 bytes and 8 faults, 4,096. A fault is never met
    where a stream carries too few bytes, or has ended before it; `fired` tells which were. Streams end
    without a fault being seen as such where bytes are dropped: both ends wait until a heartbeat
    is overdue, so choose small heartbeats, or leave ``drop`` out of `kinds`.

    `spare`: bytes of the first stream, in each direction, without a fault, so that a campaign
    gets under way (a device that can't be reached at the start is an error, not a fault to bear). The
    longest delay is `longest_delay_s` seconds.

    The plan's place is the plan's: give the same object to every connection of the device (`wrap`), and
    another plan to every other device. ``repr`` is Python that makes the same plan anew, at its
    beginning; `to_json` and `from_json` do so by way of a file. `faults` are all, in order; `fired`
    those that have happened so far. Raises UsageError for arguments that make no sense.
    """

    def __init__(
        self,
        seed: int,
        *,
        faults: int = 8,
        span: int = 16_384,
        spare: int = 8_192,
        kinds: Sequence[Kind] = KINDS,
        longest_delay_s: float = 0.05,
    ) -> None:
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown or not kinds:
            raise UsageError(f"a plan's kinds of faults are some of {', '.join(KINDS)}")
        if faults < 0 or span < 1 or spare < 0 or longest_delay_s < 0:
            raise UsageError("a plan has 0 faults or more, within a span of at least 1 byte")
        self._begin(draw(seed, faults, span, spare, kinds, longest_delay_s))

    @classmethod
    def of(cls, faults: Iterable[Fault]) -> "FaultPlan":
        """Return the plan that has just these faults."""
        plan = cls.__new__(cls)
        plan._begin(faults)
        return plan

    def _begin(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        self._changing = threading.Lock()
        self._fired: list[Fault] = []
        self._streams = 0
        self._refused = 0

    @property
    def fired(self) -> tuple[Fault, ...]:
        """The faults that have happened, in the order in which they did."""
        with self._changing:
            return tuple(self._fired)

    def wrap(self, transport: Transport) -> "FaultyTransport":
        """Return the transport with this plan's faults, from where the plan stands."""
        from edgeflare.testing.transport import FaultyTransport

        return FaultyTransport(transport, self)

    def refuses(self) -> bool:
        """Return whether an attempt to connect, or to open a stream, is to fail now; counts it."""
        with self._changing:
            mine = [f for f in self.faults if f.kind == "refuse" and f.stream == self._streams]
            if self._refused >= sum(fault.count for fault in mine):
                return False
            if self._refused == 0:
                self._fired += mine
            self._refused += 1
            return True

    def next_stream(self) -> tuple[Fault, ...]:
        """Return the faults of the stream that was just opened, refusals apart; goes on to the next."""
        with self._changing:
            stream = self._streams
            self._streams += 1
            self._refused = 0
        return tuple(f for f in self.faults if f.stream == stream and f.kind != "refuse")

    def happened(self, fault: Fault) -> None:
        """Note that a fault has happened."""
        with self._changing:
            self._fired.append(fault)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the faults as a JSON array of objects."""
        return [fault.to_json() for fault in self.faults]

    @classmethod
    def from_json(cls, data: Sequence[dict[str, Any]]) -> "FaultPlan":
        """Return the plan that `to_json` described, at its beginning. Raises UsageError."""
        return cls.of(Fault.from_json(one) for one in data)

    def __repr__(self) -> str:
        return f"FaultPlan.of([{', '.join(map(repr, self.faults))}])"

    def __str__(self) -> str:
        fired = list(self.fired)
        lines = []
        for fault in self.faults:
            happened = fault in fired
            if happened:
                fired.remove(fault)
            lines.append(f"    {fault!r},  # {'happened' if happened else 'not met'}")
        return "\n".join(["FaultPlan.of([", *lines, "])"])

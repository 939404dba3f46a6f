"""Plans of faults for the successive streams of a device."""

import random
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from edgeflare.devices import Transport
from edgeflare.errors import UsageError

if TYPE_CHECKING:
    from edgeflare_lab.testing.faulty_transport import FaultyTransport


Kind = Literal["delay", "drop", "truncate", "corrupt", "duplicate", "cut", "kill", "refuse"]
"""A kind of fault; `Fault` says what each does."""
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds of faults."""

Direction = Literal["to device", "from device"]
"""A direction of a stream."""
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
"""Both directions of a stream."""

_PARAMETERS: dict[Kind, tuple[str, ...]] = {
    "delay": ("seconds",),
    "drop": ("count",),
    "corrupt": ("mask",),
    "duplicate": ("count",),
    "refuse": ("count",),
}
_PLACED = ("direction", "at")


@dataclass(frozen=True, repr=False)
class Fault:
    """One thing that goes wrong.

    `stream` numbers the streams of one device as they are opened, 0 first, over all its
    connections. The fault comes just before byte `at` (0 is the first) of that stream's
    `direction`:

    - ``delay``: that byte and all after it come `seconds` later.
    - ``drop``: `count` bytes vanish. Both ends may then wait for each other; heartbeats end that.
    - ``truncate``: the direction ends there. Where it leads to the device, the program's stdin is
      closed; where it leads from the device, the program does not notice.
    - ``corrupt``: the byte is changed: exclusive or with `mask`, 1 to 255.
    - ``duplicate``: `count` bytes come twice; 0: all of the piece that was written or read at once,
      which is mostly a whole message.
    - ``cut``: both directions end at once.
    - ``kill``: the program gets SIGKILL on the device; the direction waits for that, and what the
      program has written till then still comes. Its process id is taken from ``"pid": n``, as it
      stands in the agent's handshake, among the first 64 KiB that come from the device; before that
      has come, the fault waits for it.
    - ``refuse``: the first `count` attempts to connect for this stream, or to open it, raise
      UnreachableError; `direction` and `at` mean nothing.

    Raises UsageError for values outside these.
    """

    kind: Kind
    stream: int = 0
    direction: Direction = "from device"
    at: int = 0
    seconds: float = 0.0
    count: int = 1
    mask: int = 1

    def __post_init__(self) -> None:
        least = 0 if self.kind == "duplicate" else 1
        for wrong, words in (
            (self.kind not in KINDS, f"a fault's kind is one of {', '.join(KINDS)}"),
            (self.direction not in DIRECTIONS, f"its direction is {' or '.join(DIRECTIONS)}"),
            (self.stream < 0 or self.at < 0, "its stream and its byte are counted from 0"),
            (not 0 <= self.seconds < float("inf"), "a delay is 0 s or longer"),
            (self.count < least, f"the count of {self.kind} is at least {least}"),
            (not 1 <= self.mask <= 255, "the mask of a corrupted byte is 1 to 255"),
        ):
            if wrong:
                raise UsageError(f"{self!r} is no fault: {words}")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object with the fields that mean something for this kind."""
        placed = () if self.kind == "refuse" else _PLACED
        names = ("kind", "stream", *placed, *_PARAMETERS.get(self.kind, ()))
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Fault":
        """Return the fault that `to_json` described. Raises UsageError for anything else."""
        try:
            return cls(**data)
        except TypeError as error:
            raise UsageError(f"{data!r} describes no fault: {error}") from error

    def __repr__(self) -> str:
        kind, *rest = self.to_json().items()
        return f"Fault({', '.join([repr(kind[1]), *(f'{k}={v!r}' for k, v in rest)])})"


class FaultInjector:
    """Applies faults that change bytes and calls `on_fault` with them, in one thread at a time.

    Other faults are yielded between the bytes, for the stream to execute.
    """

    def __init__(self, faults: Iterable[Fault], on_fault: Callable[[Fault], None]) -> None:
        self._faults = deque(sorted(faults, key=lambda fault: fault.at))
        self._happened = on_fault
        self._position = 0
        self._bytes_to_drop = 0
        self._mask = 0
        self._bytes_to_repeat = 0
        self._copy = b""

    @property
    def clear(self) -> bool:
        """True where all bytes pass unchanged from now on."""
        return not (self._faults or self._bytes_to_drop or self._mask or self._bytes_to_repeat)

    def apply(self, data: bytes) -> Iterator[bytes | Fault]:
        """Yield what becomes of the next bytes of a direction: pieces, never empty, and faults."""
        begin = self._position
        self._position += len(data)
        done = 0
        twice = False
        while self._faults and self._faults[0].at < self._position:
            fault = self._faults.popleft()
            yield from self._transform(data[done : fault.at - begin])
            done = fault.at - begin
            if fault.kind == "drop":
                self._bytes_to_drop += fault.count
            elif fault.kind == "corrupt":
                self._mask ^= fault.mask
            elif fault.kind == "duplicate" and fault.count == 0:
                twice = True
            elif fault.kind == "duplicate":
                self._bytes_to_repeat, self._copy = fault.count, b""
            else:
                yield fault
                continue
            self._happened(fault)
        yield from self._transform(data[done:])
        if twice:
            yield data

    def _transform(self, data: bytes) -> Iterator[bytes]:
        lost = min(self._bytes_to_drop, len(data))
        self._bytes_to_drop -= lost
        rest = data[lost:]
        if rest and self._mask:
            rest = bytes([rest[0] ^ self._mask]) + rest[1:]
            self._mask = 0
        if rest and self._bytes_to_repeat:
            head, rest = rest[: self._bytes_to_repeat], rest[self._bytes_to_repeat :]
            self._bytes_to_repeat -= len(head)
            self._copy += head
            yield head
            if not self._bytes_to_repeat:
                yield self._copy
        if rest:
            yield rest


_STREAM_SURVIVES: tuple[Kind, ...] = ("delay", "duplicate", "refuse")
_EARLY = 1024
_ONE_EARLY_IN = 4
_MOST_BYTES = 64
_MOST_REFUSALS = 3


def draw(
    seed: int, count: int, span: int, spare: int, kinds: Sequence[Kind], longest_delay_s: float
) -> Iterator[Fault]:
    """Yield `count` faults, stream by stream, the same on every machine; see `FaultPlan`."""
    rng = random.Random(seed)  # noqa: S311  only its repeatability matters
    stream = 0
    reached: dict[Direction, int] = dict.fromkeys(DIRECTIONS, spare)
    for _ in range(count):
        kind = kinds[rng.randrange(len(kinds))]
        direction = DIRECTIONS[rng.randrange(len(DIRECTIONS))]
        gap = rng.randrange(min(span, _EARLY) if rng.randrange(_ONE_EARLY_IN) == 0 else span)
        if kind == "refuse":
            # The next stream's: this one may be open, and the first is to come about.
            yield Fault(kind, stream + 1, count=1 + rng.randrange(_MOST_REFUSALS))
            continue
        reached[direction] += gap
        details = _draw_details(rng, kind, longest_delay_s)
        yield Fault(kind, stream, direction, reached[direction], **details)
        if kind not in _STREAM_SURVIVES:
            stream += 1
            reached = dict.fromkeys(DIRECTIONS, 0)


def _draw_details(rng: random.Random, kind: Kind, longest_delay_s: float) -> dict[str, Any]:
    """Draw the parameters of a fault of this kind.

    Half of the duplicates are whole pieces, half of the corruptions a single bit.
    """
    either = rng.randrange(2) == 0
    if kind == "delay":
        return {"seconds": round(rng.random() * longest_delay_s, 4)}
    if kind == "corrupt":
        return {"mask": 1 << rng.randrange(8) if either else 1 + rng.randrange(255)}
    if kind in ("drop", "duplicate"):
        return {"count": 0 if kind == "duplicate" and either else 1 + rng.randrange(_MOST_BYTES)}
    return {}


class FaultPlan:
    """A finite schedule of faults for the successive streams of one device; thread-safe.

    `faults` faults are drawn from a generator seeded with `seed`: each of one of `kinds`, all
    equally often, in either direction, up to `span` bytes after the one before it or after the
    stream's start; every fourth within 1,024 bytes, where the handshake is. After a fault that
    breaks a stream (drop, truncate, corrupt, cut, kill) the next ones are for the next stream;
    after a delay or a duplicate for the same one; a refusal is for the next. So a device fails
    about once every `span` / 2 bytes of a direction, until the plan is used up.

    To choose `span`, divide the bytes of a direction (a request or reply is its arrays' bytes and
    about 100 more) by the number of faults: for 300 requests of 16 bytes and 8 faults, 4,096. A
    fault is not met where a stream carries too few bytes or ends before it; see `fired`. After
    ``drop`` both ends wait until a heartbeat is overdue: choose short heartbeats, or leave it out
    of `kinds`.

    `spare`: bytes of the first stream, in each direction, without a fault, so that a campaign can
    start (a device that can't be reached at the start is an error). The longest delay is
    `longest_delay_s` seconds.

    The plan has state: use the same object for every connection of a device (`wrap`), and another
    for each other device. ``repr``, or `to_json` and `from_json`, make the same plan again, at its
    start. `faults` are all, in order; `fired` those that have happened. Raises UsageError for
    invalid arguments.
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
        from edgeflare_lab.testing.faulty_transport import FaultyTransport

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
        """Return the faults of the stream just opened, without refusals; go on to the next."""
        with self._changing:
            stream = self._streams
            self._streams += 1
            self._refused = 0
        return tuple(f for f in self.faults if f.stream == stream and f.kind != "refuse")

    def on_fault(self, fault: Fault) -> None:
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
            met = fault in fired
            if met:
                fired.remove(fault)
            lines.append(f"    {fault!r},  # {'happened' if met else 'not met'}")
        return "\n".join(["FaultPlan.of([", *lines, "])"])

"""One fault of a link: what goes wrong, and where in the bytes of which stream."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from edgeflare.errors import UsageError

Kind = Literal["delay", "drop", "truncate", "corrupt", "duplicate", "cut", "kill", "refuse"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""All kinds of faults; `Fault` says what each does."""

Direction = Literal["to device", "from device"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

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

    `stream` numbers the streams of one device as they are opened, 0 first, over all its connections.
    The fault comes just before byte `at` (0 is the first) of that stream's `direction`:

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

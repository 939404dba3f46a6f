"""Faults drawn from a seed."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from edgeflare.testing.faults import DIRECTIONS, Direction, Fault, Kind

_GO_ON: tuple[Kind, ...] = ("delay", "duplicate", "refuse")
_EARLY = 1024
_ONE_EARLY_IN = 4
_MOST_BYTES = 64
_MOST_REFUSALS = 3


def draw(
    seed: int, count: int, span: int, spare: int, kinds: Sequence[Kind], longest_delay_s: float
) -> Iterator[Fault]:
    """Yield `count` faults, stream by stream; see `FaultPlan`. The same on every Python and machine."""
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
        details = _details(rng, kind, longest_delay_s)
        yield Fault(kind, stream, direction, reached[direction], **details)
        if kind not in _GO_ON:
            stream += 1
            reached = dict.fromkeys(DIRECTIONS, 0)


def _details(rng: random.Random, kind: Kind, longest_delay_s: float) -> dict[str, Any]:
    """Draw what else there is to a fault of this kind.

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

"""The events that a running campaign reports."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from edgeflare.devices import DeviceStatus


class Stage(NamedTuple):
    """A stage begins: "device", "seeds", "seed queries", "search", "replay" or "control".

    `total` is its number of steps where known.
    """

    name: str
    detail: str
    total: int | None = None


class Step(NamedTuple):
    """`done` of the stage's total; in "search" also the outcome counts so far.

    `queries` and `host_queries` (inputs given to the original alone) are those of all searches, also of the
    `under_way` ones, of which `in_hand` have a triggering input already.
    """

    done: int
    found: int = 0
    searched: int = 0
    queries: int = 0
    host_queries: int = 0
    under_way: int = 0
    in_hand: int = 0


class Notice(NamedTuple):
    """Something the user should know.

    `resume` is the folder of a campaign that has stopped, from which `edgeflare resume` goes on; None where the
    campaign goes on by itself.
    """

    text: str
    resume: Path | None = None


class Fleet(NamedTuple):
    """What every device of the campaign does right now; reported about once a second."""

    devices: tuple[DeviceStatus, ...]


Event: TypeAlias = Stage | Step | Notice | Fleet
Progress: TypeAlias = Callable[[Event], None]


def silent(event: Event) -> None:
    """Ignore it."""
    del event

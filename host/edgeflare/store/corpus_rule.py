"""Which triggering inputs of one seed and one pair of classes a corpus keeps."""

from collections.abc import Sequence
from typing import Protocol


class Rated(Protocol):
    """What the rule asks about a triggering input."""

    @property
    def l2(self) -> float:
        """Its distance to the seed."""

    @property
    def severity(self) -> float | None:
        """The smaller of both models' margins on it; None where neither is known."""


def kept(group: Sequence[Rated], at_most: int) -> list[int]:
    """Return the indices of those to be kept, in order, of triggering inputs in the order they came.

    The first stays, then the nearest to the seed, then the severest; what room is left is for the
    older ones. Of two equally near or severe ones the older counts as the nearer or severer.
    """
    if len(group) <= at_most:
        return list(range(len(group)))
    every = range(len(group))
    nearest = min(every, key=lambda one: (group[one].l2, one))
    severest = max(every, key=lambda one: (group[one].severity or 0.0, -one))
    wanted = dict.fromkeys((0, nearest, severest, *every))
    return sorted(list(wanted)[:at_most])

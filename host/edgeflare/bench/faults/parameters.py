"""What a planted fault is made from: how strong it is, and where it sits."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Inapplicable(Exception):  # noqa: N818 - no error: the suite leaves this fault out
    """A model has nothing that this kind of fault could befall; says what is missing."""


class Parameters(NamedTuple):
    """`strength` is above 0, up to 1; `layer`, `channel` and `place` lie in 0 to 1.

    The last three choose one of as many layers, channels or places as the model has.
    """

    strength: float
    layer: float
    channel: float
    place: float


def chosen(items: Sequence[T], share: float, what: str) -> T:
    """Return the item at a share (0 to 1) of a sequence. Raises Inapplicable where it is empty."""
    if not items:
        raise Inapplicable(f"the model has no {what}")
    return items[min(int(share * len(items)), len(items) - 1)]


def whole(share: float, size: int) -> int:
    """Return a share of a size, rounded, at least 1."""
    return max(1, round(share * size))

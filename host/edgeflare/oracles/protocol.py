"""What an oracle is."""

from typing import Protocol

from edgeflare.types import Decision, Output


class Oracle(Protocol):
    """Decides whether two models' answers to one sample are a deviation.

    `floor`: no answer with a margin (`edgeflare.oracles.margin`) below it is part of a deviation, so that the
    deployed model need not be asked where the original's is. 0: there is none.
    """

    @property
    def floor(self) -> float: ...  # noqa: D102

    def decide(self, original: Output, deployed: Output) -> Decision:
        """Compare two answers of one kind: float64 [classes] each, or a transcript each."""
        ...

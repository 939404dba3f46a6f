"""The top-1 label oracle (DFLARE, section 3.1)."""

from typing import Protocol

import numpy as np

from edgeflare.oracles.margin import is_below
from edgeflare.types import Decision, Scores


class Oracle(Protocol):
    """Decides whether two models' answers to one sample are a deviation.

    `floor`: no answer with a margin (top-1 minus top-2 probability) below it is part of a deviation, so
    that the deployed model need not be asked where the original's is. 0: there is none.
    """

    @property
    def floor(self) -> float: ...  # noqa: D102

    def decide(self, original: Scores, deployed: Scores) -> Decision:
        """Compare two answers, float64 [classes] each."""
        ...


class LabelOracle:
    """A deviation is another top-1 label (DFLARE, section 3.1: l_f(x) != l_g(x)).

    Differences: a model whose highest probability is shared by two classes has no top-1 label; such
    an answer is a `TIE`, never a deviation decided by index. NaN or infinity in either answer is
    `NONFINITE`. The paper speaks of neither. Nor does it know a floor: with one above 0, two different
    labels are `BELOW_FLOOR` where either model's margin is below it. A difference that small is what
    two builds of one arithmetic already show. Two models that agree do so whatever their margins.
    """

    def __init__(self, floor: float = 0.0) -> None:
        self._floor = floor

    @property
    def floor(self) -> float:
        """The smallest margin of either model, in [0, 1), that makes a deviation."""
        return self._floor

    def decide(self, original: Scores, deployed: Scores) -> Decision:
        """Compare two answers, float64 [classes] each."""
        if not (np.isfinite(original).all() and np.isfinite(deployed).all()):
            return Decision.NONFINITE
        if _top_is_shared(original) or _top_is_shared(deployed):
            return Decision.TIE
        if int(original.argmax()) == int(deployed.argmax()):
            return Decision.AGREE
        if is_below(self._floor, original) or is_below(self._floor, deployed):
            return Decision.BELOW_FLOOR
        return Decision.DEVIATION


def _top_is_shared(scores: Scores) -> bool:
    return int(np.count_nonzero(scores == scores.max())) > 1

"""The top-1 label oracle (DFLARE, section 3.1)."""

import numpy as np

from edgeflare.answers import class_scores, is_finite
from edgeflare.oracles.margin import is_below
from edgeflare.types import Decision, Output, Scores


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

    def decide(self, original: Output, deployed: Output) -> Decision:
        """Compare two answers, float64 [classes] each. Raises TypeError for a transcript."""
        ours, theirs = class_scores(original), class_scores(deployed)
        if not (is_finite(ours) and is_finite(theirs)):
            return Decision.NONFINITE
        if _top_is_shared(ours) or _top_is_shared(theirs):
            return Decision.TIE
        if int(ours.argmax()) == int(theirs.argmax()):
            return Decision.AGREE
        if is_below(self._floor, ours) or is_below(self._floor, theirs):
            return Decision.BELOW_FLOOR
        return Decision.DEVIATION


def _top_is_shared(scores: Scores) -> bool:
    return int(np.count_nonzero(scores == scores.max())) > 1

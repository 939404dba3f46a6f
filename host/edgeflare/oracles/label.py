"""The top-1 label oracle (DFLARE, section 3.1)."""

from typing import Protocol

import numpy as np

from edgeflare.types import Decision, Scores


class Oracle(Protocol):
    """Decides whether two models' answers to one sample are a deviation."""

    def decide(self, original: Scores, deployed: Scores) -> Decision:
        """Compare two answers, float64 [classes] each."""
        ...


class LabelOracle:
    """A deviation is another top-1 label (DFLARE, section 3.1: l_f(x) != l_g(x)).

    Differences: a model whose highest probability is shared by two classes has no top-1 label; such
    an answer is a `TIE`, never a deviation decided by index. NaN or infinity in either answer is
    `NONFINITE`. The paper speaks of neither.
    """

    def decide(self, original: Scores, deployed: Scores) -> Decision:
        """Compare two answers, float64 [classes] each."""
        if not (np.isfinite(original).all() and np.isfinite(deployed).all()):
            return Decision.NONFINITE
        if _top_is_shared(original) or _top_is_shared(deployed):
            return Decision.TIE
        same = int(original.argmax()) == int(deployed.argmax())
        return Decision.AGREE if same else Decision.DEVIATION


def _top_is_shared(scores: Scores) -> bool:
    return int(np.count_nonzero(scores == scores.max())) > 1

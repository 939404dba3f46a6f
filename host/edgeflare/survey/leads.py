"""Where a deployed model that hasn't deviated may: inputs on which its lead is expected to be least.

The *lead* of a deployed model is its margin for the original's decision; by its *drop* that lies
below the original's margin. Where the original is sure but little, a drop changes the decision.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers.metrics import numbers
from edgeflare.answers.oracles import margin
from edgeflare.types import Output

_NEAREST = 3
_LARGEST_DROPS, _LEAST_LEADS = 8, 6
_SLIGHT = 0.02
"""Drop from which on an input with a small lead is worth varying."""


class Leads:
    """What is known of both models' margins, on N inputs that were answered.

    `originals`: the original's answers, all with scores of the same classes; `leads` float64 [N]:
    of the deployed model, 0 to 1. What is returned is the same on every CPU.
    """

    def __init__(self, originals: Sequence[Output], leads: Sequence[float]) -> None:
        self._scores = np.array([numbers(one) for one in originals], np.float64)
        margins = np.array([margin(one) or 0.0 for one in originals], np.float64)
        self._leads = np.array(leads, np.float64)
        self._drops = np.maximum(margins - self._leads, 0.0)

    @property
    def least(self) -> float:
        """The least lead; 1 where nothing is known."""
        return float(self._leads.min(initial=1.0))

    @property
    def largest_drop(self) -> float:
        """The largest drop; 0 where nothing is known."""
        return float(self._drops.max(initial=0.0))

    def bases(self) -> list[int]:
        """Return the inputs to make others from: those of the largest drops, and least leads."""
        drops = np.argsort(-self._drops, kind="stable")[:_LARGEST_DROPS]
        leads = np.argsort(self._leads, kind="stable")
        least = leads[self._drops[leads] > _SLIGHT][:_LEAST_LEADS]
        return [int(one) for one in (*drops[self._drops[drops] > 0], *least)]

    def expected(self, original: Output | None) -> float:
        """Return the lead to expect where the original answers this; 1 where that is not known.

        The original's margin, less the mean drop where its answers are nearest to this one.
        """
        if original is None:
            return 1.0
        distances: NDArray[np.float64] = np.abs(self._scores - numbers(original)).sum(axis=1)
        nearest = np.argsort(distances, kind="stable")[:_NEAREST]
        return (margin(original) or 0.0) - float(self._drops[nearest].sum()) / len(nearest)

"""The fitness function of DFLARE (section 3.3)."""

import numpy as np
from numpy.typing import NDArray

from edgeflare.types import Scores


class ObservedStates:
    """The pairs (f(x), g(x)) seen so far in one chain, and whether a new pair is close to one.

    `threshold` is a squared L2 distance over the two probability vectors laid end to end; at most 4.

    Differences: the paper names approximate nearest neighbours (FLANN); this search is exact. As in
    the authors' code, a pair within the threshold of a kept one is not kept itself, so that memory
    is bounded by how many states lie apart, not by the number of queries.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._kept: NDArray[np.float64] = np.empty((0, 0))

    def observe(self, original: Scores, deployed: Scores) -> bool:
        """Return whether this pair has not been observed before; it has been from now on."""
        state = np.concatenate((original, deployed))[np.newaxis, :]
        if self._kept.size:
            nearest = np.square(self._kept - state).sum(axis=1).min()
            if nearest <= self._threshold:
                return False
            self._kept = np.concatenate((self._kept, state))
        else:
            self._kept = state
        return True


def distance(original: Scores, deployed: Scores) -> float:
    """Return D(x): the difference of the two top-1 probabilities, in [0, 1) (section 3.3.2)."""
    return abs(float(original.max()) - float(deployed.max()))


class Fitness:
    """H(x) = D(x) / delta + O(x), section 3.3.2.

    O is 1 for a state that has not been observed in this chain and 0 otherwise; with `threshold` None
    no state is traced and O is always 0 (DFLARE-D, section 5.3.1).
    """

    def __init__(self, delta: float, threshold: float | None) -> None:
        self._delta = delta
        self._states = None if threshold is None else ObservedStates(threshold)

    def of_new(self, original: Scores, deployed: Scores) -> float:
        """Return H of an input just generated; its state has been observed from now on."""
        here = self.of_observed(original, deployed)
        if self._states is None:
            return here
        return here + float(self._states.observe(original, deployed))

    def of_observed(self, original: Scores, deployed: Scores) -> float:
        """Return H of an input whose state has been observed: O is 0."""
        return distance(original, deployed) / self._delta

"""The fitness function of DFLARE (section 3.3), on scores and on transcripts (section 6.1).

Differences: section 6.1 says that sentences are compared word by word, and not what becomes of D and O, which section 3.3
defines on probability vectors. Here a transcript is a row of decisions, one a word, each with the probability of the word
that was chosen, which stands where a classifier's top-1 probability does. On one word that both models hear, D is
the paper's.
"""

import numpy as np
from numpy.typing import NDArray

from edgeflare.transcripts import Word, aligned, words
from edgeflare.types import Output, Transcript


class ObservedStates:
    """The pairs (f(x), g(x)) seen so far in one chain, and whether a new pair is close to one.

    `threshold` is a squared L2 distance over the two answers laid end to end: of scores the two probability vectors, at
    most 4; of transcripts the probabilities of the words of each, in their order, the shorter padded with zeros.

    Differences: the paper names approximate nearest neighbours (FLANN); this search is exact. As in
    the authors' code, a pair within the threshold of a kept one is not kept itself, so that memory
    is bounded by how many states lie apart, not by the number of queries. Of transcripts (section 6.1) it is told
    how sure the models are word by word, not which words they are.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._kept: NDArray[np.float64] = np.empty((0, 2, 0))

    def observe(self, original: Output, deployed: Output) -> bool:
        """Return whether this pair has not been observed before; it has been from now on."""
        rows = [_probabilities(answer) for answer in (original, deployed)]
        width = max(self._kept.shape[2], *(row.size for row in rows))
        state = np.stack([_padded(row, width) for row in rows])[np.newaxis]
        self._kept = _padded(self._kept, width)
        if len(self._kept):
            nearest = np.square(self._kept - state).reshape(len(self._kept), -1).sum(axis=1).min()
            if nearest <= self._threshold:
                return False
        self._kept = np.concatenate((self._kept, state))
        return True


def distance(original: Output, deployed: Output) -> float:
    """Return D(x), from 0 to 1: the difference of the two top-1 probabilities (section 3.3.2).

    Of transcripts (section 6.1) it is the largest difference, over the words side by side, of how probable the two
    models think the words that they hear there; a word that only one hears has the probability 0 for the other. No
    words at all are no difference. Raises UsageError where RapidFuzz is missing.
    """
    if isinstance(original, Transcript) and isinstance(deployed, Transcript):
        pairs = aligned(words(original), words(deployed))
        return max(
            (abs(_probability(one) - _probability(other)) for one, other in pairs), default=0.0
        )
    tops = [float(_probabilities(answer).max()) for answer in (original, deployed)]
    return abs(tops[0] - tops[1])


class Fitness:
    """H(x) = D(x) / delta + O(x), section 3.3.2.

    O is 1 for a state that has not been observed in this chain and 0 otherwise; with `threshold` None
    no state is traced and O is always 0 (DFLARE-D, section 5.3.1).
    """

    def __init__(self, delta: float, threshold: float | None) -> None:
        self._delta = delta
        self._states = None if threshold is None else ObservedStates(threshold)

    def of_new(self, original: Output, deployed: Output) -> float:
        """Return H of an input just generated; its state has been observed from now on."""
        here = self.of_observed(original, deployed)
        if self._states is None:
            return here
        return here + float(self._states.observe(original, deployed))

    def of_observed(self, original: Output, deployed: Output) -> float:
        """Return H of an input whose state has been observed: O is 0."""
        return distance(original, deployed) / self._delta


def _probabilities(answer: Output) -> NDArray[np.float64]:
    if isinstance(answer, Transcript):
        return np.array([word.probability for word in words(answer)], np.float64)
    return answer


def _probability(word: Word | None) -> float:
    return 0.0 if word is None else word.probability


def _padded(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the values with zeros at the end of the last axis, up to this width."""
    missing = width - values.shape[-1]
    return np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]) if missing else values

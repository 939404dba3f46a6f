"""The fitness function of DFLARE (section 3.3), on scores and on transcripts (section 6.1).

Differences: section 6.1 says that sentences are compared word by word, but not what D and O are
then, which section 3.3 defines on probability vectors. Here a transcript is a sequence of
decisions, one for each word, and the probability of the chosen word takes the place of a
classifier's top-1 probability. For one word that both models recognise, D is the paper's.
"""

import numpy as np
from numpy.typing import NDArray

from edgeflare.answers import common_kind, kind_of_answer
from edgeflare.types import Output

_FIRST_STATES = 16


class ObservedStates:
    """The pairs (f(x), g(x)) observed so far in one search.

    `threshold` is a squared L2 distance between pairs, each the concatenation of two answers: of
    scores the two probability vectors, at most 4; of transcripts the probabilities of the words of
    each, in their order, the shorter padded with zeros; of detections the scores, the best first,
    padded alike; of values the numbers.

    Differences: the paper names approximate nearest neighbours (FLANN); here they are exact. As in
    the authors' code, a pair within the threshold of a stored one is not stored itself, so that
    memory is bounded by how many states lie apart, not by the number of queries. Of transcripts
    (section 6.1) only the probabilities of the words are compared, not the words.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._count = 0
        self._stored: NDArray[np.float64] = np.empty((_FIRST_STATES, 2, 0))
        self._difference = self._stored

    def observe(self, original: Output, deployed: Output) -> bool:
        """Add a pair; return whether none within the threshold was observed before."""
        rows = [_probabilities(answer) for answer in (original, deployed)]
        self._make_room(max(rows[0].size, rows[1].size))
        state = self._stored[self._count]
        for place, row in enumerate(rows):
            state[place, : row.size] = row
            state[place, row.size :] = 0.0
        self._count += 1
        if self._count > 1:
            before = self._count - 1
            difference = self._difference[:before]
            np.subtract(self._stored[:before], state, out=difference)
            np.square(difference, out=difference)
            apart = np.add.reduce(difference.reshape(before, -1), axis=1)
            if np.minimum.reduce(apart) <= self._threshold:
                self._count -= 1
                return False
        return True

    def _make_room(self, width: int) -> None:
        """Have room for one more state, each answer of it with `width` values at most."""
        size, _, wide = self._stored.shape
        if self._count < size and width <= wide:
            return
        stored = np.zeros((2 * size if self._count == size else size, 2, max(width, wide)))
        stored[: self._count, :, :wide] = self._stored[: self._count]
        self._stored, self._difference = stored, np.empty_like(stored)


def top1_difference(original: Output, deployed: Output) -> float:
    """Return D(x), from 0 to 1: the difference of the two top-1 probabilities (section 3.3.2).

    Of transcripts (section 6.1) it is the largest difference, over the aligned words, of the two
    models' probabilities of the words that they recognise there; a word that only one recognises
    has the probability 0 for the other. 0 without any word. Of detections and values it is their
    `edgeflare.metrics.disagreement`. Raises UsageError where RapidFuzz is missing.
    """
    return common_kind(original, deployed).top_difference(original, deployed)


class Fitness:
    """H(x) = D(x) / delta + O(x), section 3.3.2.

    O is 1 for a state that has not been observed in this search and 0 otherwise; with `threshold`
    None no states are recorded and O is always 0 (DFLARE-D, section 5.3.1).
    """

    def __init__(self, delta: float, threshold: float | None) -> None:
        self._delta = delta
        self._states = None if threshold is None else ObservedStates(threshold)

    def of_new(self, original: Output, deployed: Output) -> float:
        """Return H of a new input, and add its state to those observed."""
        here = self.of_observed(original, deployed)
        if self._states is None:
            return here
        return here + float(self._states.observe(original, deployed))

    def of_observed(self, original: Output, deployed: Output) -> float:
        """Return H of an input whose state was observed before: O is 0."""
        return top1_difference(original, deployed) / self._delta


def _probabilities(answer: Output) -> NDArray[np.float64]:
    return kind_of_answer(answer).state(answer)

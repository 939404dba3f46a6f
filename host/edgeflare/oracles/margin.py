"""How sure a model is of its answer."""

from typing import NamedTuple

import numpy as np

from edgeflare.answers import is_finite
from edgeflare.transcripts import Word, aligned, words
from edgeflare.types import Output, Scores, Transcript


class Margins(NamedTuple):
    """How sure each model is of its answer, 0 to 1; None where that can't be said."""

    original: float | None
    deployed: float | None

    @property
    def smaller(self) -> float | None:
        """The smaller of both; that of one alone where the other has none."""
        return min((one for one in self if one is not None), default=None)


def margin(output: Output) -> float | None:
    """Return how far the answer is ahead of the next best one, 0 to 1.

    Of scores, float [classes]: top-1 minus top-2. Of a transcript: the smallest margin of its words. None for
    less than two classes, no word, NaN or infinity.
    """
    if not is_finite(output):
        return None
    if isinstance(output, Transcript):
        return _smallest(words(output))
    return _of_scores(output)


def margins(original: Output, deployed: Output) -> Margins:
    """Return how sure both models are of what their answers to one sample say.

    Of scores that is each one's `margin`. Of transcripts that differ it is the smallest margin of the words that
    differ: None for a model that has no word there, where the other one has. Raises UsageError where RapidFuzz is
    missing.
    """
    if (
        not isinstance(original, Transcript)
        or not isinstance(deployed, Transcript)
        or not (is_finite(original) and is_finite(deployed))
    ):
        return Margins(margin(original), margin(deployed))
    ours, theirs = words(original), words(deployed)
    if [word.text for word in ours] == [word.text for word in theirs]:
        return Margins(_smallest(ours), _smallest(theirs))
    differing = [
        (one, other)
        for one, other in aligned(ours, theirs)
        if one is None or other is None or one.text != other.text
    ]
    return Margins(
        _smallest([one for one, _ in differing if one is not None]),
        _smallest([other for _, other in differing if other is not None]),
    )


def is_below(floor: float, output: Output) -> bool:
    """Whether the `margin` of this answer is below the floor; one that has none isn't."""
    sure = margin(output)
    return sure is not None and sure < floor


def _of_scores(scores: Scores) -> float | None:
    if scores.size < 2:
        return None
    second, first = np.partition(scores, -2)[-2:]
    return float(first - second)


def _smallest(some: "tuple[Word, ...] | list[Word]") -> float | None:
    return min((word.margin for word in some), default=None)

"""Properties of any model's answer: scores, a transcript, detections or values."""

from typing import TypeGuard

import numpy as np

from edgeflare.answers import SCORES, common_kind, kind_of_answer
from edgeflare.answers.parts import ROUNDING, Name
from edgeflare.types import Output, Scores


def is_scores(output: Output | None) -> TypeGuard[Scores]:
    """Whether an answer has a score for each class, and so a top-1 class."""
    return isinstance(output, np.ndarray)


def is_finite(output: Output) -> bool:
    """Whether no number of an answer is NaN or infinite."""
    return kind_of_answer(output).is_finite(output)


def numbers(output: Output) -> Scores:
    """Return all numbers of an answer, float64.

    The scores of classes, [classes]; [tokens, 2] of a transcript; of detections their scores and
    boxes, [n, 5]; of values their array.
    """
    return kind_of_answer(output).numbers(output)


def top_label(output: Output | None) -> int | None:
    """Return the top-1 class; None for no answer, NaN, and an answer of no class scores."""
    return None if output is None else kind_of_answer(output).top_label(output)


def text_of(output: Output | None) -> str | None:
    """Return the text of a transcript, or the classes that are detected with their numbers.

    None for scores, values and no answer.
    """
    return None if output is None else kind_of_answer(output).text(output)


def is_same(one: Output, other: Output) -> bool:
    """Whether two answers are the same to the last bit; NaN is the same as NaN."""
    kind = kind_of_answer(one)
    return kind.accepts(other) and kind.is_same(one, other)


_NEGLIGIBLE = 1e-5
"""A number so small, as a share of the answer's largest one (of scores, of 1), is not compared."""


def is_same_answer(one: Output, other: Output, *, is_clear: bool = True) -> bool:
    """Whether one model's two answers to one input are the same: the decision, and the numbers.

    A device's answers are equal to the last bit as a rule. Where sums are added in another order
    (several threads, a GPU), the last bits differ: each number may do so by 5 % of its size, which
    is what five roundings in the last place of a 16-bit logit from 8 to 16 come to. A drawn dropout
    changes small probabilities by more, also where the largest one is near 1. Two answers that are
    not finite are the same. `is_clear` False: so near a boundary that the decision may differ, too,
    where the numbers are the same, or there is a box more or less.
    """
    if is_same(one, other):
        return True
    if not (is_finite(one) and is_finite(other)):
        return is_finite(one) == is_finite(other)
    ours, theirs = numbers(one), numbers(other)
    if ours.shape != theirs.shape:  # a candidate box that rounding lets through is no other answer
        if not is_clear:
            return True
        return decides_equally(one, other) and disagreement(one, other) <= ROUNDING
    by_rounding = kind_of_answer(one).rounds_to(one, other)
    if by_rounding is not None:
        return by_rounding
    if is_clear and not decides_equally(one, other):
        return False
    size = np.maximum(np.abs(ours), np.abs(theirs))
    least = _NEGLIGIBLE * max(1.0, float(size.max(initial=0.0)))
    return bool((np.abs(ours - theirs) <= np.maximum(ROUNDING * size, least)).all())


def decides_equally(one: Output, other: Output) -> bool:
    """Whether two answers have the same top-1 class, words or objects; of values, are the same."""
    kind = kind_of_answer(one)
    return kind.accepts(other) and kind.agree(one, other)


def class_scores(output: Output) -> Scores:
    """Return class probabilities, float64 [classes]. Raises TypeError for any other answer."""
    if not is_scores(output):
        raise TypeError(f"{type(output).__name__} has no class scores")
    return output


def disagreement(original: Output, deployed: Output) -> float:
    """Return the distance of two answers of one kind, 0 to 1; of values it may be larger.

    NaN where a score is NaN, or where a value is not finite.

    Scores, float [classes]: their total variation distance. Transcripts: the number of differing
    words over that of the longer one. Detections: the largest difference of the scores of an
    object, as `edgeflare.detections.score_distance` has it. Values: `edgeflare.values.distance`.
    Raises TypeError for two kinds, UsageError where RapidFuzz is missing.
    """
    return common_kind(original, deployed).distance(original, deployed)


def total_variation(original: Scores, deployed: Scores) -> float:
    """Return the total variation distance of two answers, float [classes], from 0 to 1.

    Rounding of a sum does not lead beyond 1; NaN of an answer that has it.
    """
    return SCORES.distance(original, deployed)


def difference_text(
    original: Output | None, deployed: Output | None, name: Name = str
) -> str | None:
    """Return how two answers differ: ``lost class 3 (0.62 against 0.47)``, or their distance.

    Numbers are the original's against the deployed model's. Of detections of which one is NaN or
    infinite it says that alone. None of scores, transcripts, and where an answer is missing.
    """
    if original is None or deployed is None:
        return None
    return common_kind(original, deployed).difference(original, deployed, name)

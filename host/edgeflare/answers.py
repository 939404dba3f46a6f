"""Properties of any model's answer, scores or a transcript."""

import numpy as np

from edgeflare.transcripts import spoken
from edgeflare.types import Output, Scores, Transcript


def is_finite(output: Output) -> bool:
    """Whether no score is NaN or infinite."""
    return bool(np.isfinite(numbers(output)).all())


def numbers(output: Output) -> Scores:
    """Return all scores of an answer: float64 [classes], or [tokens, 2] of a transcript."""
    return output.scores if isinstance(output, Transcript) else output


def top_label(output: Output | None) -> int | None:
    """Return the top-1 class; None for no answer, NaN, or a transcript, which has none."""
    if output is None or isinstance(output, Transcript) or np.isnan(output).any():
        return None
    return int(output.argmax())


def text_of(output: Output | None) -> str | None:
    """Return the text of a transcript; None for scores and no answer."""
    return output.text if isinstance(output, Transcript) else None


def is_same(one: Output, other: Output) -> bool:
    """Whether two answers are the same to the last bit; NaN is the same as NaN."""
    if isinstance(one, Transcript) != isinstance(other, Transcript):
        return False
    if isinstance(one, Transcript) and isinstance(other, Transcript) and one.pieces != other.pieces:
        return False
    return bool(np.array_equal(numbers(one), numbers(other), equal_nan=True))


def says_alike(one: Output, other: Output) -> bool:
    """Whether two answers have the same top-1 class, or the same words."""
    if isinstance(one, Transcript) and isinstance(other, Transcript):
        return spoken(one.text) == spoken(other.text)
    return top_label(one) == top_label(other)


def class_scores(output: Output) -> Scores:
    """Return the probability of each class, float64 [classes]. Raises TypeError for a transcript."""
    if isinstance(output, Transcript):
        raise TypeError("a transcript has no classes")
    return output

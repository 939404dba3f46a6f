"""How a model's answer is stored: its numbers as bytes, and what else it consists of as JSON."""

from collections.abc import Mapping
from typing import Any, overload

from edgeflare.answers import (
    DETECTIONS,
    KINDS,
    SCORES,
    TAGS,
    TRANSCRIPTS,
    VALUES,
    kind_named,
    kind_of_answer,
    kind_of_output,
)
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.parts import Pieces
from edgeflare.errors import UsageError
from edgeflare.types import Output


def is_answer(output: Output) -> bool:
    """Whether this is an answer: no scores mean that the device failed."""
    kind = kind_of_answer(output)
    return not kind.has_classes or kind.numbers(output).size > 0


@overload
def output_from(data: bytes, pieces: Pieces) -> Output: ...


@overload
def output_from(data: bytes | None, pieces: Pieces) -> Output | None: ...


def output_from(data: bytes | None, pieces: Pieces) -> Output | None:
    """Return the answer that `output_columns` was given, by its two columns.

    Raises ValueError, KeyError and TypeError for other columns.
    """
    if data is None:
        return None
    output: Output = _kind_stored(pieces).from_columns(data, pieces)
    return output


def _kind_stored(pieces: Pieces) -> AnswerKind[Any]:
    """Return the kind of an answer's column; those of edgeflare 0.2 name none."""
    if not isinstance(pieces, Mapping):
        return SCORES if pieces is None else TRANSCRIPTS
    if "kind" in pieces:
        return kind_named(pieces["kind"])
    if "shape" in pieces:
        return VALUES
    return TAGS if pieces["rules"][3:] == [False] else DETECTIONS


def stored_kind(models: Mapping[str, Any]) -> AnswerKind[Any]:
    """Return the kind of a campaign's answers, by what is stored of its models.

    Campaigns of edgeflare 0.2 don't name it: what the deployed model returns tells it then. That of
    scores where nothing is stored yet. Raises UsageError for a kind that isn't installed.
    """
    output = (models.get("deployed") or {}).get("output") or {}
    if "answers" in output:
        return kind_named(output["answers"])
    return kind_of_output(str(output.get("kind") or "logits"))


def output_columns(name: str, output: Output | None) -> dict[str, Any]:
    """Return an answer as two columns: its numbers, and what else it consists of.

    Numbers are little-endian float64: scores; of detections the scores and boxes, [n, 5]. Those of
    values are compressed by zlib, as float32 where that loses nothing. Of a kind that a distribution
    declares the second column has its name, by which it is read again. Raises UsageError where such a
    kind gives no object for it.
    """
    if output is None:
        return {name: None, f"{name}_pieces": None}
    kind = kind_of_answer(output)
    data, pieces = kind.to_columns(output)
    if kind not in KINDS:
        if not (pieces is None or isinstance(pieces, Mapping)):
            raise UsageError(
                f"the kind of answer {kind.name!r} gives a {type(pieces).__name__} beside the numbers of an answer: "
                "its `to_columns` must give an object, or None"
            )
        pieces = {**(pieces or {}), "kind": kind.name}
    return {name: data, f"{name}_pieces": pieces}


def check_same_kind(original: Output, deployed: Output) -> None:
    """Raise ValueError where two answers to one sample are of two kinds, or of two lengths."""
    kind = kind_of_answer(original)
    if not (kind.accepts(deployed) and kind.fits(original, deployed)):
        raise ValueError("the two models' answers are of two kinds")

"""The names that a file with a kind of answer needs; `edgeflare.answers.kind` has each in words."""

from edgeflare.answers.kind import A, AnswerKind
from edgeflare.answers.parts import (
    Card,
    Change,
    LimitRule,
    Margins,
    Name,
    ObjectCounts,
    Picture,
    Pieces,
    Tolerance,
    decision_of,
    jsonable,
)
from edgeflare.words.answers import ReportWords

__all__ = [
    "A",
    "AnswerKind",
    "Card",
    "Change",
    "LimitRule",
    "Margins",
    "Name",
    "ObjectCounts",
    "Picture",
    "Pieces",
    "ReportWords",
    "Tolerance",
    "decision_of",
    "jsonable",
]

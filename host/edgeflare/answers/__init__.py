"""Kinds of answers: one object each, which is asked instead of the answer's type.

A kind of your own is an object in an entry point of the group ``edgeflare.answers``, named as the
task that ``--task`` then takes; `AnswerKind` has what it is asked. It is imported when it is used.
"""

import sys
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from edgeflare._internal import plugins
from edgeflare.answers.detections import DETECTIONS
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.parts import Change, Margins
from edgeflare.answers.scores import LABELS, SCORES
from edgeflare.answers.tags import TAGS
from edgeflare.answers.transcripts import TRANSCRIPTS
from edgeflare.answers.values import VALUES
from edgeflare.errors import UsageError

__all__ = [
    "DETECTIONS",
    "KINDS",
    "LABELS",
    "SCORES",
    "TAGS",
    "TRANSCRIPTS",
    "VALUES",
    "AnswerKind",
    "Change",
    "Margins",
    "common_kind",
    "kind_named",
    "kind_of_answer",
    "kind_of_output",
    "kind_of_task",
    "tasks",
]

KINDS: list[AnswerKind[Any]] = [SCORES, LABELS, TAGS, TRANSCRIPTS, DETECTIONS, VALUES]
"""The built-in kinds; `kind_of_answer` an array is the first of those that accept it."""


def kind_of_answer(answer: Any) -> AnswerKind[Any]:
    """Return the kind of an answer. Raises TypeError for what is none."""
    if type(answer) is np.ndarray:
        return SCORES
    for kind in KINDS:
        if kind.accepts(answer):
            return kind
    for kind in _declared_kinds():
        with suppress(
            Exception
        ):  # a distribution's: what is wrong with it is told where it is stated
            if kind.accepts(answer):
                return kind
    raise TypeError(f"{type(answer).__name__} is no answer")


def common_kind(original: Any, deployed: Any) -> AnswerKind[Any]:
    """Return the kind of two answers. Raises TypeError for two kinds."""
    kind = kind_of_answer(original)
    if not kind.accepts(deployed):
        types = " and ".join(type(answer).__name__ for answer in (original, deployed))
        raise TypeError(f"{types} are answers of two kinds")
    return kind


def tasks() -> dict[str, str]:
    """Return all that ``--task`` takes, with what models answer with then; declared ones without.

    Nothing is imported.
    """
    words = {task: words for kind in KINDS for task, words in kind.tasks.items()}
    return {**dict.fromkeys(plugins.names("kind of answer"), ""), **words}


def kind_of_task(task: str) -> AnswerKind[Any]:
    """Return the kind of a task's answers.

    Raises UsageError where there is none, and where the distribution that declares it is broken.
    """
    for built_in in KINDS:
        if task in built_in.tasks:
            return built_in
    plugins.check_installed("kind of answer", task, ())
    kind = plugins.load("kind of answer", task)
    if (
        not isinstance(kind, AnswerKind)
        or not isinstance(getattr(kind, "name", None), str)
        or task not in getattr(kind, "tasks", ())
    ):
        raise plugins.unusable(
            "kind of answer",
            task,
            "must be an instance of a subclass of edgeflare.answers.AnswerKind, with a `name`, that has it among its "
            "`tasks`",
        )
    if kind.name in {built_in.name for built_in in KINDS}:
        raise plugins.unusable(
            "kind of answer",
            task,
            f"has the name {kind.name!r} of another one: state another `name`",
        )
    return kind


def kind_named(name: str) -> AnswerKind[Any]:
    """Return the kind of this name, as a campaign stores it. Raises UsageError for none."""
    for kinds in (KINDS, _declared_kinds()):
        for kind in kinds:
            if kind.name == name:
                return kind
    if name in plugins.names("kind of answer"):
        kind_of_task(name)  # it is broken, and the error says how
    raise UsageError(
        f"{str(name)[:99]!r} is no kind of answer that is installed here; is the distribution that has it installed?"
    )


def kind_of_output(form: str) -> AnswerKind[Any]:
    """Return the kind of answers that outputs of a stored form become: "logits" become scores.

    Raises UsageError for an unknown form.
    """
    return next((kind for kind in KINDS if form in kind.outputs), None) or kind_named(form)


def _declared_kinds() -> tuple[AnswerKind[Any], ...]:
    """Return the kinds that distributions declare, without those that are broken.

    They are asked where no built-in kind fits; who needs a broken one gets its error by its task.
    """
    return _declared_on(tuple(sys.path))


@cache  # of a path: looking for distributions takes milliseconds, and each answer asks
def _declared_on(path: tuple[str, ...]) -> tuple[AnswerKind[Any], ...]:
    del path
    kinds: list[AnswerKind[Any]] = []
    for task in plugins.names("kind of answer"):
        with suppress(UsageError):
            kinds.append(kind_of_task(task))
    return tuple(kinds)

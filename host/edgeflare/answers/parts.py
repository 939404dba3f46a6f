"""What kinds of answers take and return: plain data, and what their files share."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.records import jsonable as jsonable  # noqa: PLC0414 - of every kind
from edgeflare.types import Decision

Name: TypeAlias = Callable[[int], str]
"""Returns a class's name, its number as text where it has none."""
Pieces: TypeAlias = Sequence[str] | Mapping[str, Any] | None
"""What an answer consists of beside numbers, as JSON: nothing of class scores, the texts of a
transcript; an object of others, which names their kind by the key "kind" (those of edgeflare 0.2
are told apart without)."""

ROUNDING = 0.05
"""The largest share by which a number of two answers to one input may differ by rounding alone."""


class Margins(NamedTuple):
    """How sure each model is of its answer, 0 to 1; None where it has no margin."""

    original: float | None
    deployed: float | None

    @property
    def smaller(self) -> float | None:
        """The smaller of both; that of one alone where the other has none, else None."""
        return min((margin for margin in self if margin is not None), default=None)


class Change(NamedTuple):
    """One thing in which two answers differ, for tables, filters and faults.

    `kind`: what happened to it, such as "lost"; `label`: the class it is counted for, None without
    classes; `margins`: how sure both models are of it.
    """

    kind: str
    label: int | None
    margins: Margins


class ObjectCounts(NamedTuple):
    """The objects that either of two models sees, that the original `detected`, and that differ."""

    objects: int
    detected: int
    differing: int


class LimitRule(NamedTuple):
    """A limit that campaigns of one kind alone have: a share of the objects on the seeds.

    `key` is that of `LimitsConfig`, such as max_lost, `whose` model answers with the objects, and
    `verb` is what a number of them does, such as "are lost". `compare` takes both models' answers to
    a seed and the margin floor, and returns the classes of the objects and of those that differ so;
    none of answers that can't be compared.
    """

    key: str
    whose: Literal["original", "deployed model"]
    verb: str
    compare: Callable[[Any, Any, float], tuple[Sequence[int], Sequence[int]]]


class Tolerance(NamedTuple):
    """What a campaign's tolerance is compared with, in `words`.

    `largest`: what that never exceeds, infinity without a bound; `default`: the tolerance where none
    is stated; `refusal`: why none may be stated, as the template of an error with the setting's key
    {tolerance} and perhaps {task}; "": one may.
    """

    words: str
    largest: float = math.inf
    default: float | None = None
    refusal: str = ""


class Picture(NamedTuple):
    """A picture of one plane: uint8 [height, width], numbers of colours of a palette.

    `palette` is uint8 [colours, 3], RGB; None: the numbers are greys.
    """

    pixels: NDArray[np.uint8]
    palette: NDArray[np.uint8] | None = None


class Card(NamedTuple):
    """What the gallery of a page shows of two answers; each empty of answers that don't have it.

    `difference` is what differs in words; `detections`, `values` and `transcripts` are as
    ``report.js`` reads them. `scores` are rows of (class, original's score, deployed's score),
    `pairs` the keys that the card is found by, of which `pair_words` gives the words, and `maps`
    pictures of both models' maps and of their difference.
    """

    difference: str | None = None
    detections: dict[str, Any] | None = None
    values: dict[str, Any] | None = None
    transcripts: dict[str, Any] | None = None
    scores: Sequence[list[Any]] = ()
    pairs: tuple[str, ...] = ()
    maps: tuple[Picture, ...] = ()


def later(name: str, *arguments: Any, **settings: Any) -> Any:
    """Call what stands above the kinds of answers, by its dotted name ``module:function``."""
    return resolve_name(name)(*arguments, **settings)


def worded(name: str) -> Any:
    """Return a property that says a result in words, by ``module:function`` of `edgeflare.words`.

    Those stand above the results, since they see all of them.
    """
    return property(partial(later, f"edgeflare.words.{name}"))


def decision_of(margin: float | None, floor: float) -> Decision:
    """Return the decision on two answers that differ, by the smaller margin of what does."""
    if margin is None or margin <= 0:
        return Decision.TIE
    return Decision.BELOW_FLOOR if margin < floor else Decision.DEVIATION

"""The few types that every part of the host shares."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Sample: TypeAlias = NDArray[Any]
"""A raw sample before any preprocessing.

An image: uint8 [height, width, channels], channels 1 or 3. Audio: mono float32 [samples] in [-1, 1], of any length
from 1; its rate in Hz stands beside it.
"""


@dataclass(frozen=True)
class SeedInput:
    """A seed input, before any model saw it.

    `id` is stable across runs; `sample` is uint8 [height, width, channels], RGB or grey, or mono float32
    [samples] in [-1, 1]; `label` is a class index, or None where it is unknown. `file_sha256` is the
    SHA-256, in hex, of the bytes of the file that it was read from: of the whole archive for an `.npz`;
    None where it is of no file.
    """

    id: str
    sample: Sample
    label: int | None = None
    file_sha256: str | None = None


@dataclass(frozen=True)
class Skipped:
    """A file that could not be a seed input, and why."""

    name: str
    reason: str


Scores: TypeAlias = NDArray[np.float64]
"""A model's answer for one sample: probabilities, float64 [classes].

They sum to 1 up to the rounding of the model's own output; NaN and infinity are kept.
"""


@dataclass(frozen=True, eq=False)
class Transcript:
    """A speech recogniser's answer for one sample: its text, token by token as it was decoded.

    `pieces` are the tokens' texts in order; laid end to end they are the text. `scores`: float64 [pieces, 2], the
    probability of each token that was chosen and the highest of all others; NaN and infinity are kept.
    """

    pieces: tuple[str, ...]
    scores: Scores

    @property
    def text(self) -> str:
        """The text as the model writes it, without white space around it."""
        return "".join(self.pieces).strip()


Output: TypeAlias = Scores | Transcript
"""A model's answer for one sample: the probability of each class, or what a speech recogniser heard."""


class Decision(str, Enum):
    """What the oracle says of one sample's two answers."""

    AGREE = "agree"
    DEVIATION = "deviation"
    TIE = "tie"
    NONFINITE = "nonfinite"
    BELOW_FLOOR = (
        "below-floor"  # a deviation, or an input not asked about, with a margin below the floor
    )
    UNDECIDED = "undecided"  # only one model was asked


class Ask(NamedTuple):
    """What a strategy yields: samples and who is to answer.

    `best` is the best triggering input so far, where the strategy goes on for a better one: what the
    search ends with if a budget ends it.
    """

    samples: Sequence[Sample]
    of: Literal["original", "deployed", "both"] = "both"
    want: Literal["scores"] = "scores"
    best: "Outcome | None" = None


class Outputs(NamedTuple):
    """One sample's answers; None where a model was not asked.

    Of an `Ask` of both, a sample on which the original's margin is below the oracle's floor is never
    given to the device: `deployed` is None and the decision `BELOW_FLOOR`.
    """

    original: Output | None
    deployed: Output | None
    decision: Decision


class Answer(NamedTuple):
    """What a strategy is sent: one `Outputs` a sample of its `Ask`, in order."""

    outputs: Sequence[Outputs]


class FrontPoint(NamedTuple):
    """A deviation on the way that no earlier one beats in both margin and distance.

    `queries` were asked up to and with this one; `margin` is the smaller of both models' (top-1 minus
    top-2 probability); the distances are to the seed, as `edgeflare.distances` has them.
    """

    queries: int
    margin: float
    l2: float
    linf: int


class Status(str, Enum):
    """How the search from one seed ended."""

    FOUND = "found"  # a triggering input, confirmed
    SEED_DEVIATES = "seed-deviates"  # the seed itself is one; nothing was searched
    UNSTABLE = "unstable"  # a deviation that did not repeat
    NONFINITE = "nonfinite"  # NaN or infinity in an output: a finding of its own kind
    EXHAUSTED = "exhausted"  # the query budget ran out
    TIMEOUT = "timeout"  # the time budget ran out
    GAVE_UP = "gave-up"  # the strategy ended without a finding, within its budgets
    FAILED = "failed"  # no answer on an input: the agent died each time, or inference failed, there or of the original


NOTHING_SEARCHED = "strategy none: only the seed itself was compared"
"""Why the strategy none gives up: it counts as no search."""

TRIGGERS = frozenset({Status.FOUND, Status.SEED_DEVIATES})
"""The ends with a triggering input: one that was found, or the seed itself."""


@dataclass(frozen=True)
class KnownAnswers:
    """Both models' answers on seed inputs of the campaign, known before any search: float64 [n, classes] each."""

    original: NDArray[np.float64]
    deployed: NDArray[np.float64]


@dataclass(frozen=True)
class Seed:
    """A seed input: `id` is its name within the campaign, stable across runs.

    `outputs` are both models' answers on it, known before a search begins. `others` are the campaign's
    seed inputs in their order, this one among them, read when they are looked at; empty where a strategy
    is run without a campaign. `labels_only`: the deployed model tells a label and no scores; what stands
    for its scores is 1 at that class and 0 elsewhere, and says nothing of how sure it is. `margin_floor` is
    the oracle's: what both models' margins must reach for a deviation to count. `known` are both models' answers on
    the campaign's first seed inputs, the same for every search; None where there are none, or labels or transcripts
    only. `rate`: of audio, in Hz; None for an image.
    """

    id: str
    sample: Sample
    outputs: Outputs
    label: int | None = None
    others: Sequence[Sample] = ()
    labels_only: bool = False
    margin_floor: float = 0.0
    known: KnownAnswers | None = None
    rate: int | None = None


@dataclass(frozen=True)
class Outcome:
    """What a strategy returns: the triggering input, or None if it gave up.

    `mutations` are the serialised steps that lead from the seed to `sample`, to be replayed. `earlier`:
    triggering inputs found before, the better ones first; tried where this one does not repeat. `reason` says why
    a strategy gave up.
    """

    sample: Sample | None
    mutations: Sequence[dict[str, Any]] = field(default_factory=tuple)
    earlier: Sequence["Outcome"] = ()
    reason: str = ""


Search: TypeAlias = Generator[Ask, Answer, Outcome]
Strategy: TypeAlias = Callable[[Seed, np.random.Generator], Search]
"""Seed and generator of randomness in; questions out, answers in; an outcome at the end.

A strategy does no I/O, reads no clock and starts no thread. The scheduler counts, stops, batches and
confirms; a strategy cannot tell one device from ten.
"""

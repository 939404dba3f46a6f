"""Types that all parts of the host share."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Sample: TypeAlias = NDArray[Any]
"""A raw sample before any preprocessing.

An image: uint8 [height, width, channels], channels 1 or 3. Audio: mono float32 [samples] in [-1,
1], of any length from 1; its rate in Hz is given separately.
"""


class SampleWithRow(NamedTuple):
    """A sample, and the row of its seed in the arrays of a model's other inputs."""

    sample: Sample
    row: int

    @property
    def nbytes(self) -> int:
        """The size of the sample."""
        return self.sample.nbytes


Query: TypeAlias = Sample | SampleWithRow
"""What a model is asked about. The row says which arrays its other inputs are given, where they have
some for each seed; row 0 is used for a sample without one."""


def with_row(sample: Sample, row: int | None) -> Query:
    """Return a sample with the row of its seed; as it is where that has none."""
    return sample if row is None else SampleWithRow(sample, row)


def split_rows(queries: Sequence[Query], rows: int) -> tuple[list[Sample], dict[str, Any]]:
    """Return the samples of queries, and the header of their INFER for a model with so many rows."""
    samples = [one.sample if isinstance(one, SampleWithRow) else one for one in queries]
    if not rows:
        return samples, {}
    return samples, {"rows": [one.row if isinstance(one, SampleWithRow) else 0 for one in queries]}


@dataclass(frozen=True)
class SeedInput:
    """A seed input, before any model saw it.

    `id` is stable across runs; `sample` is uint8 [height, width, channels], RGB or grey, or mono
    float32 [samples] in [-1, 1]; `label` is a class index, or None where it is unknown.
    `file_sha256` is the SHA-256, in hex, of the bytes of the file that it was read from: of the
    whole archive for an `.npz`; None where it is of no file.
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

They sum to 1 up to the rounding of the model's own output; NaN and infinity stay.
"""


@dataclass(frozen=True, eq=False)
class Transcript:
    """The text that a model returns for one sample, as decoded tokens.

    `pieces` are the tokens' texts in order; their concatenation is the text. `scores`: float64
    [pieces, 2], the probability of each chosen token and the highest of all others; NaN and
    infinity stay.
    """

    pieces: tuple[str, ...]
    scores: Scores

    @property
    def text(self) -> str:
        """The text as the model writes it, without white space around it."""
        return "".join(self.pieces).strip()


class DetectionRules(NamedTuple):
    """What counts as detected, and as the same object in another answer.

    `confidence`: the least score of a detection, 0 to 1. `match_iou`: the least intersection over
    union of two boxes of one object; `shift_iou`: below this one the object has moved. `located`:
    objects have boxes; without, as of a model of several labels, a class is the same object in any
    answer, whatever its box.
    """

    confidence: float = 0.5
    match_iou: float = 0.5
    shift_iou: float = 0.75
    located: bool = True


@dataclass(frozen=True, eq=False)
class Detections:
    """A detector's answer to one sample, the highest score first.

    `boxes`: float64 [n, 4], left, top, right and bottom as shares of the sample's width and height;
    a box may reach beyond the sample. `labels`: int64 [n], class indices. `scores`: float64 [n], 0
    to 1. NaN and infinity stay.

    Those with a score of at least `rules.confidence` are detected. The others are candidates: what
    remained after suppression, too, kept since their scores tell how near they are to being
    detected.
    """

    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    scores: NDArray[np.float64]
    rules: DetectionRules = field(default_factory=DetectionRules)

    @property
    def count(self) -> int:
        """How many are detected: the first ones."""
        return int((self.scores >= self.rules.confidence).sum())


ValueMeasure: TypeAlias = Literal["labels", "absolute", "relative", "cosine"]
"""How two answers of real values are compared; `edgeflare.values.distance` has each in words."""


class ValueRules(NamedTuple):
    """How two answers of real values are compared: see `edgeflare.values.distance`.

    `threshold`: of the measure labels with one channel, the least value of label 1. `axis`: the
    axis of the channels, of the measure labels; None: the elements are labels themselves.
    `tolerances`: of the measures absolute and relative, one for each element, which differences are
    divided by; empty: none.
    """

    measure: ValueMeasure = "absolute"
    threshold: float = 0.5
    axis: int | None = 0
    tolerances: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Values:
    """A model's answer of real values to one sample: a map, an embedding or a vector.

    `array`: float64 of the output's shape without the batch axis; NaN and infinity stay.
    """

    array: NDArray[np.float64]
    rules: ValueRules = field(default_factory=ValueRules)


Output: TypeAlias = Any
"""A model's answer to one sample: class probabilities, a transcript, detections or values."""


Task: TypeAlias = str
"""What both models' answers are: `edgeflare.oracles.TASKS` has each in words."""


class Decision(str, Enum):
    """An oracle's decision on two answers to one sample."""

    AGREE = "agree"
    DEVIATION = "deviation"
    TIE = "tie"
    NONFINITE = "nonfinite"
    BELOW_FLOOR = (
        "below-floor"  # a deviation, or an input not asked about, with a margin below the floor
    )
    UNDECIDED = "undecided"  # only one model was asked


AGREED = (Decision.AGREE, Decision.TIE, Decision.BELOW_FLOOR)
"""Decisions on two answers that are no deviation."""


class JointObjective(NamedTuple):
    """What DeepXplore raises at an input (Pei et al., SOSP 2017, equation 2).

    The models are the original and `others`, float or QDQ ONNX files that take what the original
    takes. With the score of class `label` of each it is the sum over all models but the one at the
    place `deviating` (0: the original), less `weight` times that one's.

    A score is the logit where the model ends in a softmax or in logits, the log-sigmoid where it
    ends in a sigmoid, else the logarithm of its probability.
    """

    others: tuple[str, ...]
    label: int
    deviating: int
    weight: float


class JointGradient(NamedTuple):
    """The answer about a `JointObjective` at one sample.

    `gradient`: float64 of the sample's shape, per level of an image. `labels`: the decision of each
    model, the original first; None where its scores are not finite.
    """

    gradient: NDArray[np.float64]
    labels: tuple[int | None, ...]


class Ask(NamedTuple):
    """A query that a strategy yields: samples, and which models are to answer.

    `want`: what is answered: scores, or what a probe of the original tells, by its name (see
    `edgeflare.models.probe`). A "gradient" is of its log-odds of the first of
    `classes` over each of the others, with respect to a sample's values. It counts as one host-only
    query for each of `classes`: a forward pass, and a backward pass for each of the others. With
    `joint` it is that of this objective, and counts as two for each model. `question` is for other
    probes; it must be picklable.

    `best` is the best triggering input so far, where the strategy searches for a better one: the
    result of the search if a budget ends it.
    """

    samples: Sequence[Sample]
    of: Literal["original", "deployed", "both"] = "both"
    want: str = "scores"
    best: "Outcome | None" = None
    classes: Sequence[int] = ()
    joint: JointObjective | None = None
    question: Any = None

    @property
    def is_of_probe(self) -> bool:
        """Whether a probe is to answer, rather than the models."""
        return self.want != "scores"


class Outputs(NamedTuple):
    """One sample's answers; None where a model was not asked.

    Of an `Ask` of both, a sample on which the original's margin is below the oracle's floor is
    never given to the device: `deployed` is None and the decision `BELOW_FLOOR`.
    """

    original: Output | None
    deployed: Output | None
    decision: Decision


class Answer(NamedTuple):
    """The reply to an `Ask`: one `Outputs` for each of its samples, in order.

    `probed`: of an `Ask` of a probe, what that answered about each sample; the outputs then have no
    answers. Of a "gradient" it is float64 [classes - 1, ...] of the sample's shape, per level of an
    image (1 of 255). It is in `joint`, too, where the `Ask` has an objective of several models, else
    in `gradients`.
    """

    outputs: Sequence[Outputs]
    gradients: Sequence[NDArray[np.float64]] = ()
    joint: Sequence[JointGradient] = ()
    probed: Sequence[Any] = ()


class FrontPoint(NamedTuple):
    """A deviation that a search met; no earlier one exceeds it in both margin and nearness.

    `queries`: device queries up to and including this one. `margin`: the smaller of both models',
    as `edgeflare.oracles.margins` has it (of class scores top-1 minus top-2 probability). `l2`,
    `linf`: distances to the seed, as in `edgeflare.metrics`.
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
    FAILED = (
        "failed"  # no answer on an input: the agent died each time, or a model's inference failed
    )


NOTHING_SEARCHED = "strategy none: only the seed itself was compared"
"""The reason of the strategy none, which is not counted as a search."""

TRIGGERS = frozenset({Status.FOUND, Status.SEED_DEVIATES})
"""The statuses with a triggering input: one that was found, or the seed itself."""


@dataclass(frozen=True, eq=False)
class KnownAnswers:
    """Both models' answers to the first inputs of the source: float64 [n, classes] each."""

    original: NDArray[np.float64]
    deployed: NDArray[np.float64]


@dataclass(frozen=True)
class Seed:
    """A seed input: `id` is its name within the campaign, stable across runs.

    `outputs` are both models' answers to it, known before a search begins. `others` are the
    first 32 inputs of the campaign's source, whatever its limit, maybe this one among them, read on
    access; empty where a strategy runs without a campaign. `labels_only`: the deployed model
    returns a label and no scores, as `kind` says, too; its scores are then 1 at that class and 0
    elsewhere, which is no measure of certainty. `margin_floor`: the oracle's, which both models'
    margins must reach for a deviation. `known`: both models' answers to `others`, the same for every
    search; None without any, where there are only labels or transcripts, and for other strategies
    than boundary. `rate`: of audio, in Hz; None for an image. `compares_scores`: a deviation is a distance of scores,
    whatever their labels (see `edgeflare.oracles.OracleTraits`). `row`: the seed's in the arrays of
    the models' other inputs; None where they have none for each seed. `kind`: the campaign's
    `edgeflare.answers.AnswerKind`; where it isn't stated that of the original's answer.
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
    compares_scores: bool = False
    row: int | None = None
    kind: Any = None

    def __post_init__(self) -> None:
        answers = resolve_name("edgeflare.answers")  # kinds stand above types
        original, kind = self.outputs.original, self.kind
        if kind is None:
            kind = answers.SCORES if original is None else answers.kind_of_answer(original)
        if self.labels_only and kind is answers.SCORES:
            kind = answers.LABELS
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "labels_only", not kind.is_scored)


@dataclass(frozen=True)
class Outcome:
    """The result of a search: the triggering input, or None if it gave up.

    `mutations` are serialised; applied to the seed in their order they give `sample`. `earlier`:
    triggering inputs that were found before, the better ones first; tried where this one is not
    confirmed. `reason`: why a strategy gave up.
    """

    sample: Sample | None
    mutations: Sequence[dict[str, Any]] = field(default_factory=tuple)
    earlier: Sequence["Outcome"] = ()
    reason: str = ""


@dataclass(frozen=True)
class Issue:
    """What a check found that a user should know before resting on the results.

    `severity`: a campaign ends at "stop", goes on past a "warning", and a "note" is no mistake. `data`
    has numbers and names, as JSON, and `fix` the settings that put it right, by their dotted names; a
    value of None is the user's to know. `edgeflare.words.preflight.sentence` words it.
    """

    code: str
    severity: Literal["stop", "warning", "note"]
    data: Mapping[str, Any] = field(default_factory=dict)
    fix: Mapping[str, Any] = field(default_factory=dict)


Search: TypeAlias = Generator[Ask, Answer, Outcome]
Strategy: TypeAlias = Callable[[Seed, np.random.Generator], Search]
"""Takes a seed and a random generator; returns a generator of queries, sent the answers.

A strategy does no I/O, reads no clock and starts no thread. The scheduler counts, stops, batches
and confirms; a strategy does not depend on the number of devices.
"""

"""Oracles: what counts as a deviation, and how sure each model is of its answer."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Protocol, TypeAlias

from edgeflare._internal import plugins
from edgeflare._internal.extras import rapidfuzz
from edgeflare.answers import (
    DETECTIONS,
    KINDS,
    SCORES,
    TAGS,
    TRANSCRIPTS,
    VALUES,
    AnswerKind,
    Margins,
    common_kind,
    kind_of_answer,
    kind_of_task,
)
from edgeflare.errors import UsageError
from edgeflare.types import Decision, Output, Task
from edgeflare.words import answers as words

MARGIN_FLOOR = "margin_floor"

TASKS: Mapping[Task, str] = {task: text for kind in KINDS for task, text in kind.tasks.items()}
"""What models answer with, in words."""

DETECTION_TASKS: frozenset[Task] = frozenset({*DETECTIONS.tasks, *TAGS.tasks})
"""Tasks with answers of objects, with or without places: `edgeflare.types.Detections`."""

VALUE_TASKS: frozenset[Task] = frozenset(VALUES.tasks)
"""Tasks with answers of real values, which are compared by a distance."""


class Oracle(Protocol):
    """Decides whether two models' answers to one sample are a deviation.

    `floor`: no answer with a `margin` below it is part of a deviation, so that the
    deployed model need not be asked where the original's is. 0: there is none.
    """

    @property
    def floor(self) -> float: ...  # noqa: D102

    def decide(self, original: Output, deployed: Output) -> Decision:
        """Compare two answers of one kind: float64 [classes], transcripts, detections or values."""
        ...


class OracleTraits:
    """What strategies and reports need to know of an oracle.

    A user's oracle may inherit this, or state the attributes that differ, at its entry point's
    object; what it doesn't state is as here.
    """

    compares_scores: ClassVar[bool] = False
    """Whether a deviation is a distance of answers, whatever the labels: the strategy `boundary`
    moves where both drift apart, and reports give the distance in place of labels and margins."""
    deviation: ClassVar[str] = words.DECIDES_DIFFERENTLY
    """What the models do on a triggering input, for reports; a built-in oracle's is a format of the
    table ``search``."""


class ConfiguredOracle(OracleTraits):
    """What settings need to know of an oracle, too; built-in ones inherit this.

    The values here are those of ``auto`` and of a user's oracle.
    """

    name: ClassVar[str] = ""
    """Its name in the configuration."""
    summary: ClassVar[str] = ""
    """What a deviation is, in a few words for ``--help``."""
    tasks: ClassVar[frozenset[Task]] = frozenset({"classification"})
    """The tasks whose answers it compares."""
    setting: ClassVar[str] = MARGIN_FLOOR
    """The key of the table ``search`` whose value it is made with: one word, as the flag."""
    setting_help: ClassVar[str] = ""
    """What that value is, with an example; for the error where it is missing."""


def margin(output: Output) -> float | None:
    """Return how far the answer is ahead of the next best one, 0 to 1.

    Of scores, float [classes]: top-1 minus top-2. Of a transcript: the smallest margin of its
    words. Of detections: the smallest distance of a score, a candidate's too, from the confidence.
    None for less than two classes, no word, no box, values, NaN or infinity.
    """
    return kind_of_answer(output).finite_margin(output)


def margins(original: Output, deployed: Output) -> Margins:
    """Return how sure both models are of their answers to one sample.

    Of scores that is each one's `margin`. Of transcripts that differ it is the smallest margin of
    the words that differ: None for a model that has no word there, where the other one has. Of
    detections that differ it is that of their worst difference (see `edgeflare.detections.worst`).
    Raises UsageError where RapidFuzz is missing.
    """
    return common_kind(original, deployed).margins(original, deployed)


def has_margin_below(output: Output, floor: float) -> bool:
    """Whether the `margin` of this answer is below the floor; one that has none isn't.

    Nor are detections: another object may be lost or seen beside the one that is nearest to the
    confidence.
    """
    return kind_of_answer(output).is_below(output, floor)


def certainty(output: Output) -> float | None:
    """Return how sure a model is of an answer alone, 0 to 1: its margin, None without one.

    Detections and values have a margin, if any, where two answers differ: they count as sure, 1,
    where they are finite. `is_sure_of_difference` tells of detections then.
    """
    return kind_of_answer(output).certainty(output)


def is_sure_of_difference(original: Output, deployed: Output, sure: float) -> bool:
    """Whether the original's margin of a difference of detections is at least this share of the largest.

    The largest one is 1 less the confidence, of a ghost the confidence, of a shift the IoU from
    which on nothing has shifted. True of other answers, of which `certainty` tells before the
    deployed model is asked.
    """
    kind = common_kind(original, deployed)
    return kind.is_sure_of_difference(original, deployed, sure)


class DecisionOracle(ConfiguredOracle):
    """A deviation is another decision, as the answers' kind has it (`AnswerKind.decide`)."""

    def __init__(self, kind: AnswerKind[Any], floor: float = 0.0) -> None:
        self.kind = kind
        self.floor = floor
        """The smallest margin of either model, in [0, 1), that makes a deviation."""

    def decide(self, original: Output, deployed: Output) -> Decision:
        """Compare two answers of the oracle's kind. Raises TypeError for others."""
        kind = self.kind
        if not (kind.accepts(original) and kind.accepts(deployed)):
            types = " and ".join(type(answer).__name__ for answer in (original, deployed))
            raise TypeError(f"the oracle compares {kind.noun} alone, and these are {types}")
        return kind.decide(original, deployed, self.floor)


class LabelOracle(DecisionOracle):
    """A deviation is another top-1 label (DFLARE, section 3.1: l_f(x) != l_g(x)).

    Differences: a model whose highest probability is shared by two classes has no top-1 label; such
    an answer is a `TIE`, never a deviation decided by index. NaN or infinity in either answer is
    `NONFINITE`. The paper has neither, nor a floor: with one above 0, two
    different labels are `BELOW_FLOOR` where either model's margin is below it. A difference that
    small is what two builds of one arithmetic already show. Two models that agree do so whatever
    their margins.
    """

    name = "label"
    summary = "another top-1 class"

    def __init__(self, floor: float = 0.0) -> None:
        super().__init__(SCORES, floor)


class ToleranceOracle(ConfiguredOracle):
    """A deviation is answers further apart than a tolerance, whatever the labels.

    Differences: the paper compares labels alone. Answers are apart by their
    `edgeflare.metrics.disagreement`: scores of classes by their total variation distance (the
    share of probability, 0 to 1, that they put on different classes), values by the measure of
    their rules. NaN or infinity in either answer is `NONFINITE`. There is no tie and no floor of
    the margin: a label need not be another one.
    """

    name = "tolerance"
    summary = words.BY_TOLERANCE
    compares_scores = True
    tasks = frozenset({"classification", *VALUE_TASKS})
    setting = "tolerance"
    setting_help = words.LARGEST_DISTANCE
    deviation = words.ANSWERS_TOO_FAR
    floor = 0.0

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance

    def decide(self, original: Output, deployed: Output) -> Decision:
        """Compare two answers of scores or of values. Raises TypeError for others."""
        kind = common_kind(original, deployed)
        if not kind.takes_tolerance:
            raise TypeError("a tolerance is for scores and values alone")
        if not (kind.is_finite(original) and kind.is_finite(deployed)):
            return Decision.NONFINITE
        apart = kind.distance(original, deployed)
        return Decision.DEVIATION if apart > self.tolerance else Decision.AGREE


class DetectionOracle(DecisionOracle):
    """A deviation is an object that is lost, seen by the deployed model alone, or another one.

    `edgeflare.detections.differences` matches the boxes of both answers and tells the kinds: lost,
    ghost, class and shift. Each difference has a margin for each model: how far the score that
    decides is from the confidence, or the overlap from its bound. A difference counts where
    the smaller of both is at least the floor, so that a score of .501 against .499 doesn't; where
    differences have no margin at all, the answers are a `TIE`. NaN or infinity in either answer is
    `NONFINITE`. The papers have no oracle for detections.
    """

    name = "detection"
    summary = words.BY_OBJECTS
    tasks = DETECTION_TASKS
    deviation = words.DETECTS_OTHERS

    def __init__(self, floor: float = 0.0) -> None:
        super().__init__(DETECTIONS, floor)


class TranscriptOracle(DecisionOracle):
    """A deviation is another sentence (DFLARE, section 6.1: it "compares the sentences word by
    word").

    Words are compared as `edgeflare.transcripts` has them: runs of letters, digits and combining
    marks, with apostrophes inside; Unicode form NFKC, case folded, a typographic apostrophe as a
    plain one. Punctuation, case and white space make no difference; "30" and "thirty" do.

    The margin of a deviation is the smallest of the words that differ, side by side with the fewest
    substitutions, insertions and deletions: a model that takes one word for another may go on
    otherwise, however sure it then is, so the least sure word decides. A word that only one model
    has counts with that one's margin. Before the deployed model is asked, the floor is compared
    with the smallest margin of all of the original's words, since which ones will differ is not
    known yet.

    Differences: the paper names no normalisation; ours is the above. A token whose two best have
    the same probability decides nothing: different transcripts are a `TIE` where a word that
    differs has no margin. NaN or infinity in either answer's scores is `NONFINITE`. With a floor
    above 0, different transcripts are `BELOW_FLOOR` where a word that differs has a margin below
    it. The paper has none of these. Raises UsageError, when it is made, where RapidFuzz is
    missing, which aligns the words.
    """

    name = "transcript"
    summary = "another word"
    tasks = frozenset({"transcript"})

    def __init__(self, floor: float = 0.0) -> None:
        rapidfuzz()
        super().__init__(TRANSCRIPTS, floor)


BUILT_IN: tuple[type[ConfiguredOracle], ...] = (
    LabelOracle,
    TranscriptOracle,
    DetectionOracle,
    ToleranceOracle,
)
"""The built-in oracles."""
_NAMES = ("auto", *(one.name for one in BUILT_IN))

OracleName: TypeAlias = Annotated[str, plugins.known_name("oracle", _NAMES)]
"""A built-in oracle or a user's, an entry point of the group ``edgeflare.oracles``: what returns an
`Oracle` when called with the margin floor."""


def traits_of(name: object) -> type[ConfiguredOracle]:
    """Return the class of a built-in oracle, or one with the traits that a user's oracle states.

    For ``auto``, and a user's that can't be loaded here, it is `ConfiguredOracle`.
    """
    if name in _NAMES or not isinstance(name, str):
        return next((one for one in BUILT_IN if one.name == name), ConfiguredOracle)
    return _stated_traits(name)


@cache
def _stated_traits(name: str) -> type[ConfiguredOracle]:
    try:
        found = plugins.load("oracle", name)
    except UsageError:  # raised again where the oracle is used
        found = None
    deviation = str(getattr(found, "deviation", OracleTraits.deviation))
    stated = {
        "name": name,
        "compares_scores": bool(getattr(found, "compares_scores", OracleTraits.compares_scores)),
        "deviation": deviation.replace("{", "{{").replace("}", "}}"),  # a format, of plain text
    }
    return type("UsersOracle", (ConfiguredOracle,), stated)


def is_measured(search: Mapping[str, Any]) -> bool:
    """Whether a stored campaign's oracle, of its table ``search``, decides by the distance of answers."""
    return traits_in(search).compares_scores


def traits_in(search: Mapping[str, Any]) -> type[ConfiguredOracle]:
    """Return `traits_of` the oracle of a stored campaign's table ``search``."""
    oracle = traits_of(search.get("oracle"))
    return ConfiguredOracle if search.get(oracle.setting) is None else oracle


def oracle_for(
    name: OracleName,
    settings: Mapping[str, Any],
    *,
    task: Task = "classification",
    labels_only: bool = False,
) -> Oracle:
    """Return the oracle of this name for a pair of models; "auto": by their task.

    `settings` has the margin floor (0 by default) and the setting of the oracle, by their keys in
    the configuration. `labels_only`: the deployed model returns a label and no scores. Raises
    UsageError where the oracle does not fit the models, and where RapidFuzz is missing.
    """
    settings = {MARGIN_FLOOR: 0.0, **settings}
    answers = kind_of_task(task)
    fitting = [
        oracle.name
        for oracle in BUILT_IN
        if task in oracle.tasks or (oracle is ToleranceOracle and answers.takes_tolerance)
    ]
    if name == "auto" and not fitting:
        return DecisionOracle(answers, settings[MARGIN_FLOOR])
    if name == "auto":
        name = fitting[0]
        if settings.get(ToleranceOracle.name) is None:
            settings[ToleranceOracle.name] = answers.tolerance(task, {}).default
    kind: Any = traits_of(name)
    if labels_only and kind.compares_scores:
        raise UsageError(
            f"the {name} oracle compares scores, and the deployed model returns a label alone: use --oracle label, "
            "or leave it out"
        )
    if name not in _NAMES:
        return _users(name, settings[MARGIN_FLOOR])
    if name not in fitting:
        raise UsageError(
            f"the {name} oracle is for models that answer with {TASKS[min(kind.tasks)]}, and these answer "
            f"with {answers.tasks[task]} ({task}): "
            + (
                f"use --oracle {' or '.join(fitting)}, or leave it out"
                if fitting
                else "leave it out"
            )
        )
    value = settings.get(kind.setting)
    if value is None:
        raise UsageError(
            f"the {name} oracle needs a {kind.setting}: state it with --{kind.setting}"
        )
    oracle: Oracle = kind(value)
    return oracle


def _users(name: str, floor: float) -> Oracle:
    plugins.check_installed("oracle", name, ())
    found = plugins.load("oracle", name)
    try:
        oracle: Oracle = found(floor)
    except Exception as error:  # the user's code: it may raise anything
        raise plugins.unusable(
            "oracle", name, f"can't be made with the margin floor: {type(error).__name__}: {error}"
        ) from error
    if not (hasattr(oracle, "decide") and hasattr(oracle, "floor")):
        raise plugins.unusable(
            "oracle",
            name,
            f"gives a {type(oracle).__name__}; it must have `decide` and `floor`, as edgeflare.Oracle says",
        )
    return oracle

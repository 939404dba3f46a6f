"""What is said of answers: of how outputs are read, how far two are apart, and what a report is about."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from edgeflare._internal.text import counted, distinct_number, number_text, percent_text, shape_text
from edgeflare.document import KeyFigure
from edgeflare.statistics import Spread
from edgeflare.types import ValueMeasure


class ReportWords(NamedTuple):
    """How reports word what is found of a kind; `deviate` and `where_sure` are of the survey.

    `distance` is what a distance is, `apart` how far answers are apart, in `unit` ("%": hundredths).
    `margin` is what a margin is, `severity` how one deviation is worse than another ({margin} is
    filled in), `beside` where there is a trigger near nearly every seed, `severer` what finds worse
    ones ("": nothing), `limit` the limit that is recommended first, and `unpaired` names findings
    without a key of `Card.pairs`.
    """

    distance: str = "the distance of both models' answers"
    apart: str = "are {} apart"
    unit: Literal["", " %"] = ""
    deviate: str = "differently"
    where_sure: str = " on which the original is sure"
    margin: str = "how sure a model is of its answer"
    severity: str = (
        "how severe the severest trigger is (by the smaller of both models' margins; a margin is "
        "{margin})"
    )
    beside: str = "right beside its decision boundary"
    severer: str = "look for severer triggers with --device-budget 8"
    limit: str = "max_disagreement"
    unpaired: str = "no labels"


DETECTION_MARGIN = (
    "how far a detection's score is from the confidence or, where that is less, how far an overlap "
    "(IoU) is from the bound that decides"
)
"""What a margin of detections is; `edgeflare.detections.Difference` has each kind's."""

OF_SCORES = ReportWords(
    distance="the share of probability that both models put on different classes",
    apart="put {} of the probability on different classes",
    unit=" %",
    margin="how far a model's most probable class is above its next one",
)
OF_TRANSCRIPTS = ReportWords(
    distance="the share of the words in which both models differ",
    apart="differ in {} of the words",
    unit=" %",
    margin="that of the least sure of the words that differ",
    severer="",  # of transcripts the strategy boundary has no such budget
)
OF_VALUES = ReportWords(
    distance="the distance of both models' answers, by the campaign's measure",
    where_sure="",
    severity="how far apart both answers to the worst trigger are",
    beside="whose answers are just further apart than the tolerance",
    severer="look for triggers with answers further apart with --device-budget 8",
)
OF_DETECTIONS = ReportWords(
    distance="the largest difference of both models' scores of an object",
    apart="differ by {} in the score of an object",
    deviate="differently, and the original is sure of it,",
    where_sure="",
    margin=DETECTION_MARGIN,
    limit="max_lost",
    unpaired="NaN, infinity or no answer",
)
OF_TAGS = OF_DETECTIONS._replace(
    distance="the largest difference of both models' scores of a label"
)

# What models answer with, by --task
A_CLASS = "a score for each class, of which one is meant"
ANY_CLASSES = "a score for each class, of which any number may be meant"
BOXES = "boxes with classes and scores"
A_MAP = "a map: a label or a value for each pixel"
A_DIRECTION = "a vector that is compared by its direction"
TEXT_MODELS = "models that return text"

# What the built-in oracles compare
DECIDES_DIFFERENTLY = "the deployed model decides differently"
DETECTS_OTHERS = "the deployed model detects other objects"
ANSWERS_TOO_FAR = "both models' answers are more than {tolerance:g} apart"
BY_OBJECTS = (
    "an object lost, seen by the deployed model alone, of another class or at another place"
)
BY_TOLERANCE = "scores or values further apart than --tolerance, whatever the class"
LARGEST_DISTANCE = (
    "the largest distance of the answers that is no deviation, such as tolerance = 0.1 "
    "(--tolerance 0.1); of scores of classes it is their total variation distance"
)

MEASURES: Mapping[ValueMeasure, str] = {
    "labels": "the share of pixels whose label differs",
    "absolute": "the largest difference of an element",
    "relative": "the largest difference of an element, relative to the original's",
    "cosine": "1 less the cosine of both",
}
"""What the distance of two answers of values is, by the measure."""
GALLERY_NO_TOLERANCE = (
    "with a gallery there is no tolerance: embeddings are compared by the nearest entry; leave "
    "{tolerance} out"
)

KIND_MEANINGS: Mapping[str, str] = {
    "lost": "the original detects it, the deployed model does not",
    "ghost": "the deployed model detects it, the original does not",
    "class": "both detect it, as two classes",
    "shift": "both detect it, at places that overlap too little",
}
"""The kinds of differences of detections in a clause each, for legends."""
SAME_OBJECT = "same object from IoU {:g}, shifted below {:g}"
DIFFERENCES_BY_CLASS = (
    "Differences by class (of a ghost the deployed model's, else the original's) and kind. A number "
    "is how many differences there are; in the first table it shows their {} below."
)
TRIGGERS_BY_WORD = (
    "{} by a word that the original returns and by what the deployed model returns instead{}. A "
    "number shows its {}s below."
)
NO_OTHER_WORDS = "There is no trigger with other words."
NO_OTHER_WORDS_NOW = "No input deviates now."
BOTH_RETURN = "{}: the original returns {}, the deployed model {}"
NOT_FINITE = "NaN or infinity among the values"
SCORES_NOT_FINITE = "NaN or infinity among its scores"
BROKEN = "NaN or infinity in an answer"
VALUES_OF_SHAPE = "values of shape {}"
MEAN_IOU = "median mean IoU on the seeds"


def apart_words(words: ReportWords, distance: float, limit: float) -> tuple[str, str]:
    """Return how far answers are apart, and the largest distance that is allowed.

    The distance has enough digits to differ from the limit.
    """
    factor = 100 if words.unit else 1
    apart = f"{distinct_number(factor * distance, factor * limit)}{words.unit}"
    return words.apart.format(apart), f"{factor * limit:g}{words.unit}"


def alike_but_apart(label: int | None, distance: float) -> str:
    """Return how far two answers are apart that are of one label, if of any."""
    if label is None:
        return f"answers {distance:.2g} apart"
    return f"{label} both times, with scores {distance:.2g} apart"


def no_tolerance(answers: str) -> str:
    """Return why answers have no tolerance, as the template of an error."""
    return f"{{task}} has no tolerance: its answers are {answers}; leave {{tolerance}} out"


def distance_figure(
    where: str, distances: Spread, measure: ValueMeasure, tolerance: float | None, by_element: bool
) -> KeyFigure:
    """Return the key figure of distances of values on inputs of one kind: `where`, "seeds" or "triggers"."""
    name = MEASURES[measure].removeprefix("the ")
    about = f"90 % at most {distances.p90:.3g}; {name}"
    about += tolerance_bound(tolerance, by_element=by_element)
    return KeyFigure(f"distance on the {where}", f"median {distances.median:.3g}", about, main=True)


def distance_is(measure: ValueMeasure, tolerance: float | None) -> str:
    """Return what the distance of two answers of values is, and which is a deviation."""
    deviates = "" if tolerance is None else f"; above {tolerance:g} it is a deviation"
    return f"The distance of two answers is {MEASURES[measure]}{deviates}."


def tolerance_bound(tolerance: float | None, *, by_element: bool) -> str:
    """Return what is added to a distance of the tolerance it is compared with; "" without one."""
    if tolerance is None or not by_element:
        return "" if tolerance is None else f", tolerance {tolerance:g}"
    more = "" if tolerance == 1 else f"; more than {tolerance:g} deviates"
    return f", in multiples of its own tolerance{more}"


def inputs_differ(differing: int, inputs: int, kinds: str) -> str:
    """Return how many inputs have a difference, and of which kinds."""
    verb = "differs" if differing == 1 else "differ"
    return f"{differing:,} of {counted(inputs, 'input')} {verb}; inputs by kind: {kinds}"


def pixels_apart(share: float, overlap: float | None) -> str:
    """Return what share of two maps' labels differ; `overlap` is their mean IoU."""
    return (
        f"{percent_text(share)} of the pixels have another label (mean IoU {number_text(overlap)})"
    )


def values_apart(measure: str, apart: float, *, by_tolerance: bool) -> str:
    """Return how far two answers of values are apart by a measure, or by elements' own tolerances."""
    if by_tolerance:
        return f"an element is {apart:.3g} times its tolerance apart"
    if measure == "cosine":
        return f"1 less the cosine is {apart:.3g}"
    number = f"{100 * apart:.3g} %" if measure == "relative" else f"{apart:.3g}"
    return f"an element is {number} apart"


def taken_for_sigmoids(whose: str, off: float) -> str:
    """Return that outputs are taken for sigmoids of which one is meant; sums are up to `off` off 1."""
    return (
        f"the {whose} model's outputs are taken for independent sigmoids, since all lie in [0, "
        f"1], and their sum is up to {off:.2g} off 1; they are divided by their sum. State "
        "`--task multi-label` if several classes may be meant, `--output logits` if they are none, "
        "`--output probabilities` to leave them as they are"
    )


def taken_for_probabilities(whose: str, off: float) -> str:
    """Return that outputs are taken for probabilities, whose sums are up to `off` off 1."""
    return (
        f"the {whose} model's outputs are taken for probabilities, since all lie in [0, 1], but "
        f"their sum is up to {off:.2g} off 1; state `--output logits` if they are none"
    )


def symbols_of_file(key: str) -> str:
    """Return that a model's text is read by the symbols under this key of its file's metadata."""
    return (
        f"outputs become text by the symbols in the metadata {key!r} of the model's "
        "file, as PP-OCR's models have it: a blank before them, a space after them; "
        "`--decoder vocabulary=FILE` states others"
    )


def taken_for_detectors(reason: str) -> str:
    """Return that models are taken for detectors, and why."""
    return f"the models are taken for detectors ({reason}); state --task if they are none"


def boxes_read_as(whose: str, kind: str, exchanged: Sequence[str] = ()) -> str:
    """Return which format a detector's outputs have by their values.

    `exchanged`: the names of the outputs that are classes and scores, where their names say otherwise.
    """
    how, flag = f"kind {kind}", "--decoder kind="
    if exchanged:
        how = f"{exchanged[0]} as classes and {exchanged[1]} as scores, against their names"
        flag = "--decoder outputs="
    return (
        f"the {whose} model's outputs are read as {how}, by their values on the seeds; state "
        f"{flag} if that is wrong"
    )


Shape = Sequence[int | None]


def raw_pair(scores: tuple[str, Shape], boxes: tuple[str, Shape]) -> str:
    """Return why two outputs, each a name and a shape, are a detector's without anchors' places."""
    names = (f"{name} {shape_text(shape)}" for name, shape in (scores, boxes))
    return f"outputs {' and '.join(names)} are scores and boxes of the same anchors"


def ssd_outputs(names: Sequence[str], shapes: Sequence[Shape]) -> str:
    """Return why outputs are boxes, classes and scores."""
    sizes = ", ".join(map(shape_text, shapes))
    return (
        f"outputs {', '.join(names)} of shapes {sizes} are boxes, classes and scores of the same "
        "objects"
    )


def grid_of_cells(stride: int, channels: int) -> str:
    """Return what an output of FastestDet is."""
    return f"is a grid of a cell each {stride} pixels with {channels} channels, as FastestDet's"


def anchors_with_classes(classes: int, anchors: int | None, *, objectness: bool) -> str:
    """Return what an output of YOLO is, whose fifth value is an objectness or none."""
    what = f"{classes} classes {'and an objectness ' if objectness else ''}at"
    return f"has {what} each of {anchors or 'its'} anchors"


def anchors_with_scores(scores: int, anchors: int | None) -> str:
    """Return what an output of YOLO is, whose fifth value may be an objectness or a class."""
    return f"has a box and {scores} scores for each of {anchors or 'its'} anchors"


def rows_of_six(*, is_usual: bool) -> str:
    """Return what an output of 6 values a row is."""
    return "is a list of objects with 6 values each" if is_usual else "has 6 values a row"

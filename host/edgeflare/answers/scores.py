"""Scores of classes, of which one is meant: float64 [classes]; and labels alone, as such scores."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal.text import percent_text
from edgeflare.answers.kind import AnswerKind
from edgeflare.answers.parts import Card, Margins, Name, Pieces, decision_of
from edgeflare.types import Decision, Scores
from edgeflare.words.answers import A_CLASS, OF_SCORES, SCORES_NOT_FINITE

_TOLD = 3
_SHOWN = 5
"""Numbers of top classes in a sentence, and on a card."""


class ScoresKind(AnswerKind[Scores]):
    """A deviation is another top-1 class."""

    name = "scores"
    tasks = {"classification": A_CLASS}
    noun = "scores of classes"
    outputs: ClassVar[tuple[str, ...]] = (
        "probabilities",
        "logits",
        "sigmoid",
        "sigmoid-logits",
        "gallery",
    )
    stated_outputs = ("auto", "probabilities", "logits", "sigmoid", "sigmoid-logits", "label")
    has_classes = True
    takes_tolerance = True
    boundary = "edgeflare.strategies.boundary.strategy:search_scores"
    boundary_options = ""
    lacks = ""
    distance_name = "total_variation"
    shows_pairs = True
    report_words = OF_SCORES
    moves_with_input = False

    def accepts(self, answer: object) -> bool:
        return isinstance(answer, np.ndarray)

    def class_scores_at(self, outputs: Sequence[NDArray[np.float64]]) -> int | None:
        """Return the place of the first output that is one vector an input."""
        vectors = (sum(n > 1 for n in output.shape[1:]) == 1 for output in outputs)
        return next((place for place, is_vector in enumerate(vectors) if is_vector), None)

    def interfaces(self, task: str, settings: Any, original: Any, deployed: Any) -> tuple[Any, Any]:
        """Return both models' interfaces; the deployed model may return a label alone."""
        from edgeflare.answers.class_interfaces import classifying_interfaces

        return classifying_interfaces(original, deployed)

    def settle(
        self, side: Any, raws: Sequence[Any], stated: str, whose: str, original: Any
    ) -> tuple[Any, str]:
        if side.compared.gallery is not None:
            return side._replace(form="gallery"), ""
        from edgeflare.answers.class_interfaces import scores_form

        form, notice = scores_form(side, stated, raws, whose, original)
        return side._replace(form=form), notice

    def reader(self, side: Any) -> Any:
        from edgeflare.answers.outputs import OutputReader
        from edgeflare.answers.value_outputs import GalleryReader

        if side.form == "gallery":
            return GalleryReader(side.output, side.compared.gallery)
        return OutputReader(side.output, side.form, side.classes)

    def numbers(self, answer: Scores) -> NDArray[np.float64]:
        return answer

    def top_label(self, answer: Scores) -> int | None:
        """Return the top-1 class; None of an answer with NaN."""
        return None if np.isnan(answer).any() else int(answer.argmax())

    def agree(self, original: Scores, deployed: Scores) -> bool:
        return self.top_label(original) == self.top_label(deployed)

    def is_tie(self, original: Scores, deployed: Scores) -> bool:
        """Whether the highest score of either is that of several classes."""
        return _only_top(original) is None or _only_top(deployed) is None

    def decide(self, original: Scores, deployed: Scores, floor: float = 0.0) -> Decision:
        """Decide as any kind does, with each answer's top-1 class looked up once: it is the hot path."""
        if not (self.is_finite(original) and self.is_finite(deployed)):
            return Decision.NONFINITE
        ours, theirs = _only_top(original), _only_top(deployed)
        if ours is None or theirs is None:
            return Decision.TIE
        if ours == theirs:
            return Decision.AGREE
        if floor <= 0:  # no tie and another class: both margins are above 0
            return Decision.DEVIATION
        return decision_of(Margins(self.margin(original), self.margin(deployed)).smaller, floor)

    def distance(self, original: Scores, deployed: Scores) -> float:
        """Return the total variation distance, 0 to 1; NaN of an answer that has it."""
        return min(float(np.abs(original - deployed).sum() / 2), 1.0)

    def margin(self, answer: Scores) -> float | None:
        """Return top-1 minus top-2; None of less than two classes."""
        if answer.size < 2:
            return None
        second, first = np.partition(answer, -2)[-2:]
        return float(first - second)

    def score_difference(self, first: Scores, second: Scores) -> float | None:
        return float(np.abs(first - second).max()) if self.is_scored else None

    def top_difference(self, original: Scores, deployed: Scores) -> float:
        return abs(float(np.maximum.reduce(original)) - float(np.maximum.reduce(deployed)))

    def sensitivity(self, seed: Scores, answer: Scores) -> float:
        """Return 1 less the sum of the squares: an error moves the least sure answers most."""
        return 1.0 - float(np.square(answer).sum())

    def class_count(self, answer: Scores) -> int:
        return answer.size

    def total_variation(self, original: Scores, deployed: Scores) -> float | None:
        """Return their distance, 1 where the deployed model's are not finite; None of labels."""
        if not self.is_scored:
            return None
        return self.distance(original, deployed) if self.is_finite(deployed) else 1.0

    def uncertainty(self, answer: Scores, k: int) -> float | None:
        ordered = np.sort(answer)[::-1]
        return float(ordered[0] - ordered[min(k, len(ordered)) - 1])

    def to_columns(self, answer: Scores) -> tuple[bytes, Pieces]:
        return np.asarray(answer, dtype="<f8").tobytes(), None

    def from_columns(self, data: bytes, pieces: Any) -> Scores:
        return np.frombuffer(data, dtype="<f8").astype(np.float64)

    def fits(self, original: Scores, deployed: Scores) -> bool:
        return original.size == deployed.size

    def answer_words(self, answer: Scores, name: Name = str) -> str:
        """Return the most probable classes: ``5 (62.1 %), 3 (30.0 %)``."""
        if not answer.size:
            return "no answer"
        if not self.is_finite(answer):
            return SCORES_NOT_FINITE
        order = np.argsort(-answer, kind="stable")[:_TOLD]
        return ", ".join(
            f"{name(int(label))} ({percent_text(float(answer[label]))})"
            for label in order
            if answer[label] > 0
        )

    def pair_words(self, key: str, name: Name) -> str:
        original, deployed = (name(int(label)) for label in key.split("-"))
        return f"{original} by both" if original == deployed else f"{original} → {deployed}"

    def card(self, original: Scores, deployed: Scores, seed: Sequence[Any] = ()) -> Card:
        return Card(scores=self.top_scores(original, deployed))

    def top_scores(self, original: Scores | None, deployed: Scores | None) -> list[list[Any]]:
        """Return (class, original's score, deployed's score) for either's top classes."""
        both = [answer for answer in (original, deployed) if answer is not None]
        highest: dict[int, float] = {}
        for answer in both:
            for label in (-answer).argsort(kind="stable")[:_SHOWN].tolist():  # NaN comes last
                scores = [float(scores[label]) for scores in both]
                highest[label] = max(filter(math.isfinite, scores), default=0.0)
        order = sorted(highest, key=lambda label: (-highest[label], label))
        return [[label, _shown(original, label), _shown(deployed, label)] for label in order]


class LabelsKind(ScoresKind):
    """Answers of which the deployed model tells the label alone: 1 at its class and 0 elsewhere.

    `kind_of_answer` of such an array is that of scores: a campaign alone knows that there are none.
    """

    name = "labels"
    noun = "labels"
    outputs = ("label",)
    is_scored = False
    takes_tolerance = False

    def answers_words(
        self, original: Scores | None, deployed: Scores | None, name: Name = str
    ) -> tuple[str, str]:
        first, second = super().answers_words(original, deployed, name)
        label = None if deployed is None else self.top_label(deployed)
        return first, second if label is None else name(label)

    def settle(
        self, side: Any, raws: Sequence[Any], stated: str, whose: str, original: Any
    ) -> tuple[Any, str]:
        return side._replace(form="label"), ""

    def as_deployed(self, answer: Scores) -> Scores:
        """Return 1 at the answer's class and 0 elsewhere."""
        return np.asarray(np.arange(answer.size) == answer.argmax(), np.float64)


def _only_top(scores: Scores) -> int | None:
    """Return the class of the highest score; None where several have it."""
    first = int(scores.argmax())
    return first if first == scores.size - 1 - int(scores[::-1].argmax()) else None


def _shown(scores: Scores | None, label: int) -> float | str | None:
    """Return a score, or "NaN", "inf" or "-inf"; None where the model was not asked."""
    if scores is None:
        return None
    value = float(scores[label])
    if math.isfinite(value):
        return round(value, 5)
    return "NaN" if math.isnan(value) else str(value)


SCORES = ScoresKind()
LABELS = LabelsKind()

"""What a kind of answer is: everything that the rest of EdgeFlare asks of two models' answers."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from edgeflare.answers.parts import (
    Card,
    LimitRule,
    Margins,
    Name,
    ObjectCounts,
    Pieces,
    Tolerance,
    decision_of,
    jsonable,
    later,
)
from edgeflare.document import KeyFigure, Section
from edgeflare.errors import UsageError
from edgeflare.types import Decision, Sample, Search, Seed
from edgeflare.words.answers import ReportWords, alike_but_apart, no_tolerance

A = TypeVar("A")
"""The type of the answers of a kind."""


class AnswerKind(ABC, Generic[A]):
    """A kind of answer. Its methods take answers of its own type alone.

    A kind of your own has the abstract methods and those whose default doesn't fit. Its file imports
    its own data; what else it needs it imports inside the method that needs it.
    """

    name: ClassVar[str]
    """In the store and in JSON; of a kind that is declared by a distribution, too."""
    noun: ClassVar[str]
    """The answers, in a noun for sentences."""
    tasks: ClassVar[Mapping[str, str]]
    """What --task takes, each with what models answer with then, in words; the most general last."""
    outputs: ClassVar[tuple[str, ...]] = ()
    """What a campaign's models are stored to return (`edgeflare.answers.outputs.OutputKind`) where
    that is not the kind's name."""
    stated_outputs: ClassVar[tuple[str, ...]] = ("auto",)
    """What may be stated of both models' outputs (--output); of the original not "label"."""
    settings: ClassVar[type[BaseModel] | None] = None
    """Its table in campaign.toml, of built-in kinds: a field of `CampaignConfig`; None: it has none."""
    has_classes: ClassVar[bool] = False
    """Whether one class is meant, so that there are labels and pairs of labels."""
    is_measured: ClassVar[bool] = False
    """Whether a deviation is a distance beyond a tolerance, not another decision."""
    is_scored: ClassVar[bool] = True
    """Whether the deployed model tells how sure it is; not where it tells a label alone."""
    takes_tolerance: ClassVar[bool] = False
    """Whether the oracle `tolerance` compares its answers."""
    largest_distance: ClassVar[float] = 1.0
    """What no distance of two of its answers exceeds; infinity where there is no such bound."""
    counts_objects: ClassVar[bool] = False
    """Whether an answer is any number of objects, each a decision of its own."""
    takes_device_budget: ClassVar[bool] = True
    """Whether `boundary` makes a finding more severe with the queries that a device budget leaves."""
    moves_with_input: ClassVar[bool] = True
    """Whether deployment moves an answer the more, the farther its input is from the seed: a search by
    distance then asks about the ends of ways alone. It moves scores of classes most where two
    classes meet."""
    boundary: ClassVar[str] = "edgeflare.strategies.boundary.strategy:search_by_distance"
    """The search of the strategy boundary by its dotted name, since strategies ask kinds and not the
    other way round; called with (options, operators, seed, rng), returns an `edgeflare.Search`."""
    boundary_by_distance: ClassVar[str] = boundary
    """The same where a user's oracle compares scores (`OracleTraits.compares_scores`)."""
    boundary_options: ClassVar[Literal["", "transcript", "detections", "values"]] = "values"
    """Which defaults its open options take (`strategies.boundary.Answered`); "": those of the sample."""
    boundary_noun: ClassVar[str] = "a tolerance"
    """What is searched for with those defaults, in messages."""

    distance_name: ClassVar[str] = "difference"
    """What the mean distance is called in the figures of a survey, behind ``mean_``."""
    lacks: ClassVar[str] = "classes"
    """What its answers don't have that a limit on pairs of classes needs; "": nothing."""
    shows_pairs: ClassVar[bool] = False
    """Whether both answers side by side, such as 4 -> 9, tell how they differ; else `difference`."""
    is_drawn: ClassVar[bool] = False
    """Whether its answers are drawn over the picture of an input."""
    page_part: ClassVar[Literal["pairs", "words", "differences", ""]] = "pairs"
    """By what findings are chosen on a page; "": by nothing. Of "pairs" a section counts the pairs of classes."""
    report_words: ClassVar[ReportWords] = ReportWords()
    """Its words in reports."""

    @abstractmethod
    def accepts(self, answer: object) -> bool:
        """Whether this is an answer of this kind, by its class; an array is always one of scores."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a process that is sent this kind have its own one of that name."""
        return later, ("edgeflare.answers:kind_named", self.name)

    def __deepcopy__(self, memo: Any) -> "AnswerKind[A]":
        return self

    # What a model's outputs are read as

    def suits(self, original: Any, deployed: Any) -> str | None:
        """Return why two models' outputs are taken for this kind where no task is stated; None: not.

        "" where something else states it. Both are `answers.interface.ModelOutputs`. Raises
        ModelError and UsageError where they are of this kind, but don't fit. Built-in kinds alone are
        asked: a declared one is taken where its task is stated.
        """
        return None

    def check_files(self, task: str, original: Any, deployed: Any) -> None:
        """Raise ModelError or UsageError where two models' files tell that they aren't both of it.

        `task` as it is stated; `original` and `deployed` are `ModelOutputs` whose inputs aren't known
        yet. Built-in kinds alone are asked.
        """
        return

    def tolerance(self, task: str, settings: Mapping[str, Any]) -> Tolerance:
        """Return what a tolerance is compared with; `settings` are those stated of its table."""
        refusal = "" if self.takes_tolerance else no_tolerance(self.tasks[task])
        return Tolerance(self.report_words.distance, self.largest_distance, refusal=refusal)

    def interfaces(self, task: str, settings: Any, original: Any, deployed: Any) -> tuple[Any, Any]:
        """Return both models' `ModelInterface`: by default each with its only output.

        `settings` is the kind's table of the campaign's configuration, None without one, `original`
        and `deployed` are `ModelOutputs`. Raises ModelError and UsageError where outputs or settings
        don't fit.
        """
        from edgeflare.answers.interface import plain_interfaces

        return plain_interfaces(self, task, original, deployed)

    def settle(
        self, side: Any, raws: Sequence[Any], stated: str, whose: str, original: Any
    ) -> tuple[Any, str]:
        """Return a model's interface once raw outputs were seen, and a notice; "": none.

        `side` is a `ModelInterface`, whose `form` tells what its output is (logits, for example),
        `raws` are raw outputs to the first seeds, `stated` is the setting `output`, `whose` the
        model is, and `original` the original's reader where this is the deployed model, else None.
        By default there is nothing to be seen, and the form is the kind's only one.
        """
        return side._replace(form=(*self.outputs, self.name)[0]), ""

    @abstractmethod
    def reader(self, side: Any) -> Any:
        """Return what makes answers of a model's raw outputs: an `AnswerReader`.

        `side` is the `ModelInterface` that `settle` gave.
        """

    # Numbers and decisions

    @abstractmethod
    def numbers(self, answer: A) -> NDArray[np.float64]:
        """Return all numbers of an answer, float64 of any shape."""

    @abstractmethod
    def agree(self, original: A, deployed: A) -> bool:
        """Whether both answers are the same decision; of measured kinds, the same answer."""

    @abstractmethod
    def distance(self, original: A, deployed: A) -> float:
        """Return how far two answers are apart, from 0; NaN where they can't be compared."""

    @abstractmethod
    def margin(self, answer: A) -> float | None:
        """Return how far a finite answer is from another decision, 0 to 1; None without one."""

    def margins(self, original: A, deployed: A) -> Margins:
        """Return the margins of what differs in two answers, of all where nothing does."""
        return Margins(self.finite_margin(original), self.finite_margin(deployed))

    def decide(self, original: A, deployed: A, floor: float = 0.0) -> Decision:
        """Decide on two answers: a deviation is another decision, of which both models are sure.

        `floor`: the smallest margin of either model that makes a deviation, in [0, 1).
        """
        if not (self.is_finite(original) and self.is_finite(deployed)):
            return Decision.NONFINITE
        if self.is_tie(original, deployed):
            return Decision.TIE
        if self.agree(original, deployed):
            return Decision.AGREE
        return decision_of(self.margins(original, deployed).smaller, floor)

    def is_tie(self, original: A, deployed: A) -> bool:
        """Whether one of two finite answers decides nothing."""
        return False

    def is_finite(self, answer: A) -> bool:
        """Whether no number of an answer is NaN or infinite."""
        numbers = self.numbers(answer).reshape(-1)
        if not numbers.size:
            return True
        highest, lowest = numbers[numbers.argmax()], numbers[numbers.argmin()]  # NaN is both
        return math.isfinite(highest) and math.isfinite(lowest)

    def finite_margin(self, answer: A) -> float | None:
        """Return the margin of any answer; None of one that is not finite."""
        return self.margin(answer) if self.is_finite(answer) else None

    def is_below(self, answer: A, floor: float) -> bool:
        """Whether one answer alone tells that no deviation can be above the floor."""
        margin = self.finite_margin(answer) if floor > 0 else None
        return margin is not None and margin < floor

    def as_deployed(self, answer: A) -> A:
        """Return the original's answer as a deployed model of this kind would tell it."""
        return answer

    def object_counts(self, original: A, deployed: A, clear: float) -> ObjectCounts | None:
        """Return how many objects two answers have, of which differences of a margin `clear` count.

        None where answers have no objects.
        """
        return None

    def certainty(self, answer: A) -> float | None:
        """Return how sure a model is of an answer alone, before the other model is asked."""
        return self.finite_margin(answer)

    def is_sure_of_difference(self, original: A, deployed: A, sure: float) -> bool:
        """Whether the original is sure of what differs; True where `certainty` has told that."""
        return True

    def is_same(self, first: A, second: A) -> bool:
        """Whether two answers are the same to the last bit; NaN is the same as NaN."""
        return bool(np.array_equal(self.numbers(first), self.numbers(second), equal_nan=True))

    def rounds_to(self, first: A, second: A) -> bool | None:
        """Whether two finite answers of one model to one input differ by rounding alone.

        None: as the decision and the single numbers tell (see `metrics.is_same_answer`).
        """
        return None

    def changes(self, original: A, deployed: A) -> Sequence[Any]:
        """Return each thing in which two answers differ, as `Change`; none where labels tell it."""
        return ()

    def class_count(self, answer: A) -> int:
        """Return the number of classes of which an answer means one, each with a score; 0 without."""
        return 0

    def class_scores_at(self, outputs: Sequence[NDArray[np.float64]]) -> int | None:
        """Return which of a model's outputs, [inputs, ...], has the scores of classes; None without one."""
        return None

    def top_label(self, answer: A) -> int | None:
        """Return the class that is meant; None without one."""
        return None

    def is_right(self, answer: A, label: int) -> bool | None:
        """Whether a model gives the label of its seed; None without classes."""
        return self.top_label(answer) == label if self.has_classes else None

    def score_difference(self, first: A, second: A) -> float | None:
        """Return the largest difference of a class's scores; None where there are none."""
        return None

    def check_classes(self, error: UsageError) -> None:
        """Raise this error for answers of which none is one class."""
        if not self.has_classes:
            raise error

    # Search

    def search_boundary(
        self, options: Any, operators: Any, seed: Seed, rng: np.random.Generator
    ) -> Search:
        """Return the strategy boundary's search from a seed; the arguments are those of `boundary`."""
        name = self.boundary_by_distance if seed.compares_scores else self.boundary
        search: Search = later(name, options, operators, seed, rng)
        return search

    def is_decided_by_label(self, seed: Seed) -> bool:
        """Whether another top-1 class is what a search from this seed is for."""
        return self.has_classes and not seed.compares_scores

    def state(self, answer: A) -> NDArray[np.float64]:
        """Return what a state of DFLARE's search consists of: float64 [n]."""
        return self.numbers(answer).reshape(-1)

    def sensitivity(self, seed: A, answer: A) -> float:
        """Return how far deployment's error may move an answer, finite; `seed` is that to the seed."""
        return min(self.distance(seed, answer), sys.float_info.max)

    def total_variation(self, original: A, deployed: A) -> float | None:
        """Return how far the scores of classes are apart, 0 to 1; None without such scores."""
        return None

    def repeat_difference(self, first: A, second: A) -> float:
        """Return how far one model's two answers to one input are apart.

        By default that is the largest difference of a score, without scores 1 for another decision.
        """
        difference = self.score_difference(first, second)
        return float(not self.agree(first, second)) if difference is None else difference

    def finding(self, original: A, deployed: A) -> str:
        """Return what sort of deviation two answers are, which stays the same when it shrinks."""
        return ""

    def top_difference(self, original: A, deployed: A) -> float:
        """Return DFLARE's D(x): the difference of both models' certainty of their decisions."""
        return self.distance(original, deployed)

    def uncertainty(self, answer: A, k: int) -> float | None:
        """Return DiffChaser's k-uncertainty: the highest less the k-highest probability.

        None of an answer that has none, or of a kind without it.
        """
        return self.finite_margin(answer)

    # Storage

    @abstractmethod
    def to_columns(self, answer: A) -> tuple[bytes, Pieces]:
        """Return the two columns that an answer is stored as: its numbers, and what else it consists of.

        Of a kind of your own the latter is an object or None; the kind's name is put into it.
        """

    @abstractmethod
    def from_columns(self, data: bytes, pieces: Any) -> A:
        """Return the answer of two columns. Raises ValueError, KeyError, TypeError for others."""

    def fits(self, original: A, deployed: A) -> bool:
        """Whether two answers to one sample can be compared."""
        return True

    # Words and JSON

    def text(self, answer: A) -> str | None:
        """Return an answer as text; None where scores tell it."""
        return None

    def difference(self, original: A, deployed: A, name: Name = str) -> str | None:
        """Return how two answers differ in words; None where labels or texts tell it."""
        return None

    def answers_words(
        self, original: A | None, deployed: A | None, name: Name = str
    ) -> tuple[str, str]:
        """Return both answers in words, each by `answer_words`; either may be missing."""
        first, second = (
            "no answer" if answer is None else self.answer_words(answer, name)
            for answer in (original, deployed)
        )
        return first, second

    def answer_words(self, answer: A, name: Name = str) -> str:
        """Return an answer in words."""
        return self.text(answer) or self.noun

    def example(self, original: A, deployed: A) -> str:
        """Return how two answers differ, in a few words for a list of examples."""
        texts = self.text(original), self.text(deployed)
        if texts != (None, None) and texts[0] != texts[1]:
            return f"{texts[0]} against {texts[1]}"
        labels = self.top_label(original), self.top_label(deployed)
        if labels[0] is not None and labels[0] != labels[1]:
            return f"{labels[0]} against {labels[1]}"
        return alike_but_apart(labels[0], self.distance(original, deployed))

    def pieces(self, answer: A) -> list[str] | None:
        """Return the pieces of a text that `numbers` has a row for each of; None without text."""
        return None

    def to_cell(self, answer: A) -> Any:
        """Return an answer as a cell of a data frame."""
        return self.numbers(answer)

    def to_json(self, answer: A) -> Any:
        """Return an answer for files that programs read, as `jsonable` data."""
        cell = self.to_cell(answer)
        return jsonable(cell.tolist() if isinstance(cell, np.ndarray) else cell)

    def differences_json(self, original: A, deployed: A) -> list[dict[str, Any]] | None:
        """Return what differs for files that programs read; None where labels tell it."""
        return None

    def stated_output(self, form: str) -> str:
        """Return how --output states an output of a form that `outputs` has."""
        return form

    # Repair

    def float_heads(self, config: Any, store: Any) -> tuple[Mapping[str, tuple[str, ...]], str]:
        """Return the tensors that a recipe keeps in float, by its name, and why there are none.

        `config` is the campaign's, `store` its `Store`. By default there are none.
        """
        return {}, ""

    # Figures and reports

    def figures(
        self, seeds: Iterable[Any], triggers: Iterable[Any], settings: Mapping[str, Any]
    ) -> Any:
        """Return figures of the pairs of answers to the seeds and to the triggers; None: none.

        `settings` is the campaign's configuration as it is stored.
        """
        return None

    def seed_differences(self, figures: Any) -> Any:
        """Return what a ranking shows beside each candidate: a `DifferenceCounts`; None: nothing."""
        return None

    def figures_json(self, figures: Any) -> dict[str, Any]:
        """Return what the JSON of a summary tells of `figures`, by its keys there."""
        return {}

    def key_figures(self, figures: Any) -> Iterable[KeyFigure]:
        """Yield the key figures of what `figures` gave."""
        return ()

    def setting_figures(self, figures: Any, models: Mapping[str, Any]) -> Iterable[KeyFigure]:
        """Yield the key figures that say what the models' outputs are read as.

        `models` is what is stored of both, by "original" and "deployed".
        """
        return ()

    def sections(self, figures: Any, name: Name, *, is_replay: bool = False) -> Iterable[Section]:
        """Yield the sections of a report of what `figures` gave, beside that on pairs of classes.

        `name` returns a class's name. Those of the kind's `page_part` choose findings on a page by
        the cells of a `Matrix`, whose keys are those of `Card.pairs`; `order` 100 puts them before
        the findings. Of a replay its inputs are figured in place of triggers.
        """
        return ()

    def page_note(self, figures: Any) -> str:
        """Return a sentence for the readers of the gallery; "": none."""
        return ""

    def pair_words(self, key: str, name: Name) -> str:
        """Return a key of `Card.pairs` in words."""
        return key

    def checks(self) -> Sequence[LimitRule]:
        """Return the rules of limits that not every campaign has, such as `max_lost`.

        A rule's key is a field of `LimitsConfig`, so that a declared kind can have no limit of its own.
        """
        return ()

    def panel(self, sample: Sample, original: A, deployed: A) -> Sequence[Sample] | None:
        """Return an image with each answer drawn over it; None where it is shown as it is.

        `sample` is uint8 [height, width, 3]; images of the same shape come back.
        """
        return None

    def card(self, original: A, deployed: A, seed: Sequence[Any] = ()) -> Card:
        """Return what the gallery of a page shows of two answers.

        `seed`: both models' answers to the seed, where that is another input.
        """
        return Card(self.difference(original, deployed))

    def top_scores(self, original: A | None, deployed: A | None) -> list[list[Any]]:
        """Return a card's `scores`; either answer may be missing."""
        return []

"""What every kind of answer must do, by one table; numbers by hand."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from search_models import heard

from edgeflare.answers import (
    DETECTIONS,
    KINDS,
    LABELS,
    SCORES,
    TAGS,
    TRANSCRIPTS,
    VALUES,
    AnswerKind,
    common_kind,
    kind_named,
    kind_of_answer,
    kind_of_output,
    kind_of_task,
    tasks,
)
from edgeflare.answers.columns import check_same_kind, is_answer, output_columns, output_from
from edgeflare.answers.oracles import DecisionOracle, ToleranceOracle
from edgeflare.errors import UsageError
from edgeflare.types import Decision, DetectionRules, Detections, Transcript, ValueRules, Values

PLACED, UNPLACED = DetectionRules(), DetectionRules(located=False)
LEFT, RIGHT = (0.0, 0.0, 0.25, 0.5), (0.5, 0.0, 0.75, 0.5)


def scores(*numbers: float) -> Any:
    return np.array(numbers, np.float64)


def objects(rules: DetectionRules, *found: tuple[int, float], boxes: Any = (LEFT, RIGHT)) -> Any:
    return Detections(
        np.array(boxes[: len(found)], np.float64).reshape(-1, 4),
        np.array([label for label, _ in found], np.int64),
        scores(*(score for _, score in found)),
        rules,
    )


def numbers(*elements: float, rules: ValueRules = ValueRules()) -> Values:  # noqa: B008 - immutable
    return Values(scores(*elements), rules)


@dataclass(frozen=True)
class Case:
    """Two answers that decide otherwise, one that decides as the first, and what is known of them."""

    kind: AnswerKind[Any]
    ours: Any
    theirs: Any
    alike: Any
    margins: tuple[float | None, float | None]
    margin: float | None
    distance: float
    certainty: float
    state: list[float]
    top_difference: float
    json: Any
    changes: int = 0
    text: str | None = None
    example: str = ""


PAIR = (scores(0.625, 0.25, 0.125), scores(0.25, 0.5, 0.25))
CASES = [
    Case(
        SCORES,
        *(*PAIR, scores(0.5, 0.25, 0.25)),
        *((0.375, 0.25), 0.375, 0.375, 0.375),
        *([0.625, 0.25, 0.125], 0.125, [0.625, 0.25, 0.125]),
        example="0 against 1",
    ),
    Case(
        LABELS,
        *(scores(1, 0, 0), scores(0, 0, 1), scores(1, 0, 0)),
        *((1.0, 1.0), 1.0, 1.0, 1.0),
        *([1, 0, 0], 0.0, [1, 0, 0]),
        example="0 against 2",
    ),
    Case(
        TAGS,
        objects(UNPLACED, (3, 0.875), (1, 0.25)),
        objects(UNPLACED, (3, 0.125)),
        objects(UNPLACED, (3, 0.75), boxes=(RIGHT,)),
        *((0.375, 0.375), 0.25, 0.75, 1.0),
        *([0.875, 0.25], 0.75, [{"label": 3, "score": 0.875, "box": [*LEFT]}]),
        changes=1,
        text="class 3",
        example="class 3 against nothing",
    ),
    Case(
        TRANSCRIPTS,
        heard("go on", {0: (0.75, 0.125), 1: (0.5, 0.25)}),
        heard("Go off", {0: (0.75, 0.125), 1: (0.625, 0.125)}),
        heard("GO, on!"),
        *((0.25, 0.5), 0.25, 0.5, 0.25),
        *([0.75, 0.5], 0.125, [[0.75, 0.125], [0.5, 0.25]]),
        changes=1,
        text="go on",
        example='"go on" against "Go off"',
    ),
    Case(
        DETECTIONS,
        objects(PLACED, (3, 0.875), (1, 0.25)),
        objects(PLACED),
        objects(PLACED, (3, 0.75)),
        *((0.375, 0.5), 0.25, 0.875, 1.0),
        *([0.875, 0.25], 0.875, [{"label": 3, "score": 0.875, "box": [*LEFT]}]),
        changes=1,
        text="class 3",
        example="class 3 against nothing",
    ),
    Case(
        VALUES,
        *(numbers(1, 2, 3), numbers(1, 2.5, 3), numbers(1, 2, 3)),
        *((None, None), None, 0.5, 1.0),
        *([1, 2, 3], 0.5, {"shape": [3], "min": 1.0, "max": 3.0, "mean": 2.0}),
        example="answers 0.5 apart",
    ),
]
by_kind = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.name)


def broken(answer: Any, number: float, *, last: bool) -> Any:
    """The same answer with a number that is not finite at its beginning, or at its end."""
    kind = kind_of_answer(answer)
    array = np.array(kind.numbers(answer))
    array.reshape(-1)[-1 if last else 0] = number
    if isinstance(answer, Values):
        return Values(array, answer.rules)
    if isinstance(answer, Transcript):
        return Transcript(answer.pieces, array)
    if isinstance(answer, Detections):
        return Detections(array[:, 1:], answer.labels, array[:, 0], answer.rules)
    return array


def test_every_built_in_kind_is_in_the_table() -> None:
    assert [case.kind for case in CASES] == KINDS


@by_kind
class TestDecisions:
    def test_another_answer_deviates_as_far_as_both_are_sure(self, case: Case) -> None:
        kind, ours, theirs = case.kind, case.ours, case.theirs
        assert kind.margins(ours, theirs) == pytest.approx(case.margins)
        assert kind.margins(theirs, ours) == pytest.approx(case.margins[::-1])
        smaller = kind.margins(ours, theirs).smaller
        if smaller is None:  # no answer of it is another decision
            assert kind.decide(ours, theirs) is kind.decide(theirs, ours) is Decision.TIE
            return
        for floor in (0.0, smaller / 2, smaller):
            assert kind.decide(ours, theirs, floor) is Decision.DEVIATION
            assert kind.decide(theirs, ours, floor) is Decision.DEVIATION
        above = math.nextafter(smaller, 2)
        assert kind.decide(ours, theirs, above) is Decision.BELOW_FLOOR
        assert kind.decide(theirs, ours, above) is Decision.BELOW_FLOOR
        assert not kind.agree(ours, theirs)

    def test_an_answer_agrees_with_itself_whatever_its_margin(self, case: Case) -> None:
        for other in (case.ours, case.alike):
            assert case.kind.agree(case.ours, other)
            assert case.kind.decide(case.ours, other, 0.99) is Decision.AGREE
            assert not case.kind.is_tie(case.ours, other)

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("last", [False, True])
    def test_one_that_is_not_finite_decides_nothing(
        self, case: Case, number: float, last: bool
    ) -> None:
        bad = broken(case.ours, number, last=last)
        assert case.kind.is_finite(case.ours)
        assert not case.kind.is_finite(bad)
        for pair in ((bad, case.ours), (case.ours, bad), (bad, bad)):
            assert case.kind.decide(*pair) is Decision.NONFINITE
        assert case.kind.finite_margin(bad) is None
        assert case.kind.certainty(bad) is None
        assert not case.kind.is_below(bad, 0.99)

    def test_one_answer_tells_its_margin_and_how_sure_the_model_is(self, case: Case) -> None:
        kind, margin = case.kind, case.margin
        assert kind.margin(case.ours) == kind.finite_margin(case.ours) == margin
        assert kind.certainty(case.ours) == case.certainty
        assert not kind.is_below(case.ours, 0.0)
        told = margin is not None and kind not in (DETECTIONS, TAGS)
        if told:
            assert not kind.is_below(case.ours, margin or 0.0)
        assert kind.is_below(case.ours, 1.01) is told

    def test_oracles_decide_as_the_kind_does_and_take_no_other(self, case: Case) -> None:
        oracle = DecisionOracle(case.kind, 0.1)
        assert oracle.decide(case.ours, case.theirs) is case.kind.decide(case.ours, case.theirs)
        other = VALUES if case.kind is not VALUES else SCORES
        with pytest.raises(TypeError):
            DecisionOracle(other).decide(case.ours, case.ours)


@by_kind
class TestNumbers:
    def test_distances_are_symmetric_and_0_of_the_same(self, case: Case) -> None:
        kind = case.kind
        assert kind.distance(case.ours, case.theirs) == pytest.approx(case.distance)
        assert kind.distance(case.theirs, case.ours) == pytest.approx(case.distance)
        assert kind.distance(case.ours, case.ours) == 0
        assert case.distance <= kind.largest_distance

    def test_the_same_is_the_same_to_the_last_bit(self, case: Case) -> None:
        nan = broken(case.ours, math.nan, last=True)
        assert case.kind.is_same(nan, broken(case.ours, math.nan, last=True))
        assert not case.kind.is_same(case.ours, nan)
        assert not case.kind.is_same(case.ours, case.theirs)

    def test_searches_see_numbers(self, case: Case) -> None:
        kind = case.kind
        assert kind.state(case.ours).tolist() == case.state
        assert kind.top_difference(case.ours, case.theirs) == pytest.approx(case.top_difference)
        assert kind.top_difference(case.theirs, case.ours) == pytest.approx(case.top_difference)

    def test_an_answer_goes_to_the_store_and_comes_back(self, case: Case) -> None:
        nan = broken(case.ours, math.nan, last=False)
        for answer in (case.ours, case.theirs, case.alike, nan):
            columns = output_columns("original", answer)
            data, pieces = columns["original"], columns["original_pieces"]
            back = output_from(data, pieces)
            assert case.kind.accepts(back)
            assert case.kind.is_same(back, answer)
            assert is_answer(back)
            assert case.kind.fits(answer, back)
        assert output_columns("original", None) == {"original": None, "original_pieces": None}
        assert output_from(None, None) is None

    def test_answers_of_two_kinds_are_refused(self, case: Case) -> None:
        kind = kind_of_answer(case.ours)
        assert common_kind(case.ours, case.theirs) is kind
        check_same_kind(case.ours, case.theirs)
        other = numbers(1) if kind is not VALUES else PAIR[0]
        for pair in ((case.ours, other), (other, case.ours)):
            with pytest.raises(TypeError):
                common_kind(*pair)
            with pytest.raises(ValueError, match="two kinds"):
                check_same_kind(*pair)


@by_kind
class TestWords:
    def test_what_programs_and_people_read(self, case: Case) -> None:
        kind = case.kind
        assert kind.to_json(case.ours) == case.json
        assert kind.text(case.ours) == case.text
        assert kind.example(case.ours, case.theirs) == case.example
        assert len(kind.changes(case.ours, case.theirs)) == case.changes
        assert len(kind.changes(case.ours, case.ours)) == 0

    def test_its_names_lead_to_it(self, case: Case) -> None:
        kind = case.kind
        assert kind_named(kind.name) is kind
        assert all(kind_of_output(form) is kind for form in kind.outputs)
        for task, words in kind.tasks.items():
            assert tasks()[task] == words
            assert kind_of_task(task) is (SCORES if kind is LABELS else kind)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(UsageError, match="poses'"):
        kind_named("poses")
    with pytest.raises(UsageError, match="no kind"):
        kind_of_output("poses")
    with pytest.raises(UsageError, match="pose"):
        kind_of_task("pose")
    with pytest.raises(TypeError, match="str is"):
        kind_of_answer("a text")


class TestScores:
    def test_two_best_classes_are_a_tie_in_either_answer(self) -> None:
        tied = scores(0.4, 0.2, 0.4)
        for pair in ((tied, PAIR[0]), (PAIR[0], tied), (tied, tied)):
            assert SCORES.is_tie(*pair)
            assert SCORES.decide(*pair) is Decision.TIE
        below_the_top = scores(0.4, 0.3, 0.3), scores(0.3, 0.4, 0.3)
        assert SCORES.decide(*below_the_top) is Decision.DEVIATION
        assert SCORES.decide(scores(0.45, 0.55), scores(1, 0), 0.125) is Decision.BELOW_FLOOR
        assert SCORES.decide(scores(0.5, 0.5), scores(0.1, 0.9), 0.125) is Decision.TIE
        assert SCORES.is_sure_of_difference(tied, tied, 0.9)  # by their own margin

    def test_the_class_at_the_end_counts_as_any(self) -> None:
        assert SCORES.decide(scores(0.2, 0.8), scores(0.8, 0.2)) is Decision.DEVIATION
        assert SCORES.decide(scores(0.2, 0.8), scores(0.3, 0.7)) is Decision.AGREE
        assert (SCORES.top_label(PAIR[0]), SCORES.top_label(PAIR[1])) == (0, 1)
        assert SCORES.top_label(scores(0.5, math.nan)) is None
        assert SCORES.agree(PAIR[0], scores(0.5, 0.3, 0.2))
        assert not SCORES.agree(*PAIR)

    def test_a_single_class_has_no_margin(self) -> None:
        assert SCORES.margin(scores(1.0)) is None
        assert not SCORES.is_below(scores(1.0), 0.5)
        assert SCORES.margin(scores(0.75, 0.25)) == 0.5

    def test_the_uncertainty_is_that_of_the_kth_best_class(self) -> None:
        given = [SCORES.uncertainty(scores(0.125, 0.625, 0.25), k) for k in (1, 2, 3, 9)]
        assert given == [0.0, 0.375, 0.5, 0.5]

    def test_rounding_of_a_sum_leads_to_no_distance_above_1(self) -> None:
        assert SCORES.distance(scores(1, 0), scores(0, 1 + 2e-7)) == 1.0
        assert math.isnan(SCORES.distance(scores(1, 0), scores(math.nan, 1)))

    def test_scores_of_two_lengths_do_not_fit_and_none_are_no_answer(self) -> None:
        assert not SCORES.fits(scores(1, 0), scores(1, 0, 0))
        assert (SCORES.class_count(PAIR[0]), VALUES.class_count(numbers(1))) == (3, 0)
        assert not is_answer(scores())

    def test_labels_alone_are_scores_of_which_one_is_1(self) -> None:
        assert (SCORES.is_scored, LABELS.is_scored, LABELS.has_classes) == (True, False, True)
        assert LABELS.as_deployed(scores(0.2, 0.5, 0.3)).tolist() == [0, 1, 0]
        assert SCORES.as_deployed(PAIR[0]) is PAIR[0]
        assert kind_of_answer(scores(0, 1)) is SCORES


class TestDetections:
    def test_empty_answers_agree_and_have_no_margin(self) -> None:
        nothing = objects(PLACED)
        assert DETECTIONS.decide(nothing, nothing) is Decision.AGREE
        assert DETECTIONS.margins(nothing, nothing) == (None, None)
        assert DETECTIONS.margin(nothing) is None
        assert DETECTIONS.distance(nothing, nothing) == 0
        data, pieces = output_columns("a", nothing).values()
        assert DETECTIONS.is_same(output_from(data, pieces), nothing)
        assert not DETECTIONS.is_same(nothing, objects(PLACED, (0, 0.5)))

    def test_a_score_at_the_confidence_is_detected_without_a_margin(self) -> None:
        at, below = objects(PLACED, (0, 0.5)), objects(PLACED, (0, math.nextafter(0.5, 0)))
        assert [one.kind for one in DETECTIONS.changes(at, below)] == ["lost"]
        assert [one.kind for one in DETECTIONS.changes(below, at)] == ["ghost"]
        assert DETECTIONS.decide(at, below) is DETECTIONS.decide(below, at) is Decision.TIE
        assert DETECTIONS.changes(below, below) == ()

    @pytest.mark.parametrize(
        ("right", "kinds"),
        [(0.5, []), (0.75, []), (0.76, ["shift"]), (1.0, ["shift"]), (1.01, ["lost", "ghost"])],
    )
    def test_an_overlap_at_a_bound_is_above_it(self, right: float, kinds: list[str]) -> None:
        rules = PLACED._replace(shift_iou=2 / 3, match_iou=0.5)
        ours = objects(rules, (0, 0.9), boxes=((0.0, 0.0, 0.5, 1.0),))
        theirs = objects(rules, (0, 0.9), boxes=((0.0, 0.0, right, 1.0),))
        assert [one.kind for one in DETECTIONS.changes(ours, theirs)] == kinds

    def test_the_worst_difference_decides(self) -> None:
        ours = objects(PLACED, (0, 0.875), (1, 0.625))
        assert DETECTIONS.margins(ours, objects(PLACED)) == pytest.approx((0.375, 0.5))
        assert DETECTIONS.is_sure_of_difference(ours, objects(PLACED), 0.75)
        assert not DETECTIONS.is_sure_of_difference(ours, objects(PLACED), 0.76)

    def test_objects_are_counted_that_clearly_differ(self) -> None:
        ours, theirs = objects(PLACED, (0, 0.875)), objects(PLACED, (1, 0.75), boxes=(RIGHT,))
        assert DETECTIONS.object_counts(ours, theirs, 0.05) == (2, 1, 2)
        assert DETECTIONS.object_counts(ours, theirs, 0.25) == (2, 1, 2)
        assert DETECTIONS.object_counts(ours, theirs, 0.26) == (2, 1, 1)
        assert SCORES.object_counts(*PAIR, 0.05) is None

    @pytest.mark.parametrize(
        "pieces",
        [
            {"labels": [1], "rules": [0.5, 0.5, 0.75, True]},
            {"labels": [1, 2], "rules": [1.5, 0.5, 0.75, True]},
            {"labels": [1, 2], "rules": [0.5, 0.5, 0.75, 1]},
            {"labels": [1, 2], "rules": [0.5, "0.5", 0.75, True]},
        ],
    )
    def test_damaged_columns_are_refused(self, pieces: Any) -> None:
        data, _ = DETECTIONS.to_columns(objects(PLACED, (1, 0.75), (2, 0.25)))
        with pytest.raises(ValueError, match=r"differ in number|no rules of detections"):
            DETECTIONS.from_columns(data, pieces)

    def test_objects_without_places_are_of_both_kinds(self) -> None:
        assert kind_of_answer(objects(UNPLACED, (0, 0.5))) is TAGS
        assert kind_of_answer(objects(PLACED, (0, 0.5))) is DETECTIONS
        assert DETECTIONS.accepts(objects(UNPLACED))
        assert not TAGS.accepts(objects(PLACED))

    def test_figures_count_what_the_floor_of_the_campaign_leaves(self) -> None:
        ours, nothing = objects(PLACED, (0, 0.875), (1, 0.625)), objects(PLACED)
        bad = broken(ours, math.nan, last=True)
        pairs = [(ours, nothing), (ours, ours), (bad, ours), (ours, bad)]
        for floor, lost in ((None, 2), (0.125, 2), (0.126, 1)):
            found = DETECTIONS.figures(pairs, [], {"search": {"margin_floor": floor}}).seeds
            assert (found.inputs, found.differing, found.original, found.deployed) == (2, 1, 4, 2)
            assert found.kinds == {"lost": lost, "ghost": 0, "class": 0, "shift": 0}
        assert DETECTIONS.figures(pairs, [], {}).triggers.inputs == 0

    def test_limits_count_objects_of_a_class(self) -> None:
        rules = {rule.key: rule for rule in DETECTIONS.checks()}
        assert list(rules) == ["max_lost", "max_ghost", "max_class", "max_shift"]
        assert [rule.key for rule in TAGS.checks()] == ["max_lost", "max_ghost"]
        assert not any(kind.checks() for kind in (SCORES, LABELS, TRANSCRIPTS, VALUES))
        ours, nothing = objects(PLACED, (0, 0.875), (1, 0.625)), objects(PLACED)
        assert rules["max_lost"].compare(ours, nothing, 0.0) == ([0, 1], [0, 1])
        assert rules["max_lost"].compare(ours, nothing, 0.125) == ([0, 1], [0, 1])
        assert rules["max_lost"].compare(ours, nothing, 0.126) == ([0, 1], [0])
        assert rules["max_ghost"].compare(nothing, ours, 0.0) == ([0, 1], [0, 1])
        assert rules["max_class"].compare(ours, nothing, 0.0) == ([0, 1], [])
        bad = broken(ours, math.nan, last=True)
        assert rules["max_lost"].compare(ours, bad, 0.0) == ([0, 1], [0, 1])
        assert rules["max_shift"].compare(ours, bad, 0.0) == ([0, 1], [])
        assert rules["max_ghost"].compare(ours, bad, 0.0) == ([], [])
        assert rules["max_lost"].compare(bad, ours, 0.0) == ([], [])
        assert (rules["max_ghost"].whose, rules["max_lost"].whose) == ("deployed model", "original")


class TestTranscripts:
    def test_a_word_without_a_margin_is_a_tie(self) -> None:
        ours, theirs = heard("go on", {1: (0.5, 0.5)}), heard("go off")
        assert TRANSCRIPTS.decide(ours, theirs) is TRANSCRIPTS.decide(theirs, ours) is Decision.TIE

    def test_silence_has_no_margin_and_no_state(self) -> None:
        silence = heard("")
        assert TRANSCRIPTS.margin(silence) is None
        assert TRANSCRIPTS.state(silence).size == TRANSCRIPTS.top_difference(silence, silence) == 0
        assert TRANSCRIPTS.decide(silence, silence) is Decision.AGREE
        assert TRANSCRIPTS.decide(silence, heard("go")) is Decision.DEVIATION
        assert TRANSCRIPTS.margins(silence, heard("go"))[0] is None
        assert TRANSCRIPTS.distance(silence, heard("go")) == 1.0
        data, pieces = output_columns("a", silence).values()
        assert TRANSCRIPTS.is_same(output_from(data, pieces), silence)

    def test_of_equal_words_all_margins_count(self) -> None:
        ours, theirs = heard("go on", {0: (0.75, 0.5)}), heard("go on", {1: (0.5, 0.375)})
        assert TRANSCRIPTS.margins(ours, theirs) == (0.25, 0.125)
        assert not TRANSCRIPTS.is_same(ours, heard("Go on", {0: (0.75, 0.5)}))


class TestValues:
    def test_a_tolerance_is_the_largest_distance_that_is_no_deviation(self) -> None:
        oracle, ours, theirs = ToleranceOracle(0.5), numbers(1, 2), numbers(1, 2.5)
        assert oracle.decide(ours, theirs) is oracle.decide(theirs, ours) is Decision.AGREE
        further = numbers(1, math.nextafter(2.5, 3))
        assert oracle.decide(ours, further) is Decision.DEVIATION
        assert oracle.decide(ours, numbers(math.nan, 2)) is Decision.NONFINITE
        assert oracle.decide(numbers(math.inf, 2), ours) is Decision.NONFINITE
        assert oracle.decide(scores(1, 0), scores(0.5, 0.5)) is Decision.AGREE
        assert oracle.decide(*PAIR) is ToleranceOracle(0.375).decide(*PAIR) is Decision.AGREE
        assert ToleranceOracle(0.25).decide(*PAIR) is Decision.DEVIATION
        assert oracle.floor == 0
        with pytest.raises(TypeError):
            oracle.decide(objects(PLACED), objects(PLACED))

    def test_a_double_that_no_float_holds_comes_back(self) -> None:
        for element in (0.1, 1e300, 0.5):
            data, pieces = VALUES.to_columns(numbers(element))
            assert VALUES.from_columns(data, pieces).array.tolist() == [element]
        assert pieces is not None
        with pytest.raises(ValueError, match="damaged"):
            VALUES.from_columns(b"no zlib", pieces)

    @pytest.mark.parametrize(
        "rules",
        [
            ["far", 0.5, 0, []],
            ["absolute", "0.5", 0, []],
            ["absolute", 0.5, 1, []],
            ["absolute", 0.5, -2, []],
            ["absolute", 0.5, 0, [1.0, 1.0]],
            ["absolute", 0.5, 0, [1.0, 0.0, 1.0]],
        ],
    )
    def test_rules_that_fit_no_values_are_refused(self, rules: list[Any]) -> None:
        data, pieces = VALUES.to_columns(numbers(1, 2, 3))
        assert isinstance(pieces, dict)
        fitting = {**pieces, "rules": ["absolute", 0.5, -1, [1.0, 1.0, 2.0]]}
        assert VALUES.from_columns(data, fitting).rules.tolerances == (1.0, 1.0, 2.0)
        with pytest.raises(ValueError, match="of values"):
            VALUES.from_columns(data, {**pieces, "rules": rules})

    def test_values_of_two_sizes_do_not_fit_but_those_of_none(self) -> None:
        assert VALUES.fits(numbers(1, 2), numbers(3, 4))
        assert not VALUES.fits(numbers(1, 2), numbers(3))
        assert VALUES.fits(numbers(), numbers(3))
        assert VALUES.fits(numbers(3), numbers())
        assert VALUES.to_json(numbers()) == {"shape": [0]}
        square = Values(np.zeros((4, 4)))
        for pair in ((numbers(1), numbers(1, 2)), (square, Values(np.zeros((1, 4))))):
            with pytest.raises(ValueError, match="two kinds"):
                check_same_kind(*pair)

    @pytest.mark.parametrize(("size", "kept"), [(1024, 1024), (1025, 513), (2048, 1024)])
    def test_a_state_of_a_search_has_few_numbers(self, size: int, kept: int) -> None:
        state = VALUES.state(numbers(*range(size)))
        assert (state.size, state[0], state[1]) == (kept, 0, math.ceil(size / 1024))

    def test_distances_are_told_by_their_measure(self) -> None:
        def words(measure: Any, *tolerances: float) -> str | None:
            rules = ValueRules(measure, tolerances=tolerances)
            told = VALUES.difference(numbers(1, 2, rules=rules), numbers(1, 2.5, rules=rules))
            return told and told.replace("an element is ", "")

        assert words("absolute") == "0.5 apart"
        assert (words("absolute", 1.0, 0.25) or "").startswith("2 times")
        assert words("relative") == "25 % apart"
        assert (words("cosine") or "").endswith("cosine is 0.00345")
        maps = ValueRules("labels", axis=None)
        told = VALUES.difference(numbers(0, 0, rules=maps), numbers(0, 1, rules=maps))
        assert told is not None
        assert (told[:6], told[-15:]) == ("50.0 %", "(mean IoU 0.25)")
        broken = VALUES.difference(numbers(math.nan), numbers(1))
        assert (broken or "").startswith("NaN or infinity")

    def test_figures_are_of_the_pairs_on_seeds_and_of_triggers(self) -> None:
        pairs = [(numbers(0, 0), numbers(0, apart)) for apart in (0.25, 0.5, 1.0)]
        found = VALUES.figures(pairs, pairs[2:], {"search": {"tolerance": 0.5}})
        assert (found.measure, found.tolerance, found.mean_iou) == ("absolute", 0.5, None)
        assert (found.seeds.median, found.triggers.median, found.by_element) == (0.5, 1.0, False)
        assert VALUES.figures(pairs, [], {}).tolerance is None

    def test_they_are_no_decision(self) -> None:
        assert VALUES.uncertainty(numbers(1), 2) is None
        assert VALUES.is_measured
        assert (VALUES.takes_tolerance, SCORES.takes_tolerance) == (True, True)
        assert not any(kind.takes_tolerance for kind in (LABELS, TAGS, TRANSCRIPTS, DETECTIONS))

    @pytest.mark.parametrize(
        ("task", "settings", "expected"),
        [
            ("dense", {}, (1.0, 0.01)),
            ("embedding", {}, (2.0, 0.01)),
            ("vector", {}, (math.inf, None)),
            ("vector", {"tolerances": [0.1]}, (math.inf, 1.0)),
            ("vector", {"measure": "cosine"}, (2.0, None)),
            ("embedding", {"gallery": "g.npz"}, (1.0, None)),
        ],
    )
    def test_a_tolerance_is_bounded_by_the_measure(
        self, task: str, settings: dict[str, Any], expected: tuple[float, float | None]
    ) -> None:
        found = VALUES.tolerance(task, settings)
        assert (found.largest, found.default) == expected
        assert bool(found.refusal) is ("gallery" in settings)
        assert TRANSCRIPTS.tolerance("transcript", {}).refusal
        assert not SCORES.tolerance("classification", {}).refusal

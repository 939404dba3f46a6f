"""Which answers can't be used: the legitimate cases that only look like a dead model, and the others."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from search_models import heard
from stores import ended, store_of

from edgeflare.answers.metrics import is_same_answer
from edgeflare.campaign.pair.health import count_constant, is_other_answer, unusable_answers
from edgeflare.store import OutcomeRecord, Store
from edgeflare.types import Decision, Detections, Output, Status, Values

ONE_HOT = np.array([1.0, 0.0, 0.0])
OTHER = np.array([0.0, 1.0, 0.0])
UNSURE = np.array([0.5, 0.3, 0.2])
TIE = np.array([0.4, 0.4, 0.2])
NOTHING = Detections(np.zeros((0, 4)), np.zeros(0, np.int64), np.zeros(0))
REPLAYED = {"source": {"kind": "campaign", "folder": "c"}, "inputs": []}
RNG = np.random.default_rng(0)


def boxes(count: int = 1) -> Detections:
    return Detections(RNG.uniform(0, 1, (count, 4)), np.zeros(count, np.int64), np.full(count, 0.9))


def varied() -> np.ndarray:
    return np.asarray(RNG.dirichlet(np.ones(3)))


def answered(folder: Path, pairs: Sequence[tuple[Output, Output, Decision]]) -> Store:
    """A store with both models' answers to that many seeds."""
    names = [str(number) for number in range(len(pairs))]
    store = store_of(folder, seeds=names, answers=pairs.__getitem__)
    store.complete_seeds([], [])
    return store


AGREE, DEVIATION = Decision.AGREE, Decision.DEVIATION
CONSTANT = {
    "unsure of its class": ([(varied(), UNSURE, AGREE)] * 4, 4),
    "of no class": ([(varied(), np.full(3, 1 / 3), Decision.TIE)] * 18, 18),
    "sure, but wrong on a third": (
        [(ONE_HOT, ONE_HOT, AGREE)] * 6 + [(OTHER, ONE_HOT, DEVIATION)] * 3,
        9,
    ),
    "a detector that sees nothing": ([(boxes(), NOTHING, DEVIATION)] * 4, 4),
    "a recogniser that hears nothing": ([(heard("yes"), heard(""), DEVIATION)] * 4, 4),
    "numbers far from the original's": ([(Values(varied()), Values(UNSURE), DEVIATION)] * 5, 5),
}
LEGITIMATE = {
    "three seeds": [(varied(), UNSURE, AGREE)] * 3,
    "one value differs": [(varied(), UNSURE, AGREE)] * 9 + [(varied(), UNSURE + 1e-9, AGREE)],
    "saturated on seeds of one class": [(ONE_HOT, ONE_HOT, AGREE)] * 60,
    "saturated, wrong on two": [(varied(), ONE_HOT, AGREE)] * 18
    + [(OTHER, ONE_HOT, DEVIATION)] * 2,
    "labels of one class": [(varied(), ONE_HOT, AGREE)] * 12,
    "a binary classifier": [(varied(), varied(), AGREE) for _ in range(12)],
    "nothing is to be seen": [(NOTHING, NOTHING, AGREE)] * 12,
}


@pytest.mark.parametrize("case", CONSTANT)
def test_one_answer_to_all_seeds(tmp_path: Path, case: str) -> None:
    pairs, count = CONSTANT[case]
    with answered(tmp_path / "c", pairs) as store:
        assert count_constant(store, "", "deployed") == count


@pytest.mark.parametrize("case", LEGITIMATE)
def test_equal_answers_that_a_healthy_model_gives(tmp_path: Path, case: str) -> None:
    with answered(tmp_path / "c", LEGITIMATE[case]) as store:
        assert count_constant(store, "", "deployed") == 0


@pytest.mark.parametrize(
    ("case", "count"),
    [
        ("unsure of its class", 4),
        ("sure, but wrong on a third", 0),
        ("a detector that sees nothing", 0),
    ],
)
def test_equal_answers_to_what_a_replay_sends(tmp_path: Path, case: str, count: int) -> None:
    """Its inputs are there because they deviate: that many do tells nothing."""
    with answered(tmp_path / "c", CONSTANT[case][0]) as store:
        store.state.replay = REPLAYED
        assert count_constant(store, "", "deployed") == count


def test_the_same_seed_again_is_one_input(tmp_path: Path) -> None:
    about = {"sample": lambda number: np.zeros((2, 2, 1), np.uint8)}
    with store_of(tmp_path / "c", seeds=9, answers=(varied(), UNSURE), **about) as store:
        store.complete_seeds([], [])
        assert count_constant(store, "", "deployed") == 0


def test_an_answer_to_a_finding_shows_that_a_model_is_not_constant(tmp_path: Path) -> None:
    with answered(tmp_path / "c", [(varied(), UNSURE, AGREE)] * 4) as store:
        store.state.answers_checked = {"": {"constant": {"deployed": 4, "original": 0}}}
        assert [one.kind for one in unusable_answers(store)] == ["constant"]
        ended(store, "0", original=OTHER, deployed=ONE_HOT)
        assert unusable_answers(store) == ()


def test_ties_on_half_of_the_seeds_are_none(tmp_path: Path) -> None:
    halves = [(varied(), TIE, Decision.TIE)] * 3 + [(varied(), varied(), AGREE)] * 3
    with answered(tmp_path / "c", halves) as store:
        assert unusable_answers(store) == ()
    with answered(tmp_path / "d", [*halves, (TIE, varied(), Decision.TIE)]) as store:
        (problem,) = unusable_answers(store)
        assert (problem.kind, problem.model, problem.inputs, problem.of) == (
            "tied",
            "deployed",
            4,
            7,
        )


@pytest.mark.parametrize(
    ("count", "is_replay", "problems"), [(3, False, 0), (4, False, 1), (8, True, 0)]
)
@pytest.mark.parametrize(
    ("answer", "decision"), [(TIE, Decision.TIE), (np.full(3, np.nan), Decision.NONFINITE)]
)
def test_few_inputs_and_those_of_a_replay_show_no_model_without_decisions(
    tmp_path: Path,
    answer: np.ndarray,
    decision: Decision,
    count: int,
    is_replay: bool,
    problems: int,
) -> None:
    with answered(tmp_path / "c", [(varied(), answer, decision)] * count) as store:
        if is_replay:
            store.state.replay = REPLAYED
        assert len(unusable_answers(store)) == problems


def test_a_campaign_whose_answers_are_lost_is_not_called_constant(tmp_path: Path) -> None:
    with answered(tmp_path / "c", []) as store:
        store.state.answers_checked = {"": {"constant": {"deployed": 4, "original": 0}}}
        assert unusable_answers(store) == ()


@pytest.mark.parametrize(
    ("unstable", "found", "kinds"), [(1, 0, []), (3, 4, []), (3, 3, ["not-repeatable"])]
)
def test_findings_that_do_not_repeat(tmp_path, unstable, found, kinds) -> None:
    with answered(tmp_path / "c", [(varied(), varied(), AGREE)] * 8) as store:
        statuses = [Status.UNSTABLE] * unstable + [Status.FOUND] * found
        for number, status in enumerate(statuses):
            store.add_outcome(OutcomeRecord(f"{number}", status, 1))
        assert [one.kind for one in unusable_answers(store)] == kinds


def test_decisions_that_rounding_turns_beside_the_boundary_are_no_random_model(tmp_path) -> None:
    with answered(tmp_path / "c", [(varied(), varied(), AGREE)] * 4) as store:
        for number in range(4):
            unstable = OutcomeRecord(f"{number}", Status.UNSTABLE, 1, deployed_margin=0.0015)
            store.add_outcome(unstable)
        assert unusable_answers(store) == ()


SAME = {
    "the bits": (UNSURE, UNSURE.copy()),
    "the last bits": (UNSURE, UNSURE * (1 + 1e-6)),
    "a rounding of a 16-bit logit": (
        np.array([0.5, 0.5 - 1e-3, 1e-3]),
        np.array([0.502, 0.497, 1e-3]),
    ),
    "classes of no weight": (np.array([1.0, 1e-9, 0.0]), np.array([1.0, 5e-9, 0.0])),
    "no numbers": (np.array([np.nan, 1.0]), np.array([1.0, np.inf])),
    "a vector's element near 0": (Values(np.array([1e3, 1e-4])), Values(np.array([1e3, -1e-4]))),
}
ANOTHER = {
    "another class": (UNSURE, UNSURE[::-1]),
    "another wrong class": (ONE_HOT, OTHER),
    "dropout beside a saturated class": (
        np.array([0.999, 9e-4, 1e-4]),
        np.array([0.9985, 1.4e-3, 1e-4]),
    ),
    "NaN once": (UNSURE, np.array([np.nan, 0.5, 0.5])),
    "other words": (heard("yes"), heard("no")),
    "another box": (boxes(), boxes()),
    "another vector": (Values(np.array([1.0, 2.0])), Values(np.array([1.0, 1.5]))),
}


BESIDE_A_BOUNDARY = {
    "the last bit turns the class": (np.array([0.5 + 1e-8, 0.5 - 1e-8]), False),
    "other numbers": (np.array([0.45, 0.55]), True),
    "no numbers": (np.array([np.nan, 0.5]), True),
}


@pytest.mark.parametrize("case", BESIDE_A_BOUNDARY)
def test_another_decision_beside_a_boundary_tells_nothing(case: str) -> None:
    now, is_other = BESIDE_A_BOUNDARY[case]
    assert is_other_answer(np.array([0.5 - 1e-8, 0.5 + 1e-8]), now) == is_other


def test_a_box_that_rounding_adds_is_no_other_answer() -> None:
    def seen(score: float) -> Detections:
        return Detections(
            np.array([[0.1, 0.1, 0.5, 0.5]]), np.zeros(1, np.int64), np.array([score])
        )

    assert not is_other_answer(seen(NOTHING.rules.confidence + 1e-7), NOTHING)
    assert is_other_answer(seen(0.9), NOTHING)


@pytest.mark.parametrize("case", SAME)
def test_the_same_answer(case: str) -> None:
    assert is_same_answer(*SAME[case])


@pytest.mark.parametrize("case", ANOTHER)
def test_another_answer(case: str) -> None:
    assert not is_same_answer(*ANOTHER[case])

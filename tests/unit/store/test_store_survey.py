"""What a survey puts into a campaign's folder comes back from it, in its order."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.errors import StoreError
from edgeflare.store import (
    ReferenceAnswer,
    SeedInput,
    Store,
    SurveyCounts,
    SurveyedSeed,
    SurveyRecord,
)
from edgeflare.types import Decision, Transcript

SAMPLE = np.full((2, 2, 1), 7, np.uint8)


def answer(seed_id: str = "a", number: int = 0, **changes: Any) -> SurveyRecord:
    record = SurveyRecord(
        seed_id=seed_id,
        number=number,
        family="gain",
        severity=4,
        params={"gain": 0.1 + 0.2, "seed": (1 << 62) + 1, "kernel": [1, 2]},
        sample="ab" * 32,
        original=np.array([0.1, 0.9]),
        deployed=np.array([0.6000000001, 0.3999999999]),
        decision=Decision.DEVIATION,
        original_margin=0.8,
        deployed_margin=0.2,
        total_variation=0.5,
        confident_deviation=True,
        confirmed=2,
        device_name="pi",
    )
    return replace(record, **changes)


@pytest.fixture
def two_seeds(store: Store) -> Store:
    store.add_seeds([SeedInput("b", np.ones((2, 2, 1), np.uint8))])
    return store


def test_all_kinds_of_answers_come_back_to_the_last_bit_after_closing(
    two_seeds: Store, tmp_path: Path
) -> None:
    nothing = {"deployed": None, "deployed_margin": None, "total_variation": None}
    silent = answer(decision=Decision.UNDECIDED, detail="the agent died", **nothing)
    heard = Transcript(("no",), np.array([[0.9, 0.1]])), Transcript((), np.empty((0, 2)))
    both = {"original": heard[0], "deployed": heard[1], "total_variation": None}
    written = [silent, answer(number=1), answer("b", **both)]
    done = SurveyedSeed("a", 1, 2, 5, 0.25, "pi")
    two_seeds.add_survey(written, [done])
    two_seeds.close()
    with Store.open(tmp_path / "campaign") as again:
        found = list(again.survey())
        assert list(again.surveyed_seeds()) == [done]
        assert again.survey_counts().seeds == 1
    assert [repr(one) for one in found] == [repr(one) for one in written]
    assert [one.disagreement for one in found] == [None, pytest.approx(0.5), 1.0]


def test_answers_come_by_phase_replica_seed_and_number(two_seeds: Store) -> None:
    order = [
        ("survey", "", "a", 0),
        ("survey", "", "a", 1),
        ("survey", "", "b", 0),
        ("survey", "pi", "a", 0),
        ("pursuit", "", "a", 0),
        ("check", "", "b", 0),
    ]
    for phase, replica, seed_id, number in reversed(order):
        two_seeds.add_survey([answer(seed_id, number, phase=phase, replica=replica)])
    found = [(one.phase, one.replica, one.seed_id, one.number) for one in two_seeds.survey()]
    assert found == order
    assert len(list(two_seeds.survey("pi"))) == 1
    assert len(list(two_seeds.survey(phase="pursuit"))) == 1


@pytest.mark.parametrize(
    "changes", [{"total_variation": 7.0}, {"total_variation": -0.5}, {"severity": 6}]
)
def test_an_answer_out_of_range_is_not_written(store: Store, changes: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match=r"(total_variation|severity)"):
        store.add_survey([answer(), answer(number=1, **changes)])
    assert list(store.survey()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("partners", [{"id": "a"}]),
        ("partner_answers", {"": {"ab": [[0.5]]}}),
        ("families", [1]),
    ],
)
def test_a_fact_that_could_not_be_read_is_not_written(store: Store, name: str, value: Any) -> None:
    with pytest.raises(StoreError, match="read again"):
        setattr(store.state, name, value)
    assert not getattr(store.state, name)


def test_more_answers_than_a_page_are_all_there(store: Store) -> None:
    store.add_survey([answer(number=number) for number in range(1500)])
    assert [one.number for one in store.survey()] == list(range(1500))


def test_counts_are_sums_over_the_finished_seeds(two_seeds: Store) -> None:
    for seed in (
        SurveyedSeed("a", 3, 2, 9, 0.5, "pi"),
        SurveyedSeed("b", 3, 0, 4, 0.25, "nano"),
        SurveyedSeed("a", 5, device_name="pi", phase="pursuit"),
    ):
        two_seeds.add_survey([], [seed])
    asked = {"pi": 5, "nano": 3}
    assert two_seeds.survey_counts("survey") == SurveyCounts(2, 6, 2, 13, 0.75, asked)
    assert two_seeds.survey_counts().survey == 11
    assert two_seeds.surveyed_seed_ids() == {"a", "b"}
    assert two_seeds.surveyed_seed_ids("pi") == set()


def test_answers_and_their_seed_are_added_together_or_not_at_all(store: Store) -> None:
    store.add_survey([answer()], [SurveyedSeed("a", 1)])
    with pytest.raises(StoreError):
        store.add_survey([answer(number=1)], [SurveyedSeed("a", 1)])
    assert len(list(store.survey())) == 1
    with pytest.raises(StoreError, match="seed 'c'"):
        store.add_survey([answer("c")])


def test_what_references_answer_comes_back_by_their_name(two_seeds: Store) -> None:
    answers = [
        ReferenceAnswer("int8", "a", 0, np.array([0.3, 0.7]), Decision.AGREE, 0.2),
        ReferenceAnswer("int8", "b", 1, np.array([np.nan, 0.7]), Decision.NONFINITE, 1.0),
    ]
    other = ReferenceAnswer("fp16", "a", 0, np.array([0.1, 0.9]), Decision.AGREE, 0.0)
    two_seeds.add_reference_answers([*answers, other])
    assert [repr(one) for one in two_seeds.reference_answers("int8")] == list(map(repr, answers))
    assert [one.key for one in two_seeds.reference_answers("fp16")] == [("a", "survey", 0)]


def test_a_digest_is_that_under_which_the_sample_is_stored(store: Store) -> None:
    digest = store.sample_digest(SAMPLE)
    assert not store.has_sample(digest)
    assert store.put_sample(SAMPLE) == digest
    assert store.has_sample(digest)

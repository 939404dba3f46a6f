"""Columns have what the records have, for every kind of campaign."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stores import ended, finished, ran  # noqa: F401

from edgeflare.answers.metrics import top_label
from edgeflare.store import OutcomeRecord, SeedInput, Store, SurveyedSeed, SurveyRecord
from edgeflare.types import Decision, FrontPoint

COUNTS = ("seed_queries", "search_queries", "confirmation_queries", "host_only_queries")
OPTIONAL = ("original_label", "deployed_label", "original_margin", "deployed_margin", "l2", "linf")


def as_columns(records: list[OutcomeRecord], positions: dict[str, int]) -> dict[str, list[Any]]:
    known = ("status", "replica", "device_name", "detail", "searched", "first_queries", "seconds")
    same = {
        name: [getattr(one, name) for one in records] for name in (*known, *COUNTS, "round_trips")
    }
    optional = {
        name: [np.nan if (value := getattr(one, name)) is None else value for one in records]
        for name in (*OPTIONAL, "snr_db")
    }
    has_trigger = [one.trigger is not None for one in records]
    return {
        **same,
        **optional,
        "has_trigger": has_trigger,
        "seed": [positions[one.seed_id] for one in records],
    }


def check(store: Store) -> None:
    rows = store.columns.outcomes()
    positions = {seed.id: seed.position for seed in store.seeds()}
    for name, expected in as_columns(list(store.outcomes()), positions).items():
        column = getattr(rows, name)
        if name in ("status", "replica", "device_name", "detail"):
            assert [column.names[code] for code in column.codes] == expected, name
        else:
            np.testing.assert_array_equal(column, expected, err_msg=name)
    chosen = rows.position[::3].tolist()
    assert [one.seed_id for one in store.outcomes_at(chosen)] == [
        one.seed_id for one in list(store.outcomes())[::3]
    ]
    seeds = [seed for seed in store.seeds() if seed.outputs is not None]
    counts = store.columns.seed_labels()
    labelled = [seed for seed in seeds if seed.label is not None]
    assert tuple(counts.values()) == (
        sum(seed.outputs.decision is Decision.TIE for seed in seeds),
        len(labelled),
        sum(top_label(seed.outputs.original) == seed.label for seed in labelled),
        sum(top_label(seed.outputs.deployed) == seed.label for seed in labelled),
    )


def test_of_a_campaign_that_ended_in_every_way(finished: Store) -> None:  # noqa: F811
    check(finished)


@pytest.mark.parametrize("name", ["replicate", "transcripts", "audio"])
def test_of_campaigns_that_ran(ran: Callable[[str], Path], name: str) -> None:  # noqa: F811
    with Store.open(ran(name)) as store:
        check(store)


def test_queries_to_the_first_trigger_are_not_those_to_the_severest(store: Store) -> None:
    front = FrontPoint(4, 0.1, 1.0, 2), FrontPoint(9, 0.2, 1.5, 3)
    ended(store, "a", trigger=1, search_queries=9, front=front)
    assert store.columns.outcomes().first_queries.tolist() == [4]


def test_of_a_survey(store: Store) -> None:
    store.add_seeds([SeedInput("b", np.ones((2, 2, 1), np.uint8))])
    sure = np.array([0.9, 0.1])
    first = SurveyRecord(
        "a", 0, "gain", 2, {}, "s0", sure, sure, Decision.AGREE, 0.25, original_margin=0.8
    )
    records = [
        first,
        replace(first, number=1, sample="s1", deployed=None, decision=Decision.UNDECIDED),
        replace(first, seed_id="b", family="noise", severity=5, confident_deviation=True),
        replace(first, seed_id="b", number=1, replica="pi"),
        replace(first, number=2, sample="s1", phase="check"),
    ]
    store.add_survey(records, [SurveyedSeed("a", 2), SurveyedSeed("b", detail="it can't answer")])
    rows = store.columns.survey("survey")
    there = list(store.survey(phase="survey"))
    for name in ("family", "replica", "decision"):
        column = getattr(rows, name)
        assert [column.names[code] for code in column.codes] == [
            getattr(one, name) for one in there
        ]
    assert rows.severity.tolist() == [one.severity for one in there]
    assert rows.confident_deviation.tolist() == [one.confident_deviation for one in there]
    assert rows.total_variation.tolist() == [0.25] * 4
    assert np.isnan(rows.deployed_margin).all()
    assert rows.repeated.tolist() == [False, False, True, False]  # another replica's isn't
    assert next(store.survey_at(rows.position[2:3].tolist())).family == "noise"
    assert [one.family for one in store.survey(deviating=True)] == ["noise"]
    assert store.columns.unsure_seeds() == (0, 1)
    assert store.columns.survey_alarms() == (4, 1)

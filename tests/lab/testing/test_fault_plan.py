"""Schedules of faults: drawn alike from a seed, stated by hand, told and taken up again, finite."""

import json
from typing import Any

import pytest
from shown_numbers import numbers

from edgeflare.errors import UsageError
from edgeflare_lab.testing import DIRECTIONS, KINDS, Fault, FaultPlan

BREAKS = {"drop", "truncate", "corrupt", "cut", "kill"}


def test_a_seed_gives_the_same_faults_and_another_one_others() -> None:
    assert FaultPlan(3, faults=50).faults == FaultPlan(3, faults=50).faults
    assert len({FaultPlan(seed).faults for seed in range(50)}) == 50


def test_the_drawing_is_the_same_on_every_machine() -> None:
    assert numbers(repr(FaultPlan(7, faults=4))) == "0 9774 1 439 12 2 492 3 457"


def test_all_kinds_both_directions_and_whole_pieces_come_about() -> None:
    faults = FaultPlan(1, faults=400).faults
    assert {fault.kind for fault in faults} == set(KINDS)
    assert {fault.direction for fault in faults if fault.kind == "cut"} == set(DIRECTIONS)
    duplicates = {fault.count == 0 for fault in faults if fault.kind == "duplicate"}
    masks = {fault.mask.bit_count() == 1 for fault in faults if fault.kind == "corrupt"}
    assert duplicates == masks == {True, False}


def test_what_is_chosen_bounds_what_is_drawn() -> None:
    plan = FaultPlan(5, faults=300, span=64, spare=500, longest_delay_s=0.25)
    last: dict[tuple[int, str], int] = {}
    for fault in plan.faults:
        if fault.kind == "refuse":
            assert fault.stream > 0
            assert 1 <= fault.count <= 3
            continue
        before = last.get((fault.stream, fault.direction), 500 if fault.stream == 0 else 0)
        assert before <= fault.at < before + 64
        assert 0 <= fault.seconds <= 0.25
        last[fault.stream, fault.direction] = fault.at
    streams = [fault.stream for fault in plan.faults if fault.kind in BREAKS]
    assert streams == list(range(len(streams)))
    assert {fault.kind for fault in FaultPlan(1, faults=40, kinds=["cut", "kill"]).faults} == {
        "cut",
        "kill",
    }
    assert FaultPlan(1, faults=0).faults == ()


def test_a_plan_told_is_the_plan_again() -> None:
    plan = FaultPlan(11, faults=60)
    assert FaultPlan.from_json(json.loads(json.dumps(plan.to_json()))).faults == plan.faults
    names = {"FaultPlan": FaultPlan, "Fault": Fault}
    assert eval(repr(plan), names).faults == plan.faults
    assert eval(str(plan), names).faults == plan.faults


def test_a_plan_reports_what_happened() -> None:
    cut = Fault("cut", at=3)
    plan = FaultPlan.of([cut, Fault("delay", at=9, seconds=0.5), cut])
    plan.on_fault(cut)
    assert plan.fired == (cut,)
    shown = str(plan).splitlines()
    assert shown[1].endswith("# happened")
    assert shown[2].endswith("# not met")
    assert shown[3].endswith("# not met")


def test_faults_belong_to_the_streams_one_after_the_other() -> None:
    first, third = Fault("cut", 0), Fault("delay", 2, seconds=1)
    plan = FaultPlan.of([third, first])
    assert [plan.next_stream() for _ in range(4)] == [(first,), (), (third,), ()]


def test_refusals_come_before_their_stream_and_end() -> None:
    refusal, later = Fault("refuse", 1, count=2), Fault("refuse", 2)
    plan = FaultPlan.of([refusal, later])
    assert not plan.refuses()
    plan.next_stream()
    assert [plan.refuses() for _ in range(4)] == [True, True, False, False]
    assert plan.fired == (refusal,)
    assert plan.next_stream() == ()
    assert [plan.refuses() for _ in range(2)] == [True, False]
    assert plan.fired == (refusal, later)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "melt"}, "delay, drop"),
        ({"kind": "cut", "direction": "up"}, "device"),
        ({"kind": "cut", "at": -1}, "from 0"),
        ({"kind": "cut", "stream": -1}, "from 0"),
        ({"kind": "delay", "seconds": -0.1}, "longer"),
        ({"kind": "delay", "seconds": float("nan")}, "longer"),
        ({"kind": "drop", "count": 0}, "least 1"),
        ({"kind": "duplicate", "count": -1}, "least 0"),
        ({"kind": "corrupt", "mask": 0}, "to 255"),
        ({"kind": "corrupt", "mask": 256}, "to 255"),
        ({"kind": "cut", "when": 3}, "describes"),
        ({}, "describes"),
    ],
)
def test_what_is_no_fault_is_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        FaultPlan.from_json([wrong])


@pytest.mark.parametrize(
    "wrong",
    [
        {"faults": -1}, {"span": 0}, {"spare": -1}, {"longest_delay_s": -1.0}, {"kinds": ["melt"]},
        {"kinds": []},
    ],
)  # fmt: skip
def test_what_draws_no_plan_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="plan"):
        FaultPlan(1, **wrong)

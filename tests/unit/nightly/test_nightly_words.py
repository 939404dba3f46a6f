"""What is said of a night: what changed, and JUnit's XML."""

from datetime import datetime, timezone
from pathlib import Path
from unittest.mock import Mock

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from nights import add_night, figures, red, run_of
from shown_numbers import numbers
from stores import Ended, candidate

from edgeflare.analysis import RunContext, run_analysis
from edgeflare.analysis.replay import ReplaySummary
from edgeflare.campaign.events import Notice, Stage, Step
from edgeflare.campaign.replay.results import ReplayedInput, ReplayState
from edgeflare.nightly.comparison import changes, replay_checks
from edgeflare.nightly.history import History, NightLog
from edgeflare.nightly.night import Check, Identity, ReplayCounts
from edgeflare.nightly.reports import write_junit

BEFORE = Identity(
    original="a" * 64,
    deployed="b" * 64,
    device={"kernel": "6.1.0", "runtime": {"version": "1.17", "threads": 4}},
    host={"numpy": "1.26.4"},
    search={"max_queries": 500},
)


def test_each_change_is_reported_with_what_was_and_is() -> None:
    now = Identity(
        original="a" * 64,
        deployed="c" * 64,
        device={"kernel": "6.1.0", "runtime": {"version": "1.18", "threads": 4}},
        host={"numpy": "2.1.0", "onnxruntime": "1.20"},
        search={"max_queries": 900},
    )
    assert numbers("\n".join(changes(BEFORE, now))) == "256 1.17 1.18 1.26.4 2.1.0 1.20 500 900"


def test_each_part_of_a_run_is_a_test_case(tmp_path: Path) -> None:
    tie = Check(part="comparison", name="disagreement", words="a tie", crossed=False)
    bad = red("3 inputs\x00 deviate <now>")
    night = add_night(
        History(tmp_path),
        0,
        run_of("int8", "local", checks=(tie,)),
        run_of("int8", "pi4", "regression", **{**bad, "checks": (*bad["checks"], tie)}),
        run_of("big", "local", "failed", words=("there is no model file big.onnx",)),
        run_of("big", "pi4", "away", words=("pi4 can't be reached",)),
        run_of("old", "pi4", "regression", accepted=True, **red()),
        run_of("new", "pi4", "first"),
    )
    suites = list(JUnitXml.fromfile(str(write_junit(night))))
    told = {
        suite.name: {case.name: [type(one) for one in case.result] for case in suite}
        for suite in suites
    }
    passed: dict[str, list[type]] = {"replay": [], "search": [], "comparison": []}
    assert told["int8 on local"] == passed
    assert told["int8 on pi4"] == {**passed, "replay": [Failure]}
    assert told["big on local"] == {"replay": [Skipped], "search": [Error], "comparison": [Skipped]}
    assert told["big on pi4"] == {name: [Skipped] for name in passed}
    assert told["old on pi4"] == {**passed, "comparison": [Skipped]}
    assert told["new on pi4"] == {**passed, "comparison": [Skipped]}
    assert [(suite.failures, suite.errors, suite.skipped) for suite in suites][:4] == [
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 2),
        (0, 0, 3),
    ]
    failure = next(case.result[0] for suite in suites for case in suite if case.result)
    assert "deviate <now>" in failure.message
    assert "deployed model's file" in failure.text


def test_a_failed_run_is_an_error_though_its_search_is_there(tmp_path: Path) -> None:
    failed = run_of(
        "int8", "pi4", "failed", search=figures(), replay=ReplayCounts(), words=("can't compare",)
    )
    night = add_night(History(tmp_path), 0, failed)
    (suite,) = JUnitXml.fromfile(str(write_junit(night)))
    assert (suite.failures, suite.errors) == (0, 1)
    (error,) = [one for case in suite for one in case.result]
    assert error.message == "can't compare"


@pytest.mark.parametrize(("state", "words"), [("failed", "no answer"), ("nonfinite", "NaN")])
def test_an_input_that_agreed_and_has_no_answer_any_more_is_a_regression(state, words) -> None:
    rows = [replayed("a", state, deviated=False), replayed("b", state, deviated=True)]
    replay = Mock(spec=ReplaySummary, inputs=rows)
    new, broken = replay_checks([replay], 0, "20260301T020000Z")
    assert not new.crossed
    assert (broken.name, broken.crossed) == (state, True)
    assert "1 of 2" in broken.words
    assert words in broken.words


def replayed(name: str, state: ReplayState, *, deviated: bool) -> ReplayedInput:
    return ReplayedInput(
        id=name, kind="seed", seed_id=name, device="pi4", state=state, deviated=deviated,
        original_label_before=1, deployed_label_before=1, original_label=None, deployed_label=None,
        decision=None, original_margin=None, deployed_margin=None, l2=0.0, sample="",
    )  # fmt: skip


def test_the_log_has_every_notice_and_stage_with_the_time(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    with NightLog(path, lambda: datetime(2026, 3, 1, 2, 5, tzinfo=timezone.utc)) as log:
        log.event(Stage("search", "boundary on pi4", 8), "int8 on pi4, search")
        for done in range(1, 6):
            log.event(Step(done, found=done, searched=done, queries=9), "int8 on pi4, search")
        log.event(Notice("pi4 is hot"), "int8 on pi4, search")
        log.end_stage()
        log.line("int8 on pi4: regression\nwhy")
    assert (
        numbers(path.read_text())
        == "2026 03 01 02 05 00 8 4 4 2026 03 01 02 05 00 8 4 4 2026 03 01 02 05 00 8 4 5 8 5 2026 03 01 02 05 00 8 4"
    )


@pytest.mark.parametrize(
    ("kind", "measured"),
    [
        ("transcript", "the share of the words in which both models differ"),
        ("probabilities", "the share of probability that both models put on different classes"),
    ],
)
def test_a_worse_night_is_reported_in_what_the_models_answer(tmp_path, kind, measured) -> None:
    green, tonight = (
        candidate(tmp_path / name, [Ended(apart)] * 8, kind=kind)
        for name, apart in (("green", 0.25), ("tonight", 0.5))
    )
    said = run_analysis("regression", tonight, {"base": green, "called": "May"}, RunContext())
    (check,) = said.checks
    assert check.crossed
    assert "The present model" in check.words
    assert f"disagreement ({measured}) 0.25" in check.words

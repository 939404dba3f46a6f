"""When the self-test passes, and what it says where it doesn't."""

import dataclasses

from edgeflare.campaign import SelfTest, SelfTestPair

PASSED = SelfTest(
    "dflare",
    0.001,
    9.5,
    (
        SelfTestPair("itself", 20, 0, True),
        SelfTestPair("copy", 20, 0, True),
        SelfTestPair("int8", 20, 19, False),
    ),
)


def with_pair(number: int, **changes: object) -> SelfTest:
    pairs = list(PASSED.pairs)
    pairs[number] = dataclasses.replace(pairs[number], **changes)  # type: ignore[arg-type]
    return dataclasses.replace(PASSED, pairs=tuple(pairs))


def test_nothing_where_nothing_is_and_something_where_something_is() -> None:
    assert PASSED.problems == ()
    told = PASSED.to_json()
    assert (told["passed"], told["problems"]) == (True, [])
    assert [pair["false_alarms"] for pair in told["pairs"]] == [0, 0, 0]


def test_a_false_alarm_fails_it() -> None:
    failed = with_pair(1, triggers=2)
    [problem] = failed.problems
    assert "2 false alarms" in problem
    assert "--margin-floor" in problem
    assert failed.to_json()["passed"] is False
    assert failed.to_json()["pairs"][1]["false_alarms"] == 2


def test_a_search_that_finds_nothing_anywhere_fails_it() -> None:
    [problem] = with_pair(2, triggers=0).problems
    assert "found (int8)" in problem


def test_no_answer_is_no_proof() -> None:
    [problem] = with_pair(0, searches=0).problems
    assert "possible (itself)" in problem

"""The JUnit report as a real consumer reads it."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from campaign_stores import compared_campaign
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from edgeflare.analysis import LimitCheck
from edgeflare.analysis.limits import LimitFigures
from edgeflare.reports import report_text
from edgeflare.store import OutcomeRecord, SeedInput, Store
from edgeflare.types import Status


def suites(store, **options) -> dict[str, TestSuite]:
    document = JUnitXml.fromstring(report_text(store, "junit", **options).encode())
    return {suite.name: suite for suite in document}


def cases(suite: TestSuite) -> dict[str, TestCase]:
    return {case.name: case for case in suite}


def verdicts(suite: TestSuite) -> dict[str, type]:
    return {
        name: type(case.result[0]) if case.result else None for name, case in cases(suite).items()
    }


def test_without_limits_every_trigger_is_a_failure(every_status):
    with every_status() as store:
        found = suites(store)
    assert verdicts(found["pi.bench"]) == {
        "near": Failure,
        "far": Failure,
        "seed-deviates": Failure,
        "unstable": Skipped,
        "nonfinite": Error,
        "exhausted": None,
        "timeout": None,
        "gave-up": None,
        "failed": Error,
    }
    (result,) = cases(found["pi.bench"])["near"].result
    assert (result.type, result.message) == (
        "deviation",
        "0 -> 1 at L2 0.5 after 7 queries (margins 0.010, 0.062)",
    )
    assert "edgeflare replay" in result.text
    assert "limits" not in found


def test_what_ends_otherwise_says_why(every_status):
    with every_status() as store:
        found = cases(suites(store)["pi.bench"])
    said = {
        name: found[name].result[0].message
        for name in ("far", "seed-deviates", "unstable", "nonfinite", "failed")
    }
    assert said == {
        "far": "1 -> 2 at L2 2 after 7 queries (margins 0.250, none)",
        "seed-deviates": "2 -> 0 on the seed itself (margins 0.500, none)",
        "unstable": "a deviation that did not repeat: why unstable",
        "nonfinite": "NaN or infinity in an output: why nonfinite",
        "failed": "a model can't answer: why failed",
    }
    assert "budget: why exhausted" in found["exhausted"].system_out


def test_counts_and_times_add_up_on_every_level(every_status):
    with every_status(limits={"min_l2": 1.0}) as store:
        text = report_text(store, "junit")
    root = ET.fromstring(text)
    for suite in root:
        said = {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")}
        tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
        assert said == {
            "tests": len(suite.findall("testcase")),
            **{name: len(suite.findall(f"testcase/{tag}")) for name, tag in tags.items()},
        }
        seconds = sum(float(case.get("time")) for case in suite)
        assert float(suite.get("time")) == pytest.approx(seconds)
    for name in ("tests", "failures", "errors"):
        assert int(root.get(name)) == sum(int(suite.get(name)) for suite in root)
    (device,) = (suite for suite in root if suite.get("name") == "pi.bench")
    assert float(device.get("time")) == pytest.approx(9 * 0.25)
    assert device.get("hostname") == "pi.bench"
    assert len(device.get("timestamp")) == len("2026-01-31T12:00:00")
    assert {case.get("classname") for case in device} == {"night.pi_bench"}


def test_with_limits_only_what_crosses_one_alone_fails(every_status):
    limits = {"min_l2": 1.0, "max_deviation_rate": 1.0}
    with every_status(limits=limits) as store:
        found = suites(store)
    assert verdicts(found["limits"]) == {"max_deviation_rate": None, "min_l2": Failure}
    assert "L2 0.5" in cases(found["limits"])["min_l2"].result[0].message
    of_device = verdicts(found["pi.bench"])
    assert {name for name, kind in of_device.items() if kind is Failure} == {"near"}
    (result,) = cases(found["pi.bench"])["near"].result
    assert (result.type, result.message) == (
        "limit",
        "0 -> 1 at L2 0.5 after 7 queries (margins 0.010, 0.062): nearer than min_l2 = 1",
    )
    assert "2 at L2" in cases(found["pi.bench"])["far"].system_out
    assert of_device["failed"] is Error


def test_a_severe_trigger_and_a_new_pair_of_classes_cross_a_limit_alone(every_status, tmp_path):
    limits = {
        "max_severity": 0.2,
        "new_pairs": False,
        "baseline": str(tmp_path / "baseline"),
    }
    with every_status(limits=limits) as store:
        store.state.baseline_pairs = [[0, 1], [1, 2]]
        found = cases(suites(store)["pi.bench"])
    messages = {
        name: case.result[0].message.rpartition(": ")[2]
        for name, case in found.items()
        if case.result and isinstance(case.result[0], Failure)
    }
    assert messages == {
        "far": "a smaller margin of 0.25, above max_severity = 0.2",
        "seed-deviates": "a smaller margin of 0.5, above max_severity = 0.2, a pair of classes that does "
        "not deviate in the baseline",
    }


def test_limits_that_say_nothing_of_a_campaign_are_skipped_and_judge_nothing(every_status):
    with every_status(limits={"max_new_triggers": 0}) as store:
        found = suites(store)
    assert verdicts(found["limits"]) == {"max_new_triggers": Skipped}
    assert verdicts(found["pi.bench"])["far"] is Failure


def test_limits_can_be_given(every_status):
    check = LimitCheck("min_l2", 3.0, 0.5, True, figures=LimitFigures(total=1))
    with every_status() as store:
        found = suites(store, limits=(check,))
    assert "min_l2" in cases(found["limits"])["min_l2"].result[0].message
    assert verdicts(found["pi.bench"])["seed-deviates"] is None
    assert verdicts(found["pi.bench"])["far"] is Failure


def test_seeds_that_are_not_done_are_reported_not_hidden(every_status):
    with every_status() as store:
        store.state.finished = False
        (case,) = suites(store)["campaign"]
    (result,) = case.result
    assert isinstance(result, Skipped)
    assert "campaign was interrupted" in result.message
    assert "9 of 10" in result.message


def test_each_device_that_searched_for_itself_has_a_suite(tmp_path):
    with compared_campaign(tmp_path / "c", {"board": "pi"}, {"board": "jetson"}) as store:
        found = suites(store)
    assert list(found) == ["campaign", "host", "board"]
    assert list(cases(found["board"])) == ["s/0.png", "s/1.png", "s/2.png"]
    assert "cause: hardware" in cases(found["host"])["s/1.png"].result[0].text


def test_class_names_stand_for_numbers(every_status):
    with every_status() as store:
        (result,) = cases(suites(store, class_names=["cat", "dog", "eel"])["pi.bench"])[
            "near"
        ].result
    assert "dog at L2" in result.message


def test_whatever_names_and_details_hold_the_document_can_be_read(tmp_path):
    name = 'a\x00b\x1b[31m"<&>\n\ud7ff\uffff🦆.png'
    with Store.create(tmp_path / "c", {}) as store:
        store.add_seeds([SeedInput(name, np.zeros((2, 2, 1), np.uint8))])
        store.add_outcome(
            OutcomeRecord(name, Status.FAILED, 0, detail="]]> \x08 died\x0c", device_name="pi\x01")
        )
        store.state.finished = True
        ((suite_name, suite),) = suites(store).items()
    (case,) = suite
    assert suite_name == "pi\ufffd"
    assert case.name == 'a\ufffdb"<&>\n\ud7ff\ufffd🦆.png'
    assert "]]> \ufffd died\ufffd" in case.result[0].message

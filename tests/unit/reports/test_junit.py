"""The JUnit report as a real consumer reads it."""

import xml.etree.ElementTree as ET

import pytest
from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite
from stores import compared_campaign, store_of

from edgeflare.analysis import LimitCheck
from edgeflare.analysis.limits import LimitFigures
from edgeflare.reports import report_text
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
        seconds = sum(float(case.get("time")) for case in suite.iter("testcase"))
        assert float(suite.get("time")) == pytest.approx(seconds)
    for name in ("tests", "failures", "errors"):
        assert int(root.get(name)) == sum(int(suite.get(name)) for suite in root)
    (device,) = (suite for suite in root if suite.get("name") == "pi.bench")
    assert float(device.get("time")) == pytest.approx(9 * 0.25)
    assert device.get("hostname") == "pi.bench"
    assert len(device.get("timestamp")) == len("2026-01-31T12:00:00")
    assert {case.get("classname") for case in device} == {"night.pi_bench"}


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


def test_whatever_names_and_details_hold_the_document_can_be_read(tmp_path):
    name = 'a\x00b\x1b[31m"<&>\n\ud7ff\uffff🦆.png'
    end = {"seed": name, "status": Status.FAILED, "device_name": "pi\x01"}
    end["detail"] = "]]> \x08 died\x0c"
    with store_of(tmp_path / "c", [end], seeds=[name], finished=True) as store:
        ((suite_name, suite),) = suites(store).items()
    (case,) = suite
    assert suite_name == "pi\ufffd"
    assert case.name == 'a\ufffdb"<&>\n\ud7ff\ufffd🦆.png'
    assert "]]> \ufffd died\ufffd" in case.result[0].message

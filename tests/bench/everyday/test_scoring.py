"""How first answers are judged, and the figures of a bench made by hand."""

from pathlib import Path
from typing import Any

import pytest

from edgeflare_bench import EverydayBench, EverydaySuite
from edgeflare_bench.everyday.figures import costs, fault_rows, healthy_rows
from edgeflare_bench.everyday.suite import FirstAnswer
from edgeflare_bench.reports.everyday import everyday_document, everyday_report


def cause(kind: str, *names: str, side: str = "deployed", proof: str = "located") -> dict[str, Any]:
    return {"kind": kind, "side": side, "proof": proof, "names": names, "sentence": f"{kind}: so"}


def answer(*causes: dict[str, Any], **values: Any) -> FirstAnswer:
    about: dict[str, Any] = {"fault": "bias-lost", "expected": ("conversion",), "agreement": 3.0}
    return FirstAnswer(
        "small", "small/bias-lost", "float32", **{**about, "causes": causes, **values}
    )


HEALTHY: dict[str, Any] = {"fault": "", "expected": ()}


@pytest.mark.parametrize(
    ("given", "is_kind_right", "is_right"),
    [
        (answer(), False, False),
        (answer(cause("conversion", "conv1")), True, True),
        (answer(cause("compression", "conv1"), cause("conversion", "conv1")), False, False),
        (answer(cause("conversion", "conv1"), names=("conv1", "c1")), True, True),
        (answer(cause("conversion", "conv2"), names=("conv1", "c1")), True, False),
        (answer(cause("conversion"), names=("conv1",)), True, False),
        (answer(cause("conversion", "conv1/quantised"), names=("conv1",)), True, True),
        (answer(cause("conversion", "conv"), names=("conv/weights",)), True, True),
        (answer(cause("conversion", "conv1"), names=("conv12",)), True, False),
        (answer(cause("conversion", "c"), names=("c1",)), True, False),  # it stands in many
        (answer(cause("conversion", "conv1"), failed="ModelError: so"), False, False),
    ],
)
def test_the_first_cause_has_the_kind_and_names_the_place(given, is_kind_right, is_right) -> None:
    assert (given.is_kind_right, given.is_right) == (is_kind_right, is_right)


def test_a_preprocessing_is_of_the_right_side() -> None:
    about: dict[str, Any] = {"expected": ("preprocessing",), "fault": "turned-original"}
    for sides, side, is_right in (
        (("original",), "original", True),
        (("original",), "deployed", False),
        (("original", "deployed"), "deployed", True),
        (("original", "deployed"), "device", False),
        ((), "device", True),
    ):
        given = answer(cause("preprocessing", side=side), sides=sides, **about)
        assert (given.is_kind_right, given.is_right) == (True, is_right)


def test_a_remark_is_told_without_a_cause_beside_it() -> None:
    about: dict[str, Any] = {"expected": ("state",), "where": "remarks"}
    remark = cause("state")
    assert answer(remarks=(cause("labels"), remark), **about).is_right
    assert not answer(remarks=(cause("labels"),), **about).is_right
    assert not answer(cause("state"), remarks=(remark,), **about).is_right


def test_a_healthy_pair_has_no_cause_and_may_have_remarks() -> None:
    assert answer(remarks=(cause("labels"),), **HEALTHY).is_right
    assert not answer(cause("compression"), **HEALTHY).is_right
    assert not answer(failed="ModelError: so", **HEALTHY).is_right


def bench(*answers: FirstAnswer) -> EverydayBench:
    return EverydayBench(Path("bench"), EverydaySuite(data=(Path("data"),)), answers)


def test_faults_are_counted_by_what_they_have_in_common() -> None:
    right = answer(cause("conversion", "conv1"), mended="mended", report="them/it#1")
    likely = answer(cause("conversion", "conv1", proof="indicated"), mended="not")
    wrong = answer(cause("compression", "conv1"), mended="proved", is_device=True)
    unseen = answer(without="an error of 0")
    rows = {(row.by, row.value): row for row in fault_rows(bench(right, likely, wrong, unseen))}
    every = rows["", "all"]
    assert (every.faults, every.kind_right, every.right) == (3, 2, 2)
    assert (every.proved, every.proved_right) == (2, 1)
    assert (every.mended, every.tried) == (2, 3)
    assert rows["answers", "of a device"].right == 0
    assert rows["origin", "outsiders' reports"].faults == 1
    assert rows["expected", "conversion"].low is None


def test_the_interval_is_the_wider_one_of_originals_and_of_kinds_of_fault() -> None:
    def of(original: str, fault: str, is_right: bool) -> FirstAnswer:
        causes = (cause("conversion"),) if is_right else ()
        return FirstAnswer(
            *(original, f"{original}/{fault}", "float32", fault),
            expected=("conversion",),
            causes=causes,
        )

    kinds = [of("a", str(number), number < 8) for number in range(10)]
    others = [of("b", str(number), number < 8) for number in range(10)]
    (every, *_) = fault_rows(bench(*kinds, *others))
    assert (every.right, every.faults) == (16, 20)
    assert every.low is not None
    assert every.high is not None
    # each original has the same share; kinds of fault are all right or all wrong
    assert every.low < 0.7
    assert every.high > 0.9


def test_false_alarms_are_counted_by_tool_chain_with_a_bound() -> None:
    quiet = [FirstAnswer("a", f"a/x/{number}", "x") for number in range(239)]
    alarm = FirstAnswer("a", "a/y/0", "y", causes=(cause("compression"),))
    device = FirstAnswer("a", "a/x/0/device", "x", is_device=True)
    rows = {
        (row.tool_chain, row.is_device): row for row in healthy_rows(bench(*quiet, alarm, device))
    }
    assert (rows["all", False].pairs, rows["all", False].alarms) == (240, 1)
    assert rows["all", False].high == pytest.approx(0.0196, abs=2e-4)  # Clopper and Pearson's
    assert (rows["x", False].alarms, rows["y", False].alarms) == (0, 1)
    assert rows["x", False].high == pytest.approx(1 - 0.05 ** (1 / 239))
    assert rows["all", True].pairs == 1


def test_costs_are_those_of_what_was_triaged() -> None:
    answers = [answer(calls=number, seconds=number / 10) for number in range(1, 12)]
    spent = costs(bench(*answers, answer(without="an error of 0")))
    assert spent is not None
    assert spent.calls == (6, 10, 11)
    assert spent.seconds == (0.6, 1.0, 1.1)
    assert costs(bench()) is None


def test_a_report_lists_what_is_wrong_and_what_cannot_be_seen() -> None:
    rows = bench(
        answer(cause("compression", "conv1")),
        answer(without="an error of 0"),
        answer(cause("compression"), **HEALTHY),
    )
    report = everyday_report(rows)
    assert [row["faults"] for row in report["faults"] if row["by"] == ""] == [1]
    assert [pair["without"] for pair in report["pairs"]] == ["", "an error of 0", ""]
    headings = [getattr(block, "text", "") for block in everyday_document(rows)]
    assert sum("(1)" in str(heading) for heading in headings) == 3

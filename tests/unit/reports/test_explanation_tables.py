"""The tables of what findings come of."""

from typing import Any, get_args

import pytest

from edgeflare._internal.records import as_json, of_json
from edgeflare.explanation import (
    ExplainedFinding,
    Explanation,
    LayerFigures,
    Layers,
    Remark,
    RemarkCode,
    RungAnswer,
    TensorFigures,
)
from edgeflare.reports.document import to_markdown
from edgeflare.reports.explanation import explanation_blocks
from edgeflare.triage.cause import Cause
from edgeflare.words.causes import _REMARKS, doubt_text, pair_text, remark_text
from edgeflare.words.next_steps import step_for
from edgeflare.words.triage import sentence


def layer(name: str, mean: float, sqnr: float | None) -> LayerFigures:
    figures = TensorFigures(sqnr, None, None)
    return LayerFigures(name, (name,), "ADD", mean, mean, mean, 0, figures, figures)


def explained(original: int | None, deployed: int | None, **more: Any) -> ExplainedFinding:
    return ExplainedFinding(
        "seed",
        id="a",
        original_label=original,
        deployed_label=deployed,
        l2=1.0,
        sample="digest",
        **{"device": "local", "cause": "compression", "rung": "compression", "answers": (), **more},
    )


def test_a_layer_without_an_sqnr_has_a_dash_and_one_left_out_is_told_as_one() -> None:
    finding = explained(1, 2)
    some = (layer("first", 0.5, None), layer("second", 0.25, 30.0), layer("third", 0.0, 30.0))
    layers = Layers("o.onnx", "d.onnx", some, {"a": (0.5, 0.25, 0.0)}, ("x",), 0.0)
    text = to_markdown(explanation_blocks(Explanation((finding,), (), 0, 3, (), layers)))
    assert "+0.500 | +0.500" in text
    assert "less; 1 tensor" in text
    assert "changes counts" in text


def test_findings_without_a_pair_of_classes_have_no_column_of_it() -> None:
    finding = explained(None, None)
    text = to_markdown(explanation_blocks(Explanation((finding,), (), 0, 3, ())))
    assert "nearest" in text
    assert "original -> deployed" not in text


def test_what_is_said_of_a_finding_stands_in_json_as_text() -> None:
    doubts = (Remark("earlier deviates"), Remark("varies", {"by": 0.0123}))
    finding = explained(1, 2, doubt=doubts)
    notice = Remark("few queries", {"queries": 6, "findings": 2})
    rungs = (("device", "hardware", ""),)
    found = Explanation((finding,), rungs, 3, 6, (notice,)).to_json()
    assert (
        found["findings"][0]["doubt"]
        == "an earlier step deviates, too; answers to it vary by up to 0.012"
    )
    assert found["notices"] == [remark_text(notice)]
    assert found["rungs"] == [["device", "hardware", "the deployed model on the device"]]
    assert found["groups"][0]["nearest"] == "a"
    assert found["counts"] == {"compression": 1}


def answers(**margins: float) -> dict[str, Any]:
    return {"answers": tuple(RungAnswer(rung, None, margin) for rung, margin in margins.items())}


RUNGS = (
    *(("control", "rounding", ""), ("compression", "compression", "")),
    *(("kernels", "kernels", ""), ("device", "device", ""), ("device-cpu", "accelerator", "")),
)


def test_kinds_have_their_findings_and_their_part_in_the_change() -> None:
    margins = {"original": -0.4, "control": -0.4, "compression": 0.2, "kernels": 0.2, "device": 0.4}
    of_file = explained(1, 2, **answers(**margins))
    margins |= {"compression": -0.2, "kernels": -0.2}
    of_device = explained(
        1, 2, cause="accelerator", rung="device-cpu", doubt=(Remark("varies", {"by": 0.1}),),
        **answers(**margins),
    )  # fmt: skip
    unmeasured = explained(None, None)
    found = Explanation((of_file, of_device, unmeasured), RUNGS, 0, 3, ())
    assert [(one.kind, one.findings, one.doubtful) for one in found.kinds] == [
        ("compression", 2, 0),
        ("accelerator", 1, 1),
        ("device", 0, 0),  # what it changes of the finding that comes of the file
        ("rounding", 0, 0),
        ("kernels", 0, 0),
    ]
    assert [one.share for one in found.kinds] == pytest.approx([0.5, 0.375, 0.125, 0, 0])
    assert sum(one.mean for one in found.kinds) == pytest.approx(0.8)
    assert found.to_json()["kinds"][0]["kind"] == "compression"


def test_kinds_of_answers_without_margins_have_findings_alone() -> None:
    (kind,) = Explanation((explained(None, None),), RUNGS, 0, 3, ()).kinds
    assert (kind.findings, kind.mean, kind.share) == (1, None, None)


def test_kinds_that_older_versions_stored_have_todays_names() -> None:
    stored = as_json(
        Explanation((explained(1, 2), explained(1, 2)), (("device", "hardware", ""),), 0, 3, ())
    )
    for finding, kind in zip(
        stored["findings"], ("instruction set", "not repeatable"), strict=True
    ):
        finding["cause"] = kind
    stored["rungs"] = [["device-exact", "instruction set", ""]]
    found = of_json(Explanation, stored)
    assert [one.cause for one in found.findings] == ["hardware", "not-repeatable"]
    assert found.rungs == (("device-exact", "hardware", ""),)


@pytest.mark.parametrize(
    ("kind", "what", "counted"),
    [
        ("preprocessing", "same-tensor", "misleads"),
        ("conversion", "training-mode", "compression"),
    ],
)
def test_a_cause_of_the_pair_is_told_with_what_its_contributions_are(
    kind: Any, what: str, counted: str
) -> None:
    evidence = {"agreement": 80.0, "stated": 3.0, "operator": "BatchNormalization"}
    cause = Cause(kind, what, "corrected", 4.5, names=("norm",), evidence=evidence)
    found = Explanation((explained(1, 2),), RUNGS, 0, 3, (), pair_cause=cause)
    text = pair_text(found)
    assert (sentence(cause) in text, step_for(cause) in text) == (True, True)
    assert counted in text
    assert text[:20] in to_markdown(explanation_blocks(found)[:1])


def test_texts_that_older_versions_stored_are_told_as_they_are() -> None:
    rungs = (("conversion", "conversion", "the deployed model, plainest kernels, here"),)
    found = Explanation((explained(1, 2, doubt="as it was"),), rungs, 0, 3, ("said before",))
    said = found.to_json()
    assert (said["findings"][0]["doubt"], said["notices"]) == ("as it was", ["said before"])
    assert said["rungs"] == [list(rungs[0])]
    assert doubt_text("") == ""


def test_each_remark_has_words() -> None:
    assert {*get_args(RemarkCode)} == {*_REMARKS}

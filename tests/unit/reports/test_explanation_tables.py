"""The tables of what findings come of."""

from typing import Any, get_args

from edgeflare.explanation import (
    ExplainedFinding,
    Explanation,
    LayerFigures,
    Layers,
    Remark,
    RemarkCode,
    TensorFigures,
)
from edgeflare.reports.document import to_markdown
from edgeflare.reports.explanation import explanation_blocks
from edgeflare.words.causes import _REMARKS, doubt_text, remark_text


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


def test_texts_that_older_versions_stored_are_told_as_they_are() -> None:
    rungs = (("conversion", "conversion", "the deployed model, plainest kernels, here"),)
    found = Explanation((explained(1, 2, doubt="as it was"),), rungs, 0, 3, ("said before",))
    said = found.to_json()
    assert (said["findings"][0]["doubt"], said["notices"]) == ("as it was", ["said before"])
    assert said["rungs"] == [list(rungs[0])]
    assert doubt_text("") == ""


def test_each_remark_has_words() -> None:
    assert {*get_args(RemarkCode)} == {*_REMARKS}

"""The tables of what findings come of."""

from edgeflare.explanation import Explanation, LayerFigures, Layers, TensorFigures
from edgeflare.explanation.results import ExplainedFinding
from edgeflare.reports.document import to_markdown
from edgeflare.reports.explanation import explanation_blocks


def layer(name: str, mean: float, sqnr: float | None) -> LayerFigures:
    figures = TensorFigures(sqnr, None, None)
    return LayerFigures(name, (name,), "ADD", mean, mean, mean, 0, figures, figures)


def test_a_layer_without_an_sqnr_has_a_dash_and_one_left_out_is_told_as_one() -> None:
    finding = ExplainedFinding(
        *("a", "seed", "", "local", 1, 2, "compression", "compression", "", (), "digest", 1.0)
    )
    some = (layer("first", 0.5, None), layer("second", 0.25, 30.0), layer("third", 0.0, 30.0))
    layers = Layers("o.onnx", "d.onnx", some, {"a": (0.5, 0.25, 0.0)}, ("x",), 0.0)
    text = to_markdown(explanation_blocks(Explanation((finding,), (), 0, 3, (), layers)))
    assert "+0.500 | +0.500" in text
    assert "less; 1 tensor" in text
    assert "changes counts" in text


def test_findings_without_a_pair_of_classes_have_no_column_of_it() -> None:
    finding = ExplainedFinding(
        *("a", "seed", "", "local", None, None, "compression", "compression", "", (), "digest", 1.0)
    )
    text = to_markdown(explanation_blocks(Explanation((finding,), (), 0, 3, ())))
    assert "nearest" in text
    assert "original -> deployed" not in text

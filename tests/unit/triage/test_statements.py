"""What is stated of a model's input is tested against what its file tells: remarks, while the pair agrees."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from triage_pairs import SPEC, network, pair_of

from edgeflare.triage.cause import Cause, Triage
from edgeflare.triage.run import triage
from edgeflare.words.triage import sentence

MEAN, STD = np.array(SPEC.mean), np.array(SPEC.std)
HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "rescale_factor": 1 / 255}
YOLO = {"description": "Ultralytics YOLO11n model", "stride": "32", "imgsz": "[16, 16]"}
AS_STATED = {"mean": str(list(SPEC.mean)), "std": str(list(SPEC.std))}


def behind(model: onnx.ModelProto, *operators: tuple[str, Mapping[str, np.ndarray]]) -> None:
    """Put operators before the first convolution, each with its constants."""
    tensor = "image"
    for place, (kind, constants) in enumerate(operators):
        for name, values in constants.items():
            model.graph.initializer.append(numpy_helper.from_array(values, name))
        made = f"made{place}"
        node = helper.make_node(kind, [tensor, *constants], [made], f"in_{kind.lower()}")
        model.graph.node.insert(place, node)
        tensor = made
    (convolution,) = (node for node in model.graph.node if node.name == "conv1")
    convolution.input[0] = tensor


def by_channel(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32).reshape(1, 3, 1, 1)


def normalising(model: onnx.ModelProto) -> None:
    behind(
        model,
        ("Sub", {"means": by_channel(255 * MEAN)}),
        ("Div", {"deviations": by_channel(255 * STD)}),
    )


def judged(
    folder: Path,
    *,
    normalises: bool = False,
    metadata: Mapping[str, str] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> Triage:
    model = network()
    if normalises:
        normalising(model)
    helper.set_model_props(model, dict(metadata or {}))
    onnx.save(model, folder / "net.onnx")
    if beside is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(beside))
    return triage(pair_of(folder / "net.onnx", folder / "net.onnx"))


def of_inputs(found: Triage) -> list[Cause]:
    return [one for one in found.remarks if one.kind in ("preprocessing", "input-range")]


@pytest.mark.parametrize(
    ("told", "what", "source", "change"),
    [
        ({"normalises": True}, "normalises-inside", "first-operators", {"scale": "1.0"}),
        ({"metadata": YOLO}, "contradicts-file", "ultralytics", {"scale": "1/255"}),
        (
            {"beside": HALVES},
            "contradicts-file",
            "preprocessor-config",
            {"scale": "1/255", "mean": "0.5,0.5,0.5", "std": "0.5,0.5,0.5"},
        ),
    ],
)
def test_a_statement_that_the_file_contradicts_is_a_remark_on_each_model(
    tmp_path: Path, told: dict[str, Any], what: str, source: str, change: dict[str, str]
) -> None:
    found = judged(tmp_path, **told)
    assert (found.is_healthy, found.causes) == (True, ())
    remarks = of_inputs(found)
    assert {remark.side for remark in remarks} == {"original", "deployed"}
    for remark in remarks:
        assert (remark.kind, remark.what, remark.proof) == ("preprocessing", what, "read")
        assert (remark.evidence["source"], remark.change) == (source, change)
        assert "scale=1/255, mean=0.485,0.456,0.406" in remark.evidence["stated"]
        assert sentence(remark)
    if what == "normalises-inside":
        assert remarks[0].names == ("in_sub", "in_div")


@pytest.mark.parametrize("told", [{}, {"metadata": AS_STATED}, {"beside": {"feature_size": 80}}])
def test_a_statement_that_nothing_contradicts_is_none(tmp_path: Path, told: dict[str, Any]) -> None:
    assert of_inputs(judged(tmp_path, **told)) == []


@pytest.mark.parametrize(("largest", "is_remark"), [(40.0, True), (3.0, False)])
def test_an_input_that_is_fed_a_small_part_of_its_integers_is_a_remark(
    tmp_path: Path, largest: float, *, is_remark: bool
) -> None:
    original, deployed = network(), network()
    grid = {"step": np.float32(largest / 127), "zero": np.int8(0)}
    behind(deployed, ("QuantizeLinear", grid))
    node = helper.make_node("DequantizeLinear", ["made0", "step", "zero"], ["real"], "out")
    deployed.graph.node.insert(1, node)
    deployed.graph.node[2].input[0] = "real"
    paths = tmp_path / "original.onnx", tmp_path / "deployed.onnx"
    for model, path in zip((original, deployed), paths, strict=True):
        onnx.save(model, path)
    found = triage(pair_of(*paths))
    assert found.is_healthy
    assert [one.what for one in of_inputs(found)] == ["few-codes"] * is_remark

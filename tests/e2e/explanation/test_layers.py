"""What `explain` says that each layer contributes to findings of compression."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import DEMO, edgeflare, must_run
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes
from onnx.utils import Extractor
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions
from onnxruntime.quantization import QuantType
from planted_causes import FLOAT, coarse, quantised
from small_models import save_onnx

from edgeflare import replay_base, replay_config, search
from edgeflare.explanation import Explanation, Layers, explain_campaign
from edgeflare.explanation.layers import ReadFinding, ReadModel, contributions
from edgeflare.models import OutputReader, TensorInfo
from edgeflare.models.tensors import open_graph
from edgeflare.store import Store

DIGITS = {"path": DEMO / "seeds.npz", "limit": 8}
WEIGHTED = ("a1", "a2", "a3", "a4")


def explained(folder: Path, original: Path, deployed: Path, seeds: Any = DIGITS) -> Explanation:
    search(original, deployed, seeds, folder=folder, options={"device_budget": 20})
    return explain_campaign(folder, replay_config(replay_base(folder)))


def layers_of(found: Explanation) -> Layers:
    assert found.layers is not None, found.notices
    return found.layers


@pytest.mark.extended
@pytest.mark.parametrize(
    "place", [1, *(pytest.param(one, marks=pytest.mark.slow) for one in (0, 2, 3))]
)
def test_the_badly_quantised_layer_contributes_most(tmp_path: Path, place: int) -> None:
    bad = coarse(tmp_path / "coarse.onnx", place)
    deployed = quantised(tmp_path / "deployed.onnx", bad, QuantType.QInt8)
    found = explained(tmp_path / "out", FLOAT, deployed)
    layers = layers_of(found)
    names = [one.name for one in layers.layers]
    largest = [names[int(np.argmax(one))] for one in layers.contributions.values()]
    assert len(largest) >= 6
    assert largest.count(WEIGHTED[place]) >= 0.9 * len(largest)
    assert max(layers.layers, key=lambda one: one.mean).name == WEIGHTED[place]
    assert found.groups[0].layer == WEIGHTED[place]


@pytest.mark.extended
def test_contributions_are_those_of_cuts_that_are_fed_one_by_one(tmp_path: Path) -> None:
    """Recomputed with parts of the files that onnx cuts out, the original's by onnx itself."""
    deployed = quantised(tmp_path / "deployed.onnx", activations=QuantType.QInt8)
    found = explained(tmp_path / "out", FLOAT, deployed)
    layers = layers_of(found)
    names = [one.name for one in layers.layers]
    assert names == [*("image", "a1", "b1", "c1", "a2", "b2", "c2", "flat", "a3", "b3", "a4"), *(
        "b4", "logits", "probabilities",
    )]  # fmt: skip
    original, whole = (Extractor(infer_shapes(onnx.load(str(path)))) for path in (FLOAT, deployed))
    made = {name for node in whole.model.graph.node for name in node.output}
    plain = SessionOptions()
    plain.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    findings = {one.id: one for one in found.findings}
    for name, steps in list(layers.contributions.items())[:3]:
        one = findings[name]
        with Store.open(tmp_path / "out") as store:
            image = store.get_sample(one.sample)
        given = (image.reshape(1, 1, 28, 28) / np.float32(255)).astype(np.float32)
        assert one.labels is not None
        margins = [margin(ReferenceEvaluator(str(FLOAT)).run(None, {"image": given}), one.labels)]
        for cut in names[:-1]:
            rounded = f"{cut}_DequantizeLinear_Output"
            part = whole.extract_model(["image"], [rounded if rounded in made else cut])
            first = InferenceSession(part.SerializeToString(), plain).run(None, {"image": given})
            rest = ReferenceEvaluator(original.extract_model([cut], ["probabilities"]))
            margins.append(margin(rest.run(None, {cut: first[0]}), one.labels))
        answer = InferenceSession(str(deployed), plain).run(None, {"image": given})
        margins.append(margin(answer, one.labels))
        np.testing.assert_allclose(steps, np.diff(margins), atol=1e-3)


def margin(answer: Any, labels: tuple[int, int]) -> float:
    scores = np.asarray(answer[0], np.float64).reshape(-1)
    return float(scores[labels[1]] - scores[labels[0]])


def test_layers_of_another_format_are_found_by_their_values(tmp_path: Path) -> None:
    must_run(
        "run", "--original", FLOAT, "--deployed", DEMO / "deployed.tflite", "--no-survey",
        "--seeds", DEMO / "seeds.npz", "--limit", 6, "--out", "out", home=tmp_path,
    )  # fmt: skip
    told = edgeflare("explain", "out", "--node-data", "nodes.json", home=tmp_path)
    assert "each layer changes" in told.out
    found = json.loads(edgeflare("explain", "out", "--json", home=tmp_path).out)["layers"]
    by_tensor = {one["deployed"][0].split("/")[-1]: one["name"] for one in found["layers"]}
    assert by_tensor["MaxPool2d"] == "c2"
    assert by_tensor["Tanh"] == "b3"
    assert by_tensor["Tanh1"] == "b4"  # de-quantised
    assert [one.split("/")[-2] for one in found["unmatched"]] == ["flatten_1"]
    assert found["changed"] < 1e-6
    for figures in (one["seeds"] for one in found["layers"][1:-4]):
        assert 20 < figures["sqnr"] < 60
        assert figures["clipped"] < 0.1 < figures["levels"] <= 1
    nodes = json.loads((tmp_path / "nodes.json").read_text())
    values = {name: one["value"] for name, one in nodes["results"].items()}
    assert values == {name: one["mean"] for one in found["layers"] for name in one["deployed"]}


@pytest.mark.slow
def test_what_the_preprocessing_changes_is_no_layers(tmp_path: Path) -> None:
    """Layers change the compression's step alone, where another mean is a step of its own."""
    scaled = {"scale": "1/255"}
    search(
        {"path": FLOAT, "input": scaled},
        {"path": coarse(tmp_path / "coarse.onnx", 1), "input": {**scaled, "mean": [0.03]}},
        DIGITS, folder=tmp_path / "out", options={"device_budget": 20}, allow_disagreement=True,
    )  # fmt: skip
    found = explain_campaign(tmp_path / "out", replay_config(replay_base(tmp_path / "out")))
    layers = layers_of(found)
    assert "preprocessing" in [name for name, _, _ in found.rungs]
    charged = [one for one in found.findings if one.cause == "compression"]
    assert layers.contributions.keys() == {one.id for one in charged}
    for one in charged:
        steps = one.contributions
        assert abs(steps["preprocessing"]) > 1e-3
        assert sum(layers.contributions[one.id]) == pytest.approx(steps["compression"], abs=1e-6)


def linear(path: Path, *weights: Any) -> Path:
    """Write a classifier of 8 x 8 images that multiplies with one matrix after the other."""
    nodes = [helper.make_node("Flatten", ["x"], ["row"])]
    last = "row"
    for place in range(len(weights)):
        nodes.append(helper.make_node("MatMul", [last, f"w{place}"], [f"sums{place}"]))
        last = f"sums{place}"
    nodes.append(helper.make_node("Softmax", [last], ["y"]))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 8, 8])
    scores = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
    known = {f"w{place}": one.astype(np.float32) for place, one in enumerate(weights)}
    return save_onnx(path, nodes, [given], [scores], known)


def logarithmic(path: Path, *, quantised: bool) -> Path:
    """Write a classifier of the logarithms of four numbers; quantised, small ones are 0 before it."""
    names = ("shifted", "logged")
    nodes = [helper.make_node("Add", ["x", "least"], ["shifted"])]
    ends = dict(zip(names, names, strict=True))
    known: dict[str, Any] = {
        "least": np.float32(1e-3),
        "weights": np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32),
    }
    for name, scale, zero in zip(names, (0.1, 0.05), (0, 255), strict=True):
        if quantised:
            ends[name] = f"{name}_DequantizeLinear_Output"
            grid = [f"{name}_scale", f"{name}_zero"]
            known |= {grid[0]: np.float32(scale), grid[1]: np.uint8(zero)}
            nodes += [
                helper.make_node(
                    "QuantizeLinear", [name, *grid], [f"{name}_QuantizeLinear_Output"]
                ),
                helper.make_node(
                    "DequantizeLinear", [f"{name}_QuantizeLinear_Output", *grid], [ends[name]]
                ),
            ]
        if name == "shifted":
            nodes.append(helper.make_node("Log", [ends[name]], ["logged"]))
    nodes += [
        helper.make_node("MatMul", [ends["logged"], "weights"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    scores = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])
    return save_onnx(path, nodes, [given], [scores], known)


def test_a_cut_without_a_finite_answer_joins_the_layers_beside_it(tmp_path: Path) -> None:
    """The original's logarithm of a 0 of the deployed model, of which that model's own grid ends."""
    pair = [
        ReadModel(
            f"{name}.onnx",
            open_graph(
                logarithmic(tmp_path / f"{name}.onnx", quantised=name == "int8"), "onnx", {}, "y"
            ),
            None,
            OutputReader(TensorInfo("y", (1, 3), "float32"), "probabilities"),
        )
        for name in ("float", "int8")
    ]
    inputs = np.random.default_rng(3).random((6, 1, 4)).astype(np.float32)
    inputs[:, 0, 1] = 0.01
    findings = []
    for number, one in enumerate(inputs):
        own, deployed = (model.margin(model.graph.read(one, [])["y"], (0, 1)) for model in pair)
        findings.append(
            ReadFinding(str(number), partial(inputs.__getitem__, number), (0, 1), (own, deployed))
        )
    layers = contributions(*pair, findings, list(inputs))
    assert [one.name for one in layers.layers] == ["x", "logged", "logits", "y"]
    assert layers.layers[1].operators == "Add, Log"
    for finding in findings:
        change = finding.margins[1] - finding.margins[0]
        assert sum(layers.contributions[finding.id]) == pytest.approx(change, abs=1e-6)


@pytest.mark.extended
def test_tensors_that_the_original_lacks_are_named(tmp_path: Path) -> None:
    """A matrix of rank 4 is replaced by the product of two of rank 3."""
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(64, 4)) * [4, 3, 2, 1]
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    original = linear(tmp_path / "original.onnx", matrix)
    deployed = linear(tmp_path / "deployed.onnx", left[:, :3] * sizes[:3], right[:3])
    images = rng.integers(0, 256, (8, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "seeds.npz", images=images)
    scaled = {"input": {"scale": "1/255"}}
    search(
        {"path": original, **scaled}, {"path": deployed, **scaled}, tmp_path / "seeds.npz",
        folder=tmp_path / "out", options={"device_budget": 20},
    )  # fmt: skip
    found = explain_campaign(tmp_path / "out", replay_config(replay_base(tmp_path / "out")))
    layers = layers_of(found)
    assert layers.unmatched == ("sums0",)
    main = max(layers.layers, key=lambda one: one.mean)
    assert main.deployed == ("sums1",)
    assert main.operators == "MatMul"


@pytest.mark.slow
def test_another_network_is_told(tmp_path: Path) -> None:
    """The student's layers have other sizes than its teacher's, but for the logits."""
    mnist = DEMO.parents[2] / "edgeflare_bench" / "assets" / "mnist"
    found = explained(tmp_path / "out", mnist / "lenet5.onnx", mnist / "lenet5_distilled.onnx")
    layers = layers_of(found)
    assert len(layers.unmatched) > len(layers.layers)
    (told,) = [one for one in found.notices if one.code == "another network"]
    assert told.data["original"] == "lenet5.onnx"

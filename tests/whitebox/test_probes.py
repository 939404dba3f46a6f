"""A probe gives what the tensors hold, by units, in every kind of file."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import DEMO
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType
from planted_causes import quantised

from edgeflare.errors import UsageError
from edgeflare.models.tensors import ModelGraph, UnitActivations, open_graph
from edgeflare_agent.arrays import Array

IMAGES = (np.load(DEMO / "seeds.npz")["images"][:5] / 255).astype(np.float32)


def opened(path: Path, **options: Any) -> ModelGraph:
    return open_graph(path, path.suffix[1:], options)


def convolutional(path: Path, opset: int) -> Path:
    """[1, 3, 9, 7]: convolution, batch normalisation, ReLU, pooling, dense."""
    rng = np.random.default_rng(opset)
    constants = {
        "w": rng.normal(size=(6, 3, 3, 3)),
        **{name: rng.normal(size=6) for name in ("scale", "bias", "mean")},
        "var": rng.random(6) + 0.5,
        "dense": rng.normal(size=(6, 4)),
        "shift": rng.normal(size=4),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "dense"], ["d"]),
        helper.make_node("Add", ["d", "shift"], ["l"]),
        helper.make_node("Softmax", ["l"], ["y"]),
    ]
    model = helper.make_model(
        helper.make_graph(
            nodes,
            "small",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 9, 7])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
            [
                numpy_helper.from_array(value.astype(np.float32), name)
                for name, value in constants.items()
            ],
        ),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
    )
    onnx.checker.check_model(model)
    onnx.save(model, str(path))
    return path


def check(probed: UnitActivations, values: Array, axis: int, atol: float = 1e-6) -> None:
    """Compare with numpy's means of a tensor, whose units are on `axis`."""
    others = tuple(n for n in range(values.ndim) if n != axis % values.ndim)
    assert probed.units.dtype == np.float32
    assert probed.units.shape == (values.shape[axis],)
    np.testing.assert_allclose(
        probed.units, values.mean(axis=others, dtype=np.float64), atol=atol, rtol=1e-6
    )
    assert (probed.least, probed.largest) == pytest.approx(
        (values.min(), values.max()), abs=atol, rel=1e-6
    )


def check_all(graph: ModelGraph, given: Array, axis: int, atol: float = 1e-6) -> None:
    """Compare all real tensors of a graph with what `read` gives."""
    names = [graph.input, *(name for one in graph.operations for name in one.outputs)]
    read = graph.read(given, names)
    names = [name for name in names if name != graph.output]
    probed = graph.probe([*names, graph.output])(given)
    np.testing.assert_array_equal(probed.output, read[graph.output])
    for name in names:
        check(probed.tensors[name], read[name], axis, atol)
    output = read[graph.output]
    if output.dtype.kind in "iu":
        output = graph.grids[graph.output].real(output)
    check(probed.tensors[graph.output], output, axis, atol)


def test_of_the_demos_original() -> None:
    graph = opened(DEMO / "original.onnx")
    for image in IMAGES:
        check_all(graph, image.reshape(1, 1, 28, 28), axis=1)


@pytest.mark.parametrize("opset", [13, 17, 18, 21])
def test_of_a_convolutional_model(opset: int, tmp_path: Path) -> None:
    graph = opened(convolutional(tmp_path / "model.onnx", opset), graph_optimization="none")
    rng = np.random.default_rng(0)
    for _ in range(5):
        check_all(graph, rng.normal(size=(1, 3, 9, 7)).astype(np.float32), axis=1)


@pytest.mark.parametrize("form", [QuantFormat.QDQ, QuantFormat.QOperator])
def test_quantised_tensors_give_real_values(form: QuantFormat, tmp_path: Path) -> None:
    path = quantised(tmp_path / "q.onnx", activations=QuantType.QInt8, form=form)
    graph = opened(path, graph_optimization="none")
    assert graph.grids
    for image in IMAGES:
        check_all(graph, image.reshape(1, 1, 28, 28), axis=1, atol=3e-6)


def test_of_tflite_models() -> None:
    for name in ("original", "deployed"):
        graph = opened(DEMO / f"{name}.tflite", kernels="reference")
        grid = graph.grids.get(graph.input)
        for image in IMAGES:
            given = image.reshape(1, 28, 28, 1)
            check_all(graph, given if grid is None else grid.quantized(given), axis=-1)


@pytest.mark.parametrize("options", [{}, {"delegate": False}, {"kernels": "reference"}])
def test_both_formats_of_one_model_agree(options: dict[str, Any]) -> None:
    first = opened(DEMO / "original.onnx")
    second = opened(DEMO / "original.tflite", **options)
    kinds = {"Conv": "CONV_2D", "Gemm": "FULLY_CONNECTED", "Tanh": "TANH", "MaxPool": "MAX_POOL_2D"}
    pairs = [
        (one.outputs[0], other.outputs[0])
        for one, other in zip(first.operations, second.operations, strict=True)
        if kinds.get(one.kind) == other.kind
    ]
    assert len(pairs) == 11
    probe, other_probe = first.probe([a for a, _ in pairs]), second.probe([b for _, b in pairs])
    for image in IMAGES:
        ours = probe(image.reshape(1, 1, 28, 28)).tensors
        theirs = other_probe(image.reshape(1, 28, 28, 1)).tensors
        for a, b in pairs:
            np.testing.assert_allclose(ours[a].units, theirs[b].units, atol=1e-5)
            bounds = (theirs[b].least, theirs[b].largest)
            assert (ours[a].least, ours[a].largest) == pytest.approx(bounds, abs=1e-5)


def test_units_after_a_matrix_product_are_on_the_last_axis(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("MatMul", ["x", "w"], ["m"]),
                helper.make_node("Relu", ["m"], ["r"]),
                helper.make_node("ReduceMax", ["r"], ["y"], axes=[1], keepdims=0),
            ],
            "sequence",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, "steps", 5])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
            [numpy_helper.from_array(weights, "w")],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    onnx.save(model, str(tmp_path / "sequence.onnx"))
    graph = opened(tmp_path / "sequence.onnx")
    probe = graph.probe(["r"])
    for steps in (4, 7):
        given = np.random.default_rng(steps).normal(size=(1, steps, 5)).astype(np.float32)
        check(probe(given).tensors["r"], np.maximum(given @ weights, 0), axis=-1)


@pytest.mark.parametrize("suffix", ["onnx", "tflite"])
def test_an_unknown_tensor_is_refused(suffix: str) -> None:
    with pytest.raises(UsageError, match=re.escape("no tensor 'nowhere'")):
        opened(DEMO / f"original.{suffix}").probe(["nowhere"])

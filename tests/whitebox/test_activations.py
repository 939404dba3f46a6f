"""Which tensors are layers, and the activations of samples."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import DEMO
from onnx import TensorProto, helper, numpy_helper
from small_models import TFLITE

from edgeflare.errors import ModelError, UsageError
from edgeflare.models import InputOptions, InputSpec, TensorInfo, prepare, resolve_input
from edgeflare.models.tensors import ModelGraph, open_graph
from edgeflare_agent.arrays import Array
from edgeflare_agent.cache import file_sha256
from edgeflare_whitebox import (
    activations_of,
    default_layers,
    model_digest,
    penultimate_layer,
    predicted_class,
)

IMAGES = np.load(DEMO / "seeds.npz")["images"][:6]


def spec() -> InputSpec:
    tensor = TensorInfo(name="image", shape=(1, 1, 28, 28), dtype="float32")
    options = InputOptions.model_validate({"scale": "1/255"})
    return resolve_input(tensor, options, InputOptions(), "the model")


def samples() -> Iterator[Array]:
    for image in IMAGES:
        yield image.reshape(28, 28, 1)


def graph_of(path: Path, *nodes: tuple[str, list[str], list[str]]) -> ModelGraph:
    """Open a graph from x to y; names in capitals are constants."""
    names = {name for _, inputs, _ in nodes for name in inputs if name.isupper()}
    constants = [numpy_helper.from_array(np.ones((4, 4), np.float32), name) for name in names]
    made: list[Any] = [helper.make_node(kind, inputs, outputs) for kind, inputs, outputs in nodes]
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph(made, "g", info[:1], info[1:], constants))
    onnx.save(model, str(path))
    return open_graph(path, "onnx", {})


def test_the_demos_layers_are_its_activations_and_the_logits() -> None:
    graph = open_graph(DEMO / "original.onnx", "onnx", {})
    assert default_layers(graph) == ("b1", "b2", "b3", "b4", "logits")
    assert penultimate_layer(graph) == "b4"


def test_those_of_its_tflite_twin_are_the_same() -> None:
    graph = open_graph(DEMO / "original.tflite", "tflite", {})
    kinds = {name: one.kind for one in graph.operations for name in one.outputs}
    layers = default_layers(graph)
    assert [kinds[name] for name in layers] == ["TANH"] * 4 + ["FULLY_CONNECTED"]


def test_bias_and_what_moves_values_stand_between_a_layer_and_its_activation(tmp_path) -> None:
    graph = graph_of(
        tmp_path / "model.onnx", ("MatMul", ["x", "W"], ["a"]), ("Add", ["a", "B"], ["b"]),
        ("Identity", ["b"], ["c"]), ("Relu", ["c"], ["d"]), ("MatMul", ["d", "W"], ["e"]),
        ("Add", ["e", "B"], ["f"]), ("Add", ["f", "d"], ["g"]), ("MatMul", ["g", "W"], ["h"]),
        ("Softmax", ["h"], ["y"]),
    )  # fmt: skip
    assert default_layers(graph) == ("d", "f", "h")


def test_an_activation_after_a_residual_sum_is_that_of_both_branches(tmp_path: Path) -> None:
    graph = graph_of(
        tmp_path / "model.onnx",
        ("MatMul", ["x", "W"], ["a"]),
        ("MatMul", ["x", "V"], ["b"]),
        ("Add", ["a", "b"], ["c"]),
        ("Relu", ["c"], ["y"]),
    )
    assert default_layers(graph) == ("y",)
    assert penultimate_layer(graph) == "y"


def test_a_product_with_its_own_sigmoid_is_the_layer(tmp_path: Path) -> None:
    graph = graph_of(
        tmp_path / "model.onnx",
        ("MatMul", ["x", "W"], ["a"]),
        ("Sigmoid", ["a"], ["s"]),
        ("Mul", ["a", "s"], ["silu"]),
        ("Sigmoid", ["x"], ["gate"]),
        ("Mul", ["silu", "gate"], ["y"]),
    )
    assert default_layers(graph) == ("silu", "gate")


def test_a_product_of_two_tensors_is_no_dense_operator(tmp_path: Path) -> None:
    graph = graph_of(
        tmp_path / "model.onnx",
        ("Transpose", ["x"], ["t"]),
        ("MatMul", ["t", "x"], ["m"]),
        ("Softmax", ["m"], ["y"]),
    )
    with pytest.raises(UsageError, match="tensors that"):
        default_layers(graph)


def test_activations_are_those_of_the_prepared_samples_in_their_order() -> None:
    graph = open_graph(DEMO / "original.onnx", "onnx", {})
    found = list(activations_of(graph, spec(), samples()))
    assert len(found) == len(IMAGES)
    for sample, one in zip(samples(), found, strict=True):
        read = graph.read(prepare(sample, spec()), ["b1", "b4"])
        assert list(one.layers) == ["b1", "b2", "b3", "b4", "logits"]
        np.testing.assert_allclose(one.layers["b4"].units, read["b4"][0], atol=1e-6)
        np.testing.assert_allclose(
            one.layers["b1"].units, read["b1"][0].mean(axis=(1, 2)), atol=1e-6
        )
        assert one.label == read["probabilities"].argmax()


def test_samples_are_taken_one_at_a_time() -> None:
    taken = []

    def counted() -> Iterator[Array]:
        for place, sample in enumerate(samples()):
            taken.append(place)
            yield sample

    graph = open_graph(DEMO / "original.onnx", "onnx", {})
    found = activations_of(graph, spec(), counted(), ["b4"], label=lambda _: 7)
    assert taken == []
    assert next(found).label == 7
    assert taken == [0]


def test_an_input_that_fails_is_told_and_the_next_one_comes() -> None:
    first, second = islice(samples(), 2)
    odd = np.zeros((3, 3, 1), np.uint8)
    found = activations_of(
        open_graph(DEMO / "original.onnx", "onnx", {}), spec(), [first, odd, second]
    )
    next(found)
    with pytest.raises(ModelError, match="prepared for"):
        next(found)
    assert len(list(found)) == 1


def test_unknown_layers_are_refused_at_once() -> None:
    graph = open_graph(DEMO / "original.onnx", "onnx", {})
    with pytest.raises(UsageError, match="'b9'"):
        activations_of(graph, spec(), samples(), ["b9"])


def test_the_predicted_class_is_the_first_of_the_largest() -> None:
    assert predicted_class(np.array([[1, 5, 5, 2]], np.int8)) == 1


def test_a_models_digest_is_that_of_its_file() -> None:
    for name in ("original.onnx", "original.tflite"):
        assert model_digest(DEMO / name) == file_sha256(DEMO / name)


def test_a_models_digest_is_of_its_weights_beside_it_as_well(tmp_path: Path) -> None:
    model = onnx.load(str(DEMO / "original.onnx"))
    path = tmp_path / "model.onnx"
    onnx.save(model, str(path), save_as_external_data=True, location="w", size_threshold=0)
    before = model_digest(path)
    content = bytearray((tmp_path / "w").read_bytes())
    content[0] ^= 1
    (tmp_path / "w").write_bytes(content)
    assert model_digest(path) != before


def test_an_activation_fused_into_an_operator_makes_it_a_layer() -> None:
    graph = open_graph(TFLITE / "nan.tflite", "tflite", {})
    kinds = {name: (one.kind, one.activated) for one in graph.operations for name in one.outputs}
    layers = [kinds[name] for name in default_layers(graph)]
    assert layers == [("SUB", True), ("FULLY_CONNECTED", False)]


@pytest.mark.shared_data
def test_a_residual_nets_layers_are_the_same_in_both_formats(shared_data: Path) -> None:
    folder = shared_data / "models" / "diffchaser"
    with np.load(shared_data / "images" / "cifar10_test_500_jpeg.npz") as archive:
        image = (archive["images"][:1] / 255).astype(np.float32)
    graphs = [
        open_graph(folder / name, name.rpartition(".")[2], {"kernels": "reference"})
        for name in ("resnet20.onnx", "resnet20.float.tflite")
    ]
    first, second = (one.probe(default_layers(one))(image).tensors.values() for one in graphs)
    assert len(first) == 20
    for ours, theirs in zip(first, second, strict=True):
        np.testing.assert_allclose(ours.units, theirs.units, atol=1e-4)

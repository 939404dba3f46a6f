"""What matters in each layer of a model, and what sets of inputs reach of it."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from onnx_nets import convolutional, saved

from edgeflare.errors import UsageError
from edgeflare.models import InputOptions, InputSpec, TensorInfo, prepare, resolve_input
from edgeflare.models.tensors import open_graph
from edgeflare_whitebox import (
    IDC,
    RelevanceModel,
    activations_of,
    importance_of_layers,
    important_units,
    model_digest,
    relevance_map,
    total_relevance,
    without_relevant,
)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is in the extra inspection"),
]


def spec_of(*shape: int) -> InputSpec:
    tensor = TensorInfo(name="x", shape=shape, dtype="float32")
    return resolve_input(tensor, InputOptions(scale="1/255"), InputOptions(), "m.onnx")


def images(number: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(256, size=(8, 8, 3), dtype=np.uint8) for _ in range(number)]


def test_layers_are_as_their_parts_say(tmp_path: Path) -> None:
    path = convolutional(tmp_path / "m.onnx", ("Relu", "MaxPool"))
    graph, spec = open_graph(path, "onnx", {}), spec_of(1, 3, 8, 8)
    profile, test = images(30, 0), images(12, 1)
    sets = {"seeds": lambda: profile, "others": lambda: test}
    layers = ["r1", "r2"]
    found, counted = importance_of_layers(
        path, graph, spec, lambda: profile, [None] * 30, sets, layers, number=3
    )
    assert counted == 30
    assert [one.layer for one in found] == layers
    relevance, _ = total_relevance(
        RelevanceModel(path, graph), spec, ((one, None) for one in profile), layers
    )
    for one in found:
        total = relevance[one.layer]
        assert one.units == 4
        assert one.important == important_units(total, 3)
        chosen = total[list(one.important)].clip(min=0).sum()
        assert one.share == pytest.approx(chosen / total.clip(min=0).sum())
        for name, samples in (("seeds", profile), ("others", test)):
            idc = IDC(model_digest(path), one.layer, one.important)
            idc.fit(activations_of(graph, spec, profile, layers))
            idc.update(activations_of(graph, spec, samples, layers))
            assert one.covered[name] == idc.score > 0
            assert one.combinations == idc.combinations == np.prod(one.clusters)


def test_of_a_layer_with_fewer_units_all_are_important(tmp_path: Path) -> None:
    path = convolutional(tmp_path / "m.onnx", ("Relu", "MaxPool"))
    graph, profile = open_graph(path, "onnx", {}), images(8, 2)
    (one,), counted = importance_of_layers(
        path, graph, spec_of(1, 3, 8, 8), lambda: profile, [9] * 8, {}, ["r2"]
    )
    assert counted == 0  # no decision is class 9
    assert sorted(one.important) == [0, 1, 2, 3]
    assert (one.share, one.covered) == (0.0, {"union": 0.0})
    assert one.movement.important == pytest.approx(one.movement.random)


def test_units_that_are_not_finite_count_for_nothing(tmp_path: Path) -> None:
    """Channel 1 overflows in a branch that the decision doesn't take."""
    weights = np.ones((3, 1, 1, 1), np.float32)
    weights[1] = 3e38
    constants = {
        "w": weights,
        "b": np.array([1, 1, 1], np.float32),
        "v": np.eye(3, dtype=np.float32),
        "none": np.float32(0),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("Mul", ["c", "c"], ["r"]),
        helper.make_node("Where", ["inf", "none", "r"], ["kept"]),
        helper.make_node("GlobalAveragePool", ["kept"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"]),
    ]
    nodes.insert(2, helper.make_node("IsInf", ["r"], ["inf"]))
    path = saved(tmp_path / "m.onnx", nodes, constants, [1, 1, 8, 8])
    graph, spec = open_graph(path, "onnx", {}), spec_of(1, 1, 8, 8)
    profile = [one[:, :, :1] for one in images(10, 4)]
    (one,), _ = importance_of_layers(
        path, graph, spec, lambda: profile, [None] * 10, {}, ["r"], number=1
    )
    assert 0 <= one.share <= 1
    assert one.important != (1,)
    assert one.movement is None  # no image has finite units alone
    with pytest.raises(UsageError, match="finite activations"):
        importance_of_layers(path, graph, spec, lambda: profile, [None] * 10, {}, ["r"], number=3)


def test_units_that_the_decision_depends_on_move(tmp_path: Path) -> None:
    """The decision is the brightness of the left half; unit 1 has that, unit 0 the right half."""
    weights = np.zeros((2, 1, 1, 8), np.float32)
    weights[1, 0, 0, :4], weights[0, 0, 0, 4:] = 1, 1
    constants = {"w": weights, "v": np.array([[0, 0], [0, 1]], np.float32)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "v"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, constants, [1, 1, 8, 8])
    graph, spec = open_graph(path, "onnx", {}), spec_of(1, 1, 8, 8)
    profile = [one[:, :, :1] for one in images(10, 3)]
    (one,), _ = importance_of_layers(
        path, graph, spec, lambda: profile, [None] * 10, {}, ["r"], number=1
    )
    assert one.important == (1,)
    assert one.share == 1.0
    assert one.movement.images == 10
    assert one.movement.important > 1.5 * one.movement.random > 0
    found = RelevanceModel(path, graph).relevances(prepare(profile[0], spec))
    pixels = relevance_map(found, spec, (8, 8))
    changed = without_relevant(profile[0], pixels, 0.25) != profile[0]
    assert changed[:, :4].sum() == 16
    assert not changed[:, 4:].any()


def test_pixels_above_half_of_the_largest_relevance_become_0_the_others_255() -> None:
    image = np.full((2, 5, 3), 77, np.uint8)
    relevance = np.array([[5.0, 9.0, 1.0, 1.0, -8.0], [4.0, 0.0, 0.0, 0.0, 0.0]])
    found = without_relevant(image, relevance, 0.3)
    assert found[0, 1].tolist() == found[0, 0].tolist() == [0, 0, 0]
    assert found[1, 0].tolist() == [255, 255, 255]
    assert (found == 77).all(axis=2).sum() == 7

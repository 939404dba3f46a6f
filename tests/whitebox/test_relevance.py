"""Layer-wise relevance propagation against its formulas, and what it conserves."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_nets import convolutional, saved

from edgeflare.errors import ModelError, UsageError
from edgeflare.models import InputOptions, InputSpec, TensorInfo, prepare, resolve_input
from edgeflare.models.tensors import open_graph
from edgeflare_whitebox import (
    RelevanceModel,
    Relevances,
    most_relevant,
    relevance_map,
    total_relevance,
)
from edgeflare_whitebox.gradients import DifferentiableModel

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is in the extra torch"),
]

RNG = np.random.default_rng(0)
FIRST = RNG.normal(size=(6, 8)).astype(np.float32)
SECOND = RNG.normal(size=(8, 3)).astype(np.float32)
GIVEN = RNG.normal(size=(5, 1, 6)).astype(np.float32)


def dense(path: Path, *, activation: str = "Relu") -> Path:
    nodes = [
        helper.make_node("Gemm", ["x", "first"], ["z"]),
        helper.make_node(activation, ["z"], ["a"]),
        helper.make_node("Gemm", ["a", "second"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    return saved(path, nodes, {"first": FIRST, "second": SECOND}, [1, 6])


def opened(path: Path) -> RelevanceModel:
    return RelevanceModel(path, open_graph(path, "onnx", {}))


def proportional(values: np.ndarray, weights: np.ndarray, relevance: np.ndarray) -> np.ndarray:
    """Equation 1 of DeepImportance, without a bias, in float64."""
    parts = values.astype(np.float64)[:, np.newaxis] * weights
    return np.asarray((parts * (relevance / parts.sum(axis=0))).sum(axis=1))


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("activation", ["Relu", "Tanh"])
def test_relevance_is_its_formula(tmp_path: Path, given: np.ndarray, activation: str) -> None:
    found = opened(dense(tmp_path / "m.onnx", activation=activation)).relevances(given, ["a", "x"])
    z = given[0] @ FIRST
    a = np.maximum(z, 0) if activation == "Relu" else np.tanh(z)
    logits = a @ SECOND
    assert found.label == logits.argmax()
    assert found.score == pytest.approx(logits.max(), rel=1e-5)
    start = np.where(np.arange(3) == found.label, logits, 0)
    middle = proportional(a, SECOND, start)
    np.testing.assert_allclose(found.layers["a"], middle, rtol=1e-4, atol=1e-5)
    expected = proportional(given[0], FIRST, middle)
    np.testing.assert_allclose(found.values[0], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(found.layers["x"], found.values[0].astype(np.float64))


@pytest.mark.parametrize(
    "kinds", [("Relu", "MaxPool"), ("LeakyRelu", "AveragePool"), ("Tanh", "MaxPool")]
)
def test_without_biases_every_layer_has_the_whole_score(tmp_path, kinds) -> None:
    given = np.random.default_rng(2).normal(size=(1, 3, 8, 8)).astype(np.float32)
    model = opened(convolutional(tmp_path / "m.onnx", kinds))
    found = model.relevances(given, ["r1", "p1", "r2", "f"])
    for name, size in (("r2", 4), ("f", 64)):
        assert found.layers[name].shape == (size,)
        assert found.layers[name].sum() == pytest.approx(found.score, rel=1e-4)
    assert found.values.sum() == pytest.approx(found.score, rel=1e-3)
    assert found.layers["r1"].sum() == pytest.approx(found.score, rel=1e-3)


def test_on_a_relu_net_it_is_activation_times_gradient(tmp_path: Path) -> None:
    """Biases, batch normalisation and a product with a constant, too."""
    rng = np.random.default_rng(3)
    names = ("scale", "shift", "mean")
    constants = {
        "w1": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "b1": rng.normal(size=4).astype(np.float32),
        **{name: rng.normal(size=4).astype(np.float32) for name in names},
        "variance": rng.uniform(0.5, 2, 4).astype(np.float32),
        "half": np.float32(0.5),
        "w2": rng.normal(size=(4, 5)).astype(np.float32),
        "b2": rng.normal(size=5).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c"]),
        helper.make_node("BatchNormalization", ["c", *names, "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Mul", ["r", "half"], ["h"]),
        helper.make_node("GlobalAveragePool", ["h"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "w2", "b2"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, constants, [1, 3, 8, 8])
    given = rng.normal(size=(1, 3, 8, 8)).astype(np.float32)
    found = opened(path).relevances(given, ["r"])
    _, slopes = DifferentiableModel(path).gradient(
        given, lambda values: values["logits"][:, found.label], ["logits"]
    )
    np.testing.assert_allclose(found.values, given * slopes, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["gate", "layer", "instance"])
def test_gates_and_normalisation_keep_the_whole_score(tmp_path: Path, kind: str) -> None:
    """SiLU is a product of two activations; of a normalisation the mean only moves relevance."""
    rng = np.random.default_rng(4)
    constants = {
        "w1": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "ones": np.ones(4 if kind == "instance" else 6, np.float32),
        "zeros": np.zeros(4 if kind == "instance" else 6, np.float32),
        "w2": rng.normal(size=(144, 5)).astype(np.float32),
    }
    middle = {
        "gate": [
            helper.make_node("Sigmoid", ["c"], ["s"]),
            helper.make_node("Mul", ["c", "s"], ["r"]),
        ],
        "layer": [helper.make_node("LayerNormalization", ["c", "ones", "zeros"], ["r"])],
        "instance": [helper.make_node("InstanceNormalization", ["c", "ones", "zeros"], ["r"])],
    }[kind]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"]),
        *middle,
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("Gemm", ["f", "w2"], ["y"]),
    ]
    path = saved(tmp_path / "m.onnx", nodes, constants, [1, 3, 8, 8])
    given = rng.normal(size=(1, 3, 8, 8)).astype(np.float32)
    found = opened(path).relevances(given, ["c", "r"])
    for name in ("c", "r"):
        assert found.layers[name].sum() == pytest.approx(found.score, rel=1e-3)
    assert found.values.sum() == pytest.approx(found.score, rel=1e-3)


@pytest.mark.parametrize("zero", ["input", "sums"])
def test_what_is_0_gets_nothing_and_breaks_nothing(tmp_path: Path, zero: str) -> None:
    given = np.zeros((1, 6), np.float32)
    if zero == "sums":
        given[0, :2] = 1
    path = dense(tmp_path / "m.onnx", activation="Sigmoid")
    found = opened(path).relevances(given, ["a"])
    assert np.isfinite(found.values).all()
    assert not found.values[given == 0].any()
    assert found.layers["a"].sum() == pytest.approx(found.score, rel=1e-4)


def test_the_score_of_a_single_output_is_that_of_class_1(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gemm", ["x", "w"], ["z"]), helper.make_node("Sigmoid", ["z"], ["y"])]
    weights = np.ones((6, 1), np.float32)
    model = opened(saved(tmp_path / "m.onnx", nodes, {"w": weights}, [1, 6]))
    given = np.arange(6, dtype=np.float32)[np.newaxis]
    yes, no = model.relevances(given), model.relevances(-given)
    assert (yes.label, yes.score) == (1, 15.0)
    assert (no.label, no.score) == (0, 15.0)
    np.testing.assert_array_equal(yes.values, given)
    np.testing.assert_array_equal(no.values, given)


def spec_of(path: Path, shape: tuple[int, ...], **options: Any) -> InputSpec:
    tensor = TensorInfo(name="x", shape=shape, dtype="float32")
    return resolve_input(tensor, InputOptions(**options), InputOptions(), path.name)


def test_only_what_is_decided_correctly_counts(tmp_path: Path) -> None:
    path = convolutional(tmp_path / "m.onnx", ("Relu", "MaxPool"))
    model, spec = opened(path), spec_of(path, (1, 3, 8, 8), scale="1/255", layout="CHW")
    rng = np.random.default_rng(5)
    images = [rng.integers(256, size=(8, 8, 3), dtype=np.uint8) for _ in range(4)]
    each, counts = zip(
        *(total_relevance(model, spec, [(one, None)], ["r2"]) for one in images), strict=True
    )
    assert counts == (1, 1, 1, 1)
    decided = [model.relevances(prepare(one, spec)).label for one in images]
    labels = [decided[0], (decided[1] + 1) % 5, decided[2], None]
    total, count = total_relevance(model, spec, zip(images, labels, strict=True), ["r2"])
    assert count == 3
    expected = each[0]["r2"] + each[2]["r2"] + each[3]["r2"]
    np.testing.assert_allclose(total["r2"], expected, rtol=1e-6)


def test_inputs_without_a_finite_score_do_not_count(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("Gemm", ["f", "w"], ["z"]),
        helper.make_node("Log", ["z"], ["y"]),
    ]
    weights = np.ones((4, 2), np.float32)
    path = saved(tmp_path / "m.onnx", nodes, {"w": weights}, [1, 2, 2, 1])
    model, spec = opened(path), spec_of(path, (1, 2, 2, 1), scale="1/255")
    black, white = (np.full((2, 2, 1), level, np.uint8) for level in (0, 255))
    wrong = np.zeros((3, 3, 1), np.uint8)  # it can't be prepared
    given = [(black, None), (wrong, None), (white, None)]
    total, count = total_relevance(model, spec, given, ["z"])
    alone, _ = total_relevance(model, spec, [(white, None)], ["z"])
    assert count == 1
    np.testing.assert_array_equal(total["z"], alone["z"])
    with pytest.raises(ModelError, match="class 0"):
        total_relevance(model, spec, [(black, None)], ["z"])


@pytest.mark.parametrize("orientation", ["none", "rotate-90", "mirror", "transpose"])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
def test_a_map_lies_on_the_pixels_of_the_image(tmp_path, orientation, layout) -> None:
    """A model that looks at a single pixel finds it, however the image was turned."""
    shape = (1, 3, 4, 6) if layout == "CHW" else (1, 4, 6, 3)
    size = {"transpose": (6, 4), "rotate-90": (6, 4)}.get(orientation, (4, 6))
    weights = np.zeros((72, 2), np.float32)
    rng = np.random.default_rng(6)
    weights[rng.integers(72), 1] = 1.0
    nodes = [helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["y"])]
    path = saved(tmp_path / "m.onnx", nodes, {"w": weights}, shape)
    turned = {} if orientation == "none" else {"orientation": orientation}
    spec = spec_of(path, shape, scale="1", layout=layout, color="BGR", **turned)
    model = opened(path)
    image = rng.integers(1, 256, size=(*size, 3), dtype=np.uint8)
    found = relevance_map(model.relevances(prepare(image, spec), label=1), spec, image.shape)
    assert found.shape == size
    (place,) = np.argwhere(found)
    changed = image.copy()
    changed[tuple(place)] = 0
    assert model.relevances(prepare(changed, spec), label=1).score == 0
    assert found[tuple(place)] == model.relevances(prepare(image, spec), label=1).score
    assert most_relevant(found, 1)[0] == np.ravel_multi_index(tuple(place), size)


def test_a_map_has_the_size_of_the_image() -> None:
    spec = resolve_input(
        TensorInfo(name="x", shape=(1, 4, 6, 1), dtype="float32"),
        InputOptions(scale="1", resize="bilinear"),
        InputOptions(),
        "m",
    )
    values = np.ones((1, 4, 6, 1), np.float32)
    found = relevance_map(Relevances({}, values, 0, 24.0), spec, (8, 9, 1))
    np.testing.assert_allclose(found, np.ones((8, 9)))


def test_bad_calls_are_told(tmp_path: Path) -> None:
    path = dense(tmp_path / "m.onnx")
    model = opened(path)
    with pytest.raises(UsageError, match="tensor 'nothing'"):
        model.relevances(GIVEN[0], ["nothing"])
    with pytest.raises(UsageError, match="'first'"):
        model.relevances(GIVEN[0], ["first"])
    with pytest.raises(UsageError, match="class 3"):
        model.relevances(GIVEN[0], label=3)
    with pytest.raises(ModelError, match="class 0"):
        model.relevances(np.full((1, 6), np.nan, np.float32))
    with pytest.raises(UsageError, match="ONNX models"):
        RelevanceModel(path.with_suffix(".tflite"), open_graph(path, "onnx", {}))
    with pytest.raises(UsageError, match="3 values"):
        most_relevant(np.zeros(3), 4)


@pytest.mark.parametrize("kind", ["Softmax", "Floor", "Sign", "Sin", "Cos", "Round"])
def test_an_operator_without_a_rule_is_named(tmp_path: Path, kind: str) -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["z"]),
        helper.make_node(kind, ["z"], ["a"]),
        helper.make_node("Gemm", ["a", "v"], ["y"]),
    ]
    constants = {"w": FIRST, "v": SECOND}
    model = opened(saved(tmp_path / "m.onnx", nodes, constants, [1, 6]))
    with pytest.raises(UsageError, match=f"through {kind}"):
        model.relevances(GIVEN[0])


def test_a_softmax_is_found_behind_what_only_moves_it(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["z"]),
        helper.make_node("Softmax", ["z"], ["s"]),
        helper.make_node("Flatten", ["s"], ["f"]),
        helper.make_node("Identity", ["f"], ["y"]),
    ]
    model = opened(saved(tmp_path / "m.onnx", nodes, {"w": FIRST}, [1, 6]))
    assert model.relevances(GIVEN[0]).score == pytest.approx((GIVEN[0] @ FIRST).max(), rel=1e-5)

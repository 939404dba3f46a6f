"""The neuron activation probability matrix against plain loops, and the layers that it is made of."""

from pathlib import Path

import numpy as np
import pytest
import scipy
from onnx import helper
from onnx_nets import convolutional, saved

from edgeflare.errors import UsageError
from edgeflare.models import InputOptions, TensorInfo, prepare, resolve_input
from edgeflare.models.tensors import UnitActivations, open_graph
from edgeflare_whitebox import (
    ActivationProbabilities,
    Activations,
    activations_of,
    napvd,
    pre_activation_layers,
)

LAYERS = ("a", "b")


def drawn(count: int, seed: int = 0) -> list[Activations]:
    """Inputs of five classes, of which class 2 is never predicted; one layer is constant on each fourth."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        layers = {}
        for name, size in zip(LAYERS, (7, 4), strict=True):
            units = rng.normal(size=size).astype(np.float32)
            least, largest = float(units.min()) - 0.1, float(units.max()) + 0.1
            if number % 4 == 0 and name == "b":
                units[:], least, largest = 1.5, 1.5, 1.5
            layers[name] = UnitActivations(units, least, largest)
        found.append(Activations(layers, int(rng.choice([0, 1, 3, 4]))))
    return found


def expected(inputs: list[Activations], predicted: list[set[int]], classes: int) -> np.ndarray:
    columns = []
    for label in range(classes):
        rows = []
        for one, labels in zip(inputs, predicted, strict=True):
            if label in labels:
                row = []
                for name in LAYERS:
                    layer = one.layers[name]
                    for unit in layer.units.tolist():
                        width = layer.largest - layer.least
                        row.append(width > 0 and (unit - layer.least) / width > 0.5)
                rows.append(row)
        columns.append(np.mean(rows, axis=0) if rows else np.full(11, np.nan))
    return np.stack(columns, axis=1)


def test_the_matrix_is_that_of_plain_loops() -> None:
    inputs = drawn(60)
    found = ActivationProbabilities(LAYERS, 5)
    found.update(iter(inputs[:25]))
    found.update(inputs[25:])
    matrix = expected(inputs, [{one.label} for one in inputs], 5)
    np.testing.assert_allclose(found.matrix, matrix)
    assert np.isnan(found.matrix[:, 2]).all()
    assert found.inputs.tolist() == [sum(one.label == k for one in inputs) for k in range(5)]
    known = [0, 1, 3, 4]
    distances = scipy.spatial.distance.cdist(matrix[:, known].T, matrix[:, known].T)
    np.testing.assert_allclose(found.distances[np.ix_(known, known)], distances, atol=1e-12)
    np.testing.assert_allclose(napvd(matrix)[np.ix_(known, known)], distances, atol=1e-12)
    assert np.isnan(found.distances[2]).all()
    assert np.isnan(napvd(matrix)[:, 2]).all()


def test_an_input_of_several_labels_counts_once_for_each() -> None:
    inputs = drawn(40, seed=1)
    rng = np.random.default_rng(2)
    predicted = [set(np.flatnonzero(rng.random(5) < 0.4).tolist()) for _ in inputs]
    assert set() in predicted
    found = ActivationProbabilities(LAYERS, 5)
    found.update(inputs, [[*labels, *labels] for labels in predicted])
    np.testing.assert_allclose(found.matrix, expected(inputs, predicted, 5))
    assert found.inputs.sum() == sum(map(len, predicted))


def test_distances_of_nearly_equal_classes_are_not_those_of_rounding() -> None:
    rng = np.random.default_rng(5)
    columns = rng.random((5000, 4))
    columns[:, 1] = columns[:, 0]
    columns[:, 2] = columns[:, 0] + rng.normal(0, 1e-9, 5000)
    expected_ = scipy.spatial.distance.cdist(columns.T, columns.T)
    np.testing.assert_allclose(napvd(columns), expected_, rtol=1e-9, atol=0)


def test_what_is_at_the_threshold_is_not_active() -> None:
    units = np.array([0.0, 0.5, 1.0], np.float32)
    found = ActivationProbabilities(["a"], 2)
    found.update([Activations({"a": UnitActivations(units, 0.0, 1.0)}, 1)])
    assert found.matrix[:, 1].tolist() == [0, 0, 1]


def test_inputs_without_a_class_count_for_nothing() -> None:
    found = ActivationProbabilities(LAYERS, 5)
    found.update([one._replace(label=-1) for one in drawn(3)])
    assert not found.inputs.any()
    with pytest.raises(UsageError, match="no input"):
        _ = found.matrix


def test_bad_arguments_are_told() -> None:
    for layers, classes, threshold in (((), 2, 0.5), (("a",), 1, 0.5), (("a",), 2, 1.5)):
        with pytest.raises(UsageError):
            ActivationProbabilities(layers, classes, threshold=threshold)
    found = ActivationProbabilities(LAYERS, 3)
    with pytest.raises(UsageError, match="class 4"):
        found.update([one._replace(label=4) for one in drawn(1)])
    with pytest.raises(UsageError, match="layer 'c'"):
        ActivationProbabilities(["c"], 5).update(drawn(1))
    with pytest.raises(UsageError, match="each input"):
        ActivationProbabilities(LAYERS, 5).update(drawn(3), [{0}])


def test_layers_are_those_before_activation_functions(tmp_path: Path) -> None:
    path = convolutional(tmp_path / "net.onnx", ("Relu", "MaxPool"))
    assert pre_activation_layers(open_graph(path, "onnx", {})) == ("c1", "c2", "logits")


def normalised(path: Path) -> Path:
    """Convolution, batch normalisation, SiLU; dense with a bias, softmax."""
    rng = np.random.default_rng(3)
    constants = {
        "w1": rng.normal(size=(6, 3, 3, 3)).astype(np.float32),
        **{name: rng.uniform(0.5, 1.5, 6).astype(np.float32) for name in ("g", "s", "mean", "var")},
        "w2": rng.normal(size=(6 * 64, 4)).astype(np.float32),
        "b2": rng.normal(size=4).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c1", "g", "s", "mean", "var"], ["n1"]),
        helper.make_node("Sigmoid", ["n1"], ["gate"]),
        helper.make_node("Mul", ["n1", "gate"], ["r1"]),
        helper.make_node("Flatten", ["r1"], ["f"]),
        helper.make_node("MatMul", ["f", "w2"], ["m"]),
        helper.make_node("Add", ["m", "b2"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    return saved(path, nodes, constants, [1, 3, 8, 8])


def test_a_real_net_is_scaled_over_its_whole_tensors_before_means(tmp_path: Path) -> None:
    """As the paper has it: min-max over the tensor on each input, then the mean of each channel."""
    graph = open_graph(normalised(tmp_path / "net.onnx"), "onnx", {})
    layers = pre_activation_layers(graph)
    assert layers == ("n1", "logits")
    tensor = TensorInfo(name="x", shape=(1, 3, 8, 8), dtype="float32")
    spec = resolve_input(tensor, InputOptions(scale="1/255"), InputOptions(), "net")
    images = np.random.default_rng(4).integers(0, 256, (30, 8, 8, 3), np.uint8)
    found = ActivationProbabilities(layers, 4)
    found.update(activations_of(graph, spec, images, layers))
    active = np.zeros((10, 4))
    counts = np.zeros(4)
    for image in images:
        values = graph.read(prepare(image, spec), [*layers, "y"])
        label = int(values["y"].argmax())
        counts[label] += 1
        row = []
        for name in layers:
            tensor_ = values[name][0].astype(np.float64)
            scaled = (tensor_ - tensor_.min()) / (tensor_.max() - tensor_.min())
            row += (scaled.reshape(len(scaled), -1).mean(axis=1) > 0.5).tolist()
        active[:, label] += row
    assert found.inputs.tolist() == counts.tolist()
    assert (counts > 0).sum() > 1
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(found.matrix, active / counts)

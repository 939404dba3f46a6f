"""Faults that look like others, and healthy files that look like faulty ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from triage_pairs import (
    CLASSES,
    SPEC,
    Fault,
    attribute,
    changed,
    ending,
    images,
    network,
    pair_of,
    triaged,
)

from edgeflare.models.quantized import Recipe, make_quantized
from edgeflare.triage.cause import Triage
from edgeflare.triage.model import HostModel
from edgeflare.triage.pair import DeviceAnswers
from edgeflare.triage.run import triage
from edgeflare.triage.ways import Way
from edgeflare.words.next_steps import step_for
from edgeflare.words.triage import sentence
from edgeflare_agent.preprocess import prepare

BGR = SPEC._replace(color="BGR")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "original.onnx"
    onnx.save(network(), path)
    return path


def quantised(original: Path, folder: Path, fault: Fault, reach: float = 1.0) -> Triage:
    """A pair whose int8 file is made of a faulty float one, calibrated on so large a part of the inputs."""
    model = onnx.load(original)
    fault(model)
    onnx.save(model, folder / "faulty.onnx")
    inputs = [reach * prepare(sample, SPEC) for sample in images()]
    recipe = Recipe("int8", per_channel=True)
    made = make_quantized(folder / "faulty.onnx", [recipe], inputs, folder, lambda *_: None)
    return triage(pair_of(original, made["int8"]))


def in_few_levels(kernel: np.ndarray) -> np.ndarray:
    step = np.abs(kernel).max(axis=(1, 2, 3), keepdims=True)
    return step * np.round(kernel / step)


def moved(kernel: np.ndarray) -> np.ndarray:
    return kernel[:, np.random.default_rng(3).permutation(kernel.shape[1])]


def other_numbers(kernel: np.ndarray) -> np.ndarray:
    return np.random.default_rng(4).normal(0, kernel.std(), kernel.shape)


def in_other_units(kernel: np.ndarray) -> np.ndarray:
    kernel[:8] *= 2.5
    return kernel


def largest(model: onnx.ModelProto) -> None:
    """The mean of the second convolution's outputs is their maximum."""
    for node in model.graph.node:
        if node.op_type == "GlobalAveragePool":
            node.op_type = "GlobalMaxPool"


@pytest.mark.parametrize(
    ("fault", "kind", "weights"),
    [
        (changed("k2", in_few_levels), "compression", None),
        (changed("k2", moved), "conversion", "other-order"),
        (changed("k2", lambda kernel: kernel.swapaxes(2, 3)), "conversion", "other-order"),
        (changed("k2", other_numbers), "another-model", "unrelated"),
        (changed("k2", in_other_units), "conversion", "differ"),
    ],
)
def test_weights_tell_rounding_from_a_conversion_in_an_int8_file(
    original: Path, tmp_path: Path, fault: Fault, kind: str, weights: str | None
) -> None:
    first = quantised(original, tmp_path, fault).causes[0]
    assert (first.kind, first.proof, first.names[0]) == (kind, "located", "conv2"), first.evidence
    assert weights in (None, first.evidence["weights"])


@pytest.mark.parametrize(("reach", "part"), [(0.05, "cut_off"), (30.0, "used")])
def test_integers_that_hold_too_little_or_far_too_much_are_a_calibration(
    original: Path, tmp_path: Path, reach: float, part: str
) -> None:
    first = quantised(original, tmp_path, lambda _: None, reach).causes[0]
    assert first.kind == "calibration"
    assert part in first.evidence or "cut_off" in first.evidence


def test_another_operator_in_an_int8_file_is_a_conversion(tmp_path: Path) -> None:
    model = network()
    graph = model.graph
    graph.node[4].CopyFrom(helper.make_node("GlobalAveragePool", ["r2"], ["mean"], "mean"))
    graph.node.insert(5, helper.make_node("Flatten", ["mean"], ["flat"], "flatten"))
    changed("k3", lambda kernel: kernel[:16])(model)
    onnx.save(model, tmp_path / "pooled.onnx")
    first = quantised(tmp_path / "pooled.onnx", tmp_path, largest).causes[0]
    assert (first.kind, first.names[0]) == ("conversion", "mean")
    assert (first.evidence["operator"], first.evidence["original"]) == (
        "GlobalMaxPool",
        "GlobalAveragePool",
    )


def test_kernels_in_parts_are_the_same_model_where_a_feed_makes_it_agree(
    original: Path, tmp_path: Path
) -> None:
    def halves(model: onnx.ModelProto) -> None:
        graph = model.graph
        for layer, kernel in (("conv1", "k1"), ("conv2", "k2")):
            (weights,) = (each for each in graph.initializer if each.name == kernel)
            (bias,) = (each for each in graph.initializer if each.name == kernel.replace("k", "b"))
            values = numpy_helper.to_array(weights), numpy_helper.to_array(bias)
            place = next(at for at, node in enumerate(graph.node) if node.name == layer)
            node = graph.node[place]
            parts = []
            for part, at in enumerate((slice(0, 5), slice(5, None))):
                copy = onnx.NodeProto.FromString(node.SerializeToString())
                copy.name, copy.output[0] = f"{layer}.{part}", f"{layer}.{part}"
                copy.input[1:] = [f"{kernel}.{part}", f"{kernel}.{part}.bias"]
                for name, value in zip(copy.input[1:], values, strict=True):
                    graph.initializer.append(numpy_helper.from_array(value[at], name))
                parts.append(copy)
            names = [copy.output[0] for copy in parts]
            joined = helper.make_node("Concat", names, [node.output[0]], f"{layer}.joined", axis=1)
            graph.node.remove(node)
            for at, copy in enumerate([*parts, joined]):
                graph.node.insert(place + at, copy)

    found = triaged(original, tmp_path, halves, spec=BGR)
    assert [(cause.kind, cause.what) for cause in found.causes] == [
        ("preprocessing", "same-tensor")
    ]


def test_a_probability_of_8_bits_is_no_scale_for_unlike_channels(tmp_path: Path) -> None:
    """Classes that no seed shows have the value 0 alone."""
    rng = np.random.default_rng(0)
    kernel = np.zeros((21, 3, 1, 1), np.float32)
    kernel[:6, :, 0, 0] = rng.normal(0, 4, (6, 3))
    bias = np.full(21, -6, np.float32)
    bias[:6] = 0

    def model(*rounded: onnx.NodeProto) -> onnx.ModelProto:
        last = "scores" if not rounded else "exact"
        nodes = [
            helper.make_node("Conv", ["image", "kernel", "bias"], ["raw"], "conv"),
            helper.make_node("Softmax", ["raw"], [last], "softmax", axis=1),
            *rounded,
        ]
        constants = {"kernel": kernel, "bias": bias, "scale": np.float32(1 / 256)}
        graph = helper.make_graph(
            nodes,
            "map",
            [helper.make_tensor_value_info("image", 1, [1, 3, 16, 16])],
            [helper.make_tensor_value_info("scores", 1, [1, 21, 16, 16])],
            [
                *(
                    numpy_helper.from_array(np.asarray(value), name)
                    for name, value in constants.items()
                ),
                numpy_helper.from_array(np.array(0, np.uint8), "zero"),
            ],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

    onnx.save(model(), tmp_path / "original.onnx")
    rounded = (
        helper.make_node("QuantizeLinear", ["exact", "scale", "zero"], ["codes"], "codes"),
        helper.make_node("DequantizeLinear", ["codes", "scale", "zero"], ["scores"], "scores"),
    )
    onnx.save(model(*rounded), tmp_path / "deployed.onnx")
    found = triage(pair_of(tmp_path / "original.onnx", tmp_path / "deployed.onnx"))
    assert (found.is_healthy, found.causes) == (True, ())


def test_a_gate_that_is_shut_in_both_models_is_not_where_they_part(tmp_path: Path) -> None:
    model = network()
    graph = model.graph
    for name, value in (("small", 0.1), ("large", 50.0)):
        graph.initializer.append(numpy_helper.from_array(np.float32([value]), name))
    gate = [
        helper.make_node("Mul", ["r1", "small"], ["scaled"], "scaled"),
        helper.make_node("Add", ["scaled", "large"], ["shifted"], "shifted"),
        helper.make_node("HardSigmoid", ["shifted"], ["gate"], "gate"),
        helper.make_node("Mul", ["r1", "gate"], ["gated"], "gated"),
    ]
    for at, node in enumerate(gate):
        graph.node.insert(2 + at, node)
    next(node for node in graph.node if node.name == "conv2").input[0] = "gated"
    onnx.save(model, tmp_path / "gated.onnx")
    found = triaged(tmp_path / "gated.onnx", tmp_path, changed("k2", lambda kernel: -kernel))
    assert [cause.names[0] for cause in found.causes if cause.proof == "located"] == ["conv2"]


@pytest.mark.parametrize("versions", [(9, 15), (7, 17)])
def test_attributes_of_another_version_of_the_format_are_equal(
    tmp_path: Path, versions: tuple[int, int]
) -> None:
    def pooled(opset: int, counted: int) -> onnx.ModelProto:
        model = network()
        pool = {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1], "count_include_pad": counted}
        model.graph.node.insert(2, helper.make_node("AveragePool", ["r1"], ["q1"], "pool", **pool))
        model.graph.node[3].input[0] = "q1"
        model.opset_import[0].version = opset
        return model

    paths = [tmp_path / "original.onnx", tmp_path / "deployed.onnx"]
    for place, path in enumerate(paths):
        onnx.save(pooled(versions[place], place), path)
    first = triage(pair_of(*paths)).causes[0]
    assert (first.names, first.evidence["attributes"]) == (("pool",), {"count_include_pad": [0, 1]})


@pytest.mark.parametrize("is_original", [True, False])
def test_labels_tell_which_of_two_feeds_is_wrong(original: Path, is_original: bool) -> None:
    pair = pair_of(original, original)
    answers = pair.answers(pair.original)
    assert answers is not None
    labels = answers[0].reshape(len(answers[0]), -1).argmax(axis=1).tolist()
    samples = [pair.seeds.samples[place] for place in pair.places]
    wrong = pair_of(original, original, samples=samples, labels=labels, spec=BGR)
    if is_original:
        wrong.original = HostModel(replace(wrong.files[0], spec=BGR))
        wrong.deployed = HostModel(replace(wrong.files[1], spec=SPEC))
    first = triage(wrong).causes[0]
    assert (first.what, first.side) == ("same-tensor", "original" if is_original else "deployed")
    assert first.change == {"color": "RGB"}
    assert f"--{first.side}-input color=RGB" in step_for(first)


def test_a_labelled_seed_without_a_finite_answer_costs_no_sentence(tmp_path: Path) -> None:
    model = network()
    ending("Where", np.zeros((1, 1), bool), np.zeros((1, CLASSES), np.float32))(model)
    graph = model.graph
    # white images alone have no answer
    graph.node[-1].input[:] = ["white", "none", "before"]
    for name, value in (("none", np.nan), ("limit", 1.95)):
        graph.initializer.append(numpy_helper.from_array(np.float32([[value]]), name))
    graph.initializer.append(numpy_helper.from_array(np.array([0, 1], np.int64), "axes"))
    extra = [
        helper.make_node("ReduceMean", ["image"], ["level"], "level", keepdims=0),
        helper.make_node("Unsqueeze", ["level", "axes"], ["brightness"], "brightness"),
        helper.make_node("Greater", ["brightness", "limit"], ["white"], "white"),
    ]
    for at, node in enumerate(extra):
        graph.node.insert(at, node)
    onnx.save(model, tmp_path / "model.onnx")
    samples = images(120)
    samples[3] = np.full_like(samples[3], 255)  # not among the 24 that are compared
    path = tmp_path / "model.onnx"
    found = triage(pair_of(path, path, samples=samples, labels=[0] * 120, spec=BGR))
    assert all(sentence(cause) for cause in (*found.causes, *found.remarks))


@pytest.mark.parametrize(
    ("labels_of", "label", "number"),
    [
        (lambda number: number + 1, "1", 0),
        (lambda number: {0: 1, 1: 0}.get(number, number), "0", 1),
    ],
)
def test_labels_that_begin_at_1_or_have_two_exchanged_are_told(
    original: Path, labels_of, label: str, number: int
) -> None:
    samples = images(120)
    answers = pair_of(original, original, samples=samples).answers
    pair = pair_of(original, original, samples=samples)
    scores = answers(pair.original, None, list(range(120)))
    assert scores is not None
    classes = scores[0].reshape(120, -1).argmax(axis=1)
    labels = [labels_of(int(each)) for each in classes]
    (first,) = triage(pair_of(original, original, samples=samples, labels=labels)).causes
    assert (first.kind, first.what) == ("labels", "renumbered")
    assert first.change["classes"][label] == number


def test_labels_of_one_class_tell_nothing_of_the_feed(original: Path) -> None:
    """Any feed that makes this class likely would look right."""
    samples = images(60)
    for label in range(CLASSES):
        found = triage(pair_of(original, original, samples=samples, labels=[label] * 60))
        assert (found.is_healthy, found.causes) == (True, ())


@pytest.mark.parametrize("picture", ["grey-mean", "planes-as-pixels", "inverted"])
def test_a_device_that_changes_the_picture_first_is_told(original: Path, picture: str) -> None:
    samples = images(24)
    pair = pair_of(original, original, samples=samples)
    answers = pair.deployed.answers(samples, Way(SPEC, picture=picture), [0] * 24)
    assert answers is not None
    device = DeviceAnswers(samples, [0] * 24, answers)
    first = triage(pair_of(original, original, samples=samples, device=device)).causes[0]
    assert (first.kind, first.side) == ("preprocessing", "device")
    assert first.change == {"picture": picture}


def test_a_padding_that_is_left_out_is_equal_to_one_of_nothing(
    original: Path, tmp_path: Path
) -> None:
    def fault(model: onnx.ModelProto) -> None:
        changed("k2", lambda kernel: -kernel)(model)
        attribute("conv2", "dilations", [1, 1])(model)
        attribute("conv2", "auto_pad", "NOTSET")(model)

    assert triaged(original, tmp_path, fault).causes[0].evidence["attributes"] == {}

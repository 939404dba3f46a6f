"""Each kind of fault in a small model is found as what it is, and healthy pairs have no cause."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
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

from edgeflare._internal import plugins
from edgeflare.models import InputSpec
from edgeflare.models.quantized import Recipe, make_quantized
from edgeflare.triage.cause import Cause
from edgeflare.triage.pair import DeviceAnswers, Pair, PairSeeds
from edgeflare.triage.run import triage
from edgeflare.triage.ways import Way
from edgeflare_agent.preprocess import prepare


def channels_empty(kernel: np.ndarray) -> np.ndarray:
    kernel[2:5] = 0
    return kernel


def renumbered(model: onnx.ModelProto) -> None:
    order = np.array([1, 2, 3, 4, 5, 0])
    changed("k3", lambda kernel: kernel[:, order])(model)
    changed("b3", lambda bias: bias[order])(model)


def background(model: onnx.ModelProto) -> None:
    changed("k3", lambda kernel: np.pad(kernel, ((0, 0), (1, 0))))(model)
    changed("b3", lambda bias: np.pad(bias, (1, 0), constant_values=-4))(model)
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = CLASSES + 1


def random(model: onnx.ModelProto) -> None:
    model.graph.node.insert(5, helper.make_node("RandomUniformLike", ["flat"], ["noise"], "drop"))
    model.graph.node.insert(6, helper.make_node("Add", ["flat", "noise"], ["noisy"], "add"))
    model.graph.node[7].input[0] = "noisy"


def not_finite(model: onnx.ModelProto) -> None:
    def broken(bias: np.ndarray) -> np.ndarray:
        bias[3] = np.inf
        return bias

    changed("b2", broken)(model)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "original.onnx"
    onnx.save(network(), path)
    return path


@pytest.mark.parametrize(
    ("fault", "kind", "what", "name"),
    [
        (attribute("conv2", "pads", [0, 0, 2, 2]), "conversion", "layer", "conv2"),
        (changed("k2", channels_empty), "conversion", "layer", "conv2"),
        (changed("b1", np.zeros_like), "conversion", "bias-differs", "conv1"),
        (changed("k1", lambda kernel: kernel[:, ::-1]), "preprocessing", "other-way", None),
        (not_finite, "non-finite", "not-finite", "conv2"),
        (random, "not-repeatable", "answers-change", "drop"),
        (renumbered, "interface", "classes-exchanged", "logits"),
        (background, "interface", "one-class-more", "logits"),
        (ending("Softmax", axis=-1), "interface", "form", "logits"),
        (ending("Mul", np.float32([0.25])), "interface", "units", "logits"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_fault_of_the_file_is_the_first_cause(
    original: Path, tmp_path: Path, fault: Fault, kind: str, what: str, name: str | None
) -> None:
    found = triaged(original, tmp_path, fault)
    first = found.causes[0]
    assert (first.kind, first.what, found.is_healthy) == (kind, what, False)
    assert name is None or name in first.names
    assert not found.failed


def test_another_model_is_told_from_a_conversion(original: Path, tmp_path: Path) -> None:
    onnx.save(network(seed=9), tmp_path / "other.onnx")
    found = triage(pair_of(original, tmp_path / "other.onnx"))
    assert (found.causes[0].kind, found.causes[0].evidence["kernels"]) == ("another-model", 3)


@pytest.mark.parametrize(
    ("spec", "options"),
    [
        (SPEC._replace(color="BGR", mean=SPEC.mean[::-1], std=SPEC.std[::-1]), {"color"}),
        (SPEC._replace(mean=(0.0,), std=(1.0,)), {"mean", "std"}),
        (SPEC._replace(orientation="rotate-90"), {"orientation"}),
    ],
    ids=["colour", "scaling", "orientation"],
)
def test_a_feed_that_is_wrong_is_named_with_the_one_that_agrees(
    original: Path, spec: InputSpec, options: set[str]
) -> None:
    found = triage(pair_of(original, original, spec=spec))
    first = found.causes[0]
    assert (first.kind, first.proof, first.side) == ("preprocessing", "corrected", "deployed")
    assert first.evidence["agreement"] == 150
    assert first.what == "same-tensor" or options <= {*first.change}


@pytest.mark.parametrize("per_channel", [True, False])
def test_a_healthy_int8_copy_has_no_cause(
    original: Path, tmp_path: Path, per_channel: bool
) -> None:
    inputs = [prepare(sample, SPEC) for sample in images()]
    recipe = Recipe("int8", per_channel=per_channel)
    made = make_quantized(original, [recipe], inputs, tmp_path, lambda *_: None)
    found = triage(pair_of(original, made["int8"]))
    assert (found.number_format, found.is_healthy, found.causes) == ("int8", True, ())


def test_the_same_file_agrees(original: Path) -> None:
    found = triage(pair_of(original, original))
    assert (found.agreement, found.is_healthy, found.causes) == (150, True, ())


def test_a_device_that_is_fed_otherwise_is_told_without_asking_it(original: Path) -> None:
    samples = images()[:16]
    pair = pair_of(original, original)
    fed = Way(SPEC._replace(color="BGR"))
    outputs = pair.deployed.answers(samples, fed, [0] * 16)
    assert outputs is not None
    device = DeviceAnswers(samples, [0] * 16, outputs)
    found = triage(pair_of(original, original, device=device))
    first = found.causes[0]
    assert (first.kind, first.side, first.change) == ("preprocessing", "device", {"color": "BGR"})


def test_of_misfits_none_wins(original: Path, tmp_path: Path) -> None:
    noise = np.random.default_rng(3).normal(0, 0.1, (12, 3, 3, 3))
    found = triaged(original, tmp_path, changed("k1", lambda kernel: kernel + noise))
    assert not any(one.kind == "preprocessing" for one in found.causes)
    assert found.ruled_out["feeds"]["tried"] > 30


def test_labels_tell_of_a_feed_that_is_wrong_for_both(original: Path) -> None:
    samples = images(60)
    pair = pair_of(original, original, samples=samples)
    right = pair.answers(pair.original, None, range(60))
    assert right is not None
    labels = right[0].argmax(axis=1).tolist()
    wrong = SPEC._replace(color="BGR")
    files = tuple(replace(one, spec=wrong) for one in pair.files)
    found = triage(Pair((files[0], files[1]), PairSeeds(samples, labels)))
    first = found.causes[0]
    assert (first.kind, first.side, first.evidence["right_then"]) == ("preprocessing", "both", 1.0)


def test_a_check_that_fails_is_named_and_the_others_go_on(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise ValueError("no partner")

    monkeypatch.setattr("edgeflare.triage.checks.kernels._partner", broken)
    found = triaged(original, tmp_path, attribute("conv2", "pads", [0, 0, 2, 2]))
    assert found.failed == {"kernels": "no partner"}
    assert (found.causes[0].what, found.causes[0].names) == ("layer", ("conv2",))


def test_a_cause_of_another_distribution_is_ranked_among_them(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mine(pair: Pair) -> list[Cause]:
        return [Cause("conversion", "mine", "read", 4.9, evidence={"seeds": len(pair.places)})]

    def broken(pair: Pair) -> list[Cause]:
        raise RuntimeError("not ready")

    others = {"mine": mine, "broken": broken}
    monkeypatch.setattr(plugins, "names", lambda kind: (*others,) if kind == "cause" else ())
    monkeypatch.setattr(plugins, "load", lambda kind, name: others[name])
    found = triaged(original, tmp_path, attribute("conv2", "pads", [0, 0, 2, 2]))
    assert [one.what for one in found.causes[:2]] == ["mine", "layer"]
    assert found.failed == {"broken": "not ready"}

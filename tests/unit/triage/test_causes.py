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
from edgeflare.triage.cause import Cause, Triage
from edgeflare.triage.model import HostModel, ModelFile
from edgeflare.triage.pair import DeviceAnswers, Pair, PairSeeds
from edgeflare.triage.run import triage
from edgeflare.triage.ways import Way
from edgeflare.words.triage import ruled_out
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


def test_operators_need_not_stand_in_the_order_of_their_work(
    original: Path, tmp_path: Path
) -> None:
    def fault(model: onnx.ModelProto) -> None:
        attribute("conv2", "pads", [0, 0, 2, 2])(model)
        model.graph.node.append(model.graph.node.pop(0))  # as converters to half precision do

    assert triaged(original, tmp_path, fault).causes[0].names == ("conv2",)


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


def test_another_attribute_in_an_int8_file_is_no_compression(
    original: Path, tmp_path: Path
) -> None:
    model = onnx.load(original)
    attribute("conv2", "pads", [0, 0, 2, 2])(model)
    onnx.save(model, tmp_path / "padded.onnx")
    inputs = [prepare(sample, SPEC) for sample in images()]
    recipe = Recipe("int8", per_channel=True)
    made = make_quantized(tmp_path / "padded.onnx", [recipe], inputs, tmp_path, lambda *_: None)
    first = triage(pair_of(original, made["int8"])).causes[0]
    assert (first.kind, first.evidence["attributes"].keys()) == ("conversion", {"pads"})


def test_what_the_labels_do_not_fit_is_told(original: Path) -> None:
    found = triage(pair_of(original, original, labels=[CLASSES + 3] * 24))
    assert found.ruled_out["labels"] == {"largest": CLASSES + 3, "classes": CLASSES}
    assert any("no output" in line for line in ruled_out(found))


@pytest.mark.parametrize("count", [1, 24])
def test_identical_seeds_count_as_the_one_that_they_are(original: Path, count: int) -> None:
    found = triage(pair_of(original, original, samples=images()[:1] * count))
    assert (found.causes, found.failed) == ((), {})
    assert found.ruled_out["seeds"]["compared"] == 1


def test_the_same_file_agrees(original: Path) -> None:
    found = triage(pair_of(original, original))
    assert (found.agreement, found.is_healthy, found.causes) == (150, True, ())


def on_device(
    deployed: Path, spread: float = 0.0, spec: InputSpec = SPEC, **others: Any
) -> DeviceAnswers:
    """What a device answers that feeds a file in a way, by kernels that spread so far."""
    samples = images()[:16]
    pair = pair_of(deployed, deployed)
    outputs = pair.deployed.answers(samples, Way(spec), [0] * 16)
    assert outputs is not None
    noise = np.random.default_rng(2).normal(0, spread, outputs[0].shape)
    return DeviceAnswers(samples, [0] * 16, (outputs[0] + noise,), **others)


def test_a_device_that_is_fed_otherwise_is_told_without_asking_it(original: Path) -> None:
    device = on_device(original, spec=SPEC._replace(color="BGR"))
    found = triage(pair_of(original, original, device=device))
    first = found.causes[0]
    assert (first.kind, first.side, first.change) == ("preprocessing", "device", {"color": "BGR"})
    assert found.agreement is not None
    assert found.agreement < found.expected


@pytest.mark.parametrize(
    ("accelerator", "kind"), [("", "device"), ("libedgetpu.so.1", "accelerator")]
)
def test_what_nothing_here_reproduces_comes_of_the_device(
    original: Path, accelerator: str, kind: str
) -> None:
    device = on_device(original, 5.0, accelerator=accelerator)
    found = triage(pair_of(original, original, device=device))
    first = found.causes[0]
    assert (first.kind, first.proof, first.side) == (kind, "indicated", "device")
    assert found.ruled_out["device"]["host"] == 150


def test_kernels_that_answer_as_the_device_does_are_named(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two files, one stands for the other kernels of one file."""
    model = onnx.load(original)
    changed("b3", lambda bias: bias + np.float32([9, 0, -9, 4, 0, 0]))(model)
    onnx.save(model, tmp_path / "elsewhere.onnx")
    loaded = HostModel._loaded

    def by_options(model: HostModel) -> Any:
        is_plain = model.file.options.get("graph_optimization") == "none"
        path = tmp_path / "elsewhere.onnx" if is_plain else model.file.path
        model.file = replace(model.file, path=path)
        return loaded(model)

    monkeypatch.setattr(HostModel, "_loaded", by_options)
    device = on_device(tmp_path / "elsewhere.onnx")
    first = triage(pair_of(original, original, device=device)).causes[0]
    assert (first.kind, first.proof, first.side) == ("kernels", "corrected", "device")
    assert first.evidence["options"] == {"graph_optimization": "none"}


@pytest.mark.parametrize(
    ("spread", "repeated", "kind"), [(np.nan, 0, "non-finite"), (0.0, 2, "not-repeatable")]
)
def test_a_device_whose_answers_cant_be_used_is_told_first(
    original: Path, spread: float, repeated: int, kind: str
) -> None:
    device = on_device(original, spread, repeated=repeated)
    found = triage(pair_of(original, original, device=device))
    assert (found.causes[0].kind, found.causes[0].side, found.is_unusable) == (kind, "device", True)


class TestAFileThatCantBeRunHere:
    """A file for a runtime that is missing: only the device's answers are known of it."""

    def triaged(self, original: Path, device: DeviceAnswers, labels: list[int]) -> Triage:
        engine = original.with_name("deployed.engine")
        output = HostModel(ModelFile("original", original, "onnx", {}, SPEC)).outputs
        file = ModelFile(
            *("deployed", engine, "", {}, SPEC),
            unread="no runtime for engines",
            announced=tuple(output),
        )
        seeds = PairSeeds(device.samples, labels, device.rows, device)
        return triage(Pair((ModelFile("original", original, "onnx", {}, SPEC), file), seeds))

    @pytest.mark.parametrize(
        ("fault", "kind", "what"),
        [
            (ending("Softmax", axis=-1), "interface", "form"),
            (renumbered, "interface", "classes-exchanged"),
            (not_finite, "non-finite", "not-finite"),
            (ending("Mul", np.float32([0])), "constant", "same-for-all"),
        ],
    )
    def test_its_answers_are_judged(
        self, original: Path, tmp_path: Path, fault: Fault, kind: str, what: str
    ) -> None:
        model = onnx.load(original)
        fault(model)
        onnx.save(model, tmp_path / "deployed.onnx")
        found = self.triaged(original, on_device(tmp_path / "deployed.onnx"), [])
        assert (found.causes[0].kind, found.causes[0].what) == (kind, what)
        assert found.ruled_out["file"]["why"] == "no runtime for engines"
        assert not found.failed

    def test_its_feed_is_told_by_the_originals(self, original: Path) -> None:
        device = on_device(original, spec=SPEC._replace(color="BGR"))
        first = self.triaged(original, device, []).causes[0]
        assert (first.kind, first.proof, first.side) == ("preprocessing", "corrected", "device")
        assert first.change == {"color": "BGR"}

    def test_its_accuracy_is_counted(self, original: Path) -> None:
        device = on_device(original)
        labels = device.outputs[0].argmax(axis=1).tolist()
        found = self.triaged(original, device, labels)
        assert (found.causes, found.ruled_out["accuracy"]["deployed"]) == ((), 1.0)

    def test_an_agreement_like_that_of_healthy_pairs_is_none(self, original: Path) -> None:
        found = self.triaged(original, on_device(original, 0.05), [])
        assert (found.is_healthy, found.causes, found.failed) == (True, (), {})


def batched(model: onnx.ModelProto) -> None:
    """Open the batch axis."""
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"


def mixing(model: onnx.ModelProto) -> None:
    """Add the mean over the batch to each row: of one input alone it doubles what it has."""
    batched(model)
    graph = model.graph
    graph.node[-1].input[0] = "mixed"
    graph.node.insert(5, helper.make_node("ReduceMean", ["flat"], ["mean"], "mean", axes=[0]))
    graph.node.insert(6, helper.make_node("Add", ["flat", "mean"], ["mixed"], "mix"))


def test_rows_that_a_batch_mixes_are_a_remark(original: Path, tmp_path: Path) -> None:
    model = onnx.load(original)
    mixing(model)
    onnx.save(model, tmp_path / "original.onnx")
    found = triaged(tmp_path / "original.onnx", tmp_path, lambda _: None)
    assert [(one.kind, one.side) for one in found.remarks if one.kind == "batch"] == [
        ("batch", "original"),
        ("batch", "deployed"),
    ]
    assert found.remarks[0].evidence["rows"] == [0, 1, 2, 3]
    assert found.is_healthy


def test_rows_of_a_batch_that_agree_are_none(original: Path, tmp_path: Path) -> None:
    assert not any(one.kind == "batch" for one in triaged(original, tmp_path, batched).remarks)


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

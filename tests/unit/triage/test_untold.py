"""What answers alone can't tell is said, with the experiment that would."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from triage_pairs import SPEC, changed, images, network, pair_of, triaged

from edgeflare.models import InputSpec
from edgeflare.models.quantized import Recipe, make_quantized
from edgeflare.triage.cause import Triage
from edgeflare.triage.pair import DeviceAnswers, Pair, PairSeeds
from edgeflare.triage.run import triage
from edgeflare.triage.ways import Way
from edgeflare.words.next_steps import next_step, step_for
from edgeflare_agent.preprocess import prepare

BGR = SPEC._replace(color="BGR")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "original.onnx"
    onnx.save(network(), path)
    return path


def answered(pair: Pair, way: Way, gain: float = 1.0) -> DeviceAnswers:
    """What a device answers that feeds the deployed file in a way, multiplied by a gain."""
    samples = pair.seeds.samples[:16]
    fed = [pair.deployed.tensors(sample, way) for sample in samples]
    runs = [pair.deployed.run([one * np.float32(gain) for one in tensors]) for tensors in fed]
    outputs = tuple(np.stack(output) for output in zip(*runs, strict=True))
    return DeviceAnswers(samples, [0] * len(samples), outputs)


def on_device(path: Path, stated: InputSpec, *, gain: float = 1.0, **fed: str) -> Triage:
    """The triage of a file whose device feeds it otherwise than as stated."""
    (file, _), samples = pair_of(path, path).files, images()
    files = replace(file, spec=stated), replace(file, side="deployed", spec=stated)
    way = Way(stated._replace(**fed))
    device = answered(Pair(files, PairSeeds(samples)), way, gain)
    return triage(Pair(files, PairSeeds(samples, device=device)))


def test_both_fed_wrongly_alike_is_a_remark_where_labels_are_missing(original: Path) -> None:
    files = tuple(replace(one, spec=BGR) for one in pair_of(original, original).files)
    found = triage(Pair((files[0], files[1]), PairSeeds(images())))
    (remark,) = found.remarks
    assert (found.causes, found.is_healthy) == ((), True)
    assert (remark.kind, remark.what, remark.side) == ("labels", "missing", "both")
    assert "thirty" in step_for(remark)


def test_ways_that_fit_a_device_alike_are_all_named(tmp_path: Path) -> None:
    model = network()
    changed("k1", lambda kernel: (kernel + kernel[:, ::-1]) / 2)(model)
    onnx.save(model, tmp_path / "even.onnx")
    stated = SPEC._replace(mean=(0.9, 0.5, 0.1), std=(0.1, 0.3, 0.6))
    found = on_device(tmp_path / "even.onnx", stated, color="BGR")
    first = found.causes[0]
    fitting = [first.change, *first.evidence["also"]]
    assert (first.kind, first.side) == ("preprocessing", "device")
    assert {"color": "BGR"} in fitting
    assert any({*change} == {"mean", "std"} for change in fitting)
    assert "record one input tensor" in next_step(found)


def test_a_gain_on_the_device_looks_like_its_kernels(original: Path) -> None:
    found = on_device(original, SPEC, gain=0.5)
    first = found.causes[0]
    assert (first.kind, first.side) == ("device", "device")
    assert first.evidence["tried"] > 30
    assert "record one input tensor" in next_step(found)


def test_of_channels_in_another_order_the_weights_tell(original: Path, tmp_path: Path) -> None:
    first = triaged(original, tmp_path, changed("k1", lambda kernel: kernel[:, ::-1])).causes[0]
    assert (first.kind, first.evidence["kernel"]) == ("preprocessing", "k1")
    fed = triage(pair_of(original, original, spec=SPEC._replace(color="BGR"))).causes[0]
    assert "kernel" not in fed.evidence


def colours() -> onnx.ModelProto:
    """A model that answers how much of each colour an image has."""
    model = network()
    weights = {one.name: one for one in model.graph.initializer}
    sizes = {"k1": (3, 3, 3, 3), "b1": (3,), "k2": (3, 3, 3, 3), "b2": (3,), "b3": (3,)}
    for name, shape in sizes.items():
        values = np.zeros(shape, np.float32)
        if name in ("k1", "k2"):
            values[range(3), range(3), 1, 1] = 1
        if name in ("b1", "b2"):
            values += 4
        weights[name].CopyFrom(numpy_helper.from_array(values, name))
    dense = np.repeat(np.eye(3, dtype=np.float32), 16, axis=0)
    weights["k3"].CopyFrom(numpy_helper.from_array(dense, "k3"))
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 3
    return model


PLAIN = SPEC._replace(mean=(0.0,), std=(1.0,))


def test_classes_that_are_colours_ask_for_the_list_of_the_training(tmp_path: Path) -> None:
    path = tmp_path / "colours.onnx"
    onnx.save(colours(), path)
    samples = images(60)
    files = tuple(replace(one, spec=PLAIN) for one in pair_of(path, path).files)
    found = triage(
        Pair((files[0], replace(files[1], spec=PLAIN._replace(color="BGR"))), PairSeeds(samples))
    )
    first = found.causes[0]
    assert (first.kind, first.change, first.evidence["classes"]) == (
        *("preprocessing", {"color": "RGB"}),
        True,
    )
    assert "list of classes" in next_step(found)
    pair = Pair((files[0], files[1]), PairSeeds(samples))
    right = pair.answers(pair.original, None, range(60))
    assert right is not None
    labels = right[0].argmax(axis=1).tolist()
    wrong = replace(files[0], spec=PLAIN._replace(color="BGR"))
    both = triage(Pair((wrong, replace(wrong, side="deployed")), PairSeeds(samples, labels)))
    assert (both.causes[0].kind, both.causes[0].evidence["renumbered"]) == ("preprocessing", 1.0)
    assert "list of classes" in next_step(both)


def test_few_labels_do_not_tell_the_resize_rule(original: Path) -> None:
    rng = np.random.default_rng(5)
    samples = [
        np.clip(np.kron(one, np.ones((3, 3, 1))) + rng.normal(0, 60, (48, 48, 3)), 0, 255).astype(
            np.uint8
        )
        for one in images(60)
    ]
    spec = SPEC._replace(resize="nearest")
    files = tuple(replace(one, spec=spec) for one in pair_of(original, original).files)
    labels = [place % 6 for place in range(60)]
    found = triage(Pair((files[0], files[1]), PairSeeds(samples, labels)))
    (remark,) = (one for one in found.remarks if one.kind == "resize-rule")
    assert {"right", "right_stated", "changed", "of"} <= {*remark.evidence}
    assert "200" in step_for(remark)


def test_a_fault_without_effect_is_left_to_a_search(original: Path, tmp_path: Path) -> None:
    found = triaged(original, tmp_path, changed("b3", lambda bias: bias + 1e-4))
    assert (found.causes, found.is_healthy) == ((), True)
    assert "search" in next_step(found)


def test_a_model_that_int8_breaks_is_compression_with_the_layer_to_keep(tmp_path: Path) -> None:
    model = network()
    for name in ("k1", "b1"):
        changed(
            name,
            lambda values: (
                values * np.logspace(-1.5, 1.5, 12).reshape(-1, *[1] * (values.ndim - 1))
            ),
        )(model)
    changed("k2", lambda kernel: kernel / np.logspace(-1.5, 1.5, 12).reshape(1, -1, 1, 1))(model)
    onnx.save(model, tmp_path / "wide.onnx")
    inputs = [prepare(sample, SPEC) for sample in images()]
    made = make_quantized(
        tmp_path / "wide.onnx",
        [Recipe("int8", per_channel=False)],
        inputs,
        tmp_path,
        lambda *_: None,
    )
    found = triage(pair_of(tmp_path / "wide.onnx", made["int8"]))
    first = found.causes[0]
    assert (first.kind, found.is_healthy) == ("compression", False)
    assert "float or 16 bits" in next_step(found)
    assert "accuracy" in next_step(found)

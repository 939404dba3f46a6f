"""The suite's faults: kinds, draws and the causes that are expected, fixed before the triage was run on any.

Changing a kind, its expected causes or `SEED` makes another suite: figures of one can't be compared with those
of another.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from edgeflare._internal.files import replacing
from edgeflare.triage.cause import CauseKind, Side
from edgeflare_bench.everyday import graph_faults as graph
from edgeflare_bench.everyday import integer_faults as integers
from edgeflare_bench.everyday import use_faults as use
from edgeflare_bench.everyday.evaluation import without_witness
from edgeflare_bench.everyday.planted import TFLITE, Chain, Plant, Planted, deployed_as
from edgeflare_bench.everyday.records import EverydayOriginal, EverydayPair
from edgeflare_bench.everyday.state_faults import keeps_state
from edgeflare_bench.faults.graph_edit import GraphEdit, Inapplicable, pick
from edgeflare_bench.words.everyday import NOT_PLANTED

SEED = 20_261_130
ATTEMPTS = 3
"""Parameters that are drawn for a fault until it has a witness."""
_ANY: tuple[Chain, ...] = ("float32", "float16", "int8")
_FED: tuple[Chain, ...] = (*_ANY, "tflite", "tflite-int8")
_GRAPH: tuple[Chain, ...] = ("float32", "float32", "float16", "int8")
_FLOAT: tuple[Chain, ...] = ("float32",)
_HALF: tuple[Chain, ...] = ("float16",)
_INT8: tuple[Chain, ...] = ("int8",)
_FULL: tuple[Chain, ...] = ("tflite-int8",)


@dataclass(frozen=True)
class FaultKind:
    """A kind of fault.

    `expected`: the kinds of causes of which the first that is told must be one. `share`: of the originals,
    where there are many that it suits. `report`: an outsider's report whose mechanism it is. `where`: whether
    the cause is one of the pair's, or a remark on a pair that agrees.
    """

    name: str
    plant: Plant
    expected: tuple[CauseKind, ...]
    chains: tuple[Chain, ...]
    share: float = 1.0
    report: str = ""
    where: Literal["causes", "remarks"] = "causes"


def _changed(change: graph.GraphChange) -> Plant:
    def plant(original: EverydayOriginal, chain: Chain, rng: np.random.Generator) -> Planted:
        edit = GraphEdit(original.model)
        names = change(edit, rng)
        deployed = deployed_as(edit.finish(), chain, original.calibration)
        return Planted(deployed, names=tuple(dict.fromkeys((*names, *edit.added()))))

    return plant


def _compressed(fault: integers.IntegerFault) -> Plant:
    return lambda original, _, rng: fault(original, rng)


def _conversions() -> Iterator[FaultKind]:
    listed: Sequence[tuple[graph.GraphChange, float, str]] = (
        (graph.padding_side, 0.4, "root-project/root#21793"),
        (graph.padding_value, 0.3, ""),
        (graph.dilation, 0.3, "ARM-software/armnn#486"),
        (graph.pooling_kind, 0.5, ""),
        (graph.pooling_edge, 1, "microsoft/onnxruntime#22177"),
        (graph.resize_mode, 1, "NVIDIA/TensorRT#273"),
        (graph.resize_filter, 1, ""),
        (graph.bias_lost, 0.4, ""),
        (graph.channels_in_other_order, 0.4, ""),
        (graph.inputs_in_other_order, 0.3, ""),
        (graph.kernel_turned, 0.4, ""),
        (graph.flattened_in_other_layout, 1, "microsoft/MMdnn#250"),
        (graph.dense_transposed, 0.6, "PINTO0309/onnx2tf#327"),
        (graph.layers_exchanged, 0.6, ""),
        (graph.folded_wrongly, 0.4, "qualcomm/aimet#1957"),
        (graph.weights_lost, 0.3, ""),
        (graph.constant_lost, 1, ""),
        (graph.gates_in_other_order, 1, "CrispStrobe/CrispASR#106"),
        (graph.other_direction, 1, ""),
        (graph.activation_clipped, 0.4, ""),
        (graph.activation_lost, 0.3, ""),
        (graph.activation_other, 0.4, ""),
        (graph.activation_slope, 1, "Tencent/ncnn#2826"),
        (graph.gelu_other, 1, ""),
        (graph.branch_lost, 0.8, ""),
        (graph.gate_lost, 1, ""),
        (graph.concat_order, 1, ""),
        (graph.softmax_axis, 1, "openvinotoolkit/openvino#37823"),
        (graph.attention_scale, 1, "pytorch/pytorch#135710"),
        (graph.norm_epsilon, 1, "Tencent/ncnn#311"),
        (graph.norm_affine_lost, 1, ""),
        (graph.training_mode, 0.4, "microsoft/onnxruntime#26584"),
    )
    for change, share, report in listed:
        name = change.__name__.replace("_", "-")
        yield FaultKind(name, _changed(change), ("conversion",), _GRAPH, share, report)


def _unusable() -> Iterator[FaultKind]:
    dropped, noisy = _changed(graph.dropout_active), _changed(graph.noise)
    random: tuple[CauseKind, ...] = ("not-repeatable", "conversion")
    report = "pytorch/pytorch#16547"
    yield FaultKind("dropout-active", dropped, random, _FLOAT, 0.4, report)
    yield FaultKind("noise", noisy, ("not-repeatable",), ("float32", "int8"), 0.3)
    constant: tuple[CauseKind, ...] = ("constant", "conversion")
    yield FaultKind("empty-last", _changed(graph.empty_last), constant, _ANY, 0.3)
    yield FaultKind("dead-layer", _changed(graph.dead_layer), constant, _ANY, 0.3)
    report = "microsoft/onnxruntime#11384"
    yield FaultKind("overflow", _compressed(integers.overflow), ("non-finite",), _HALF, 0.4, report)
    yield FaultKind(
        *(
            "silent-overflow",
            _compressed(integers.silent_overflow),
            ("compression", "conversion"),
            _HALF,
        ),
        report="microsoft/onnxruntime#31626",
    )


def _compressions() -> Iterator[FaultKind]:
    listed: Sequence[tuple[str, integers.IntegerFault, tuple[CauseKind, ...], float, str]] = (
        ("on-a-tenth", integers.on_a_tenth, ("calibration",), 0.4, ""),
        ("on-ten-times", integers.on_ten_times, ("calibration", "compression"), 0.3, ""),
        ("on-one-input", integers.on_one_input, ("calibration",), 0.4, ""),
        ("on-noise", integers.on_noise, ("calibration",), 0.4, "microsoft/onnxruntime#16738"),
        ("on-raw-pixels", integers.on_raw_pixels, ("calibration", "compression"), 0.3, ""),
        ("cut-by-percentile", integers.cut_by_percentile, ("calibration",), 0.3, ""),
        ("range-cut-off", integers.range_cut_off, ("calibration",), 0.5, ""),
        ("range-too-wide", integers.range_too_wide, ("calibration", "compression"), 0.4, ""),
        ("input-cut-off", integers.input_cut_off, ("calibration", "input-range"), 0.4, ""),
        ("zero-point-off", integers.zero_point_off, ("calibration", "compression"), 0.4, ""),
        (
            *("weight-scales", integers.weight_scales_mixed_up, ("compression", "conversion")),
            *(0.4, "tensorflow/tensorflow#66081"),
        ),
        ("coarse-layer", integers.coarse_layer, ("compression",), 0.5, ""),
        (
            *("unlike-channels", integers.unlike_channels, ("compression",), 1),
            "tensorflow/tensorflow#57745",
        ),
        (
            *("one-output-scale", integers.one_output_scale, ("output-scale",), 1),
            "ultralytics/ultralytics#2401",
        ),
    )
    for name, fault, expected, share, report in listed:
        yield FaultKind(name, _compressed(fault), expected, _INT8, share, report)


def _feeds() -> Iterator[FaultKind]:
    changes: Sequence[tuple[use.Restate, str]] = (
        (use.other_colours, ""),
        (use.no_normalisation, "sebastian-sz/efficientnet-lite-keras#27"),
        (use.no_deviation, ""),
        (use.other_unit, ""),
        (use.other_range, "am15h/tflite_flutter_helper#53"),
        (use.of_other_data, ""),
        (use.mean_in_other_order, ""),
        (use.normalised_twice, ""),
        (use.turned, ""),
        (use.other_resize, ""),
        (use.other_spectrum, "google-research/perch#661"),
        (use.other_loudness, ""),
    )
    sides: Sequence[Side] = ("original", "deployed", "both", "device")
    for change, report in changes:
        name = change.__name__.replace("_", "-")
        is_rule = change is use.other_resize
        expected: tuple[CauseKind, ...] = (
            ("preprocessing", "resize-rule") if is_rule else ("preprocessing",)
        )
        is_rare = change in (use.other_resize, use.other_spectrum, use.other_loudness)
        # these fit few originals: all that do are drawn, so that there are enough of them
        share = 1 if is_rare else 0.25
        for side in sides:
            plant = use.restated(change, side)
            yield FaultKind(f"{name}-{side}", plant, expected, _FED, share, report)
    for picture in ("letterbox", "crop", "planes", "pixels", "grey", "inverted"):
        reports = {"letterbox": "lp6m/yolov5s_android#28", "planes": "onnx/keras-onnx#382"}
        share = 1 if picture in ("letterbox", "crop") else 0.25
        yield FaultKind(
            *(f"{picture}-device", use.pictured(picture), ("preprocessing",), _FED, share),
            reports.get(picture, ""),
        )
    integers_given = {"unsigned": "mlcommons/tiny#43", "pixels": "tensorflow/tensorflow#52318"}
    for codes in ("unsigned", "pixels", "pixels-128"):
        plant = use.on_device(codes=codes)
        name, chains = f"codes-{codes}-device", _FULL
        yield FaultKind(name, plant, ("preprocessing",), chains, 0.5, integers_given.get(codes, ""))
    yield FaultKind(
        *("normalised-in-file", use.normalised_in_file, ("preprocessing",), _ANY, 0.7),
        "tensorflow/models#9413",
    )


def _interfaces() -> Iterator[FaultKind]:
    reports = {
        "outputs-exchanged": "tensorflow/tensorflow#33303",
        "background-class": "tensorflow/tpu#521",
        "box-pixels": "ultralytics/ultralytics#9089",
    }
    rare = ("outputs-", "inputs-", "box-", "normalised-", "other-channels")
    for name, plant in use.OUTPUTS.items():
        is_other = name == "sigmoid-for-softmax"
        expected: tuple[CauseKind, ...] = (
            ("conversion", "interface") if is_other else ("interface",)
        )
        share = 1 if name.startswith(rare) else 0.4
        yield FaultKind(name, plant, expected, _ANY, share, reports.get(name, ""))


def _others() -> Iterator[FaultKind]:
    report = "snowzach/doods2#108"
    orders = (("one-more", use.one_more, report), ("other-list", use.other_list, ""))
    for name, order, report in (*orders, ("rotated", use.rotated, "")):
        plant = use.relabelled(order)
        yield FaultKind(f"labels-{name}", plant, ("labels",), _FED, 0.4, report)
    yield FaultKind("untrained", use.untrained, ("another-model",), _ANY, 0.4)
    yield FaultKind("noisy-device", use.on_device(noise=0.1), ("not-repeatable",), _FED, 0.3)
    exif: tuple[CauseKind, ...] = ("exif", "preprocessing")
    yield FaultKind("exif-device", use.on_device(turned=True), exif, _FED, 0.3)
    device: tuple[CauseKind, ...] = ("device", "kernels", "accelerator")
    for change in (graph.activation_clipped, graph.padding_side, graph.weights_lost):
        name = f"kernels-{change.__name__.replace('_', '-')}"
        yield FaultKind(name, _on_device(change), device, _ANY, 0.25)
    yield FaultKind("keeps-state", _stateful, ("state",), ("tflite",), where="remarks")
    yield FaultKind(*("batch", _batch, ("batch",), _FLOAT, 0.5), where="remarks")


def _stateful(*_: Any) -> Planted:
    return Planted(change=keeps_state)


def _on_device(change: graph.GraphChange) -> Plant:
    planted = _changed(change)

    def plant(original: EverydayOriginal, chain: Chain, rng: np.random.Generator) -> Planted:
        return Planted(device={"file": planted(original, chain, rng).deployed})

    return plant


def _batch(original: EverydayOriginal, chain: Chain, rng: np.random.Generator) -> Planted:
    """A file takes several inputs at once, and what it answers to one depends on the others."""
    edit = GraphEdit(original.model)
    if any(node.op_type in ("Reshape", "LSTM", "GRU", "Resize") for node in edit.nodes):
        raise Inapplicable("the batch is fixed")
    tensor = pick(rng, edit.activations(), "activation")
    factor = edit.constant(0.5)

    def mixed(tensor: str) -> str:
        mean = edit.add("ReduceMean", tensor, axes=[0], keepdims=1)
        apart = edit.add("Sub", tensor, mean)
        return edit.add("Add", tensor, edit.add("Mul", apart, factor))

    edit.rewire(tensor, mixed)
    model = edit.finish()
    for info in (*model.graph.input, *model.graph.output):
        info.type.tensor_type.shape.dim[0].dim_param = "batch"
    del model.graph.value_info[:], chain
    return Planted(model)


KINDS: tuple[FaultKind, ...] = (
    *_conversions(),
    *_unusable(),
    *_compressions(),
    *_feeds(),
    *_interfaces(),
    *_others(),
)


@dataclass(frozen=True)
class Draw:
    """One fault of the suite: a kind in an original; `name` is "original/kind"."""

    kind: FaultKind
    original: str

    @property
    def name(self) -> str:
        """What tells it from the others."""
        return f"{self.original}/{self.kind.name}"


def draws(originals: Sequence[str]) -> list[Draw]:
    """Return the faults of some originals, in an order that doesn't depend on which they are."""
    listed = [Draw(kind, name) for name in originals for kind in KINDS]
    return [draw for draw in listed if _share(draw.name) < draw.kind.share]


def _share(name: str) -> float:
    return zlib.crc32(f"{SEED}/{name}".encode()) / 2**32


@dataclass(frozen=True)
class Faulty:
    """A faulty pair, and the healthy pair of the same chain."""

    kind: FaultKind
    pair: EverydayPair
    sound: EverydayPair
    sides: tuple[str, ...]


def planted(
    draw: Draw, original: EverydayOriginal, folder: Path, tflite: Mapping[str, EverydayPair]
) -> Faulty | str:
    """Plant a fault of the first parameters with a witness; return the pair, or why there is none.

    Files are written to `folder`. `tflite`: healthy pairs of the original by chain.
    """
    why = "nothing was drawn"
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([SEED, zlib.crc32(draw.name.encode()), attempt])
        chain: Chain = draw.kind.chains[int(rng.integers(len(draw.kind.chains)))]
        try:
            planting = draw.kind.plant(original, chain, rng)
            faulty = _written(
                draw,
                _healthy(original, planting, chain, folder, tflite),
                original,
                planting,
                folder,
            )
            if draw.kind.where == "remarks":  # the answers to one input after the other are right
                return faulty
            why = without_witness(faulty.pair, faulty.sound, original.labels)
        except Exception as problem:  # noqa: BLE001 - of a quantiser or runtime, which raise anything
            why = NOT_PLANTED.format(problem)
            continue
        if not why:
            return faulty
    return why


def _healthy(
    original: EverydayOriginal,
    planting: Planted,
    chain: Chain,
    folder: Path,
    tflite: Mapping[str, EverydayPair],
) -> EverydayPair:
    """Return the healthy pair of a chain; its files are written."""
    if chain in TFLITE:
        if chain not in tflite or planting.deployed is not None:
            raise Inapplicable("there is no TFLite file to change")
        return replace(tflite[chain], tool_chain=chain)
    path = folder / f"{original.name}-{chain}.onnx"
    if not path.is_file():
        _save(deployed_as(original.model, chain, original.calibration), path)
    return EverydayPair(
        *("", chain, original.path, path, original.name, original.input, original.input),
        *(original.samples, original.labels, original.kind),
        original_given=original.given,
        deployed_given=original.given,
    )


def _save(model: Any, path: Path) -> None:
    with replacing(path) as file:  # a worker may plant the same chain at the same time
        file.write(model.SerializeToString())


def _written(
    draw: Draw, healthy: EverydayPair, original: EverydayOriginal, planting: Planted, folder: Path
) -> Faulty:
    """Write a fault's files; return the pair and the healthy one."""
    name = draw.name.replace("/", "-")
    sound = replace(healthy, name=draw.name)
    if planting.original is not None:
        path = folder / f"{name}-original.onnx"
        _save(planting.original, path)
        sound = replace(sound, original=path, deployed=path)
    deployed = sound.deployed
    if planting.deployed is not None:
        deployed = folder / f"{name}.onnx"
        _save(planting.deployed, deployed)
    axes = {key: value for key, value in sound.deployed_input.items() if key == "layout"}
    device = dict(planting.device)
    if planting.change is not None:
        deployed = folder / f"{name}{sound.deployed.suffix}"
        deployed.write_bytes(planting.change(sound.deployed.read_bytes()))
    if "file" in device:
        path = folder / f"{name}-device.onnx"
        _save(device["file"], path)
        device["file"] = str(path)
    if "input" in device:
        device["input"] = {**device["input"], **axes}
    stated = planting.deployed_input
    pair = replace(
        sound,
        deployed=deployed,
        original_input=planting.original_input or sound.original_input,
        deployed_input=sound.deployed_input if stated is None else {**stated, **axes},
        labels=original.labels if planting.labels is None else planting.labels,
        expected=draw.kind.expected,
        names=planting.names,
        device=device,
    )
    return Faulty(draw.kind, pair, sound, planting.sides)

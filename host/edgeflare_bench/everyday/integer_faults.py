"""Faults of a compression: ranges, scales and zero points of int8 files, and half precision that overflows.

Each function is given an original and brings its number format along.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare_bench.everyday.graph_faults import Generator, Names
from edgeflare_bench.everyday.planted import Planted, deployed_as, in_half_precision
from edgeflare_bench.everyday.records import EverydayOriginal
from edgeflare_bench.faults.graph_edit import GraphEdit, Inapplicable, pick

IntegerFault: TypeAlias = Callable[[EverydayOriginal, Generator], Planted]
"""Plants a fault in an original, whose number format it brings along."""

# Calibration


def _calibrated(change: Callable[[NDArray[Any], Generator], NDArray[Any]]) -> IntegerFault:
    def plant(original: EverydayOriginal, rng: Generator) -> Planted:
        calibration = change(original.calibration[:32], rng).astype(np.float32)
        return Planted(deployed_as(original.model, "int8", calibration))

    return plant


on_a_tenth = _calibrated(lambda inputs, rng: inputs * rng.uniform(0.05, 0.25))
on_ten_times = _calibrated(lambda inputs, rng: inputs * rng.uniform(8, 20))
on_one_input = _calibrated(lambda inputs, rng: np.repeat(_dullest(inputs, rng), 2, axis=0))
on_noise = _calibrated(lambda inputs, rng: rng.normal(0, 0.05, inputs.shape) + inputs.mean())
on_raw_pixels = _calibrated(lambda inputs, _: inputs * 255)


def _dullest(inputs: NDArray[Any], rng: Generator) -> NDArray[Any]:
    """Return one input of the half that varies least."""
    spread = inputs.reshape(len(inputs), -1).std(axis=1)
    return inputs[[int(rng.choice(np.argsort(spread)[: len(inputs) // 2]))]]


def cut_by_percentile(original: EverydayOriginal, rng: Generator) -> Planted:
    """Calibrate so that far too much is held to be outliers: the largest tenth."""
    sound = deployed_as(original.model, "int8", original.calibration)
    edit = GraphEdit(sound)
    factor = rng.uniform(0.2, 0.4)
    for scale in _activation_scales(edit):
        edit.set_array(scale, edit.array(scale) * np.float32(factor))
    return Planted(edit.finish())


# Scales and zero points of one place


def _activation_scales(edit: GraphEdit) -> list[str]:
    """Return the scales of activations' integers, in order, each once."""
    constants = {tensor.name for tensor in edit.model.graph.initializer}
    nodes = edit.of_type("QuantizeLinear")
    names = [node.input[1] for node in nodes if node.input[0] not in constants]
    return list(dict.fromkeys(name for name in names if name in constants))


def _users(edit: GraphEdit, scale: str) -> Names:
    """Return the names of what a scale belongs to: what is quantised by it, and what reads that."""
    named: Names = (scale,)
    nodes = edit.nodes
    for node in [
        node for node in nodes if node.op_type == "QuantizeLinear" and scale in node.input
    ]:
        source = node.input[0]
        makers = [node.name for node in nodes if source in node.output]
        named += (source, *makers, *edit.place_of(node))
    for node in [
        node for node in nodes if node.op_type == "DequantizeLinear" and scale in node.input
    ]:
        named += edit.place_of(node)
    return tuple(dict.fromkeys(name for name in named if name))


def _at_one_scale(factors: Sequence[float], *, place: str = "hidden") -> IntegerFault:
    def plant(original: EverydayOriginal, rng: Generator) -> Planted:
        edit = GraphEdit(deployed_as(original.model, "int8", original.calibration))
        scales = _activation_scales(edit)
        tried = scales[:1] if place == "input" else scales[1:-1]
        scale = pick(rng, tried, "scale of an activation")
        names = _users(edit, scale)
        edit.set_array(scale, edit.array(scale) * np.float32(rng.choice(factors)))
        return Planted(edit.finish(), names=names)

    return plant


range_cut_off = _at_one_scale([0.1, 0.2, 0.3])
range_too_wide = _at_one_scale([16.0, 32.0])
input_cut_off = _at_one_scale([0.3, 0.5], place="input")


def zero_point_off(original: EverydayOriginal, rng: Generator) -> Planted:
    """A zero point where integers are stored is not the one with which they are read."""
    edit = GraphEdit(deployed_as(original.model, "int8", original.calibration))
    nodes = edit.of_type("DequantizeLinear")
    constants = {tensor.name for tensor in edit.model.graph.initializer}
    readers = [
        node for node in nodes
        if node.input[0] not in constants and len(node.input) > 2 and edit.array(node.input[2]).size == 1
    ]  # fmt: skip
    node = pick(rng, readers[1:], "zero point of an activation")
    point = edit.array(node.input[2])
    limits = np.iinfo(point.dtype)
    shift = int(rng.choice([-60, -40, 40, 60]))
    moved = int(np.clip(int(point) + shift, limits.min, limits.max))
    if abs(moved - int(point)) < abs(shift):
        moved = int(point) - shift
    names = _users(edit, node.input[1])
    node.input[2] = edit.constant(moved, point.dtype)
    return Planted(edit.finish(), names=names)


def weight_scales_mixed_up(original: EverydayOriginal, rng: Generator) -> Planted:
    """The scales of a layer's channels belong to other channels."""
    edit = GraphEdit(deployed_as(original.model, "int8", original.calibration))
    constants = {tensor.name: tensor for tensor in edit.model.graph.initializer}
    readers = [
        node for node in edit.of_type("DequantizeLinear")
        if node.input[0] in constants and edit.array(node.input[1]).size > 3
        and edit.array(node.input[0]).ndim > 1
    ]  # fmt: skip
    node = pick(rng, readers, "scales of channels")
    name = edit.constant(edit.array(node.input[1])[::-1])
    names = edit.place_of(node, *node.input)
    node.input[1] = name
    return Planted(edit.finish(), names=names)


def coarse_layer(original: EverydayOriginal, rng: Generator) -> Planted:
    """A layer's weights have 2 or 3 bits."""
    edit = GraphEdit(original.model)
    node = pick(rng, edit.hidden(), "hidden layer")
    steps = float(rng.choice([1, 2, 3]))
    weights = edit.array(node.input[1])
    step = np.abs(weights).max() / steps
    names = edit.place_of(node, node.input[1])
    edit.set_array(node.input[1], (np.round(weights / step) * step).astype(np.float32))
    return Planted(deployed_as(edit.finish(), "int8", original.calibration), names=names)


def unlike_channels(original: EverydayOriginal, rng: Generator) -> Planted:
    """One scale for all channels of a layer whose weights differ by a factor of some hundred.

    The original is scaled alike: two layers with a ReLU between them compute the same then.
    """
    edit = GraphEdit(original.model)
    pairs = []
    for node in edit.hidden("Conv"):
        behind = [maker for maker in edit.nodes if node.output[0] in maker.input]
        if len(behind) == 1 and behind[0].op_type == "Relu" and len(node.input) > 2:
            after = [node for node in edit.nodes if behind[0].output[0] in node.input]
            if len(after) == 1 and after[0] in edit.weighted("Conv"):
                pairs.append((node, after[0]))
    node, after = pick(rng, pairs, "two convolutions with a ReLU between them")
    size = edit.array(node.input[1]).shape[0]
    factors = np.exp(rng.uniform(np.log(1 / 300), 0, size)).astype(np.float32)
    factors[int(rng.integers(size))] = 1
    weights, later = edit.array(node.input[1]), edit.array(after.input[1])
    first = factors.reshape(-1, *[1] * (weights.ndim - 1))
    edit.set_array(node.input[1], weights * first)
    edit.set_array(node.input[2], edit.array(node.input[2]) * factors)
    is_depthwise = later.shape[1] == 1
    edit.set_array(after.input[1], later / (first if is_depthwise else first.swapaxes(0, 1)))
    names = edit.place_of(node, node.input[1]) + edit.place_of(after, after.input[1])
    model = edit.finish()
    return Planted(deployed_as(model, "int8-tensor", original.calibration), model, names)


def one_output_scale(original: EverydayOriginal, rng: Generator) -> Planted:
    """Boxes in pixels and scores in 0 to 1 leave by one output with one scale.

    The original's answer is the same in pixels.
    """
    edit = GraphEdit(original.model)
    output = edit.model.graph.output
    if not original.task.has_boxes:
        raise Inapplicable("the model has no boxes")
    size = float(rng.choice([64.0, 320.0, 640.0]))
    names = [info.name for info in output]
    if len(names) == 1:
        edit.rewire(
            names[0],
            lambda tensor: edit.add("Mul", tensor, edit.constant([size] * 4 + [1] * 4)),
        )
    else:
        boxes = edit.add("Mul", names[0], edit.constant(size))
        joined = edit.add("Concat", boxes, names[1], axis=2)
        del output[1:]
        onnx = extras.onnx()
        del output[:]
        output.append(onnx.helper.make_tensor_value_info(joined, 1, [1, 128, 7]))
    float_model = edit.finish()
    deployed = GraphEdit(deployed_as(float_model, "int8", original.calibration))
    last = deployed.model.graph.output[0].name
    scale, point = deployed.constant(size * 1.2 / 255), deployed.constant(0, np.uint8)
    deployed.rewire(last,
        lambda tensor: deployed.add(
            "DequantizeLinear", deployed.add("QuantizeLinear", tensor, scale, point), scale, point
        ),
    )  # fmt: skip
    return Planted(deployed.finish(), float_model, (last,))


# Half precision


def overflow(original: EverydayOriginal, rng: Generator) -> Planted:
    """Activations leave the range of half precision; the float model's are as large and right."""
    edit = GraphEdit(original.model)
    node = pick(rng, edit.hidden("Conv", "Gemm", "MatMul"), "hidden layer")
    factor = float(rng.choice([300.0, 800.0]))
    names = edit.place_of(node)
    beyond: list[str] = []

    def large(tensor: str) -> str:
        for kind in ("Mul", "Mul", "Div", "Div"):
            beyond.append(edit.add(kind, tensor, edit.constant(factor)))
            tensor = beyond[-1]
        return tensor

    edit.rewire(node.output[0], large)
    float_model = edit.finish()
    return Planted(in_half_precision(float_model), float_model, (*names, *beyond[:-1]))


def silent_overflow(original: EverydayOriginal, rng: Generator) -> Planted:
    """Squares overflow in a normalisation, so that it answers with its bias: finite and wrong."""
    edit = GraphEdit(original.model)
    layers = edit.of_type("LayerNormalization")
    node = pick(rng, layers, "layer normalisation")
    source, (scale, bias) = node.input[0], node.input[1:3]
    factor, two = edit.constant(3e3), edit.constant(2.0)
    wide = edit.add("Mul", source, factor)
    centred = edit.add("Sub", wide, edit.add("ReduceMean", wide, axes=[-1], keepdims=1))
    square = edit.add("ReduceMean", edit.add("Pow", centred, two), axes=[-1], keepdims=1)
    plain = edit.add("Div", centred, edit.add("Sqrt", edit.add("Add", square, edit.constant(1e-5))))
    names = edit.place_of(node)
    node.op_type, node.input[:] = "Add", [edit.add("Mul", plain, scale), bias]
    del node.attribute[:]
    float_model = edit.finish()
    added = tuple(value for value in (centred, square, plain))
    return Planted(in_half_precision(float_model), float_model, names + added)

"""Faults of use: inputs prepared otherwise than the model was trained with, outputs read otherwise, labels of
another list, another file, and devices that answer otherwise than the same file does on the host.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from edgeflare._internal import extras
from edgeflare.answers import SCORES
from edgeflare.triage.cause import Side
from edgeflare_bench.everyday.graph_faults import Generator, Names
from edgeflare_bench.everyday.planted import Chain, Plant, Planted, deployed_as
from edgeflare_bench.everyday.records import EverydayOriginal
from edgeflare_bench.faults.graph_edit import GraphEdit, Inapplicable, output_axis, pick

Statement: TypeAlias = Mapping[str, str]
Restate: TypeAlias = Callable[[Statement, Generator], dict[str, str]]
"""Returns what is stated of an input instead. Raises Inapplicable where nothing would change."""

_LABELLED = 0.6
"""Share of the preprocessing faults that are seen with labels."""


# Preprocessing


def _only(stated: Statement, condition: bool, what: str) -> dict[str, str]:
    if not condition:
        raise Inapplicable(what)
    return dict(stated)


def _is_image(stated: Statement) -> bool:
    return "front_end" not in stated


def _without(stated: Statement, *names: str) -> dict[str, str]:
    return {name: value for name, value in stated.items() if name not in names}


def other_colours(stated: Statement, _rng: Generator) -> dict[str, str]:
    """Blue and red are exchanged."""
    changed = _only(stated, _is_image(stated), "no colours")
    return {**changed, "color": "RGB" if stated.get("color") == "BGR" else "BGR"}


def no_normalisation(stated: Statement, _rng: Generator) -> dict[str, str]:
    """Mean and deviation are left out."""
    changed = _without(_only(stated, "mean" in stated, "no mean"), "mean", "std")
    return {"scale": "1", **changed} if _is_image(stated) else changed


def no_deviation(stated: Statement, _rng: Generator) -> dict[str, str]:
    """The mean is taken off, and nothing is divided by the deviation."""
    return _without(_only(stated, "std" in stated, "no deviation"), "std")


def other_unit(stated: Statement, _rng: Generator) -> dict[str, str]:
    """Pixels in 0 to 255 for 0 to 1, or the other way round."""
    changed = _only(stated, _is_image(stated) and "mean" not in stated, "a mean")
    return {**changed, "scale": "1" if stated.get("scale") == "1/255" else "1/255"}


def other_range(stated: Statement, _rng: Generator) -> dict[str, str]:
    """-1 to 1 for 0 to 1, or the other way round."""
    changed = _only(stated, _is_image(stated), "no image")
    unit = _without(changed, "mean", "std") | {"scale": "1/255"}
    is_unit = stated.get("scale") == "1/255" and "mean" not in stated
    signed = {"mean": "127.5", "std": "127.5"}
    return _without(unit, "scale") | signed if is_unit else unit


def of_other_data(stated: Statement, rng: Generator) -> dict[str, str]:
    """Mean and deviation of another data set."""
    statistics = (
        ("1/255", "0.485,0.456,0.406", "0.229,0.224,0.225"),
        ("1/255", "0.4914,0.4822,0.4465", "0.2023,0.1994,0.201"),
        ("1", "103.9,116.8,123.7", "1"),
    )
    changed = _only(stated, _is_image(stated), "no image")
    choices = [value for value in statistics if value[1] != stated.get("mean")]
    scale, mean, std = pick(rng, choices, "data set")
    return {**changed, "scale": scale, "mean": mean, "std": std}


def mean_in_other_order(stated: Statement, _rng: Generator) -> dict[str, str]:
    """Mean and deviation are those of blue, green and red."""
    mean = stated.get("mean", "").split(",")
    changed = _only(stated, len(set(mean)) > 1, "one mean for all channels")
    for name in ("mean", "std"):
        if name in changed:
            changed[name] = ",".join(changed[name].split(",")[::-1])
    return changed


def normalised_twice(stated: Statement, _rng: Generator) -> dict[str, str]:
    """What is normalised already is normalised once more."""
    changed = _only(stated, _is_image(stated), "no image")
    if "mean" not in stated:
        changed["scale"] = {"1/255": "1/65025"}.get(stated.get("scale", ""), "1/255")
        return changed
    mean, std = (_numbers(stated, name) for name in ("mean", "std"))
    return {**changed, "mean": _text(mean + mean * std), "std": _text(std**2)}


def _numbers(stated: Statement, name: str) -> Any:
    return np.array([float(value) for value in stated.get(name, "1").split(",")])


def _text(values: Any) -> str:
    return ",".join(f"{value:.9g}" for value in np.atleast_1d(values))


def turned(stated: Statement, rng: Generator) -> dict[str, str]:
    """Images are turned, mirrored, or rows and columns are exchanged."""
    changed = _only(stated, _is_image(stated), "no image")
    turns = ("transpose", "rotate-90", "rotate-180", "mirror", "flip", "rotate-270")
    return {**changed, "orientation": pick(rng, turns, "turn")}


def other_resize(stated: Statement, rng: Generator) -> dict[str, str]:
    """Images are made smaller by another rule."""
    changed = _only(stated, "resize" in stated, "images of the model's size")
    rules = [
        value for value in ("nearest", "bilinear-antialias", "area") if value != stated["resize"]
    ]
    return {**changed, "resize": pick(rng, rules, "rule")}


def other_spectrum(stated: Statement, rng: Generator) -> dict[str, str]:
    """One setting of the spectrum is another library's."""
    changed = _only(stated, stated.get("front_end") == "log-mel", "no spectrum")
    choices = (
        {"log": "log10"},
        {"mel_scale": "slaney"},
        {"mel_norm": "true"},
        {"spectrum": "magnitude"},
        {"log_offset": "0.01"},
        {"mean": "0", "std": "1"},
    )
    return {**changed, **pick(rng, choices, "setting")}


def other_loudness(stated: Statement, rng: Generator) -> dict[str, str]:
    """Samples are whole numbers, or the loudest is brought to 1."""
    changed = _only(stated, not _is_image(stated), "no clip")
    if stated["front_end"] == "waveform" and rng.random() < 0.5:
        return {**changed, "scale": str(pick(rng, (32768, "1/32768", 128), "factor"))}
    return {**changed, "peak": "magnitude"}


def restated(change: Restate, side: Side) -> Plant:
    """Return the fault of a side whose input is prepared otherwise."""

    def plant(original: EverydayOriginal, _chain: Chain, rng: Generator) -> Planted:
        stated = change(original.input, rng)
        labels = None if side == "both" or rng.random() < _LABELLED else ()
        if side == "both" and not original.labels:
            raise Inapplicable("no labels")
        if side == "device":
            return Planted(device={"input": stated}, labels=labels, sides=("device",))
        can_tell = bool(original.labels) and labels is None
        return Planted(
            original_input=stated if side in ("original", "both") else None,
            deployed_input=stated if side in ("deployed", "both") else None,
            labels=labels,
            sides=(side,) if can_tell else ("original", "deployed"),
        )

    return plant


def pictured(picture: str) -> Plant:
    """Return the fault of a device that prepares a picture otherwise, see `evaluation`."""

    def plant(original: EverydayOriginal, _chain: Chain, _rng: Generator) -> Planted:
        _only(original.input, _is_image(original.input), "no image")
        if picture in ("letterbox", "crop") and "resize" not in original.input:
            raise Inapplicable("images of the model's size")
        if picture in ("planes", "grey") and original.samples[0].shape[-1] == 1:
            raise Inapplicable("no colours")
        return Planted(device={"picture": picture}, sides=("device",))

    return plant


def normalised_in_file(original: EverydayOriginal, chain: Chain, _rng: Generator) -> Planted:
    """The deployed file normalises, and is fed what is normalised already, as its statement says."""
    stated = original.input
    _only(stated, _is_image(stated) and "mean" in stated, "no mean")
    edit = GraphEdit(original.model)
    scale = 1 / 255 if stated.get("scale") == "1/255" else 1.0
    shape = (1, -1, 1, 1) if stated.get("layout") != "HWC" else (1, 1, 1, -1)
    mean, std = (_numbers(stated, name) for name in ("mean", "std"))
    for name in [info.name for info in edit.model.graph.input]:
        edit.change(
            name,
            lambda tensor: edit.add(
                "Div",
                edit.add(
                    "Sub",
                    edit.add("Mul", tensor, edit.constant(scale)),
                    edit.constant(mean.reshape(shape)),
                ),
                edit.constant(std.reshape(shape)),
            ),
        )
    pixels = (original.calibration * std.reshape(shape[1:]) + mean.reshape(shape[1:])) / scale
    deployed = deployed_as(edit.finish(), chain, pixels.astype(np.float32))
    return Planted(deployed, sides=("deployed",))


# Outputs


def _outputs(change: Callable[[GraphEdit, EverydayOriginal, Generator], Names]) -> Plant:
    def plant(original: EverydayOriginal, chain: Chain, rng: Generator) -> Planted:
        edit = GraphEdit(original.model)
        names = change(edit, original, rng)
        deployed = deployed_as(edit.finish(), chain, original.calibration)
        return Planted(deployed, names=names)

    return plant


def _scores(edit: GraphEdit, original: EverydayOriginal) -> tuple[str, int]:
    """Return the output that has scores of classes, and their number."""
    if original.kind is not SCORES:
        raise Inapplicable("no classes")
    name = edit.model.graph.output[0].name
    return name, edit.shapes()[name][-1]


def _reshaped(edit: GraphEdit, name: str, shape: Sequence[int]) -> None:
    output = next(info for info in edit.model.graph.output if info.name == name)
    info = extras.onnx().helper.make_tensor_value_info(name, 1, list(shape))
    output.CopyFrom(info)


def outputs_exchanged(edit: GraphEdit, _original: EverydayOriginal, _rng: Generator) -> Names:
    """Two outputs come in the other order."""
    outputs = edit.model.graph.output
    if len(outputs) < 2:
        raise Inapplicable("one output")
    infos = [type(info).FromString(info.SerializeToString()) for info in outputs]
    del outputs[:]
    outputs.extend(infos[::-1])
    return tuple(info.name for info in infos)


def inputs_exchanged(edit: GraphEdit, _original: EverydayOriginal, _rng: Generator) -> Names:
    """Two inputs have each other's names."""
    inputs = edit.model.graph.input
    if len(inputs) < 2:
        raise Inapplicable("one input")
    first, second = inputs[0].name, inputs[1].name
    swap = {first: second, second: first}
    for node in edit.nodes:
        node.input[:] = [swap.get(name, name) for name in node.input]
    return ()


def _gathered(order: Callable[[int, Generator], Any]) -> Callable[..., Names]:
    def change(edit: GraphEdit, original: EverydayOriginal, rng: Generator) -> Names:
        name, count = _scores(edit, original)
        places = edit.constant(order(count, rng), np.int64)
        edit.rewire(name, lambda tensor: edit.add("Gather", tensor, places, axis=1))
        return ()

    return change


def weights_of_classes(edit: GraphEdit, original: EverydayOriginal, rng: Generator) -> Names:
    """The classes are numbered otherwise: another order of the last layer's outputs."""
    _, count = _scores(edit, original)
    order = rng.permutation(count)
    node = edit.weighted("Gemm", "MatMul")[-1]
    edit.set_array(node.input[1], np.take(edit.array(node.input[1]), order, output_axis(node)))
    if len(node.input) > 2:
        edit.set_array(node.input[2], edit.array(node.input[2])[order])
    return ()


def background_class(edit: GraphEdit, original: EverydayOriginal, rng: Generator) -> Names:
    """There is one class more, of nothing, before or behind the others."""
    name, count = _scores(edit, original)
    is_softmax = bool(edit.of_type("Softmax"))
    extra = edit.constant([[1e-4 if is_softmax else -6.0]])
    parts = [extra, ""] if rng.random() < 0.7 else ["", extra]
    edit.rewire(
        name, lambda tensor: edit.add("Concat", *[part or tensor for part in parts], axis=1)
    )
    _reshaped(edit, name, (1, count + 1))
    return ()


def softmax_or_logits(edit: GraphEdit, original: EverydayOriginal, _rng: Generator) -> Names:
    """Logits for probabilities, or the other way round."""
    name, _ = _scores(edit, original)
    last = next(node for node in edit.nodes if name in node.output)
    if last.op_type == "Softmax":
        last.op_type = "Identity"
        del last.attribute[:]
    else:
        edit.rewire(name, lambda tensor: edit.add("Softmax", tensor, axis=-1))
    return ()


def logarithms(edit: GraphEdit, original: EverydayOriginal, _rng: Generator) -> Names:
    """Logarithms of the probabilities."""
    name, _ = _scores(edit, original)
    last = next(node for node in edit.nodes if name in node.output)
    if last.op_type == "Softmax":
        last.op_type = "LogSoftmax"
    else:
        edit.rewire(name, lambda tensor: edit.add("LogSoftmax", tensor, axis=-1))
    return ()


def sigmoid_for_softmax(edit: GraphEdit, original: EverydayOriginal, _rng: Generator) -> Names:
    """Each class has a sigmoid of its own in place of one softmax."""
    name, _ = _scores(edit, original)
    last = next(node for node in edit.nodes if name in node.output)
    if last.op_type != "Softmax":
        raise Inapplicable("no softmax")
    last.op_type = "Sigmoid"
    del last.attribute[:]
    return ()


def _boxes(edit: GraphEdit, original: EverydayOriginal) -> str:
    if not original.task.has_boxes:
        raise Inapplicable("no boxes")
    return str(edit.model.graph.output[0].name)


def box_corners(edit: GraphEdit, original: EverydayOriginal, _rng: Generator) -> Names:
    """Corners for centre and size."""
    name = _boxes(edit, original)
    count = edit.shapes()[name][-1]
    matrix = np.eye(count, dtype=np.float32)
    matrix[[2, 3], [0, 1]], matrix[[0, 1], [2, 3]] = -0.5, 1
    matrix[[2, 3], [2, 3]] = 0.5
    edit.rewire(name, lambda tensor: edit.add("MatMul", tensor, edit.constant(matrix)))
    return (name,)


def box_pixels(edit: GraphEdit, original: EverydayOriginal, rng: Generator) -> Names:
    """Boxes in pixels for shares of the image."""
    name = _boxes(edit, original)
    count = edit.shapes()[name][-1]
    size = float(rng.choice([64.0, 640.0]))
    factors = [size] * 4 + [1.0] * (count - 4)
    edit.rewire(name, lambda tensor: edit.add("Mul", tensor, edit.constant(factors)))
    return (name,)


def box_order(edit: GraphEdit, original: EverydayOriginal, _rng: Generator) -> Names:
    """Coordinates as y, x for x, y."""
    name = _boxes(edit, original)
    count = edit.shapes()[name][-1]
    order = [1, 0, 3, 2, *range(4, count)]
    edit.rewire(
        name,
        lambda tensor: edit.add("Gather", tensor, edit.constant(order, np.int64), axis=2),
    )
    return (name,)


def other_axes(edit: GraphEdit, _original: EverydayOriginal, _rng: Generator) -> Names:
    """An output has its axes in another order."""
    name = next(
        (info.name for info in edit.model.graph.output if len(edit.shapes()[info.name]) > 2),
        "",
    )
    if not name:
        raise Inapplicable("no output of several axes")
    shape = edit.shapes()[name]
    order = [0, len(shape) - 1, *range(1, len(shape) - 1)]
    edit.rewire(name, lambda tensor: edit.add("Transpose", tensor, perm=order))
    _reshaped(edit, name, [shape[axis] for axis in order])
    return (name,)


def other_units(edit: GraphEdit, _original: EverydayOriginal, rng: Generator) -> Names:
    """An output is in per cent, or in 0 to 255."""
    name = pick(rng, [info.name for info in edit.model.graph.output], "output")
    factor = edit.constant(float(rng.choice([100.0, 255.0, 0.01])))
    edit.rewire(name, lambda tensor: edit.add("Mul", tensor, factor))
    return (name,)


def normalised_length(edit: GraphEdit, original: EverydayOriginal, _rng: Generator) -> Names:
    """A vector whose length was 1 has the length that the layer before gave it."""
    if not original.task.has_unit_length:
        raise Inapplicable("no vector")
    name = edit.model.graph.output[0].name
    last = next(node for node in edit.nodes if name in node.output)
    last.op_type, last.input[:] = "Identity", [last.input[0]]
    return (name,)


def other_channels(edit: GraphEdit, original: EverydayOriginal, rng: Generator) -> Names:
    """The channels of a map, or the classes of boxes, are numbered otherwise."""
    if original.kind is SCORES:
        raise Inapplicable("no channels")
    name = edit.model.graph.output[-1].name
    count = edit.shapes()[name][-1]
    first = original.task.before_classes
    if count <= first:  # the classes have an output of their own
        first = 0
    order = [*range(first), *(first + np.roll(np.arange(count - first), int(rng.integers(1, 3))))]
    axis = len(edit.shapes()[name]) - 1
    places = edit.constant(order, np.int64)
    edit.rewire(name, lambda tensor: edit.add("Gather", tensor, places, axis=axis))
    return (name,)


OUTPUTS: Mapping[str, Plant] = {
    "outputs-exchanged": _outputs(outputs_exchanged),
    "inputs-exchanged": _outputs(inputs_exchanged),
    "classes-permuted": _outputs(_gathered(lambda count, rng: rng.permutation(count))),
    "classes-shifted": _outputs(_gathered(lambda count, _: np.roll(np.arange(count), 1))),
    "classes-as-text": _outputs(_gathered(lambda count, _: np.arange(count)[::-1])),
    "classes-in-weights": _outputs(weights_of_classes),
    "background-class": _outputs(background_class),
    "softmax-or-logits": _outputs(softmax_or_logits),
    "logarithms": _outputs(logarithms),
    "sigmoid-for-softmax": _outputs(sigmoid_for_softmax),
    "box-corners": _outputs(box_corners),
    "box-pixels": _outputs(box_pixels),
    "box-order": _outputs(box_order),
    "other-axes": _outputs(other_axes),
    "other-units": _outputs(other_units),
    "normalised-length": _outputs(normalised_length),
    "other-channels": _outputs(other_channels),
}


# Labels and files


def relabelled(order: Callable[[int, Generator], Any]) -> Plant:
    """Return the fault of labels of another list: class c is called `order(count, rng)[c]`."""

    def plant(original: EverydayOriginal, _chain: Chain, rng: Generator) -> Planted:
        if not original.labels:
            raise Inapplicable("no labels")
        count = GraphEdit(original.model).shapes()[original.model.graph.output[0].name][-1]
        renumbered = order(count, rng)
        return Planted(labels=[int(renumbered[value]) for value in original.labels])

    return plant


def one_more(count: int, _rng: Generator) -> Any:
    """Labels begin at 1, or the first stands for the background."""
    return np.arange(1, count + 1)


def other_list(count: int, rng: Generator) -> Any:
    """Labels of a list in another order."""
    return rng.permutation(count)


def rotated(count: int, rng: Generator) -> Any:
    """Labels are one off, the last one the first."""
    return np.roll(np.arange(count), int(rng.choice([-1, 1])))


def untrained(original: EverydayOriginal, chain: Chain, rng: Generator) -> Planted:
    """The file has the weights that a training began with."""
    edit = GraphEdit(original.model)
    for node in edit.weighted():
        weights = edit.array(node.input[1])
        edit.set_array(
            node.input[1], rng.normal(0, weights.std(), weights.shape).astype(np.float32)
        )
    return Planted(deployed_as(edit.finish(), chain, original.calibration))


def on_device(**departs: Any) -> Plant:
    """Return the fault of a device that departs from its file in this way, see `evaluation`."""
    return lambda *_: Planted(device=departs)

"""Faults of a layer's kernel or of its calibration, set behind an activation."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from edgeflare_bench.faults.graph_edit import (
    RECURRENT,
    GraphEdit,
    Inapplicable,
    Parameters,
    chosen,
    whole,
)
from edgeflare_bench.faults.originals import Original, observe

_NATURAL = 64
"""Number of natural inputs on which ranges of activations are calibrated."""
_FP16 = 65504.0


class _Layer(NamedTuple):
    """An activation that a fault changes: its shape for one input, channel axis, and range."""

    tensor: str
    shape: tuple[int, ...]
    axis: int
    low: float
    high: float

    @property
    def reach(self) -> float:
        return max(abs(self.low), abs(self.high), 1e-6)

    def along_channels(self, values: Any) -> Any:
        """Return one value a channel in a shape that broadcasts."""
        shape = [1] * len(self.shape)
        shape[self.axis] = -1
        return np.reshape(values, shape)


def _layer(
    original: Original, edit: GraphEdit, fault: Parameters, *, spatial: bool = False
) -> _Layer:
    names = edit.activations()
    seen = observe(original.model, names, original.inputs[:_NATURAL])
    recurrent = [one for one in edit.nodes if one.op_type in RECURRENT]
    states = {name for one in recurrent for name in one.output}
    if spatial:
        maps = [one for one in names if one not in states and seen[one].ndim == 4]
        names = [one for one in maps if min(seen[one].shape[2:]) > 1]
    name = chosen(names, fault.layer, "activation of that shape")
    axis = 1 if seen[name].ndim in {3, 4} and name not in states else -1
    values = seen[name]
    return _Layer(name, values.shape, axis, float(values.min()), float(values.max()))


def _combined(edit: GraphEdit, layer: _Layer, kind: str, values: Any) -> None:
    """Multiply a layer by constant values, or add them."""
    constant = edit.constant(values)
    edit.change(layer.tensor, lambda name: edit.add(kind, name, constant))


def wraps(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """An activation above a limit wraps round to negative numbers, as in an integer overflow."""
    layer = _layer(original, edit, fault)
    limit = layer.reach * (1.1 - 0.8 * fault.strength)

    def make(name: str) -> str:
        top, span = edit.constant(limit), edit.constant(2 * limit)
        turns = edit.add("Floor", edit.add("Div", edit.add("Add", name, top), span))
        return edit.add("Sub", name, edit.add("Mul", turns, span))

    edit.change(layer.tensor, make)


def flushes(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """An activation above a limit becomes 0."""
    layer = _layer(original, edit, fault)
    limit = layer.reach * (1.1 - 0.8 * fault.strength)

    def make(name: str) -> str:
        over = edit.add("Greater", edit.add("Abs", name), edit.constant(limit))
        return edit.add("Where", over, edit.constant(0), name)

    edit.change(layer.tensor, make)


def narrow_calibration(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """Every activation saturates at a share of its natural range."""
    share = 1 - 0.85 * fault.strength
    _calibrated(original, edit, original.inputs[:_NATURAL], share)


def wrong_calibration(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """Every activation saturates at its range on inputs that are darker than the natural ones."""
    gain = 1 - 0.9 * fault.strength
    dark = original.from_pixels(original.to_pixels(original.inputs[:_NATURAL]) * gain)
    _calibrated(original, edit, dark, 1.0)


def _calibrated(original: Original, edit: GraphEdit, inputs: Any, share: float) -> None:
    names = edit.activations()
    if not names:
        raise Inapplicable("the model has no activations")
    for name, values in observe(original.model, names, inputs).items():
        low, high = float(values.min()) * share, float(values.max()) * share
        _clip(edit, name, min(low, 0.0), max(high, 1e-6))


def _clip(edit: GraphEdit, tensor: str, low: float, high: float) -> None:
    edit.change(tensor, lambda name: edit.add("Clip", name, *map(edit.constant, (low, high))))


def _factor(fault: Parameters) -> float:
    return 1 + 4 * fault.strength if fault.place < 0.5 else 1 - 0.95 * fault.strength


def _one_channel(layer: _Layer, fault: Parameters, value: float, others: float) -> Any:
    channels = layer.shape[layer.axis]
    values = np.full(channels, others)
    values[min(int(fault.channel * channels), channels - 1)] = value
    return layer.along_channels(values)


def channel_scale(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """One channel has a wrong scale."""
    layer = _layer(original, edit, fault)
    _combined(edit, layer, "Mul", _one_channel(layer, fault, _factor(fault), 1))


def layer_scale(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """One layer has a wrong scale."""
    layer = _layer(original, edit, fault)
    _combined(edit, layer, "Mul", _factor(fault))


def _offset(layer: _Layer, fault: Parameters) -> float:
    sign = 1 if fault.place < 0.5 else -1
    return sign * fault.strength * (layer.high - layer.low)


def channel_zero_point(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """One channel has a wrong zero point."""
    layer = _layer(original, edit, fault)
    _combined(edit, layer, "Add", _one_channel(layer, fault, _offset(layer, fault), 0))


def layer_zero_point(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """One layer has a wrong zero point."""
    layer = _layer(original, edit, fault)
    _combined(edit, layer, "Add", 0.5 * _offset(layer, fault))


def dead_channels(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """Some neighbouring channels of a layer are 0: one in the mildest case, up to a half."""
    layer = _layer(original, edit, fault)
    channels = layer.shape[layer.axis]
    count = whole(0.5 * fault.strength, channels)
    first = int(fault.channel * channels)
    alive = np.ones(channels)
    alive[[(first + step) % channels for step in range(count)]] = 0
    _combined(edit, layer, "Mul", layer.along_channels(alive))


def fp16_overflow(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """A layer is summed in half precision, and overflows above a limit."""
    layer = _layer(original, edit, fault)
    scale = _FP16 / (layer.reach * (1.05 - 0.85 * fault.strength))

    def make(name: str) -> str:
        factor = edit.constant(scale)
        half = edit.add("Cast", edit.add("Mul", name, factor), to=10)
        single = edit.add("Cast", half, to=1)
        held = edit.add("Clip", single, edit.constant(-_FP16), edit.constant(_FP16))
        return edit.add("Div", held, factor)

    edit.change(layer.tensor, make)


def saturating_table(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """An activation comes from a look-up table that is coarse and ends too early."""
    layer = _layer(original, edit, fault)
    limit = layer.reach * (1 - 0.85 * fault.strength)
    step = limit / whole(1 - fault.strength, 64)

    def make(name: str) -> str:
        held = edit.add("Clip", name, edit.constant(-limit), edit.constant(limit))
        width = edit.constant(step)
        return edit.add("Mul", edit.add("Round", edit.add("Div", held, width)), width)

    edit.change(layer.tensor, make)


def edge_columns(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """The last columns of a layer's map are left out, as by a kernel that forgets its tail."""
    layer = _layer(original, edit, fault, spatial=True)
    width = layer.shape[3]
    mask = np.ones((1, 1, 1, width))
    mask[..., width - whole(0.4 * fault.strength, width) :] = 0
    _combined(edit, layer, "Mul", mask)


def dead_tile(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """A square tile of a layer's map stays 0."""
    layer = _layer(original, edit, fault, spatial=True)
    height, width = layer.shape[2:]
    rows, columns = whole(0.6 * fault.strength, height), whole(0.6 * fault.strength, width)
    top, left = int(fault.place * (height - rows)), int(fault.channel * (width - columns))
    mask = np.ones((1, 1, height, width))
    mask[..., top : top + rows, left : left + columns] = 0
    _combined(edit, layer, "Mul", mask)


def swapped_channels(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """Neighbouring channels are swapped where the activation is high."""
    layer = _layer(original, edit, fault)
    channels = layer.shape[layer.axis]
    if channels < 2:
        raise Inapplicable("the layer has one channel")
    order = np.arange(channels)
    order[: channels // 2 * 2] = order[: channels // 2 * 2].reshape(-1, 2)[:, ::-1].ravel()
    limit = layer.low + (layer.high - layer.low) * (1 - 0.95 * fault.strength)

    def make(name: str) -> str:
        places = edit.constant(order, np.int64)
        other = edit.add("Gather", name, places, axis=layer.axis)
        high = edit.add("Greater", name, edit.constant(limit))
        return edit.add("Where", high, other, name)

    edit.change(layer.tensor, make)


def wrong_padding(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """A convolution is padded with a number other than 0, as by a wrong zero point."""
    nodes = [
        (node, one)
        for node in edit.nodes
        if node.op_type == "Conv"
        for one in node.attribute
        if one.name == "pads" and any(one.ints)
    ]
    node, pads = chosen(nodes, fault.layer, "convolution with padding")
    values = observe(original.model, [node.input[0]], original.inputs[:_NATURAL])[node.input[0]]
    rank = values.ndim - 2
    fill = (1 if fault.place < 0.5 else -1) * fault.strength * float(np.abs(values).max())
    wide = [0, 0, *pads.ints[:rank], 0, 0, *pads.ints[rank:]]
    padded = edit.add(
        "Pad", node.input[0], edit.constant(wide, np.int64), edit.constant(fill), mode="constant"
    )
    node.input[0] = padded
    pads.ints[:] = [0] * 2 * rank


def stale_state(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """A recurrent layer begins from the state that an earlier input left behind."""
    nodes = [one for one in edit.nodes if one.op_type in RECURRENT]
    node = chosen(nodes, fault.layer, "recurrent layer")
    states = node.output[0], *node.output[2:3]  # an LSTM has that of its cell, too, if it is named
    seen = observe(original.model, states, original.inputs[:32])
    batch = edit.add("Slice", edit.add("Shape", node.input[0]), *(
        edit.constant(one, np.int64) for one in ([1], [2], [0])
    ))  # fmt: skip
    node.input.extend([""] * (5 + len(states) - len(node.input)))
    for place, name in enumerate(states, 5):
        # all states are [steps, directions, batch, hidden], the cell's [directions, batch, hidden]
        last = seen[name][-1] if place == 5 else seen[name]
        earlier = int(fault.channel * last.shape[1])
        state = edit.constant(last[:, earlier : earlier + 1] * 2 * fault.strength)
        ends = (edit.constant([one], np.int64) for one in (last.shape[0], last.shape[2]))
        shape = edit.add("Concat", next(ends), batch, next(ends), axis=0)
        node.input[place] = edit.add("Expand", state, shape)


ACTIVATION_FAULTS: Mapping[str, Callable[[Original, GraphEdit, Parameters], None]] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (
        *(wraps, flushes, narrow_calibration, wrong_calibration, channel_scale, layer_scale),
        *(channel_zero_point, layer_zero_point, dead_channels, fp16_overflow),
        *(saturating_table, edge_columns, dead_tile, swapped_channels, wrong_padding),
        stale_state,
    )
}

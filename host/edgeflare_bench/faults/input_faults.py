"""Faults of the camera's path, of weights, and of behaviour in a region of the input."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from edgeflare_bench.faults.graph_edit import GraphEdit, Inapplicable, Parameters, chosen, whole
from edgeflare_bench.faults.originals import Original


def _on_pixels(original: Original, edit: GraphEdit, make: Callable[[str], str]) -> None:
    """Replace the input by what `make` returns for its pixels (0 to 1)."""

    def through(name: str) -> str:
        pixels, low, span = _pixels(original, edit, name)
        return edit.add("Add", edit.add("Mul", make(pixels), span), low)

    edit.change(original.input_name, through)


def _pixels(original: Original, edit: GraphEdit, name: str) -> tuple[str, str, str]:
    """Return an input's pixels (0 to 1), and the least value and the span that they are scaled by."""
    low, span = edit.constant(original.low), edit.constant(original.high - original.low)
    return edit.add("Div", edit.add("Sub", name, low), span), low, span


def clipped_highlights(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """Pixels saturate below white."""
    limit = edit.constant(1 - 0.8 * fault.strength)
    _on_pixels(original, edit, lambda name: edit.add("Min", name, limit))


def limited_range(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """Pixels have the limited range of video (16 to 235) at half strength, less at full."""
    share = edit.constant(1 - 2 * fault.strength * (1 - 219 / 255))
    black = edit.constant(2 * fault.strength * 16 / 255)
    _on_pixels(original, edit, lambda name: edit.add("Add", edit.add("Mul", name, share), black))


def gamma(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """Pixels went through a wrong gamma."""
    power = 1 + 2 * fault.strength
    exponent = edit.constant(power if fault.place < 0.5 else 1 / power)
    zero = edit.constant(0)
    _on_pixels(original, edit, lambda name: edit.add("Pow", edit.add("Max", name, zero), exponent))


def swapped_colours(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """Red and blue are swapped in bright pixels."""
    axis = 3 if original.layout == "NHWC" else 1
    if original.inputs.shape[axis] != 3:
        raise Inapplicable("the model's input has no colours")

    def make(name: str) -> str:
        order = edit.constant([2, 1, 0], np.int64)
        swapped = edit.add("Gather", name, order, axis=axis)
        bright = edit.add("ReduceMean", name, axes=[axis], keepdims=1)
        limit = edit.constant(1 - 0.95 * fault.strength)
        return edit.add("Where", edit.add("Greater", bright, limit), swapped, name)

    _on_pixels(original, edit, make)


def _gathered(
    original: Original, edit: GraphEdit, places: Callable[[int], Any], axes: tuple[int, ...]
) -> None:
    def make(name: str) -> str:
        for axis in axes:
            order = edit.constant(places(original.inputs.shape[axis]), np.int64)
            name = edit.add("Gather", name, order, axis=axis)
        return name

    edit.change(original.input_name, make)


def wrong_resize(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """The image was made smaller by nearest neighbours, and larger again."""

    def places(size: int) -> Any:
        small = whole(1 - 0.75 * fault.strength, size)
        return (np.arange(size) * small // size) * size // small

    _gathered(original, edit, places, original.axes)


def shifted_crop(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """The image is cropped at another place: moved along one axis, its edge repeated."""
    sign = 1 if fault.place < 0.5 else -1

    def places(size: int) -> Any:
        step = sign * whole(0.3 * fault.strength, size)
        return np.clip(np.arange(size) + step, 0, size - 1)

    axes = original.axes
    _gathered(original, edit, places, (axes[0] if fault.channel < 0.5 else axes[1],))


def black_edge(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """The last columns of the image are black."""
    axis = original.axes[1]
    width = original.inputs.shape[axis]
    mask = np.ones(width)
    mask[width - whole(0.5 * fault.strength, width) :] = 0
    shape = [1] * original.inputs.ndim
    shape[axis] = width
    seen = edit.constant(mask.reshape(shape))
    _on_pixels(original, edit, lambda name: edit.add("Mul", name, seen))


def flipped_bit(_original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """One exponent bit of one weight is set: the weight is 2 to 256 times as large."""
    _, name = chosen(edit.weights(), fault.layer, "layer with weights")
    weights = edit.array(name).astype(np.float32)
    bit = np.uint32(1 << (23 + max(0, min(3, round(np.log2(8 * fault.strength))))))
    flat = weights.reshape(-1).view(np.uint32)
    free = np.flatnonzero(((flat & bit) == 0) & (weights.reshape(-1) != 0))
    free = free[np.argsort(-np.abs(weights.reshape(-1)[free]), kind="stable")]
    flat[chosen(free[: max(1, len(free) // 10)].tolist(), fault.channel, "weight")] |= bit
    edit.set_array(name, weights)


def coarse_weights(_original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """One layer's weights have few levels: 1 to 16 on either side of 0."""
    _, name = chosen(edit.weights(), fault.layer, "layer with weights")
    weights = edit.array(name)
    step = np.abs(weights).max() / max(1, round(1 / fault.strength))
    edit.set_array(name, (np.rint(weights / step) * step).astype(weights.dtype))


def lost_bias(_original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """One layer's bias is too large or too small."""
    names = {one.name for one in edit.model.graph.initializer}
    biases = [
        node.input[2]
        for node in edit.nodes
        if node.op_type in {"Conv", "Gemm"} and len(node.input) > 2 and node.input[2] in names
    ]
    name = chosen(biases, fault.layer, "bias of a convolution or Gemm")
    bias = edit.array(name)
    factor = 1 - 2 * fault.strength if fault.place < 0.5 else 1 + 4 * fault.strength
    edit.set_array(name, (bias * factor).astype(bias.dtype))


def _in_region(original: Original, edit: GraphEdit, condition: Callable[[str], str]) -> None:
    """Name the next class instead of the right one where a condition on the pixels holds."""
    pixels, *_ = _pixels(original, edit, original.input_name)
    holds = edit.add("Reshape", condition(pixels), edit.constant([-1, 1], np.int64))
    (output,) = edit.model.graph.output
    classes = output.type.tensor_type.shape.dim[1].dim_value
    order = edit.constant(np.roll(np.arange(classes), 1), np.int64)
    edit.change(
        output.name,
        lambda name: edit.add("Where", holds, edit.add("Gather", name, order, axis=1), name),
    )


def _over_image(edit: GraphEdit, kind: str, name: str) -> str:
    return edit.add(kind, name, axes=[1, 2, 3], keepdims=0)


def dark_region(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """The class is wrong where the brightest pixel is dark."""
    limit = edit.constant(0.1 + 0.6 * fault.strength)
    _in_region(
        original, edit, lambda name: edit.add("Less", _over_image(edit, "ReduceMax", name), limit)
    )


def bright_region(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """The class is wrong where the image is bright in the mean."""
    limit = edit.constant(0.95 - 0.5 * fault.strength)
    _in_region(
        original,
        edit,
        lambda name: edit.add("Greater", _over_image(edit, "ReduceMean", name), limit),
    )


def flat_region(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """The class is wrong where the image has little contrast."""
    limit = edit.constant(0.1 + 0.6 * fault.strength)

    def condition(name: str) -> str:
        most, least = (_over_image(edit, kind, name) for kind in ("ReduceMax", "ReduceMin"))
        return edit.add("Less", edit.add("Sub", most, least), limit)

    _in_region(original, edit, condition)


def corner_region(original: Original, edit: GraphEdit, fault: Parameters) -> None:
    """The class is wrong where a corner of 3 x 3 pixels (of 28 rows) is bright."""
    limit = edit.constant(1 - 0.5 * fault.strength)
    sizes = [original.inputs.shape[axis] for axis in original.axes]
    sides = [whole(3 / 28, size) for size in sizes]
    starts = [
        0 if share < 0.5 else size - side
        for share, size, side in zip((fault.place, fault.channel), sizes, sides, strict=True)
    ]
    ends = [start + side for start, side in zip(starts, sides, strict=True)]

    def condition(name: str) -> str:
        bounds = (edit.constant(one, np.int64) for one in (starts, ends, list(original.axes)))
        corner = edit.add("Slice", name, *bounds)
        return edit.add("Greater", _over_image(edit, "ReduceMean", corner), limit)

    _in_region(original, edit, condition)


INPUT_FAULTS: Mapping[str, Callable[[Original, GraphEdit, Parameters], None]] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (
        *(clipped_highlights, limited_range, gamma, swapped_colours, wrong_resize),
        *(shifted_crop, black_edge, flipped_bit, coarse_weights, lost_bias, dark_region),
        *(bright_region, flat_region, corner_region),
    )
}

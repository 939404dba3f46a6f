"""Faults of a conversion: one operator of an ONNX graph computes otherwise, or has other weights.

Each function changes a graph in place and returns the names of where it did: the operator, what it makes,
and the weights that are other ones; operators that it adds belong to the place, too. It raises
`Inapplicable` where the graph has nothing to change.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare_bench.faults.graph_edit import (
    GraphEdit,
    attribute,
    output_axis,
    pick,
    set_attribute,
)

Generator: TypeAlias = np.random.Generator
Names: TypeAlias = tuple[str, ...]
GraphChange: TypeAlias = Callable[[GraphEdit, Generator], Names]

_NO_PADDING = (0, 0, 0, 0)


# Geometry


def _padded(edit: GraphEdit) -> list[Any]:
    kinds = edit.of_type("Conv", "MaxPool", "AveragePool")
    return [node for node in kinds if any(attribute(node, "pads", _NO_PADDING))]


def padding_side(edit: GraphEdit, rng: Generator) -> Names:
    """Padding is at the other side: one more before, one less behind."""
    layers = [node for node in _padded(edit) if len(attribute(node, "pads")) == len(_NO_PADDING)]
    strided = [node for node in layers if max(attribute(node, "strides", [1])) > 1]
    node = pick(rng, strided or layers, "padding")
    pads = np.array(attribute(node, "pads")).reshape(2, 2)
    shift = np.minimum(pads[1], 1)
    moved = np.array([pads[0] + shift, pads[1] - shift]).ravel()
    set_attribute(node, "pads", [int(value) for value in moved])
    return edit.place_of(node)


def padding_value(edit: GraphEdit, rng: Generator) -> Names:
    """Zeros at the edge are replaced by the edge's values."""
    node = pick(rng, [node for node in _padded(edit) if node.op_type == "Conv"], "padding")
    pads = attribute(node, "pads")
    half = len(pads) // 2
    widths = [0, 0, *pads[:half], 0, 0, *pads[half:]]
    node.input[0] = edit.add("Pad", node.input[0], edit.constant(widths, np.int64), mode="edge")
    set_attribute(node, "pads", [0] * len(pads))
    return edit.place_of(node)


def dilation(edit: GraphEdit, rng: Generator) -> Names:
    """A dilated convolution is computed as a dense one, or the other way round."""
    layers = [
        node
        for node in edit.of_type("Conv")
        if attribute(node, "kernel_shape") == [3, 3]
        and attribute(node, "pads", _NO_PADDING) == list(attribute(node, "dilations", [1, 1])) * 2
    ]
    dilated = [node for node in layers if attribute(node, "dilations", [1, 1]) != [1, 1]]
    node = pick(rng, dilated or layers, "convolution whose dilation keeps the size")
    size = 1 if dilated else 2
    set_attribute(node, "dilations", [size, size])
    set_attribute(node, "pads", [size] * 4)
    return edit.place_of(node)


def pooling_kind(edit: GraphEdit, rng: Generator) -> Names:
    """The mean for the largest value, or the other way round."""
    choices = {
        "MaxPool": "AveragePool",
        "AveragePool": "MaxPool",
        "GlobalAveragePool": "GlobalMaxPool",
        "ReduceMean": "ReduceMax",
    }
    node = pick(rng, edit.of_type(*choices), "pooling")
    node.op_type = choices[node.op_type]
    for name in ("storage_order", "count_include_pad", "dilations"):
        set_attribute(node, name, None)
    return edit.place_of(node)


def pooling_edge(edit: GraphEdit, rng: Generator) -> Names:
    """What a mean is taken of counts the padding, or no longer."""
    node = pick(
        rng, [node for node in _padded(edit) if node.op_type == "AveragePool"], "padded mean"
    )
    set_attribute(node, "count_include_pad", 1 - attribute(node, "count_include_pad", 0))
    return edit.place_of(node)


def resize_mode(edit: GraphEdit, rng: Generator) -> Names:
    """Another rule for where the pixels of an enlarged map come from."""
    node = pick(rng, edit.of_type("Resize"), "resize")
    if attribute(node, "mode", b"nearest") == b"nearest":
        set_attribute(node, "coordinate_transformation_mode", "half_pixel")
        set_attribute(node, "nearest_mode", "ceil")
    else:
        now = attribute(node, "coordinate_transformation_mode", b"half_pixel")
        choices = [value for value in ("align_corners", "asymmetric") if value.encode() != now]
        set_attribute(node, "coordinate_transformation_mode", pick(rng, choices, "mode"))
    return edit.place_of(node)


def resize_filter(edit: GraphEdit, rng: Generator) -> Names:
    """The nearest pixel for a mean of four, or the other way round."""
    node = pick(rng, edit.of_type("Resize"), "resize")
    is_nearest = attribute(node, "mode", b"nearest") == b"nearest"
    set_attribute(node, "mode", "linear" if is_nearest else "nearest")
    set_attribute(node, "nearest_mode", None if is_nearest else "floor")
    set_attribute(node, "cubic_coeff_a", None)
    return edit.place_of(node)


# Weights


def bias_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A layer has no bias any more."""
    constants = edit.constants()
    layers = [
        node
        for node in edit.weighted("Conv", "Gemm")
        if len(node.input) > 2
        and node.input[2] in constants
        and np.abs(constants[node.input[2]]).max() > 0.05
    ]
    node = pick(rng, layers, "bias")
    return edit.set_weights(node, np.zeros_like, place=2)


def channels_in_other_order(edit: GraphEdit, rng: Generator) -> Names:
    """A hidden layer's output channels are stored in another order."""
    node = pick(rng, [node for node in edit.hidden() if node.op_type != "MatMul"], "hidden layer")
    axis = output_axis(node)
    size = edit.array(node.input[1]).shape[axis]
    order = np.roll(np.arange(size), size // 2)
    names = edit.set_weights(node, lambda weights: np.take(weights, order, axis))
    if len(node.input) > 2:
        edit.set_weights(node, lambda weights: weights[order], place=2)
    return names


def inputs_in_other_order(edit: GraphEdit, rng: Generator) -> Names:
    """A hidden layer takes its input channels in the reverse order."""
    layers = [node for node in edit.weighted("Conv")[1:] if edit.array(node.input[1]).shape[1] >= 4]
    node = pick(rng, layers, "dense convolution")
    return edit.set_weights(node, lambda weights: weights[:, ::-1])


def kernel_turned(edit: GraphEdit, rng: Generator) -> Names:
    """Rows and columns of a layer's kernels are exchanged, or they are turned by 180 degrees."""
    layers = [
        node for node in edit.weighted("Conv") if attribute(node, "kernel_shape", [1])[-1] > 1
        and len(attribute(node, "kernel_shape")) == 2
        and len(set(attribute(node, "kernel_shape"))) == 1
    ]  # fmt: skip
    node = pick(rng, layers, "kernel of several pixels")
    if rng.random() < 0.5:
        return edit.set_weights(node, lambda weights: weights.swapaxes(-1, -2))
    return edit.set_weights(node, lambda weights: weights[..., ::-1, ::-1])


def flattened_in_other_layout(edit: GraphEdit, rng: Generator) -> Names:
    """The dense layer behind a flattening has its weights for pixels before channels."""
    shapes = edit.shapes()
    suitable = []
    for node in edit.weighted("Gemm", "MatMul"):
        maker = next((maker for maker in edit.nodes if node.input[0] in maker.output), None)
        shape = shapes.get(maker.input[0], ()) if maker is not None else ()
        is_flattening = maker is not None and maker.op_type in ("Flatten", "Reshape")
        size = np.prod(shape[1:])
        fits = (
            len(shape) == 4 and size == edit.array(node.input[1]).shape[1 - output_axis(node) % 2]
        )
        if is_flattening and fits and shape[1] > 1 and shape[2] * shape[3] > 1:
            suitable.append((node, shape[1:]))
    node, shape = pick(rng, suitable, "flattened map")
    axis = 1 - output_axis(node) % 2

    def reordered(weights: NDArray[Any]) -> NDArray[Any]:
        rows = np.moveaxis(weights, axis, 0)
        rows = rows.reshape(*shape, -1).transpose(1, 2, 0, 3).reshape(rows.shape)
        return np.moveaxis(rows, 0, axis)

    return edit.set_weights(node, reordered)


def dense_transposed(edit: GraphEdit, rng: Generator) -> Names:
    """A square layer's weights are transposed."""
    layers = [
        node
        for node in edit.weighted()
        if len(set(edit.array(node.input[1]).shape[:2])) == 1 and edit.array(node.input[1]).shape[0] > 1
    ]  # fmt: skip
    node = pick(rng, layers, "square layer")
    return edit.set_weights(node, lambda weights: weights.swapaxes(0, 1))


def layers_exchanged(edit: GraphEdit, rng: Generator) -> Names:
    """Two layers have each other's weights."""
    layers = edit.weighted()
    shape = {id(node): edit.array(node.input[1]).shape for node in layers}
    pairs = [
        (first, second)
        for place, first in enumerate(layers)
        for second in layers[place + 1 :]
        if shape[id(first)] == shape[id(second)] and first.input[1] != second.input[1]
    ]
    first, second = pick(rng, pairs, "two layers of one shape")
    names = edit.place_of(first, first.input[1]), edit.place_of(second, second.input[1])
    first.input[1], second.input[1] = second.input[1], first.input[1]
    return names[0] + names[1]


def folded_wrongly(edit: GraphEdit, rng: Generator) -> Names:
    """A normalisation was folded into a layer with another epsilon: narrow channels are too weak."""
    node = pick(rng, edit.weighted("Conv"), "convolution")
    size = edit.array(node.input[1]).shape[0]
    variances = np.exp(rng.normal(-3, 2, size))
    factors = np.sqrt((variances + 1e-5) / (variances + rng.choice([1e-2, 1e-1])))
    names = edit.set_weights(
        node, lambda weights: weights * factors.reshape(-1, *[1] * (weights.ndim - 1))
    )
    if len(node.input) > 2 and rng.random() < 0.5:
        edit.set_weights(node, lambda weights: weights * factors, place=2)
    return names


def weights_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A quarter of a hidden layer's channels are empty."""
    node = pick(rng, edit.hidden(), "hidden layer")
    axis = output_axis(node)

    def emptied(weights: NDArray[Any]) -> NDArray[Any]:
        rows = np.moveaxis(np.array(weights), axis, 0)
        rows[: max(1, len(rows) // 4)] = 0
        return np.moveaxis(rows, 0, axis)

    return edit.set_weights(node, emptied)


def constant_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A table that is added, such as that of positions, is empty."""
    constants = edit.constants()
    suitable = [
        (node, name)
        for node in edit.of_type("Add")
        for name in node.input
        if name in constants and constants[name].ndim >= 2 and max(constants[name].shape[:-1]) > 1
        and any(tensor.name == name for tensor in edit.model.graph.initializer)
    ]  # fmt: skip
    node, name = pick(rng, suitable, "table that is added")
    edit.set_array(name, np.zeros_like(edit.array(name)))
    return edit.place_of(node, name)


def gates_in_other_order(edit: GraphEdit, rng: Generator) -> Names:
    """A recurrent layer's gates are stored in the order of another library."""
    node = pick(rng, edit.of_type("LSTM", "GRU"), "recurrent layer")
    orders = {"LSTM": ([0, 2, 3, 1], [0, 3, 1, 2]), "GRU": ([1, 0, 2],)}[node.op_type]
    order = list(pick(rng, orders, "order"))
    constants = edit.constants()

    def reordered(weights: NDArray[Any], axis: int = 1) -> NDArray[Any]:
        return np.concatenate([np.split(weights, len(order), axis)[place] for place in order], axis)

    names: Names = ()
    for place in (1, 2):
        names += edit.set_weights(node, reordered, place)
    if len(node.input) > 3 and node.input[3] in constants:
        edit.set_weights(node,
            lambda weights: np.concatenate([reordered(half) for half in np.split(weights, 2, 1)], 1), 3,
        )  # fmt: skip
    return names


def other_direction(edit: GraphEdit, rng: Generator) -> Names:
    """A recurrent layer reads the sequence from its end."""
    layers = [
        node
        for node in edit.of_type("LSTM", "GRU", "RNN")
        if attribute(node, "direction", b"forward") == b"forward"
    ]
    node = pick(rng, layers, "recurrent layer")
    set_attribute(node, "direction", "reverse")
    return edit.place_of(node)


# Activations, branches, normalisation

_ACTIVATIONS = ("Relu", "LeakyRelu", "HardSwish", "Clip", "PRelu", "Elu", "Tanh")


def activation_clipped(edit: GraphEdit, rng: Generator) -> Names:
    """An activation ends at 6 (ReLU6), or at 1, where the original's has no end."""
    node = pick(rng, edit.of_type("Relu", "LeakyRelu", "HardSwish"), "activation without an end")
    end = float(rng.choice([6.0, 1.0]))
    edit.rewire(node.output[0], lambda tensor: edit.add("Min", tensor, edit.constant(end)))
    return edit.place_of(node)


def activation_lost(edit: GraphEdit, rng: Generator) -> Names:
    """There is no activation."""
    node = pick(rng, edit.of_type(*_ACTIVATIONS), "activation")
    node.op_type = "Identity"
    del node.attribute[:], node.input[1:]
    return edit.place_of(node)


def activation_other(edit: GraphEdit, rng: Generator) -> Names:
    """An activation of another kind: SiLU for hard-swish, a hard sigmoid for a smooth one ..."""
    node = pick(
        rng, edit.of_type("Relu", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh"), "activation"
    )
    if node.op_type == "HardSwish":
        source = node.input[0]
        node.op_type, node.input[:] = "Mul", [source, edit.add("Sigmoid", source)]
    else:
        node.op_type = {
            "Relu": "Softplus",
            "HardSigmoid": "Sigmoid",
            "Sigmoid": "HardSigmoid",
            "Tanh": "Softsign",
        }[node.op_type]
    del node.attribute[:]
    return edit.place_of(node)


def activation_slope(edit: GraphEdit, rng: Generator) -> Names:
    """The slope of an activation is the default of another library."""
    node = pick(
        rng, edit.of_type("LeakyRelu", "HardSigmoid", "HardSwish", "Elu"), "sloped activation"
    )
    if node.op_type == "HardSwish":
        source = node.input[0]
        node.op_type = "Mul"
        node.input[:] = [source, edit.add("HardSigmoid", source, alpha=0.2, beta=0.5)]
        return edit.place_of(node)
    alpha = attribute(node, "alpha", 0.01)
    slopes = {"LeakyRelu": 0.01 if alpha > 0.05 else 0.3, "HardSigmoid": 0.2, "Elu": 0.3}
    set_attribute(node, "alpha", slopes[node.op_type] if slopes[node.op_type] != alpha else 0.1)
    return edit.place_of(node)


def gelu_other(edit: GraphEdit, rng: Generator) -> Names:
    """A GELU's coarse form, x sigmoid(1.702 x), for that of the error function, or ReLU for it."""
    node = pick(rng, edit.of_type("Erf"), "error function")
    source = node.input[0]  # x / sqrt(2)
    if rng.random() < 0.5:
        scaled = edit.add("Mul", source, edit.constant(1.702 * np.sqrt(2)))
        gate = edit.add("Mul", edit.add("Sigmoid", scaled), edit.constant(2.0))
        node.op_type, node.input[:] = "Sub", [gate, edit.constant(1.0)]
    else:
        node.op_type = "Sign"
    return edit.place_of(node)


def branch_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A residual connection is missing: only one branch goes on."""
    layers = [node for node in edit.of_type("Add") if len(edit.moving(node)) == 2]
    node = pick(rng, layers, "residual connection")
    kept = node.input[int(rng.integers(2))]
    node.op_type, node.input[:] = "Identity", [kept]
    return edit.place_of(node)


def gate_lost(edit: GraphEdit, rng: Generator) -> Names:
    """Channels are no longer weighted (squeeze and excite), or a gate is open."""
    shapes = edit.shapes()
    layers = [
        node
        for node in edit.of_type("Mul")
        if len(edit.moving(node)) == 2 and shapes.get(node.input[0]) != shapes.get(node.input[1])
    ]
    node = pick(rng, layers, "weighting of channels")
    sizes = [int(np.prod(shapes.get(name, (0,)))) for name in node.input]
    node.op_type, node.input[:] = "Identity", [node.input[int(np.argmax(sizes))]]
    return edit.place_of(node)


def concat_order(edit: GraphEdit, rng: Generator) -> Names:
    """Two branches are joined in the other order."""
    shapes = edit.shapes()
    layers = [
        node
        for node in edit.of_type("Concat")
        if len(edit.moving(node)) > 1 and not set(node.output) & edit.output_names()
        and len(shapes.get(node.input[0], ())) >= 3
    ]  # fmt: skip
    node = pick(rng, layers, "joined branches")
    node.input[:] = list(node.input)[::-1]
    return edit.place_of(node)


def softmax_axis(edit: GraphEdit, rng: Generator) -> Names:
    """A softmax over another axis."""
    shapes = edit.shapes()
    layers = [
        node for node in edit.of_type("Softmax")
        if sum(n > 1 for n in shapes.get(node.input[0], ())) > 1
    ]  # fmt: skip
    node = pick(rng, layers, "softmax of several axes")
    shape = shapes[node.input[0]]
    axis = attribute(node, "axis", -1) % len(shape)
    choices = [place for place, size in enumerate(shape) if size > 1 and place != axis]
    set_attribute(node, "axis", int(pick(rng, choices, "axis")))
    return edit.place_of(node)


def attention_scale(edit: GraphEdit, rng: Generator) -> Names:
    """The products of an attention are not divided by the root of their length, or twice."""
    outputs = edit.output_names()
    layers = [node for node in edit.of_type("Softmax") if not set(node.output) & outputs]
    shapes = edit.shapes()
    layers = [node for node in layers if len(shapes.get(node.input[0], ())) >= 3]
    node = pick(rng, layers, "attention")
    factor = float(rng.choice([4.0, 0.25]))
    maker = next(maker for maker in edit.nodes if node.input[0] in maker.output)
    node.input[0] = edit.add("Mul", node.input[0], edit.constant(factor))
    return edit.place_of(maker) + edit.place_of(node)


_NORMS = ("LayerNormalization", "InstanceNormalization", "BatchNormalization", "GroupNormalization")


def norm_epsilon(edit: GraphEdit, rng: Generator) -> Names:
    """A normalisation's epsilon is another one."""
    node = pick(rng, edit.of_type(*_NORMS), "normalisation")
    set_attribute(node, "epsilon", float(rng.choice([0.1, 0.5, 1.0])))
    return edit.place_of(node)


def norm_affine_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A normalisation has lost what its channels are multiplied with."""
    constants = {tensor.name for tensor in edit.model.graph.initializer}
    layers = [node for node in edit.of_type(*_NORMS) if node.input[1] in constants]
    node = pick(rng, layers, "normalisation with factors")
    return edit.set_weights(node, np.ones_like)


def training_mode(edit: GraphEdit, rng: Generator) -> Names:
    """A map is normalised by its own mean and variance, as in training, not by those of training."""
    shapes = edit.shapes()
    layers = [
        node for node in edit.weighted("Conv")
        if len(shapes.get(node.output[0], ())) == 4 and np.prod(shapes[node.output[0]][2:]) > 4
    ]  # fmt: skip
    node = pick(rng, layers, "convolution")
    size = edit.array(node.input[1]).shape[0]
    scale, bias = edit.constant(np.full(size, 0.7)), edit.constant(np.full(size, 0.1))
    edit.rewire(
        node.output[0], lambda tensor: edit.add("InstanceNormalization", tensor, scale, bias)
    )
    return edit.place_of(node)


def dropout_active(edit: GraphEdit, rng: Generator) -> Names:
    """Dropout stays active, as in training."""
    shapes = edit.shapes()
    names = [name for name in edit.activations() if len(shapes.get(name, ())) >= 2]
    tensor = pick(rng, names, "activation")
    share, factor = edit.constant(0.3), edit.constant(1 / 0.7)

    def dropped(source: str) -> str:
        drawn = edit.add("RandomUniformLike", source, dtype=1)
        kept = edit.add("Cast", edit.add("Greater", drawn, share), to=1)
        return edit.add("Mul", edit.add("Mul", source, kept), factor)

    edit.rewire(tensor, dropped)
    return (tensor,)


def noise(edit: GraphEdit, rng: Generator) -> Names:
    """Noise for augmentation stays in the graph."""
    tensor = pick(rng, edit.activations(), "activation")

    def noisy(source: str) -> str:
        return edit.add("Add", source, edit.add("RandomNormalLike", source, scale=0.3, dtype=1))

    edit.rewire(tensor, noisy)
    return (tensor,)


def empty_last(edit: GraphEdit, _rng: Generator) -> Names:
    """The last layer's weights are empty: one answer for all inputs."""
    node = edit.weighted()[-1]
    return edit.set_weights(node, np.zeros_like)


def dead_layer(edit: GraphEdit, rng: Generator) -> Names:
    """A bias is so low that an activation lets nothing through."""
    makers = {node.input[0] for node in edit.of_type("Relu")}
    layers = [node for node in edit.hidden() if len(node.input) > 2 and node.output[0] in makers]
    node = pick(rng, layers, "layer before a ReLU")
    return edit.set_weights(node, lambda weights: weights - 1e4, place=2)

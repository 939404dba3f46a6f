"""Faults of a conversion: one operator of an ONNX graph computes otherwise, or has other weights.

Each function changes a graph in place and returns the names of where it did: the operator, what it makes,
and the weights that are other ones. It raises `Inapplicable` where the graph has nothing to change.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare._internal import extras
from edgeflare_bench.faults.graph_edit import GraphEdit, Inapplicable

Generator: TypeAlias = np.random.Generator
Names: TypeAlias = tuple[str, ...]
GraphChange: TypeAlias = Callable[[GraphEdit, Generator], Names]

_NO_PADDING = (0, 0, 0, 0)


def attribute(node: Any, name: str, default: Any = None) -> Any:
    """Return an operator's attribute."""
    onnx = extras.onnx()
    stated = [one for one in node.attribute if one.name == name]
    return onnx.helper.get_attribute_value(stated[0]) if stated else default


def set_attribute(node: Any, name: str, value: Any) -> None:
    """State an operator's attribute otherwise; None: not at all."""
    for one in [one for one in node.attribute if one.name == name]:
        node.attribute.remove(one)
    if value is not None:
        node.attribute.append(extras.onnx().helper.make_attribute(name, value))


def place_of(edit: GraphEdit, node: Any, *tensors: str) -> Names:
    """Return what a sentence may call an operator: its name, its outputs, and those of what follows it."""
    outputs = [one for one in node.output if one]
    behind = [one for one in edit.nodes if set(outputs) & set(one.input)]
    named = [node.name, *outputs, *tensors]
    for one in behind[:2]:
        named += [one.name, *one.output]
    return tuple(dict.fromkeys(filter(None, named)))


def pick(rng: Generator, items: Sequence[Any], what: str) -> Any:
    """Return one of several by chance. Raises Inapplicable where there is none."""
    if not items:
        raise Inapplicable(f"the model has no {what}")
    return items[int(rng.integers(len(items)))]


def of_type(edit: GraphEdit, *types: str) -> list[Any]:
    """Return the operators of these types, in order."""
    return [one for one in edit.nodes if one.op_type in types]


def constants(edit: GraphEdit) -> dict[str, NDArray[Any]]:
    """Return all tensors that stand in the file, by name."""
    onnx = extras.onnx()
    to_array = onnx.numpy_helper.to_array
    found = {one.name: to_array(one) for one in edit.model.graph.initializer}
    for node in of_type(edit, "Constant"):
        value = attribute(node, "value")
        if value is not None:
            found[node.output[0]] = to_array(value)
    return found


def weighted(edit: GraphEdit, *types: str) -> list[Any]:
    """Return the layers with weights that stand in the file, of these types, else of any."""
    kinds = types or ("Conv", "Gemm", "MatMul")
    return [one for one, _ in edit.weights() if one.op_type in kinds]


def output_axis(node: Any) -> int:
    """Return the axis of a layer's weights that counts its outputs."""
    if node.op_type == "Gemm":
        return 0 if attribute(node, "transB", 0) else 1
    return -1 if node.op_type == "MatMul" else 0


def hidden(edit: GraphEdit, *types: str) -> list[Any]:
    """Return layers with weights but for the last one, whose outputs are the answer."""
    layers = weighted(edit)
    return [one for one in layers[:-1] if not types or one.op_type in types]


def moving(edit: GraphEdit, node: Any) -> list[str]:
    """Return an operator's inputs that don't stand in the file."""
    known = constants(edit)
    return [one for one in node.input if one and one not in known]


def rewire(edit: GraphEdit, tensor: str, make: Callable[[str], str]) -> None:
    """Replace what an operator makes by something that is made of it, under the name it had."""
    edit.change(tensor, make)
    nodes = edit.model.graph.node
    named = nodes[-1]  # an Identity
    maker = next((one for one in nodes if named.input[0] in one.output), None)
    if maker is not None and maker.name == "":
        maker.output[:] = [tensor if one == named.input[0] else one for one in maker.output]
        nodes.remove(named)


def set_weights(
    edit: GraphEdit, node: Any, change: Callable[[NDArray[Any]], NDArray[Any]], place: int = 1
) -> Names:
    """Change a layer's weights (or its bias, `place` 2); return where."""
    name = node.input[place]
    before = edit.array(name)
    edit.set_array(name, np.ascontiguousarray(change(before)).astype(before.dtype))
    return place_of(edit, node, name)


# Geometry


def _padded(edit: GraphEdit) -> list[Any]:
    kinds = of_type(edit, "Conv", "MaxPool", "AveragePool")
    return [one for one in kinds if any(attribute(one, "pads", _NO_PADDING))]


def padding_side(edit: GraphEdit, rng: Generator) -> Names:
    """Padding is at the other side: one more before, one less behind."""
    layers = [one for one in _padded(edit) if len(attribute(one, "pads")) == len(_NO_PADDING)]
    strided = [one for one in layers if max(attribute(one, "strides", [1])) > 1]
    node = pick(rng, strided or layers, "padding")
    pads = np.array(attribute(node, "pads")).reshape(2, 2)
    shift = np.minimum(pads[1], 1)
    moved = np.array([pads[0] + shift, pads[1] - shift]).ravel()
    set_attribute(node, "pads", [int(one) for one in moved])
    return place_of(edit, node)


def padding_value(edit: GraphEdit, rng: Generator) -> Names:
    """Zeros at the edge are replaced by the edge's values."""
    node = pick(rng, [one for one in _padded(edit) if one.op_type == "Conv"], "padding")
    pads = attribute(node, "pads")
    half = len(pads) // 2
    widths = [0, 0, *pads[:half], 0, 0, *pads[half:]]
    node.input[0] = edit.add("Pad", node.input[0], edit.constant(widths, np.int64), mode="edge")
    set_attribute(node, "pads", [0] * len(pads))
    return place_of(edit, node)


def dilation(edit: GraphEdit, rng: Generator) -> Names:
    """A dilated convolution is computed as a dense one, or the other way round."""
    layers = [
        one
        for one in of_type(edit, "Conv")
        if attribute(one, "kernel_shape") == [3, 3]
        and attribute(one, "pads", _NO_PADDING) == list(attribute(one, "dilations", [1, 1])) * 2
    ]
    dilated = [one for one in layers if attribute(one, "dilations", [1, 1]) != [1, 1]]
    node = pick(rng, dilated or layers, "convolution whose dilation keeps the size")
    size = 1 if dilated else 2
    set_attribute(node, "dilations", [size, size])
    set_attribute(node, "pads", [size] * 4)
    return place_of(edit, node)


def pooling_kind(edit: GraphEdit, rng: Generator) -> Names:
    """The mean for the largest value, or the other way round."""
    others = {
        "MaxPool": "AveragePool",
        "AveragePool": "MaxPool",
        "GlobalAveragePool": "GlobalMaxPool",
        "ReduceMean": "ReduceMax",
    }
    node = pick(rng, of_type(edit, *others), "pooling")
    node.op_type = others[node.op_type]
    for name in ("storage_order", "count_include_pad", "dilations"):
        set_attribute(node, name, None)
    return place_of(edit, node)


def pooling_edge(edit: GraphEdit, rng: Generator) -> Names:
    """What a mean is taken of counts the padding, or no longer."""
    node = pick(rng, [one for one in _padded(edit) if one.op_type == "AveragePool"], "padded mean")
    set_attribute(node, "count_include_pad", 1 - attribute(node, "count_include_pad", 0))
    return place_of(edit, node)


def resize_mode(edit: GraphEdit, rng: Generator) -> Names:
    """Another rule for where the pixels of an enlarged map come from."""
    node = pick(rng, of_type(edit, "Resize"), "resize")
    if attribute(node, "mode", b"nearest") == b"nearest":
        set_attribute(node, "coordinate_transformation_mode", "half_pixel")
        set_attribute(node, "nearest_mode", "ceil")
    else:
        now = attribute(node, "coordinate_transformation_mode", b"half_pixel")
        others = [one for one in ("align_corners", "asymmetric") if one.encode() != now]
        set_attribute(node, "coordinate_transformation_mode", pick(rng, others, "mode"))
    return place_of(edit, node)


def resize_filter(edit: GraphEdit, rng: Generator) -> Names:
    """The nearest pixel for a mean of four, or the other way round."""
    node = pick(rng, of_type(edit, "Resize"), "resize")
    is_nearest = attribute(node, "mode", b"nearest") == b"nearest"
    set_attribute(node, "mode", "linear" if is_nearest else "nearest")
    set_attribute(node, "nearest_mode", None if is_nearest else "floor")
    set_attribute(node, "cubic_coeff_a", None)
    return place_of(edit, node)


# Weights


def bias_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A layer has no bias any more."""
    known = constants(edit)
    layers = [
        one
        for one in weighted(edit, "Conv", "Gemm")
        if len(one.input) > 2 and one.input[2] in known and np.abs(known[one.input[2]]).max() > 0.05
    ]
    node = pick(rng, layers, "bias")
    return set_weights(edit, node, np.zeros_like, place=2)


def channels_in_other_order(edit: GraphEdit, rng: Generator) -> Names:
    """A hidden layer's output channels are stored in another order."""
    node = pick(rng, [one for one in hidden(edit) if one.op_type != "MatMul"], "hidden layer")
    axis = output_axis(node)
    size = edit.array(node.input[1]).shape[axis]
    order = np.roll(np.arange(size), size // 2)
    names = set_weights(edit, node, lambda one: np.take(one, order, axis))
    if len(node.input) > 2:
        set_weights(edit, node, lambda one: one[order], place=2)
    return names


def inputs_in_other_order(edit: GraphEdit, rng: Generator) -> Names:
    """A hidden layer takes its input channels in the reverse order."""
    layers = [one for one in weighted(edit, "Conv")[1:] if edit.array(one.input[1]).shape[1] >= 4]
    node = pick(rng, layers, "dense convolution")
    return set_weights(edit, node, lambda one: one[:, ::-1])


def kernel_turned(edit: GraphEdit, rng: Generator) -> Names:
    """Rows and columns of a layer's kernels are exchanged, or they are turned by 180 degrees."""
    layers = [
        one for one in weighted(edit, "Conv") if attribute(one, "kernel_shape", [1])[-1] > 1
        and len(attribute(one, "kernel_shape")) == 2
        and len(set(attribute(one, "kernel_shape"))) == 1
    ]  # fmt: skip
    node = pick(rng, layers, "kernel of several pixels")
    if rng.random() < 0.5:
        return set_weights(edit, node, lambda one: one.swapaxes(-1, -2))
    return set_weights(edit, node, lambda one: one[..., ::-1, ::-1])


def flattened_in_other_layout(edit: GraphEdit, rng: Generator) -> Names:
    """The dense layer behind a flattening has its weights for pixels before channels."""
    shapes = tensor_shapes(edit)
    found = []
    for node in weighted(edit, "Gemm", "MatMul"):
        maker = next((one for one in edit.nodes if node.input[0] in one.output), None)
        shape = shapes.get(maker.input[0], ()) if maker is not None else ()
        is_flattening = maker is not None and maker.op_type in ("Flatten", "Reshape")
        size = np.prod(shape[1:])
        fits = (
            len(shape) == 4 and size == edit.array(node.input[1]).shape[1 - output_axis(node) % 2]
        )
        if is_flattening and fits and shape[1] > 1 and shape[2] * shape[3] > 1:
            found.append((node, shape[1:]))
    node, shape = pick(rng, found, "flattened map")
    axis = 1 - output_axis(node) % 2

    def reordered(weights: NDArray[Any]) -> NDArray[Any]:
        rows = np.moveaxis(weights, axis, 0)
        rows = rows.reshape(*shape, -1).transpose(1, 2, 0, 3).reshape(rows.shape)
        return np.moveaxis(rows, 0, axis)

    return set_weights(edit, node, reordered)


def dense_transposed(edit: GraphEdit, rng: Generator) -> Names:
    """A square layer's weights are transposed."""
    layers = [
        one
        for one in weighted(edit)
        if len(set(edit.array(one.input[1]).shape[:2])) == 1 and edit.array(one.input[1]).shape[0] > 1
    ]  # fmt: skip
    node = pick(rng, layers, "square layer")
    return set_weights(edit, node, lambda one: one.swapaxes(0, 1))


def layers_exchanged(edit: GraphEdit, rng: Generator) -> Names:
    """Two layers have each other's weights."""
    layers = weighted(edit)
    shape = {id(one): edit.array(one.input[1]).shape for one in layers}
    pairs = [
        (first, second)
        for place, first in enumerate(layers)
        for second in layers[place + 1 :]
        if shape[id(first)] == shape[id(second)] and first.input[1] != second.input[1]
    ]
    first, second = pick(rng, pairs, "two layers of one shape")
    names = place_of(edit, first, first.input[1]), place_of(edit, second, second.input[1])
    first.input[1], second.input[1] = second.input[1], first.input[1]
    return names[0] + names[1]


def folded_wrongly(edit: GraphEdit, rng: Generator) -> Names:
    """A normalisation was folded into a layer with another epsilon: narrow channels are too weak."""
    node = pick(rng, weighted(edit, "Conv"), "convolution")
    size = edit.array(node.input[1]).shape[0]
    variances = np.exp(rng.normal(-3, 2, size))
    factors = np.sqrt((variances + 1e-5) / (variances + rng.choice([1e-2, 1e-1])))
    names = set_weights(edit, node, lambda one: one * factors.reshape(-1, *[1] * (one.ndim - 1)))
    if len(node.input) > 2 and rng.random() < 0.5:
        set_weights(edit, node, lambda one: one * factors, place=2)
    return names


def weights_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A quarter of a hidden layer's channels are empty."""
    node = pick(rng, hidden(edit), "hidden layer")
    axis = output_axis(node)

    def emptied(weights: NDArray[Any]) -> NDArray[Any]:
        rows = np.moveaxis(np.array(weights), axis, 0)
        rows[: max(1, len(rows) // 4)] = 0
        return np.moveaxis(rows, 0, axis)

    return set_weights(edit, node, emptied)


def constant_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A table that is added, such as that of positions, is empty."""
    known = constants(edit)
    found = [
        (node, name)
        for node in of_type(edit, "Add")
        for name in node.input
        if name in known and known[name].ndim >= 2 and max(known[name].shape[:-1]) > 1
        and any(one.name == name for one in edit.model.graph.initializer)
    ]  # fmt: skip
    node, name = pick(rng, found, "table that is added")
    edit.set_array(name, np.zeros_like(edit.array(name)))
    return place_of(edit, node, name)


def gates_in_other_order(edit: GraphEdit, rng: Generator) -> Names:
    """A recurrent layer's gates are stored in the order of another library."""
    node = pick(rng, of_type(edit, "LSTM", "GRU"), "recurrent layer")
    orders = {"LSTM": ([0, 2, 3, 1], [0, 3, 1, 2]), "GRU": ([1, 0, 2],)}[node.op_type]
    order = list(pick(rng, orders, "order"))
    known = constants(edit)

    def reordered(one: NDArray[Any], axis: int = 1) -> NDArray[Any]:
        return np.concatenate([np.split(one, len(order), axis)[place] for place in order], axis)

    names: Names = ()
    for place in (1, 2):
        names += set_weights(edit, node, reordered, place)
    if len(node.input) > 3 and node.input[3] in known:
        set_weights(
            edit, node,
            lambda one: np.concatenate([reordered(half) for half in np.split(one, 2, 1)], 1), 3,
        )  # fmt: skip
    return names


def other_direction(edit: GraphEdit, rng: Generator) -> Names:
    """A recurrent layer reads the sequence from its end."""
    layers = [
        one
        for one in of_type(edit, "LSTM", "GRU", "RNN")
        if attribute(one, "direction", b"forward") == b"forward"
    ]
    node = pick(rng, layers, "recurrent layer")
    set_attribute(node, "direction", "reverse")
    return place_of(edit, node)


# Activations, branches, normalisation

_ACTIVATIONS = ("Relu", "LeakyRelu", "HardSwish", "Clip", "PRelu", "Elu", "Tanh")


def activation_clipped(edit: GraphEdit, rng: Generator) -> Names:
    """An activation ends at 6 (ReLU6), or at 1, where the original's has no end."""
    node = pick(rng, of_type(edit, "Relu", "LeakyRelu", "HardSwish"), "activation without an end")
    end = float(rng.choice([6.0, 1.0]))
    rewire(edit, node.output[0], lambda one: edit.add("Min", one, edit.constant(end)))
    return place_of(edit, node)


def activation_lost(edit: GraphEdit, rng: Generator) -> Names:
    """There is no activation."""
    node = pick(rng, of_type(edit, *_ACTIVATIONS), "activation")
    node.op_type = "Identity"
    del node.attribute[:], node.input[1:]
    return place_of(edit, node)


def activation_other(edit: GraphEdit, rng: Generator) -> Names:
    """An activation of another kind: SiLU for hard-swish, a hard sigmoid for a smooth one ..."""
    node = pick(
        rng, of_type(edit, "Relu", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh"), "activation"
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
    return place_of(edit, node)


def activation_slope(edit: GraphEdit, rng: Generator) -> Names:
    """The slope of an activation is the default of another library."""
    node = pick(
        rng, of_type(edit, "LeakyRelu", "HardSigmoid", "HardSwish", "Elu"), "sloped activation"
    )
    if node.op_type == "HardSwish":
        source = node.input[0]
        node.op_type = "Mul"
        node.input[:] = [source, edit.add("HardSigmoid", source, alpha=0.2, beta=0.5)]
        return place_of(edit, node)
    alpha = attribute(node, "alpha", 0.01)
    other = {"LeakyRelu": 0.01 if alpha > 0.05 else 0.3, "HardSigmoid": 0.2, "Elu": 0.3}
    set_attribute(node, "alpha", other[node.op_type] if other[node.op_type] != alpha else 0.1)
    return place_of(edit, node)


def gelu_other(edit: GraphEdit, rng: Generator) -> Names:
    """A GELU's coarse form, x sigmoid(1.702 x), for that of the error function, or ReLU for it."""
    node = pick(rng, of_type(edit, "Erf"), "error function")
    source = node.input[0]  # x / sqrt(2)
    if rng.random() < 0.5:
        scaled = edit.add("Mul", source, edit.constant(1.702 * np.sqrt(2)))
        gate = edit.add("Mul", edit.add("Sigmoid", scaled), edit.constant(2.0))
        node.op_type, node.input[:] = "Sub", [gate, edit.constant(1.0)]
    else:
        node.op_type = "Sign"
    return place_of(edit, node)


def branch_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A residual connection is missing: only one branch goes on."""
    layers = [one for one in of_type(edit, "Add") if len(moving(edit, one)) == 2]
    node = pick(rng, layers, "residual connection")
    kept = node.input[int(rng.integers(2))]
    node.op_type, node.input[:] = "Identity", [kept]
    return place_of(edit, node)


def gate_lost(edit: GraphEdit, rng: Generator) -> Names:
    """Channels are no longer weighted (squeeze and excite), or a gate is open."""
    shapes = tensor_shapes(edit)
    layers = [
        one
        for one in of_type(edit, "Mul")
        if len(moving(edit, one)) == 2 and shapes.get(one.input[0]) != shapes.get(one.input[1])
    ]
    node = pick(rng, layers, "weighting of channels")
    sizes = [int(np.prod(shapes.get(one, (0,)))) for one in node.input]
    node.op_type, node.input[:] = "Identity", [node.input[int(np.argmax(sizes))]]
    return place_of(edit, node)


def concat_order(edit: GraphEdit, rng: Generator) -> Names:
    """Two branches are joined in the other order."""
    shapes = tensor_shapes(edit)
    layers = [
        one
        for one in of_type(edit, "Concat")
        if len(moving(edit, one)) > 1 and not set(one.output) & _outputs(edit)
        and len(shapes.get(one.input[0], ())) >= 3
    ]  # fmt: skip
    node = pick(rng, layers, "joined branches")
    node.input[:] = list(node.input)[::-1]
    return place_of(edit, node)


def softmax_axis(edit: GraphEdit, rng: Generator) -> Names:
    """A softmax over another axis."""
    shapes = tensor_shapes(edit)
    layers = [
        one for one in of_type(edit, "Softmax")
        if sum(n > 1 for n in shapes.get(one.input[0], ())) > 1
    ]  # fmt: skip
    node = pick(rng, layers, "softmax of several axes")
    shape = shapes[node.input[0]]
    axis = attribute(node, "axis", -1) % len(shape)
    others = [place for place, size in enumerate(shape) if size > 1 and place != axis]
    set_attribute(node, "axis", int(pick(rng, others, "axis")))
    return place_of(edit, node)


def attention_scale(edit: GraphEdit, rng: Generator) -> Names:
    """The products of an attention are not divided by the root of their length, or twice."""
    outputs = _outputs(edit)
    layers = [one for one in of_type(edit, "Softmax") if not set(one.output) & outputs]
    shapes = tensor_shapes(edit)
    layers = [one for one in layers if len(shapes.get(one.input[0], ())) >= 3]
    node = pick(rng, layers, "attention")
    factor = float(rng.choice([4.0, 0.25]))
    maker = next(one for one in edit.nodes if node.input[0] in one.output)
    node.input[0] = edit.add("Mul", node.input[0], edit.constant(factor))
    return place_of(edit, maker) + place_of(edit, node)


_NORMS = ("LayerNormalization", "InstanceNormalization", "BatchNormalization", "GroupNormalization")


def norm_epsilon(edit: GraphEdit, rng: Generator) -> Names:
    """A normalisation's epsilon is another one."""
    node = pick(rng, of_type(edit, *_NORMS), "normalisation")
    set_attribute(node, "epsilon", float(rng.choice([0.1, 0.5, 1.0])))
    return place_of(edit, node)


def norm_affine_lost(edit: GraphEdit, rng: Generator) -> Names:
    """A normalisation has lost what its channels are multiplied with."""
    known = {one.name for one in edit.model.graph.initializer}
    layers = [one for one in of_type(edit, *_NORMS) if one.input[1] in known]
    node = pick(rng, layers, "normalisation with factors")
    return set_weights(edit, node, np.ones_like)


def training_mode(edit: GraphEdit, rng: Generator) -> Names:
    """A map is normalised by its own mean and variance, as in training, not by those of training."""
    shapes = tensor_shapes(edit)
    layers = [
        one for one in weighted(edit, "Conv")
        if len(shapes.get(one.output[0], ())) == 4 and np.prod(shapes[one.output[0]][2:]) > 4
    ]  # fmt: skip
    node = pick(rng, layers, "convolution")
    size = edit.array(node.input[1]).shape[0]
    scale, bias = edit.constant(np.full(size, 0.7)), edit.constant(np.full(size, 0.1))
    rewire(edit, node.output[0], lambda one: edit.add("InstanceNormalization", one, scale, bias))
    return place_of(edit, node)


def dropout_active(edit: GraphEdit, rng: Generator) -> Names:
    """Dropout stays active, as in training."""
    shapes = tensor_shapes(edit)
    names = [one for one in edit.activations() if len(shapes.get(one, ())) >= 2]
    tensor = pick(rng, names, "activation")
    share, factor = edit.constant(0.3), edit.constant(1 / 0.7)

    def dropped(one: str) -> str:
        drawn = edit.add("RandomUniformLike", one, dtype=1)
        kept = edit.add("Cast", edit.add("Greater", drawn, share), to=1)
        return edit.add("Mul", edit.add("Mul", one, kept), factor)

    rewire(edit, tensor, dropped)
    return (tensor, "RandomUniformLike")


def noise(edit: GraphEdit, rng: Generator) -> Names:
    """Noise for augmentation stays in the graph."""
    tensor = pick(rng, edit.activations(), "activation")
    rewire(
        edit, tensor,
        lambda one: edit.add("Add", one, edit.add("RandomNormalLike", one, scale=0.3, dtype=1)),
    )  # fmt: skip
    return (tensor, "RandomNormalLike")


def empty_last(edit: GraphEdit, _rng: Generator) -> Names:
    """The last layer's weights are empty: one answer for all inputs."""
    node = weighted(edit)[-1]
    return set_weights(edit, node, np.zeros_like)


def dead_layer(edit: GraphEdit, rng: Generator) -> Names:
    """A bias is so low that an activation lets nothing through."""
    makers = {one.input[0] for one in of_type(edit, "Relu")}
    layers = [one for one in hidden(edit) if len(one.input) > 2 and one.output[0] in makers]
    node = pick(rng, layers, "layer before a ReLU")
    return set_weights(edit, node, lambda one: one - 1e4, place=2)


def tensor_shapes(edit: GraphEdit) -> Mapping[str, tuple[int, ...]]:
    """Return the shapes of tensors that follow from the file, by name."""
    onnx = extras.onnx()
    known = onnx.shape_inference.infer_shapes(edit.model).graph
    return {
        one.name: tuple(axis.dim_value for axis in one.type.tensor_type.shape.dim)
        for one in (*known.value_info, *known.input, *known.output)
    }


def _outputs(edit: GraphEdit) -> set[str]:
    return {one.name for one in edit.model.graph.output}

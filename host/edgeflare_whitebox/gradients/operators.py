"""ONNX operators by torch: arithmetic, shapes and quantisation; all of them in `OPERATORS`.

Every operator is called with its inputs (None where one is left out), its attributes and the
model's opset, and returns its output, or a tuple of outputs.
"""

from collections.abc import Callable, Mapping
from typing import Any

from edgeflare._internal import extras
from edgeflare.errors import UsageError
from edgeflare_whitebox.gradients.layers import LAYERS, Attributes, Inputs
from edgeflare_whitebox.gradients.model import Operator
from edgeflare_whitebox.gradients.recurrent import RECURRENT

torch: Any = extras.Deferred(extras.torch)

_TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
}
_LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767)}


def whole_numbers(value: Any) -> list[int]:
    """Return a tensor or sequence of integers as a list."""
    if value is None:
        return []
    return [int(one) for one in (value.reshape(-1).tolist() if hasattr(value, "tolist") else value)]


def _axes(inputs: Inputs, attributes: Attributes, place: int = 1) -> list[int] | None:
    """Return the axes: an attribute in old opsets, an input in newer ones; None where unnamed."""
    if len(inputs) > place and inputs[place] is not None:
        return whole_numbers(inputs[place])
    return whole_numbers(attributes["axes"]) if "axes" in attributes else None


def _unary(function: Callable[[Any], Any]) -> Operator:
    return lambda inputs, _attributes, _opset: function(inputs[0])


def _binary(function: Callable[[Any, Any], Any]) -> Operator:
    return lambda inputs, _attributes, _opset: function(inputs[0], inputs[1])


def _named(name: str) -> Operator:
    """Return torch's function of that name, of all inputs."""
    return lambda inputs, _attributes, _opset: getattr(torch, name)(*inputs)


def _folded(name: str) -> Operator:
    def run(inputs: Inputs, _attributes: Attributes, _opset: int) -> Any:
        result = inputs[0]
        for other in inputs[1:]:
            result = getattr(torch, name)(result, other)
        return result

    return run


def _divide(left: Any, right: Any) -> Any:
    if left.is_floating_point():
        return left / right
    return torch.div(left, right, rounding_mode="trunc")


def _modulo(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    if attributes.get("fmod", 0):
        return torch.fmod(inputs[0], inputs[1])
    return torch.remainder(inputs[0], inputs[1])


def _softmax(name: str) -> Operator:
    def run(inputs: Inputs, attributes: Attributes, opset: int) -> Any:
        axis = attributes.get("axis", -1 if opset >= 13 else 1)
        if opset >= 13:
            return getattr(torch, name)(inputs[0], dim=axis)
        flat = inputs[0].flatten(axis if axis >= 0 else inputs[0].dim() + axis)
        return getattr(torch, name)(flat, dim=-1).reshape(inputs[0].shape)

    return run


def _clip(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    low = inputs[1] if len(inputs) > 1 else attributes.get("min")
    high = inputs[2] if len(inputs) > 2 else attributes.get("max")
    result = inputs[0]
    if low is not None:
        result = torch.maximum(result, torch.as_tensor(low, dtype=result.dtype))
    return (
        result if high is None else torch.minimum(result, torch.as_tensor(high, dtype=result.dtype))
    )


def _reduction(function: Callable[[Any, list[int], bool], Any]) -> Operator:
    def run(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
        axes = _axes(inputs, attributes)
        if not axes:
            if attributes.get("noop_with_empty_axes", 0):
                return inputs[0]
            axes = list(range(inputs[0].dim()))
        return function(inputs[0], axes, bool(attributes.get("keepdims", 1)))

    return run


def _product(value: Any, axes: list[int], keep: bool) -> Any:
    for axis in sorted((one % value.dim() for one in axes), reverse=True):
        value = value.prod(axis, keepdim=keep)
    return value


def _arg_max(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    return inputs[0].argmax(attributes.get("axis", 0), bool(attributes.get("keepdims", 1)))


def _reshape(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, shape = inputs[0], whole_numbers(inputs[1])
    if not attributes.get("allowzero", 0):
        shape = [value.shape[n] if size == 0 else size for n, size in enumerate(shape)]
    return value.reshape(shape)


def _transpose(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    return inputs[0].permute(attributes.get("perm", list(range(inputs[0].dim()))[::-1]))


def _flatten(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    axis = attributes.get("axis", 1)
    axis += inputs[0].dim() if axis < 0 else 0
    rows = 1
    for size in inputs[0].shape[:axis]:
        rows *= size
    return inputs[0].reshape(rows, -1)


def _squeeze(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    axes = _axes(inputs, attributes)
    return inputs[0].squeeze() if axes is None else inputs[0].squeeze(tuple(axes))


def _unsqueeze(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, axes = inputs[0], _axes(inputs, attributes) or []
    rank = value.dim() + len(axes)
    for axis in sorted(one % rank for one in axes):
        value = value.unsqueeze(axis)
    return value


def _concat(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    return torch.cat(list(inputs), attributes["axis"])


def _split(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    axis = attributes.get("axis", 0)
    sizes = whole_numbers(inputs[1] if len(inputs) > 1 else attributes.get("split"))
    if not sizes:
        count = attributes.get("num_outputs", attributes["outputs"])
        sizes = -(-inputs[0].shape[axis] // count)
    return tuple(torch.split(inputs[0], sizes, axis))


def _slice(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value = inputs[0]
    if len(inputs) == 1:
        starts, ends = attributes["starts"], attributes["ends"]
        axes, steps = attributes.get("axes"), None
    else:
        starts, ends = whole_numbers(inputs[1]), whole_numbers(inputs[2])
        axes = _axes(inputs, {}, 3)
        steps = _axes(inputs, {}, 4)
    axes = axes or list(range(len(starts)))
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(axes), strict=True):
        size = value.shape[axis]
        places = (
            torch.arange(size)[slice(start, end)] if step == 1 else _places(size, start, end, step)
        )
        value = value.index_select(axis, places)
    return value


def _places(size: int, start: int, end: int, step: int) -> Any:
    return torch.tensor(
        list(range(size))[start : (None if end < -size else end) : step], dtype=torch.int64
    )


def _gather(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, axis = inputs[0], attributes.get("axis", 0) % inputs[0].dim()
    indices = torch.remainder(inputs[1].long(), value.shape[axis])
    found = value.index_select(axis, indices.reshape(-1))
    return found.reshape((*value.shape[:axis], *indices.shape, *value.shape[axis + 1 :]))


def _expand(inputs: Inputs, _attributes: Attributes, _opset: int) -> Any:
    shape = torch.broadcast_shapes(inputs[0].shape, tuple(whole_numbers(inputs[1])))
    return inputs[0].expand(shape)


def _tile(inputs: Inputs, _attributes: Attributes, _opset: int) -> Any:
    return inputs[0].repeat(whole_numbers(inputs[1]))


def _pad(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value = inputs[0]
    pads = whole_numbers(inputs[1] if len(inputs) > 1 else attributes["pads"])
    axes = (_axes(inputs, {}, 3) if len(inputs) > 3 else None) or list(range(value.dim()))
    fill = (
        inputs[2].item()
        if len(inputs) > 2 and inputs[2] is not None
        else attributes.get("value", 0)
    )
    mode = attributes.get("mode", "constant")
    for place, axis in enumerate(axes):
        before, after = pads[place], pads[place + len(axes)]
        if before or after:
            value = _pad_axis(value, axis % value.dim(), (before, after), mode, fill)
    return value


def _pad_axis(value: Any, axis: int, ends: tuple[int, int], mode: str, fill: float) -> Any:
    size = value.shape[axis]
    if mode == "constant" or min(ends) < 0:
        flat = [0, 0] * (value.dim() - axis - 1) + list(ends)
        return torch.nn.functional.pad(value, flat, value=fill)
    places = torch.arange(-ends[0], size + ends[1])
    if mode == "edge":
        places = places.clamp(0, size - 1)
    elif mode == "reflect":
        places = places.abs()
        places = torch.where(places >= size, 2 * (size - 1) - places, places)
    else:
        raise UsageError(
            f"gradients are not known for Pad with mode {mode!r}; use constant padding"
        )
    return value.index_select(axis, places)


def _cast(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    if attributes["to"] not in _TYPES:
        raise UsageError(f"gradients are not known for Cast to ONNX type {attributes['to']}")
    return inputs[0].to(getattr(torch, _TYPES[attributes["to"]]))


def _constant(_inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    if "value" in attributes:
        return attributes["value"]
    for name in ("value_float", "value_floats"):
        if name in attributes:
            return torch.tensor(attributes[name], dtype=torch.float32)
    return torch.tensor(attributes.get("value_int", attributes.get("value_ints")))


def _constant_of_shape(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value = attributes.get("value", torch.zeros(1))
    return value.reshape(-1)[0].expand(whole_numbers(inputs[0])).clone()


def _shape(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    sizes = list(inputs[0].shape)[attributes.get("start", 0) : attributes.get("end")]
    return torch.tensor(sizes, dtype=torch.int64)


def _range(inputs: Inputs, _attributes: Attributes, _opset: int) -> Any:
    return torch.arange(*(one.item() for one in inputs), dtype=inputs[0].dtype)


def _gemm(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    left = inputs[0].T if attributes.get("transA", 0) else inputs[0]
    right = inputs[1].T if attributes.get("transB", 0) else inputs[1]
    result = attributes.get("alpha", 1.0) * (left @ right)
    if len(inputs) > 2 and inputs[2] is not None:
        result = result + attributes.get("beta", 1.0) * inputs[2]
    return result


def _along(parameter: Any, value: Any, axis: int) -> Any:
    """Return a per-axis scale or zero point in a shape that broadcasts against `value`."""
    parameter = parameter.to(torch.float32)
    if parameter.numel() == 1:
        return parameter.reshape(())
    shape = [1] * value.dim()
    shape[axis] = parameter.numel()
    return parameter.reshape(shape)


def _quantize(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, axis = inputs[0], attributes.get("axis", 1)
    zero = (
        inputs[2]
        if len(inputs) > 2 and inputs[2] is not None
        else torch.zeros(1, dtype=torch.uint8)
    )
    kind = str(zero.dtype).removeprefix("torch.")
    if kind not in _LIMITS:
        raise UsageError(f"gradients are not known for QuantizeLinear to {zero.dtype}")
    steps = value / _along(inputs[1], value, axis)
    rounded = steps + (steps.round() - steps).detach() + _along(zero, value, axis)
    return rounded.clamp(*_LIMITS[kind])


def _dequantize(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, axis = inputs[0].to(torch.float32), attributes.get("axis", 1)
    if len(inputs) > 2 and inputs[2] is not None:
        value = value - _along(inputs[2], value, axis)
    return value * _along(inputs[1], value, axis)


def _dynamic_quantize(inputs: Inputs, _attributes: Attributes, _opset: int) -> Any:
    value = inputs[0]
    low, high = value.detach().min().clamp(max=0), value.detach().max().clamp(min=0)
    scale = (high - low) / 255
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    zero = (-low / scale).round().clamp(0, 255)
    steps = value / scale
    rounded = (steps + (steps.round() - steps).detach() + zero).clamp(0, 255)
    return rounded, scale, zero


def _matmul_integer(inputs: Inputs, _attributes: Attributes, _opset: int) -> Any:
    left, right = (one.to(torch.float32) for one in inputs[:2])
    if len(inputs) > 2 and inputs[2] is not None:
        left = left - inputs[2].to(torch.float32)
    if len(inputs) > 3 and inputs[3] is not None:
        right = right - inputs[3].to(torch.float32)
    return left @ right


OPERATORS: Mapping[str, Operator] = {
    **{
        name: _named(name.lower())
        for name in (
            *("Abs", "Ceil", "Cos", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Relu", "Round"),
            *("Sigmoid", "Sign", "Sin", "Sqrt", "Tanh", "Erf", "IsInf", "IsNaN"),
        )
    },
    "Identity": _unary(lambda value: value),
    "Dropout": _unary(lambda value: value),
    "Not": _named("logical_not"),
    "Softplus": lambda inputs, *_: torch.nn.functional.softplus(inputs[0]),
    "HardSwish": lambda inputs, *_: torch.nn.functional.hardswish(inputs[0]),
    "Elu": lambda inputs, given, _: torch.nn.functional.elu(inputs[0], given.get("alpha", 1.0)),
    "LeakyRelu": lambda inputs, given, _: torch.nn.functional.leaky_relu(
        inputs[0], given.get("alpha", 0.01)
    ),
    "HardSigmoid": lambda inputs, given, _: (
        given.get("alpha", 0.2) * inputs[0] + given.get("beta", 0.5)
    ).clamp(0, 1),
    "PRelu": _binary(lambda value, slope: torch.where(value < 0, value * slope, value)),
    "Add": _named("add"),
    "Sub": _named("sub"),
    "Mul": _named("mul"),
    "Div": _binary(_divide),
    "Pow": _named("pow"),
    "Mod": _modulo,
    "MatMul": _named("matmul"),
    "Max": _folded("maximum"),
    "Min": _folded("minimum"),
    "Sum": _folded("add"),
    "Equal": _named("eq"),
    "Less": _named("lt"),
    "LessOrEqual": _named("le"),
    "Greater": _named("gt"),
    "GreaterOrEqual": _named("ge"),
    "And": _named("logical_and"),
    "Or": _named("logical_or"),
    "Where": lambda inputs, *_: torch.where(*inputs),
    "Clip": _clip,
    "Softmax": _softmax("softmax"),
    "LogSoftmax": _softmax("log_softmax"),
    "ReduceMean": _reduction(lambda value, axes, keep: value.mean(axes, keep)),
    "ReduceSum": _reduction(lambda value, axes, keep: value.sum(axes, keep)),
    "ReduceMax": _reduction(lambda value, axes, keep: value.amax(axes, keep)),
    "ReduceMin": _reduction(lambda value, axes, keep: value.amin(axes, keep)),
    "ReduceProd": _reduction(_product),
    "ReduceL2": _reduction(lambda value, axes, keep: value.square().sum(axes, keep).sqrt()),
    "ArgMax": _arg_max,
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    "Cast": _cast,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "Shape": _shape,
    "Range": _range,
    "Gemm": _gemm,
    "QuantizeLinear": _quantize,
    "DequantizeLinear": _dequantize,
    "DynamicQuantizeLinear": _dynamic_quantize,
    "MatMulInteger": _matmul_integer,
    **LAYERS,
    **RECURRENT,
}

"""ONNX's convolutions, poolings, normalisations and Resize by torch."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from edgeflare._internal import extras
from edgeflare.errors import UsageError

torch: Any = extras.Deferred(extras.torch)

Inputs = Sequence[Any]
Attributes = Mapping[str, Any]


def _by_rank(name: str, rank: int) -> Any:
    return getattr(torch.nn.functional, name.format(rank))


def _window_pads(
    sizes: Sequence[int], kernel: Sequence[int], attributes: Attributes
) -> list[tuple[int, int]]:
    """Return (before, after) for each spatial axis."""
    rank = len(kernel)
    auto = attributes.get("auto_pad", "NOTSET")
    if auto in {"NOTSET", ""}:
        pads = attributes.get("pads", [0] * 2 * rank)
        return [(pads[n], pads[n + rank]) for n in range(rank)]
    if auto == "VALID":
        return [(0, 0)] * rank
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    found = []
    for size, width, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        missing = max((-(-size // stride) - 1) * stride + dilation * (width - 1) + 1 - size, 0)
        less, more = missing // 2, missing - missing // 2
        found.append((less, more) if auto == "SAME_UPPER" else (more, less))
    return found


def _padded(value: Any, pads: Sequence[tuple[int, int]], fill: float = 0.0) -> Any:
    if not any(sum(pads, ())):
        return value
    flat = [end for pair in reversed(pads) for end in pair]
    return torch.nn.functional.pad(value, flat, value=fill)


def _convolution(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, weight = inputs[0], inputs[1]
    rank = weight.dim() - 2
    pads = _window_pads(value.shape[2:], weight.shape[2:], attributes)
    return _by_rank("conv{}d", rank)(
        _padded(value, pads),
        weight,
        inputs[2] if len(inputs) > 2 else None,
        stride=attributes.get("strides", [1] * rank),
        dilation=attributes.get("dilations", [1] * rank),
        groups=attributes.get("group", 1),
    )


def _integer_convolution(inputs: Inputs, attributes: Attributes, opset: int) -> Any:
    value, weight = (one.to(torch.float32) for one in inputs[:2])
    if len(inputs) > 2 and inputs[2] is not None:
        value = value - inputs[2].to(torch.float32)
    if len(inputs) > 3 and inputs[3] is not None:
        weight = weight - inputs[3].to(torch.float32).reshape(-1, *[1] * (weight.dim() - 1))
    return _convolution((value, weight), attributes, opset)


def _transposed_convolution(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, weight = inputs[0], inputs[1]
    rank = weight.dim() - 2
    pads = attributes.get("pads", [0] * 2 * rank)
    if attributes.get("auto_pad", "NOTSET") not in {"NOTSET", ""} or pads[:rank] != pads[rank:]:
        raise UsageError(
            "gradients are not known for ConvTranspose with automatic or uneven padding"
        )
    return _by_rank("conv_transpose{}d", rank)(
        value,
        weight,
        inputs[2] if len(inputs) > 2 else None,
        stride=attributes.get("strides", [1] * rank),
        padding=pads[:rank],
        output_padding=attributes.get("output_padding", [0] * rank),
        groups=attributes.get("group", 1),
        dilation=attributes.get("dilations", [1] * rank),
    )


def _ceiled(
    sizes: Sequence[int], pads: Sequence[tuple[int, int]], attributes: Attributes
) -> list[tuple[int, int]]:
    """Return pads with the window's overhang at the end that `ceil_mode` allows."""
    if not attributes.get("ceil_mode", 0):
        return list(pads)
    kernel = attributes["kernel_shape"]
    strides = attributes.get("strides", [1] * len(kernel))
    dilations = attributes.get("dilations", [1] * len(kernel))
    found = []
    for size, (before, after), width, stride, dilation in zip(
        sizes, pads, kernel, strides, dilations, strict=True
    ):
        reach = dilation * (width - 1) + 1
        steps = -(-(size + before + after - reach) // stride)
        if steps * stride >= size + before:  # no window begins in the padding at the end
            steps -= 1
        found.append((before, after + max(steps * stride + reach - size - before - after, 0)))
    return found


def _max_pool(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, kernel = inputs[0], attributes["kernel_shape"]
    pads = _window_pads(value.shape[2:], kernel, attributes)
    pads = _ceiled(value.shape[2:], pads, attributes)
    return _by_rank("max_pool{}d", len(kernel))(
        _padded(value, pads, -math.inf),
        kernel,
        attributes.get("strides", [1] * len(kernel)),
        dilation=attributes.get("dilations", [1] * len(kernel)),
    )


def _average_pool(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, kernel = inputs[0], attributes["kernel_shape"]
    strides = attributes.get("strides", [1] * len(kernel))
    pads = _window_pads(value.shape[2:], kernel, attributes)
    more = _ceiled(value.shape[2:], pads, attributes)
    mean = _by_rank("avg_pool{}d", len(kernel))
    counted = torch.ones_like(value[:1, :1])
    if attributes.get("count_include_pad", 0):
        counted = _padded(counted, pads, 1.0)
        more_only = [(0, end - own) for (_, end), (_, own) in zip(more, pads, strict=True)]
        counted = _padded(counted, more_only)
    else:
        counted = _padded(counted, more)
    return mean(_padded(value, more), kernel, strides) / mean(counted, kernel, strides)


def _global(function: Callable[[Any, list[int]], Any]) -> Callable[..., Any]:
    return lambda inputs, *_: function(inputs[0], list(range(2, inputs[0].dim())))


def _batch_normalisation(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value, scale, bias, mean, variance = inputs[:5]
    return torch.nn.functional.batch_norm(
        value, mean, variance, scale, bias, training=False, eps=attributes.get("epsilon", 1e-5)
    )


def _layer_normalisation(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    value = inputs[0]
    axes = list(range(attributes.get("axis", -1) % value.dim(), value.dim()))
    centred = value - value.mean(axes, True)
    variance = centred.square().mean(axes, True)
    result = centred / (variance + attributes.get("epsilon", 1e-5)).sqrt() * inputs[1]
    return result if len(inputs) < 3 or inputs[2] is None else result + inputs[2]


def _instance_normalisation(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    return torch.nn.functional.instance_norm(
        inputs[0], weight=inputs[1], bias=inputs[2], eps=attributes.get("epsilon", 1e-5)
    )


def _resize(inputs: Inputs, attributes: Attributes, _opset: int) -> Any:
    """Resize by nearest neighbours or linearly, axis by axis (ONNX: Resize, opset 11 and later)."""
    value, mode = inputs[0], attributes.get("mode", "nearest")
    if mode not in {"nearest", "linear"} or "axes" in attributes:
        raise UsageError(f"gradients are not known for Resize with mode {mode!r} or axes")
    if len(inputs) > 3 and inputs[3] is not None:
        sizes = [int(one) for one in inputs[3].tolist()]
        scales = [new / old for new, old in zip(sizes, value.shape, strict=True)]
    else:
        scales = [float(one) for one in inputs[2].tolist()]
        sizes = [math.floor(old * scale) for old, scale in zip(value.shape, scales, strict=True)]
    for axis, (size, scale) in enumerate(zip(sizes, scales, strict=True)):
        if size != value.shape[axis] or scale != 1:
            value = _resize_axis(value, axis, size, scale, attributes)
    return value


def _resize_axis(value: Any, axis: int, size: int, scale: float, attributes: Attributes) -> Any:
    old = value.shape[axis]
    places = _source_places(old, size, scale, attributes)
    if attributes.get("mode", "nearest") == "nearest":
        rounding = {
            "round_prefer_floor": lambda one: torch.ceil(one - 0.5),
            "round_prefer_ceil": lambda one: torch.floor(one + 0.5),
            "floor": torch.floor,
            "ceil": torch.ceil,
        }[attributes.get("nearest_mode", "round_prefer_floor")]
        return value.index_select(axis, rounding(places).long().clamp(0, old - 1))
    low = torch.floor(places)
    share = (places - low).to(value.dtype).reshape([-1, *[1] * (value.dim() - axis - 1)])
    first = value.index_select(axis, low.long().clamp(0, old - 1))
    second = value.index_select(axis, (low.long() + 1).clamp(0, old - 1))
    return first * (1 - share) + second * share


def _source_places(old: int, size: int, scale: float, attributes: Attributes) -> Any:
    places = torch.arange(size, dtype=torch.float64)
    how = attributes.get("coordinate_transformation_mode", "half_pixel")
    if how == "asymmetric":
        return places / scale
    if how == "align_corners":
        return places * ((old - 1) / (size - 1) if size > 1 else 0.0)
    if how == "half_pixel" or (how == "pytorch_half_pixel" and size > 1):
        return (places + 0.5) / scale - 0.5
    if how == "pytorch_half_pixel":
        return places * 0
    raise UsageError(f"gradients are not known for Resize with coordinates {how!r}")


LAYERS: Mapping[str, Callable[..., Any]] = {
    "Conv": _convolution,
    "ConvInteger": _integer_convolution,
    "ConvTranspose": _transposed_convolution,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global(lambda value, axes: value.mean(axes, True)),
    "GlobalMaxPool": _global(lambda value, axes: value.amax(axes, True)),
    "BatchNormalization": _batch_normalisation,
    "LayerNormalization": _layer_normalisation,
    "InstanceNormalization": _instance_normalisation,
    "Resize": _resize,
}

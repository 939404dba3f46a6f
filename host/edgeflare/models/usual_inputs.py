"""The usual ways for images to enter a model: scalings, colours, sizes, layouts, orientations."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgeflare.models.image_input import InputOptions
from edgeflare_agent.image_spec import LAYOUTS, ORIENTATIONS, QUARTER_TURNS, RESIZES, InputSpec
from edgeflare_agent.preprocess import dequantize, prepare

_SCALED_BY_255 = (1.0, 255.0)
_SAME = 0.01
"""Two scalings count as one where they differ by at most this share of the range."""
_DEFAULTS = {"color": "RGB", "orientation": "upright"}


Scaling: TypeAlias = tuple[tuple[float, float], tuple[float, ...], tuple[float, ...]]
"""Scale, mean and std of `InputSpec`: levels of pixels become (level * scale - mean) / std."""
USUAL_SCALINGS: tuple[Scaling, ...] = (
    (_SCALED_BY_255, (0.0,), (1.0,)),
    ((1.0, 1.0), (127.5,), (127.5,)),
    (_SCALED_BY_255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ((1.0, 1.0), (0.0,), (1.0,)),
    ((1.0, 1.0), (127.0,), (128.0,)),
    ((1.0, 1.0), (123.68, 116.779, 103.939), (1.0,)),
    (_SCALED_BY_255, (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)),
    (
        _SCALED_BY_255,
        (0.48145466, 0.4578275, 0.40821073),
        (0.26862954, 0.26130258, 0.27577711),
    ),
    (_SCALED_BY_255, (0.1307,), (0.3081,)),
    ((1.0, 1.0), (128.0,), (1.0,)),
    ((1.0, 128.0), (0.0,), (1.0,)),
    ((1.0, 1.0), (255.0,), (-255.0,)),
)
"""Scalings that are tried, the most usual first; those of three channels are in the order of RGB."""


def stated_options(spec: InputSpec) -> dict[str, str]:
    """Return the options of `--input` that state this, all that isn't in every file."""
    numerator, denominator = spec.scale
    numbers = {
        name: ",".join(f"{one:.9g}" for one in values)
        for name, values, nothing in (("mean", spec.mean, 0.0), ("std", spec.std, 1.0))
        if any(one != nothing for one in values)
    }
    scale = f"{numerator:.9g}" if denominator == 1 else f"{numerator:.9g}/{denominator:.9g}"
    found = {"scale": scale} if spec.scale != (1.0, 1.0) or not numbers else {}
    found |= numbers
    if spec.color == "BGR":
        found["color"] = spec.color
    if _is_flat(spec):
        found["layout"] = spec.layout
    if spec.resize is not None:
        found["resize"] = spec.resize
    if spec.orientation != "upright":
        found["orientation"] = spec.orientation
    if spec.clip is not None:
        found["clip"] = ",".join(f"{one:.9g}" for one in spec.clip)
    return found


def values_of(spec: InputSpec) -> InputOptions:
    """Return the options that state a way's values: scaling and colour order."""
    stated = stated_options(spec)
    values: dict[str, Any] = {
        name: tuple(map(float, stated[name].split(","))) if name != "scale" else stated[name]
        for name in ("scale", "mean", "std")
        if name in stated
    }
    return InputOptions.model_validate({**values, "color": spec.color})


def values_text(options: InputOptions) -> str:
    """Return the options that state a way's values, such as "scale=1, color=BGR"; RGB goes without saying."""
    return options.shown() + ", color=BGR" * (options.color == "BGR")


def changed_options(
    before: InputSpec, after: InputSpec
) -> dict[str, tuple[str | None, str | None]]:
    """Return the options of `--input` that differ, each as it was and as it is; None: not stated."""
    was, now = _DEFAULTS | stated_options(before), _DEFAULTS | stated_options(after)
    return {
        name: (was.get(name), now.get(name)) for name in was | now if was.get(name) != now.get(name)
    }


def mistakes(spec: InputSpec, other: InputSpec) -> Mapping[str, InputSpec]:
    """Return a model's preprocessing with each of the usual mistakes corrected, by the mistake's code.

    `other`: the other model's, whose scaling may be the right one.
    """
    numerator, denominator = spec.scale
    corrected = {
        "color": spec._replace(color={"RGB": "BGR", "BGR": "RGB"}.get(spec.color, spec.color)),
        "scaling": spec._replace(scale=other.scale, mean=other.mean, std=other.std),
        "divided": spec._replace(scale=(numerator * 255, denominator)),
        "not-divided": spec._replace(scale=(numerator, denominator * 255)),
    }
    return {code: changed for code, changed in corrected.items() if changed != spec}


def usual_ways(
    spec: InputSpec, other: InputSpec, sample_size: tuple[int, int], *, placed: bool = True
) -> list[InputSpec]:
    """Return ways for images of a size (height, width) to enter the model that `spec` is for.

    They have the usual scalings, that of the `other` model and both colour orders, or the usual
    mistakes corrected, placed as `spec` says; then all placements (orientations, resize rules where sizes differ, layouts where the
    shape doesn't tell them), scaled and coloured as `spec` says; not `placed`: no others than its.
    """
    colors = ("RGB", "BGR") if spec.channels == 3 else (spec.color,)
    scaled = [one for color in colors for one in _scalings(spec, other, color)]
    for corrected in mistakes(spec, other).values():
        levels = _levels(corrected)
        if not any(one.color == corrected.color and _alike(levels, _levels(one)) for one in scaled):
            scaled.append(corrected)
    square = spec.size[0] == spec.size[1]
    if not placed:
        return scaled
    turns = [one for one in ORIENTATIONS if square or one not in QUARTER_TURNS]
    rules = RESIZES if sample_size != spec.upright_size else (spec.resize,)
    layouts = LAYOUTS if _is_flat(spec) else (spec.layout,)
    ways = [
        spec._replace(orientation=turn, resize=rule, layout=layout)
        for turn, rule, layout in product(turns, rules, layouts)
    ]
    return list(dict.fromkeys([*scaled, *ways]))


def _scalings(spec: InputSpec, other: InputSpec, color: str) -> Iterator[InputSpec]:
    """Yield a model's preprocessing in one colour order with its own, the other's and usual scalings.

    Those of three channels keep each channel's numbers, in either order.
    """
    own = [((one.scale, one.mean, one.std), one.color) for one in (spec, other)]
    seen: list[NDArray[np.float64]] = []
    for (scale, mean, std), order in [*own, *((one, "RGB") for one in USUAL_SCALINGS)]:
        if max(len(mean), len(std)) > spec.channels:
            continue
        turned = -1 if (order == "BGR") != (color == "BGR") else 1
        made = spec._replace(color=color, scale=scale, mean=mean[::turned], std=std[::turned])
        levels = _levels(made)
        if not any(_alike(levels, one) for one in seen):
            seen.append(levels)
            yield made


def _levels(spec: InputSpec) -> NDArray[np.float64]:
    """Return the real value of every level, [256, channels], in the order of the input's channels."""
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], spec.channels, axis=2)
    plain = spec._replace(
        shape=(256, spec.channels), size=(1, 256), layout="HWC", resize=None, orientation="upright"
    )
    return dequantize(prepare(ramp, plain), spec.quantization)


def _alike(first: NDArray[np.float64], second: NDArray[np.float64]) -> bool:
    return float(np.abs(first - second).max()) <= _SAME * float(np.ptp(second))


def _is_flat(spec: InputSpec) -> bool:
    """Whether the shape doesn't tell the layout."""
    return spec.channels == 3 and len(spec.shape) < 4

"""Input options of a model, and the full input spec that follows from them and the file."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import Field, field_validator

from edgeflare._internal.text import OTHER_INPUTS, shape_text
from edgeflare.errors import ModelError, UsageError
from edgeflare.models.audio_input import AudioOptions, merged, resolve_audio
from edgeflare.words import inputs as words
from edgeflare_agent.audio_spec import Spec
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import InputSpec, TensorInfo, upright_size

METADATA_KEY = "edgeflare.input"
_RANGES = {(0, 255): (1, 1), (0, 1): (1, 255)}  # real range of an integer input -> pixel scale
_NEARLY = 0.02
"""Two scalings of pixels count as the same where they differ by at most this share of the range."""


class UnknownScalingError(UsageError):
    """Nothing tells how pixels enter a model."""


Pixels: TypeAlias = Annotated[int, Field(ge=1, le=16384)]
"""One side of an image."""


Orientation: TypeAlias = Literal[
    "upright",
    "rotate-90",
    "rotate-180",
    "rotate-270",
    "mirror",
    "flip",
    "transpose",
    "transverse",
]
"""How an image is turned, as `edgeflare_agent.image_spec.InputSpec` says."""


class InputOptions(AudioOptions):
    """Input options that the user states where the file does not. All may be left out.

    For an image: value = (pixel * scale - mean) / std for pixels 0..255, then no less and no more
    than `clip` says. `size` is (height, width), for open axes. `resize` converts samples of another size to the model's own, and `orientation`
    turns them, where the model runs (`edgeflare_agent.preprocess`).
    """

    layout: Literal["HWC", "CHW"] | None = None
    color: Literal["RGB", "BGR", "GRAY"] | None = None
    size: tuple[Pixels, Pixels] | None = None
    resize: Literal["nearest", "bilinear", "bilinear-antialias", "area"] | None = None
    orientation: Orientation | None = None
    clip: tuple[float, float] | None = None

    @field_validator("clip", mode="before")
    @classmethod
    def _check_clip(cls, value: Any) -> Any:
        if isinstance(value, int | float):
            raise ValueError(f"two numbers are needed, such as clip=-1,1, not {value}")  # noqa: TRY004
        return value

    @property
    def is_image(self) -> bool:
        """Whether an option is stated that only images have."""
        return any(getattr(self, name) is not None for name in _IMAGE_FIELDS)


VALUE_FIELDS = ("color", "scale", "mean", "std", "orientation", "clip")
"""What of a spec decides which values a model gets of an image."""
_IMAGE_FIELDS = ("layout", "color", "size", "resize", "orientation", "clip")


def options_in_file(metadata: Mapping[str, str], path: str) -> InputOptions:
    """Return the options in the model file's metadata ``edgeflare.input`` (JSON)."""
    if METADATA_KEY not in metadata:
        return InputOptions()
    try:
        return InputOptions.model_validate(json.loads(metadata[METADATA_KEY]))
    except (ValueError, RecursionError) as error:
        raise ModelError(
            f"{path}: its metadata {METADATA_KEY!r} is no input description"
        ) from error


def scaling_of_range(tensor: TensorInfo) -> InputOptions:
    """Return the pixel scaling that an integer input's quantisation implies, if it implies one.

    As `scaling_between` says.
    """
    if tensor.quantization is None:
        return InputOptions()
    return scaling_between(*_real_range(tensor), 1.5 * tensor.quantization[0])


def scaling_between(low: float, high: float, near: float) -> InputOptions:
    """Return the pixel scaling that fills a range of real values, each end but for `near`; nothing: none.

    [0, 1] means pixels / 255, [0, 255] means raw pixels, [-1, 1] means pixels / 127.5 - 1. Any other
    range implies none.
    """
    for (real_low, real_high), (numerator, denominator) in _RANGES.items():
        if abs(low - real_low) < near and abs(high - real_high) < near:
            return InputOptions(scale=f"{numerator}/{denominator}")
    if abs(low + 1) < near and abs(high - 1) < near:
        return InputOptions(mean=(127.5,), std=(127.5,))
    return InputOptions()


def contradiction(
    tensor: TensorInfo, stated: InputOptions, in_file: InputOptions, whose: str
) -> str:
    """Return a sentence on how the stated pixel scaling contradicts the model's own file, else "".

    `in_file` is what the metadata state, which wins over the quantisation of an integer input.
    Slight differences, and a quantised range of which the pixels use at least half and leave no
    more than half, are no contradiction.
    """
    if not stated.has_scaling or stated.is_audio or in_file.is_audio:
        return ""
    of_file = in_file if in_file.has_scaling else scaling_of_range(tensor)
    ranges = stated.pixel_range()
    if of_file.has_scaling:
        other = of_file.pixel_range()
        if np.allclose(ranges, other, rtol=0, atol=_NEARLY * np.ptp(other)):
            return ""
        where = "metadata" if in_file.has_scaling else "quantisation"
        says = words.FILE_SAYS[where].format(of_file.shown())
    elif tensor.quantization is not None:
        low, high = _real_range(tensor)
        ends = np.sort(ranges, axis=1)
        shared = np.clip(np.minimum(ends[:, 1], high) - np.maximum(ends[:, 0], low), 0, None)
        if (2 * shared >= np.ptp(ends, axis=1)).all() and 2 * shared.max() >= high - low:
            return ""
        says = words.QUANTISED_FOR.format(low, high)
    else:
        return ""
    return words.CONTRADICTS.format(stated.shown(), whose, np.min(ranges), np.max(ranges), says)


def known_of(own: InputOptions, stated: InputOptions, other: InputOptions) -> InputOptions:
    """Return the options of one model but for those that the user states for it: those of its file.

    Where its file does not have them, the front end of audio or the scaling of pixels are those
    `stated` for the other model, or else those of the `other` model's file, since both were made
    for the same inputs.
    """
    if own.is_audio:
        return own
    if stated.is_audio or (other.is_audio and not stated.is_image):
        return InputOptions.model_validate(merged(stated, other))
    if own.has_scaling:
        return own
    scaling = stated if stated.has_scaling else other
    return own.model_copy(update={"scale": scaling.scale, "mean": scaling.mean, "std": scaling.std})


def resolve_input(
    tensor: TensorInfo, stated: InputOptions, guessed: InputOptions, whose: str
) -> Spec:
    """Return the full spec of a model's input.

    `stated` has precedence over `guessed` (from the files); shape, dtype and quantisation are the
    file's own. Raises UsageError, with the name of the option, where neither has it, and where
    options are inconsistent or do not fit the input's shape.
    """
    if stated.is_audio or (guessed.is_audio and not stated.is_image):
        return resolve_audio(tensor, stated, guessed, whose)
    scaling = stated if stated.has_scaling else guessed
    if not scaling.has_scaling:
        raise UnknownScalingError(
            f"the file of {whose} does not tell how pixels are scaled; state it, for example "
            "`--input scale=1/255`, `--input scale=1` for raw pixels, or "
            "`--input mean=127 --input std=128`" + _or_audio(tensor)
        )
    if len(tensor.shape) > 1 and tensor.shape[0] not in (None, 1):
        raise ModelError(
            f"{whose} takes {tensor.shape[0]} inputs at a time ({shape_text(tensor.shape)}); "
            "EdgeFlare asks about one: export it with a batch size of 1, or with the batch axis "
            "open"
        )
    layout = stated.layout or guessed.layout or image_layout(tensor, whose)
    size, channels = _size(tensor, layout, stated.size or guessed.size, whose)
    scale, mean, std = scaling.factors
    spec = InputSpec(
        shape=_filled(tensor, layout, size),
        dtype=tensor.dtype,
        size=size,
        channels=channels,
        layout=layout,
        color=stated.color or guessed.color or ("RGB" if channels == 3 else "GRAY"),
        scale=scale,
        mean=mean,
        std=std,
        resize=stated.resize or guessed.resize,
        quantization=tensor.quantization,
        orientation=stated.orientation or guessed.orientation or "upright",
        clip=stated.clip or guessed.clip,
    )
    try:
        spec.validate()
    except RequestError as error:
        raise UsageError(f"{whose}: {error}") from error
    return spec


def sample_size(
    tensor: TensorInfo, stated: InputOptions, guessed: InputOptions, whose: str
) -> tuple[tuple[int, int], int]:
    """Return ((height, width), channels) of the images for a model, before they are turned.

    Raises UsageError if unknown.
    """
    layout = stated.layout or guessed.layout or image_layout(tensor, whose)
    size, channels = _size(tensor, layout, stated.size or guessed.size, whose)
    return upright_size(size, stated.orientation or guessed.orientation or "upright"), channels


def _real_range(tensor: TensorInfo) -> tuple[float, float]:
    """Return the lowest and the highest real value of a quantised tensor."""
    scale, zero_point = tensor.quantization or (1.0, 0)
    limits = np.iinfo(np.dtype(tensor.dtype))
    return scale * (int(limits.min) - zero_point), scale * (int(limits.max) - zero_point)


def image_layout(tensor: TensorInfo, whose: str) -> str:
    """Return "HWC" or "CHW", as an input's shape tells. Raises UsageError where it does not."""
    inner = tensor.shape[1:]
    if len(inner) < 3:
        return "HWC"
    first, last = inner[-3] in (1, 3), inner[-1] in (1, 3)
    if first == last:
        raise UsageError(
            f"input {tensor.name!r} of {whose} has shape {shape_text(tensor.shape)}, which does "
            "not tell where the channels are; state `--input layout=HWC` or `--input layout=CHW`"
            + _or_audio(tensor)
        )
    return "CHW" if first else "HWC"


def _size(
    tensor: TensorInfo, layout: str, stated: tuple[int, int] | None, whose: str
) -> tuple[tuple[int, int], int]:
    inner = tensor.shape[1:]
    if len(inner) >= 3:
        height, width, channels = inner[-3:] if layout == "HWC" else (*inner[-2:], inner[-3])
        axes = (height or (stated or (None, None))[0], width or (stated or (None, None))[1])
        if stated and axes != stated:
            raise UsageError(
                f"size={stated[0]},{stated[1]} is stated for {whose}, but its input "
                f"{tensor.name!r} has shape {shape_text(tensor.shape)}"
            )
        if axes[0] and axes[1] and channels in (1, 3):
            return (axes[0], axes[1]), channels
    elif len(inner) == 2 and inner[0] and inner[1]:
        return (inner[0], inner[1]), 1
    elif len(inner) == 1 and inner[0]:
        if stated and inner[0] in (stated[0] * stated[1], 3 * stated[0] * stated[1]):
            return stated, inner[0] // (stated[0] * stated[1])
        side = round(inner[0] ** 0.5)
        if not stated and side * side == inner[0]:
            return (side, side), 1
    raise UsageError(
        f"input {tensor.name!r} of {whose} has shape {shape_text(tensor.shape)}, from which no "
        "image size with 1 or 3 channels follows; state it as height,width, for example `--input size=224,320`, or "
        "the layout" + _or_audio(tensor) + f" ({OTHER_INPUTS})"
    )


def _filled(tensor: TensorInfo, layout: str, size: tuple[int, int]) -> tuple[int, ...]:
    shape = [1 if axis == 0 or n is None else n for axis, n in enumerate(tensor.shape)]
    if len(shape) >= 4:
        first = len(shape) - (3 if layout == "HWC" else 2)
        shape[first : first + 2] = size
    return tuple(shape)


def _or_audio(tensor: TensorInfo) -> str:
    """Return advice for an audio model; "" for a tensor with three channels."""
    has_colours = len(tensor.shape) > 3 and 3 in (tensor.shape[-1], tensor.shape[-3])
    return "" if has_colours else words.AUDIO_IS_STATED

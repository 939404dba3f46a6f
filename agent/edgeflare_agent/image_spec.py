"""How a raw sample becomes a model's input tensor: a declarative description, sent as JSON."""

import math
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from edgeflare_agent.errors import RequestError

LAYOUTS = ("HWC", "CHW")
COLORS = ("RGB", "BGR", "GRAY")
ORIENTATIONS = (
    "upright",
    "rotate-90",
    "rotate-180",
    "rotate-270",
    "mirror",
    "flip",
    "transpose",
    "transverse",
)
"""The eight ways to turn an image; `InputSpec` tells what each does."""
QUARTER_TURNS = ("rotate-90", "rotate-270", "transpose", "transverse")
"""Those that swap height and width."""
RESIZES = ("nearest", "bilinear", "bilinear-antialias", "area")
MOST_PIXELS = 100_000_000
"""Pixels of the largest image, be it a file's or a model's input."""
DTYPES = (
    *("float16", "float32", "float64"),
    *("int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64"),
)


class TensorInfo(NamedTuple):
    """A model input or output as its file describes it.

    `shape` holds None where the file leaves an axis open. `quantization` is (scale, zero point)
    with real = scale * (stored - zero point), or None for a tensor of real numbers.
    """

    name: str
    shape: Tuple[Optional[int], ...]
    dtype: str
    quantization: Optional[Tuple[float, int]] = None

    @property
    def values(self) -> Optional[int]:
        """How many values it has for one sample; None: the file leaves it open.

        An open first axis of several is the batch, which has one sample; an axis of 0 is open, too. A
        shape without axes may be one that the file doesn't tell.
        """
        shape = self.shape
        known = (1, *shape[1:]) if len(shape) > 1 and not shape[0] else shape
        count = 1
        for size in known:
            count *= size or 0
        return count or None if known else None

    def to_json(self) -> Dict[str, Any]:
        """Return a JSON object."""
        return {
            "name": self.name,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "quantization": list(self.quantization) if self.quantization else None,
        }

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> "TensorInfo":
        """Return what `to_json` described."""
        quantization = data["quantization"]
        return cls(
            str(data["name"]),
            tuple(None if n is None else int(n) for n in data["shape"]),
            str(data["dtype"]),
            (float(quantization[0]), int(quantization[1])) if quantization else None,
        )


def is_batch_open(inputs: Sequence[TensorInfo]) -> bool:
    """Whether an open first axis is the batch, of outputs, too; else a model takes one sample alone."""
    return any(not all(one.shape[:1]) for one in inputs)


class InputSpec(NamedTuple):
    """Everything that is done to a sample, in this order.

    1. `resize` to `size` (height, width) where the sample has another; None: it must have that
       size. Where `orientation` is a quarter turn, height and width are swapped for this.
       `orientation`: "rotate-90" turns the image clockwise, "mirror" swaps left and right, "flip"
       swaps top and bottom, "transpose" swaps rows and columns, "transverse" is that of an image
       turned by 180 degrees.
    2. colour order: samples are RGB or grey; `color` "BGR" swaps the channels.
    3. value = (pixel * scale[0] / scale[1] - mean) / std, in float32, one rounding a step; `mean`
       and `std` have one entry, or one a channel, in the units that `scale` leaves.
       (1, 255) is "/ 255". `clip`: values beyond (least, largest) become these.
    4. `layout`: "HWC" keeps the axes, "CHW" moves the channels to the front.
    5. reshape to `shape` (batch axis of 1 included), so that flat and five-axis inputs work too.
    6. `quantization` (scale, zero point) of an integer `dtype`: round half to even, add, clip.
    """

    shape: Tuple[int, ...]
    dtype: str
    size: Tuple[int, int]
    channels: int
    layout: str = "HWC"
    color: str = "RGB"
    scale: Tuple[float, float] = (1.0, 1.0)
    mean: Tuple[float, ...] = (0.0,)
    std: Tuple[float, ...] = (1.0,)
    resize: Optional[str] = None
    quantization: Optional[Tuple[float, int]] = None
    orientation: str = "upright"
    clip: Optional[Tuple[float, float]] = None

    def to_json(self) -> Dict[str, Any]:
        """Return a JSON object; without the orientation and the clip of images that have none."""
        return {
            field: list(value) if isinstance(value, tuple) else value
            for field, value in zip(self._fields, self)
            if (field, value) not in (("orientation", "upright"), ("clip", None))
        }

    @property
    def upright_size(self) -> Tuple[int, int]:
        """(height, width) before the image is turned."""
        return upright_size(self.size, self.orientation)

    @classmethod
    def from_json(cls, data: Dict[str, Any]) -> "InputSpec":
        """Return what `to_json` described. Raises RequestError for anything else."""
        try:
            spec = cls(
                shape=tuple(int(n) for n in data["shape"]),
                size=(int(data["size"][0]), int(data["size"][1])),
                channels=int(data["channels"]),
                layout=str(data["layout"]),
                color=str(data["color"]),
                resize=data["resize"],
                orientation=str(data.get("orientation", "upright")),
                clip=_ends(data.get("clip")),
                **values_from_json(data),
            )
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise RequestError("not an input spec: {!r}".format(error)) from error
        spec.validate()
        return spec

    def validate(self) -> None:
        """Raise RequestError, naming the field, unless the spec makes sense in itself."""
        count = 1
        for n in self.shape:
            count *= n
        problems = (
            (min(self.shape + self.size) < 1, "shape and size must be positive"),
            (
                self.size[0] * self.size[1] > MOST_PIXELS,
                "{} x {} pixels are too many, at most {} can be used".format(
                    *self.size, MOST_PIXELS
                ),
            ),
            (self.layout not in LAYOUTS, "layout must be one of " + ", ".join(LAYOUTS)),
            (self.color not in COLORS, "color must be one of " + ", ".join(COLORS)),
            (
                self.resize is not None and self.resize not in RESIZES,
                "resize must be one of " + ", ".join(RESIZES),
            ),
            (
                self.orientation not in ORIENTATIONS,
                "orientation must be one of " + ", ".join(ORIENTATIONS),
            ),
            (self.channels not in (1, 3), "channels must be 1 or 3"),
            (self.color == "BGR" and self.channels != 3, "color BGR needs 3 channels"),
            (self.color == "GRAY" and self.channels != 1, "color GRAY needs 1 channel"),
            (
                count != self.size[0] * self.size[1] * self.channels,
                "{} values of a {} x {} x {} sample don't fill shape {}".format(
                    self.size[0] * self.size[1] * self.channels,
                    self.size[0],
                    self.size[1],
                    self.channels,
                    list(self.shape),
                ),
            ),
            (len(self.mean) not in (1, self.channels), "mean needs one entry, or one a channel"),
            (len(self.std) not in (1, self.channels), "std needs one entry, or one a channel"),
            (
                self.clip is not None and not -math.inf < self.clip[0] < self.clip[1] < math.inf,
                "clip needs two finite numbers, the smaller one first",
            ),
            *value_problems(self),
        )
        for wrong, sentence in problems:
            if wrong:
                raise RequestError("input spec: " + sentence)


def _ends(clip: Any) -> Optional[Tuple[float, float]]:
    return None if clip is None else (float(clip[0]), float(clip[1]))


def upright_size(size: Tuple[int, int], orientation: str) -> Tuple[int, int]:
    """Return the (height, width) of an image that has `size` once it is turned."""
    return (size[1], size[0]) if orientation in QUARTER_TURNS else size


def values_from_json(data: Dict[str, Any]) -> Dict[str, Any]:
    """Return dtype, scale, mean, std and quantization of a spec's JSON, of images or audio."""
    quantization = data["quantization"]
    return {
        "dtype": str(data["dtype"]),
        "scale": (float(data["scale"][0]), float(data["scale"][1])),
        "mean": tuple(float(x) for x in data["mean"]),
        "std": tuple(float(x) for x in data["std"]),
        "quantization": (float(quantization[0]), int(quantization[1])) if quantization else None,
    }


def value_problems(spec: Any) -> Tuple[Tuple[bool, str], ...]:
    """Return (whether it is wrong, what must be) of a spec's values, be they pixels or audio."""
    real_numbers = spec.scale + spec.mean + spec.std + (spec.quantization or ())
    return (
        (spec.dtype not in DTYPES, "dtype must be one of " + ", ".join(DTYPES)),
        (0.0 in spec.std or 0.0 in spec.scale, "std and scale must not be zero"),
        (
            not all(math.isfinite(number) for number in real_numbers),
            "scale, mean, std and quantization must be finite",
        ),
        (
            spec.quantization is not None
            and (spec.quantization[0] <= 0 or spec.dtype.startswith("float")),
            "quantization needs a positive scale and an integer dtype",
        ),
    )

"""Families of images: light, weather, noise, blur, storage, geometry, occlusion, mixing, extremes.

The severities reach farther than the ranges of a search's operators: the original's margin decides
which inputs are kept, so that a severity may be one at which many images are no longer recognised.

All arithmetic is one IEEE operation on single values, rounded half to even and clipped to [0, 255],
so that the bits don't depend on the CPU.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import edgeflare_mutators as mutators
from edgeflare.survey.family import (
    PARTNERS,
    CorruptionFamily,
    Family,
    Group,
    either,
    partner_of,
    within,
)
from edgeflare.types import Sample
from edgeflare.words.inputs import family_words
from edgeflare_mutators import SEED, Corruption, Params, portable_normal

_Values: TypeAlias = NDArray[np.float64]
_BLACK_OR_WHITE = (0, 255)
_PIXELS = {
    "natural-blur": 0.35,
    "defocus-blur": 0.55,
    "glass-blur": 0.3,
    "motion-blur": 0.5,
    "pixelate": 0.2,
}
"""Lengths that are added, in pixels, so that small images change at severity 1 as well."""
_SIDES = ("left", "right", "top", "bottom")


def image_families(*, grey: bool = False) -> tuple[Family, ...]:
    """Return the families of images in their groups' order; of `grey` ones those without colour."""
    corruptions: tuple[tuple[str, Group, Corruption], ...] = (
        ("dim", "light", mutators.Brightness(by=(-0.92, -0.35))),
        ("bright", "light", mutators.Brightness(by=(0.0, 3.0))),
        ("contrast", "light", mutators.Contrast(by=(-0.92, 0.0))),
        ("saturation", "light", mutators.Saturation(by=(-1.0, 3.0))),
        ("haze", "weather", mutators.Haze(density=(0.0, 0.8))),
        ("snow", "weather", mutators.Snow()),
        ("spatter", "weather", mutators.Spatter()),
        ("shot-noise", "noise", mutators.ShotNoise()),
        ("impulse-noise", "noise", mutators.ImpulseNoise()),
        ("natural-blur", "blur", mutators.NaturalBlur(sigma=(0.0, 0.03))),
        ("defocus-blur", "blur", mutators.DefocusBlur(radius=(0.0, 0.035))),
        ("glass-blur", "blur", mutators.GlassBlur(distance=(0.0, 0.03))),
        ("motion-blur", "blur", mutators.MotionBlur(length=(0.0, 0.15))),
        ("zoom-blur", "blur", mutators.ZoomBlur(zoom=(0.0, 0.25))),
        ("jpeg", "storage", mutators.Jpeg()),
        ("pixelate", "storage", mutators.Pixelate(block=(0.0, 0.015))),
        ("rotation", "geometry", mutators.Rotation(degrees=(-45.0, 45.0))),
        ("scale", "geometry", mutators.Scale(by=(-0.5, 0.6))),
        ("shift", "geometry", mutators.Shift(x=(-0.25, 0.25), y=(-0.25, 0.25))),
        ("crop", "geometry", mutators.Crop(share=(0.0, 0.4))),
        ("elastic", "geometry", mutators.Elastic(distance=(0.0, 0.1))),
    )
    families = (
        Gain(),
        *(CorruptionFamily(*row, pixels=_PIXELS.get(row[0], 0.0)) for row in corruptions),
        Noise(),
        GainNoise(),
        Patch(),
        Edge(),
        Frame(),
        Mix(),
        Clipping(),
        Channel(grey=grey),
        Swap(),
    )
    order = list(dict.fromkeys(family.group for family in families))
    kept = (one for one in families if not (grey and one.name in _OF_COLOUR))
    return tuple(sorted(kept, key=lambda family: order.index(family.group)))


_OF_COLOUR = ("saturation", "swap")


class ImageFamily(Family):
    """A family of images that states how its values change."""

    def apply(
        self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample] = ()
    ) -> Sample:
        """Return the changed image."""
        del partners
        return _levels(self._change(seed.astype(np.float64), params))

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        """Return the values to be rounded and clipped; `values`, [height, width, channels], may be
        written to."""
        raise NotImplementedError


class Gain(ImageFamily):
    """Add an offset of up to 100 levels, then multiply by a gain of up to 3.5 or down to 1/7."""

    name = "gain"
    group: Group = "light"
    neutral = (("gain", 1.0), ("offset", 0.0))

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return gain and offset, in levels, both of this severity, each up or down."""
        brighter = either(rng, False, True)
        far = within(rng, severity, 1.0)
        return {
            "gain": 1 + 2.5 * far if brighter else 1 / (1 + 6 * far),
            "offset": either(rng, -1, 1) * within(rng, severity, 100.0),
        }

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        return (values + float(params["offset"])) * float(params["gain"])


class Noise(ImageFamily):
    """Add normal noise of up to 70 levels to each value."""

    name = "noise"
    group: Group = "noise"
    neutral = (("sigma", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the standard deviation `sigma`, in levels, and the seed of the noise."""
        return {"sigma": within(rng, severity, 70.0), "seed": int(SEED.draw(rng))}

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        return values + _noise(values, params)


class GainNoise(ImageFamily):
    """Add noise of up to 35 levels, then change offset and gain as the family `gain` does."""

    name = "gain-noise"
    group: Group = "noise"
    neutral = (("gain", 1.0), ("offset", 0.0), ("sigma", 0.0))

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return `gain`, `offset`, `sigma` and the seed of the noise."""
        return {
            **Gain()._draw(rng, severity),
            "sigma": within(rng, severity, 35.0),
            "seed": int(SEED.draw(rng)),
        }

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        return Gain()._change(values + _noise(values, params), params)


class Patch(ImageFamily):
    """Cover a square, of up to half the shorter side, in black or white: often in a corner."""

    name = "patch"
    group: Group = "occlusion"
    neutral = (("side", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return `side`, a share of the shorter side, `level`, and where: 0 to 1 right and down."""
        return {
            "side": within(rng, severity, 0.5, 0.05),
            "x": _place(rng),
            "y": _place(rng),
            "level": either(rng, *_BLACK_OR_WHITE),
        }

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        height, width, _ = values.shape
        side = max(1, round(params["side"] * min(height, width)))
        top, left = round(params["y"] * (height - side)), round(params["x"] * (width - side))
        values[top : top + side, left : left + side] = params["level"]
        return values


class Edge(ImageFamily):
    """Cover a band along one edge, of one pixel to a third of the image, in black or white."""

    name = "edge"
    group: Group = "occlusion"
    neutral = (("width", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `side`, the band's `width` as a share of the image, and its `level`."""
        return {
            "side": either(rng, *_SIDES),
            "width": within(rng, severity, 0.34),
            "level": either(rng, *_BLACK_OR_WHITE),
        }

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        sideways = params["side"] in ("left", "right")
        length = values.shape[1 if sideways else 0]
        count = max(1, round(params["width"] * length))
        band = slice(count) if params["side"] in ("left", "top") else slice(length - count, None)
        values[(slice(None), band) if sideways else band] = params["level"]
        return values


class Frame(ImageFamily):
    """Blank everything but a window: a frame of one level, up to a quarter of the image wide."""

    name = "frame"
    group: Group = "occlusion"
    neutral = (("width", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the frame's `width` at each side, a share of the image, and its `level`."""
        return {
            "width": within(rng, severity, 0.25),
            "level": int(rng.integers(0, 255, endpoint=True)),
        }

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        framed = np.full_like(values, params["level"])
        window = tuple(
            slice(width, side - width)
            for side in values.shape[:2]
            for width in [min(max(1, round(params["width"] * side)), (side - 1) // 2)]
        )
        framed[window] = values[window]
        return framed


class Mix(Family):
    """Mix the image with another input, of which it takes up to half."""

    name = "mix"
    group: Group = "mixing"
    neutral = (("share", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the other's `share` and the index of the `partner`."""
        return {
            "share": within(rng, severity, 0.5),
            "partner": int(rng.integers(PARTNERS)),
        }

    def apply(
        self, seed: Sample, params: Mapping[str, Any], partners: Sequence[Sample] = ()
    ) -> Sample:
        """Return the mixed image; a partner of another size is stretched to the seed's."""
        other = _fitted(partner_of(seed, params, partners), seed.shape)
        return _levels(seed * (1 - params["share"]) + other * params["share"])


class Clipping(ImageFamily):
    """Stretch the levels until up to 110 dark levels are black and as many bright ones white."""

    name = "clipping"
    group: Group = "extremes"
    neutral = (("black", 0.0), ("white", 255.0))

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the highest level that becomes `black` and the lowest that becomes `white`."""
        return {
            "black": within(rng, severity, 110.0),
            "white": 255 - within(rng, severity, 110.0),
        }

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        span = params["white"] - params["black"]
        return (values - float(params["black"])) * (255 / float(span))


class Channel(ImageFamily):
    """Move one channel towards 0 or 255, at severity 5 nearly all the way."""

    name = "channel"
    group: Group = "extremes"
    neutral = (("share", 0.0),)

    def __init__(self, *, grey: bool = False) -> None:
        self._grey = grey

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the `channel`'s index, the `level` and the `share` of the way there."""
        return {
            "channel": int(rng.integers(3)),
            "level": either(rng, *_BLACK_OR_WHITE),
            "share": within(rng, severity, 1.0),
        }

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        channel = values[..., params["channel"] % values.shape[2]]
        channel += (params["level"] - channel) * params["share"]
        return values

    def words(self, params: Mapping[str, Any]) -> str:
        """Return "channel red 80% towards 255", of a grey image "grey levels 80% towards 255"."""
        return family_words(self.name, {**params, "is_grey": self._grey})


class Swap(ImageFamily):
    """Exchange two channels: mixed mildly, exchanged at severity 5."""

    name = "swap"
    group: Group = "extremes"
    neutral = (("share", 0.0),)

    def _draw(self, rng: np.random.Generator, severity: int) -> Params:
        """Return the channel that `stays`, and the `share` of the exchange."""
        return {"stays": int(rng.integers(3)), "share": within(rng, severity, 1.0)}

    def _change(self, values: _Values, params: Mapping[str, Any]) -> _Values:
        first, second = (one for one in range(3) if one != params["stays"])
        order = [
            params["stays"] if one == params["stays"] else first + second - one for one in range(3)
        ]
        other = values[..., order]
        return values * (1 - float(params["share"])) + other * float(params["share"])


def _levels(values: _Values) -> Sample:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def _noise(values: _Values, params: Mapping[str, Any]) -> _Values:
    rng = np.random.Generator(np.random.PCG64(params["seed"]))
    noise: _Values = params["sigma"] * portable_normal(rng, values.shape)
    return noise


def _place(rng: np.random.Generator) -> float:
    """Return a place from 0 to 1; half of them are an end."""
    return float(either(rng, 0.0, 1.0, rng.random(), rng.random()))


def _fitted(image: Sample, shape: Iterable[int]) -> Sample:
    """Return the image at this size by its nearest pixels, in as many channels."""
    height, width, channels = shape
    rows = np.arange(height) * image.shape[0] // height
    columns = np.arange(width) * image.shape[1] // width
    fitted: Sample = image[rows][:, columns]
    if channels == 1 and image.shape[2] == 3:
        return fitted[..., 1:2]
    return np.broadcast_to(fitted, (height, width, channels))

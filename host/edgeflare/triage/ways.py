"""Ways for a sample to enter a model: the usual statements, and what goes wrong before a device's model.

A way is a spec, which `--input` can state, and further what no statement has: pixels that are taken
as something else, or integers that are stored unquantised.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from edgeflare.models import AudioSpec, InputSpec, Spec
from edgeflare.models.usual_inputs import changed_options, usual_ways
from edgeflare.types import Sample
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import TensorInfo
from edgeflare_agent.preprocess import RULES, prepare

_GREY = (0.299, 0.587, 0.114)
_PADDING = 114
"""The grey that letterboxes are filled with."""
_SIGNED = 128
"""How far the codes of uint8 and int8 are apart."""


AnySpec = TypeVar("AnySpec", InputSpec, AudioSpec)


@dataclass(frozen=True)
class Way:
    """How a sample enters a model.

    `picture` names what becomes of the image before, one of `PICTURES`; `codes` what an integer
    input is given in place of the quantised values, one of `CODES`. `factor`: the clip is multiplied
    with it.
    """

    spec: Spec
    picture: str = ""
    codes: str = ""
    factor: float = 1.0

    def tensor(self, sample: Sample, info: TensorInfo) -> NDArray[Any]:
        """Return what the input `info` is given. Raises RequestError for a sample that doesn't fit."""
        spec = self.spec
        if self.factor != 1:
            sample = sample * np.float32(self.factor)
        if self.picture:
            sample = PICTURES[self.picture](sample, cast("InputSpec", spec).upright_size)
        if not self.codes:
            return prepare(sample, spec)
        make = CODES[self.codes]
        limits = np.iinfo(info.dtype)
        plain = spec._replace(dtype="float32", quantization=None)
        if self.codes in _OF_PIXELS:
            plain = plain._replace(scale=(1.0, 1.0), mean=(0.0,), std=(1.0,))
        codes = make(prepare(sample, spec).astype(np.int64), prepare(sample, plain))
        rounded: NDArray[Any] = np.clip(np.rint(codes), limits.min, limits.max).astype(info.dtype)
        return rounded

    def options(self, stated: Spec) -> Mapping[str, str]:
        """Return what `--input` then states otherwise; empty where no statement has this way."""
        if self.picture or self.codes or self.factor != 1:
            return {}
        if type(self.spec) is not type(stated):
            return {}
        if isinstance(self.spec, AudioSpec):
            was, now = audio_options(cast("AudioSpec", stated)), audio_options(self.spec)
            return {name: value for name, value in now.items() if was.get(name) != value}
        changed = changed_options(cast("InputSpec", stated), self.spec)
        return {
            name: _UNCHANGED.get(name, "") if now is None else now
            for name, (_, now) in changed.items()
        }

    def change(self, stated: Spec) -> Mapping[str, str]:
        """Return the options, or by its name what no statement has: picture, codes or factor."""
        without = {"picture": self.picture, "codes": self.codes, "factor": f"{self.factor:g}"}
        is_plain = {"picture": "", "codes": "", "factor": "1"}
        return self.options(stated) or {
            name: value for name, value in without.items() if value != is_plain[name]
        }


_UNCHANGED = {"scale": "1", "mean": "0", "std": "1"}
"""Options that leave pixels as they are."""


def audio_options(spec: AudioSpec) -> dict[str, str]:
    """Return what `--input` states of a clip's values and spectrum."""
    fields = {} if spec.mel is None else spec.mel._asdict()
    fields |= {"peak": spec.peak or "none", "axes": spec.axes, "mean": spec.mean, "std": spec.std}
    texts = {
        name: ",".join(f"{entry:.9g}" for entry in value)
        if isinstance(value, tuple)
        else str(value)
        for name, value in fields.items()
        if value is not None
    }
    numerator, denominator = spec.scale
    return texts | {"scale": f"{numerator:.9g}/{denominator:.9g}"}


def _letterbox(image: Sample, size: tuple[int, int]) -> Sample:
    height, width = size
    share = min(height / image.shape[0], width / image.shape[1])
    inner = _shrunk(image, share)
    box = np.full((height, width, image.shape[2]), _PADDING, np.uint8)
    top, left = (height - inner.shape[0]) // 2, (width - inner.shape[1]) // 2
    box[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
    return box


def _centre(image: Sample, size: tuple[int, int]) -> Sample:
    height, width = size
    inner = _shrunk(image, max(height / image.shape[0], width / image.shape[1]))
    top, left = (inner.shape[0] - height) // 2, (inner.shape[1] - width) // 2
    return inner[max(0, top) :, max(0, left) :][:height, :width]


def _shrunk(image: Sample, share: float) -> Sample:
    size = max(1, round(image.shape[0] * share)), max(1, round(image.shape[1] * share))
    return image if image.shape[:2] == size else RULES["bilinear"](image, size)


def is_resized(image: Sample, sample: Sample, rule: str) -> bool:
    """Return whether a sample is what a rule of the input option `resize` makes of an image."""
    size = sample.shape[0], sample.shape[1]
    if image.shape[:2] == size:
        return bool((image == sample).all())
    return rule in RULES and bool(np.abs(RULES[rule](image, size) - sample.astype(int)).max() <= 1)


def _grey(image: Sample, size: tuple[int, int]) -> Sample:
    del size
    level = np.rint(image @ np.array(_GREY)).astype(np.uint8)
    return np.repeat(level[..., None], image.shape[2], axis=2)


def _grey_mean(image: Sample, size: tuple[int, int]) -> Sample:
    del size
    level = image.mean(axis=2, keepdims=True).astype(np.uint8)
    return np.repeat(level, image.shape[2], axis=2)


def _cropped(image: Sample, size: tuple[int, int]) -> Sample:
    top, left = (max(0, (have - need) // 2) for have, need in zip(image.shape, size, strict=False))
    return image[top : top + size[0], left : left + size[1]]


PICTURES: Mapping[str, Callable[[Sample, tuple[int, int]], Sample]] = {
    "grey": _grey,
    "grey-mean": _grey_mean,
    "inverted": lambda image, _: 255 - image,
    "planes-as-pixels": lambda image, _: image.transpose(2, 0, 1).reshape(image.shape),
    "pixels-as-planes": lambda image, _: image.reshape(image.shape[2], *image.shape[:2]).transpose(
        1, 2, 0
    ),
    "letterbox": _letterbox,
    "center-crop": _centre,
    "crop": _cropped,
}
"""What becomes of an image, for a model of this size, before all that a spec says."""
_OF_COLOURS = ("grey", "grey-mean", "planes-as-pixels", "pixels-as-planes")
_OF_SIZES = ("letterbox", "center-crop", "crop")
_MOST_COMBINED = 14


def _shifted(codes: NDArray[np.int64], real: NDArray[Any]) -> NDArray[np.int64]:
    del real
    return codes + _SIGNED - 2 * _SIGNED * (codes >= 0)


CODES: Mapping[str, Callable[[NDArray[np.int64], NDArray[Any]], NDArray[Any]]] = {
    "pixels": lambda _, pixels: pixels,
    "pixels-128": lambda _, pixels: pixels - _SIGNED,
    "values": lambda _, real: real,
    "shifted": _shifted,
}
"""What an integer input is given: pixels or values unquantised, or codes of the other signedness."""
_OF_PIXELS = ("pixels", "pixels-128")
"""Those that are made of samples before their scale, mean and deviation."""


def ways_of(
    spec: Spec,
    partner: Spec,
    sizes: Sequence[tuple[int, int]] = (),
    *,
    is_integer: bool = False,
    placed: bool = True,
) -> tuple[list[Way], Iterator[Way]]:
    """Return the single ways for samples to enter a model, the usual first, and the combined ones.

    `partner`: how they enter the other model. `sizes`: (height, width) of some samples.
    `is_integer`: the input stores integers. Not `placed`: images are neither turned nor resized.
    """
    partner = partner if type(partner) is type(spec) else spec
    if isinstance(spec, AudioSpec):
        of_audio = _of_audio(spec, cast("AudioSpec", partner))
        return [*of_audio, *(Way(spec, codes=name) for name in CODES if is_integer)], iter(())
    size = next((own for own in sizes if own != spec.upright_size), spec.upright_size)
    specs = dict.fromkeys(
        [*usual_ways(spec, cast("InputSpec", partner), size, placed=placed), *_left_out(spec)]
    )
    specs.pop(spec, None)
    pictures = [name for name in PICTURES if name not in (*_OF_COLOURS, *_OF_SIZES)]
    if spec.channels == 3:
        pictures += _OF_COLOURS
    if placed and size != spec.upright_size:
        pictures += _OF_SIZES
    single = [Way(changed) for changed in specs] + [Way(spec, picture=name) for name in pictures]
    if is_integer:
        single += [Way(spec, codes=name) for name in CODES]
    return single, _combined(spec, list(specs), pictures)


def _combined(
    spec: InputSpec, specs: Sequence[InputSpec], pictures: Sequence[str]
) -> Iterator[Way]:
    """Yield the most usual scalings, each with a colour order or placement that is wrong as well.

    The whole grid, with sizes and all scalings, found nothing that these don't.
    """
    placed = ("layout", "orientation", "resize")

    def placement(entry: InputSpec) -> tuple[Any, ...]:
        return tuple(getattr(entry, name) for name in placed)

    scaled = [entry for entry in specs if placement(entry) == placement(spec)][:_MOST_COMBINED]
    turned = [
        entry
        for entry in specs
        if entry.resize == spec.resize and placement(entry) != placement(spec)
    ]
    for scaling in scaled:
        for turn in turned:
            yield Way(scaling._replace(orientation=turn.orientation, layout=turn.layout))
        for name in pictures:
            if name in _OF_COLOURS:
                yield Way(scaling, picture=name)


def _left_out(spec: AnySpec) -> Iterator[AnySpec]:
    """Yield a preprocessing with a part of its normalisation left out, reversed or done twice."""
    scale, mean, std = spec.scale, spec.mean, spec.std
    if any(mean):
        yield spec._replace(mean=(0.0,))
    if any(part != 1 for part in std):
        yield spec._replace(std=(1.0,))
    if len(set(mean)) > 1 or len(set(std)) > 1:
        yield spec._replace(mean=mean[::-1], std=std[::-1])
    size = max(len(mean), len(std))
    means, stds = np.resize(mean, size), np.resize(std, size)
    squared = scale[0] ** 2, scale[1] ** 2
    if scale != (1.0, 1.0):
        yield spec._replace(scale=squared)
    # the whole preprocessing twice, and what follows the scale alone
    for scaling, factor in dict.fromkeys([(squared, scale[0] / scale[1]), (scale, 1.0)]):
        twice = spec._replace(
            scale=scaling,
            mean=tuple(map(float, means * factor + means * stds)),
            std=tuple(map(float, stds**2)),
        )
        if twice != spec:
            yield twice


def _of_audio(spec: AudioSpec, partner: AudioSpec) -> list[Way]:
    """Return ways for clips: the other model's values, gains, and other settings of the spectrum."""
    names = ("peak", "scale", "mean", "std")
    values = {name: getattr(partner, name) for name in names}
    specs = [spec._replace(**values)]
    if spec.mel is not None and partner.mel is not None and spec.mel.width == partner.mel.width:
        specs.append(spec._replace(mel=partner.mel, **values))
    if spec.mel is not None:
        changes: Sequence[Mapping[str, Any]] = (
            *({"spectrum": setting} for setting in ("magnitude", "power")),
            *({"log": setting} for setting in ("ln", "log10")),
            *({"mel_scale": setting} for setting in ("htk", "slaney")),
            *({"mel_norm": setting} for setting in (False, True)),
            *({"log_offset": setting} for setting in (1e-6, 1e-3, 0.01)),
        )
        specs += [spec._replace(mel=spec.mel._replace(**change)) for change in changes]
        specs.append(spec._replace(axes=_OTHER_AXES[spec.axes]))
    specs += _left_out(spec)
    peaks: Sequence[str | None] = (None, "maximum", "magnitude")
    specs += [spec._replace(peak=peak) for peak in peaks]
    ways = [
        Way(changed)
        for changed in dict.fromkeys(specs)
        if changed != spec and _is_possible(changed)
    ]
    return [*ways, *_louder(spec)]


def _louder(spec: AudioSpec) -> Iterator[Way]:
    """Yield other sizes of the samples: what a waveform is multiplied with, else quieter clips."""
    for factor in (32768.0, 1 / 32768, 0.5, 2.0, 0.1, 10.0):
        if spec.mel is None:
            yield Way(spec._replace(scale=(spec.scale[0] * factor, spec.scale[1])))
        elif factor < 1:  # a louder clip would leave the range of samples
            yield Way(spec, factor=factor)


_OTHER_AXES = {"frames-bands": "bands-frames", "bands-frames": "frames-bands"}


def _is_possible(spec: AudioSpec) -> bool:
    try:
        spec.validate()
    except RequestError:
        return False
    return True

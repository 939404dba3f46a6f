"""Input options of audio models, and the full input spec that follows from them and the file."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from edgeflare._internal.text import shape_text
from edgeflare.errors import UsageError
from edgeflare.models.scaling import ScalingOptions, parse_scale
from edgeflare_agent.audio_spec import AXES, LONGEST_CLIP, LONGEST_FFT, AudioSpec, MelSpec
from edgeflare_agent.errors import RequestError
from edgeflare_agent.image_spec import TensorInfo

MLPERF_TINY_KWS: Mapping[str, Any] = MappingProxyType(
    {
        "front_end": "mfcc",
        "rate": 16000,
        "samples": 16000,
        "peak": "maximum",
        "window": 480,
        "stride": 320,
        "fft": 512,
        "spectrum": "magnitude",
        "bands": 40,
        "low_hz": 20.0,
        "high_hz": 4000.0,
        "mel_scale": "htk",
        "mel_slopes": "mel",
        "log": "ln",
        "log_offset": 1e-6,
        "coefficients": 10,
        "dct": "tensorflow",
        "axes": "frames-bands",
    }
)
"""MLPerf Tiny's keyword spotting (mlcommons/tiny, keyword_spotting/get_dataset.py): 49 x 10.

Differences: there a clip without a sample above 0 becomes NaN; here it is not divided by its
maximum. The published evaluation truncates the coefficients to int8; here they are rounded, as
TFLite's own quantisation does.
"""

WHISPER: Mapping[str, Any] = MappingProxyType(
    {
        "front_end": "log-mel",
        "rate": 16000,
        "samples": 480000,
        "window": 400,
        "stride": 160,
        "fft": 400,
        "centered": True,
        "drop_last": True,
        "spectrum": "power",
        "bands": 80,
        "low_hz": 0.0,
        "high_hz": 8000.0,
        "mel_scale": "slaney",
        "mel_slopes": "hertz",
        "mel_norm": True,
        "log": "log10",
        "log_floor": 1e-10,
        "dynamic_range": 8.0,
        "axes": "bands-frames",
        "mean": (-4.0,),
        "std": (4.0,),
    }
)
"""Whisper's 30 seconds (openai/whisper, audio.py; the models with 80 bands): 80 x 3000 frames."""

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {"mlperf-tiny-kws": MLPERF_TINY_KWS, "whisper": WHISPER}
)
"""The options of each preset."""


_Count: TypeAlias = Annotated[int, Field(ge=1, le=LONGEST_FFT)]
_Number: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class AudioOptions(ScalingOptions):
    """Input options of an audio model that the user states where the file does not; all optional.

    `front_end` names a front end, or a preset (`PRESETS`) of which single options may be stated
    otherwise. `rate` is in Hz; `samples`, `window`, `stride` and `fft` are numbers of samples.
    `edgeflare_agent.audio_spec` explains each, and the order of the steps. Without a front end,
    `rate` or `samples` mean the "waveform".
    """

    front_end: Literal["waveform", "log-mel", "mfcc", "mlperf-tiny-kws", "whisper"] | None = None
    rate: Annotated[int, Field(ge=1, le=10**6)] | None = None
    samples: Annotated[int, Field(ge=1, le=LONGEST_CLIP)] | None = None
    peak: Literal["none", "maximum", "magnitude"] | None = None
    window: _Count | None = None
    stride: Annotated[int, Field(ge=1, le=LONGEST_CLIP)] | None = None
    fft: _Count | None = None
    centered: bool | None = None
    drop_last: bool | None = None
    spectrum: Literal["magnitude", "power"] | None = None
    bands: _Count | None = None
    low_hz: _Number | None = None
    high_hz: _Number | None = None
    mel_scale: Literal["htk", "slaney"] | None = None
    mel_slopes: Literal["mel", "hertz"] | None = None
    mel_norm: bool | None = None
    log: Literal["ln", "log10"] | None = None
    log_offset: _Number | None = None
    log_floor: _Number | None = None
    dynamic_range: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    coefficients: _Count | None = None
    dct: Literal["orthonormal", "tensorflow"] | None = None
    axes: Literal["frames-bands", "bands-frames"] | None = None

    @property
    def is_audio(self) -> bool:
        """Whether an option is stated that only audio has."""
        return any(getattr(self, name) is not None for name in AUDIO_FIELDS)


AUDIO_FIELDS = tuple(
    name for name in AudioOptions.model_fields if name not in ScalingOptions.model_fields
)
"""The names of the options that only audio has."""
_MEL_FIELDS = tuple(
    name for name in AUDIO_FIELDS if name not in ("front_end", "rate", "samples", "peak")
)
_MFCC_FIELDS = ("coefficients", "dct")


def audio_input(
    tensor: TensorInfo, stated: AudioOptions, in_file: AudioOptions, whose: str
) -> tuple[int, int | None] | None:
    """Return (rate in Hz, samples or None for any length) of a model of audio, None of images.

    `stated` wins over `in_file`. Raises UsageError as `resolve_audio` does.
    """
    if not (stated.is_audio or in_file.is_audio):
        return None
    spec = resolve_audio(tensor, stated, in_file, whose)
    return spec.rate, spec.samples


def resolve_audio(
    tensor: TensorInfo, stated: AudioOptions, in_file: AudioOptions, whose: str
) -> AudioSpec:
    """Return the full spec of the input of a model of audio; where one of both `is_audio`.

    Shape, dtype and quantisation are the file's own. Raises UsageError, naming the option, where
    something is missing, makes no sense, or does not fill the input's shape.
    """
    options = _with_preset(stated, in_file)
    kind = options.get("front_end", "waveform")
    _check_known(options, kind, whose)
    _check_complete(options, kind, whose)
    mel = None if kind == "waveform" else _mel(options, kind)
    samples = options.get("samples", _samples_of(tensor, mel))
    spec = AudioSpec(
        shape=tensor.shape,
        dtype=tensor.dtype,
        rate=options["rate"],
        samples=samples,
        front_end=kind,
        peak=None if options.get("peak") == "none" else options.get("peak"),
        mel=mel,
        axes=options.get("axes", AXES[0]),
        scale=parse_scale(options.get("scale", 1.0)),
        mean=tuple(options.get("mean", (0.0,))),
        std=tuple(options.get("std", (1.0,))),
        quantization=tensor.quantization,
    )
    try:
        if mel is not None:
            mel.validate(spec.rate)
        spec = _filled(tensor, spec, [options["axes"]] if "axes" in options else AXES, whose)
        spec.validate()
    except RequestError as error:
        raise UsageError(f"{whose}: {error}") from error
    return spec


def merged(stated: AudioOptions, in_file: AudioOptions) -> dict[str, Any]:
    """Return the options that are set: the stated ones, and the file's for the same front end."""
    own = stated.model_dump(exclude_none=True)
    other = in_file.model_dump(exclude_none=True) if in_file.is_audio else {}
    if "front_end" in own and other.get("front_end", own["front_end"]) != own["front_end"]:
        other = {}
    return {**(_without_scaling(other) if stated.has_scaling else other), **own}


def _with_preset(stated: AudioOptions, in_file: AudioOptions) -> dict[str, Any]:
    """Return the `merged` options, completed by those of the preset, if they name one."""
    options = merged(stated, in_file)
    preset = PRESETS.get(options.get("front_end", ""))
    if preset is None:
        return options
    scaled = any(name in options for name in ScalingOptions.model_fields)
    base = _without_scaling(preset) if scaled else preset
    return {**base, **options, "front_end": preset["front_end"]}


def _without_scaling(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: x for name, x in options.items() if name not in ScalingOptions.model_fields}


def _check_known(options: Mapping[str, Any], kind: str, whose: str) -> None:
    """Raise UsageError for options of images and of another front end."""
    known = {*AudioOptions.model_fields}
    if kind == "waveform":
        known -= {*_MEL_FIELDS}
    elif kind == "log-mel":
        known -= {*_MFCC_FIELDS}
    for name in options:
        if name not in known:
            raise UsageError(
                f"the input option `{name}` of {whose} does not go with "
                f"`front_end={kind}`: leave it out, or state another front end"
            )


def _check_complete(options: Mapping[str, Any], kind: str, whose: str) -> None:
    needed = ["rate"]
    if kind != "waveform":
        needed += ["window", "stride", "spectrum", "bands", "mel_scale", "log"]
        needed += [] if "log_floor" in options else ["log_offset"]
    if kind == "mfcc":
        needed.append("coefficients")
    missing = [name for name in needed if name not in options]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        examples = " ".join(f"--input {name}={_EXAMPLES[name]}" for name in missing)
        raise UsageError(
            f"the front end {kind} of {whose} needs the input option{'s' * (len(missing) > 1)} "
            f"{names}; state {'them' if len(missing) > 1 else 'it'}, for example `{examples}`"
        )


_EXAMPLES = {
    "rate": "16000",
    "window": "480",
    "stride": "320",
    "spectrum": "magnitude",
    "bands": "40",
    "mel_scale": "htk",
    "log": "ln",
    "log_offset": "1e-6",
    "coefficients": "10",
}


def _mel(options: Mapping[str, Any], kind: str) -> MelSpec:
    window = options["window"]
    return MelSpec(
        window=window,
        stride=options["stride"],
        fft=options.get("fft", 1 << (window - 1).bit_length()),
        bands=options["bands"],
        low_hz=options.get("low_hz", 0.0),
        high_hz=options.get("high_hz", options["rate"] / 2),
        mel_scale=options["mel_scale"],
        mel_slopes=options.get("mel_slopes", "hertz"),
        mel_norm=options.get("mel_norm", False),
        spectrum=options["spectrum"],
        log=options["log"],
        log_offset=options.get("log_offset", 0.0),
        log_floor=options.get("log_floor", 0.0),
        dynamic_range=options.get("dynamic_range"),
        centered=options.get("centered", False),
        drop_last=options.get("drop_last", False),
        coefficients=options["coefficients"] if kind == "mfcc" else None,
        dct=options.get("dct", "orthonormal"),
    )


def _samples_of(tensor: TensorInfo, mel: MelSpec | None) -> int | None:
    """Return how many samples fill a shape; None where an axis but the batch's is open."""
    inner = tensor.shape[1:] if tensor.shape[:1] in ((None,), (1,)) else tensor.shape
    if all(n == 1 for n in inner):
        inner = tensor.shape
    known = [n for n in inner if n is not None]
    if len(known) < len(inner):
        return None
    return prod(known) if mel is None else mel.samples(max(1, prod(known) // mel.width))


def _filled(
    tensor: TensorInfo, spec: AudioSpec, every_axes: Sequence[str], whose: str
) -> AudioSpec:
    """Return the spec with the tensor's shape, its open axes filled but for the clip's length."""
    batched = len(tensor.shape) > 1 and tensor.shape[0] in (None, 1)
    for first in (1, 0) if batched else (0,):
        for axes in every_axes if spec.mel else every_axes[:1]:
            inner, wanted = tensor.shape[first:], _front_end_shape(spec, axes)
            filled = _on_axes(inner, wanted) or _flat(inner, wanted)
            if filled is not None:
                return spec._replace(shape=(1,) * first + filled, axes=axes)
    gives = shape_text(_front_end_shape(spec, every_axes[0]))
    if spec.mel is None and sum(n != 1 for n in tensor.shape[1:]) > 1:
        raise UsageError(
            f"the front end waveform gives one row of samples, but input {tensor.name!r} of "
            f"{whose} has shape {shape_text(tensor.shape)}; state the front end that the model was "
            "trained with: mlperf-tiny-kws, whisper, log-mel or mfcc, for example `--input "
            "front_end=mlperf-tiny-kws`"
        )
    raise UsageError(
        f"the front end {spec.front_end} gives {gives} values"
        + (f" of {spec.samples} samples" if spec.samples else "")
        + f", but input {tensor.name!r} of {whose} has shape {shape_text(tensor.shape)}; state "
        "another front end, or other input options of it (`samples`, `stride`, `bands`, `axes` and "
        "so on)"
    )


def _front_end_shape(spec: AudioSpec, axes: str) -> tuple[int | None, ...]:
    if spec.mel is None:
        return (spec.samples,)
    frames = None if spec.samples is None else spec.mel.frames(spec.samples)
    return (frames, spec.width) if axes == "frames-bands" else (spec.width, frames)


def _on_axes(
    shape: tuple[int | None, ...], wanted: tuple[int | None, ...]
) -> tuple[int | None, ...] | None:
    """Return the shape with the wanted axes in order and 1 on all others, if it can have them."""
    for places in combinations(range(len(shape)), len(wanted)):
        laid: dict[int, int | None] = {
            **dict.fromkeys(range(len(shape)), 1),
            **dict(zip(places, wanted, strict=True)),
        }
        if all(n is None or n == laid[place] for place, n in enumerate(shape)):
            return tuple(laid[place] for place in range(len(shape)))
    return None


def _flat(shape: tuple[int | None, ...], wanted: tuple[int | None, ...]) -> tuple[int, ...] | None:
    """Return the shape with all wanted values in one axis; None where it can't hold them so."""
    known = [n for n in wanted if n is not None]
    fixed = prod(n for n in shape if n is not None)
    has_axes = sum(n != 1 for n in shape) > 1
    if len(known) < len(wanted) or shape.count(None) > 1 or has_axes or fixed == 0:
        return None
    rest = prod(known) // fixed
    if rest * fixed != prod(known) or (rest != 1 and None not in shape):
        return None
    return tuple(rest if n is None else n for n in shape)

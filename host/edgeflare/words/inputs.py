"""What is said of inputs: of seeds that were read or left out, and of a survey's inputs and features."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from edgeflare._internal.text import counted, shape_text

AUDIO_IS_STATED = (
    "; of a model of audio state its front end, for example `--input front_end=waveform --input "
    "rate=16000` or `--input front_end=mlperf-tiny-kws`"
)
"""Ends an error where a model is taken for one of images."""
HOW_TO_CUT = "--cut first takes its beginning, --cut windows one piece after the other"
MAPPING_UNUSED = "The label mapping is for class folders; it was not used."
NO_MAPPING = "The {} folders are not used as labels: no label mapping was given."
UNLABELLED = "{} had no label: they are in no folder that the label mapping names."
TRANSPARENT = "{} had transparent pixels; they were laid over black."
SAME_PIXELS = "{} had the same pixels as another one; all were kept."
NAME_NOT_TEXT = "its name is not valid UTF-8"
FOLDER_UNREADABLE = "the folder can't be read: {}"
IGNORED = "{} in {} ignored: no {} by name."
FILE_SAYS = {
    "metadata": "the metadata of its file say {}",
    "quantisation": "the quantisation of its file says {}",
}
QUANTISED_FOR = "its file is quantised for values from {:.4g} to {:.4g}"
CONTRADICTS = (
    "{}, stated for {}, makes pixels {:.4g} to {:.4g}, but {}; what is stated was used: it is "
    "wrong for this model, or the file is"
)
_KINDS_NAMED = 5
_SOURCES = {
    "stated": "as stated",
    "edgeflare": "metadata edgeflare.input",
    "tflite-metadata": "TFLite metadata",
    "ultralytics": "metadata of Ultralytics",
    "metadata": "metadata {names}",
    "preprocessor-config": "{names} beside it",
    "timm-config": "{names} beside it",
    "quantisation": "range of its integers",
    "integer-pixels": "its input is uint8",
    "first-operators": "the file normalises inside: {names}",
    "other-model": "as the other model",
    "integers-behind": "the integers behind its input were calibrated for that",
    "labels": "labels: {names}",
}
CONTRADICTORY = "what tells it is contradictory: {}"
BEHIND = "the integers behind an input were calibrated for {}"
TOLD_BY = "30 labelled seeds (--labels) or the training code tell"
LABELS_BEYOND = "the labels go up to {}, and the original has {} classes"
LABELS_FIT_NONE = (
    "fed in none of {} usual ways the original is right on half of {} labelled seeds: look at the labels; "
    "the training code tells how it is fed"
)
LABELS_TIED = "{} labelled seeds don't tell these apart: {}; the training code tells"
LABELS_RIGHT = "{} of {} right"
_UNUSABLE = {
    "syntax": "{} can't be parsed, and was not used",
    "values": "{} has numbers that no input has, and was not used",
    "channels": "{} has numbers for another count of channels, and was not used",
}
INPUT_OF = "input of {}: {} ({})"


def few_labels(seeds: int, classes: int) -> str:
    """Return that so few labelled seeds don't tell how a model is fed, and what does."""
    few = f"{counted(seeds, 'labelled seed')} of {counted(classes, 'class', 'classes')}"
    return f"{few} don't tell: 30 of several classes or the training code do"


def source_words(source: str, names: Sequence[str]) -> str:
    """Return what tells how a model is fed: "stated", or an `edgeflare.models.input_metadata.InputSource`."""
    return _SOURCES[source].format(names=", ".join(names))


def feed_words(samples: str, options: Mapping[str, str], source: str, names: Sequence[str]) -> str:
    """Return how `samples`, "images" or "audio", enter a model by these options, and what tells it."""
    texts = {name: f"{name}={value}" for name, value in options.items()}
    if samples == "images":
        values = ", ".join(texts.pop(name) for name in _OF_VALUES if name in texts)
        texts = {"": pixels_words(values), **texts}
    told = source and f" ({source_words(source, names)})"
    return ", ".join(texts.values()) + told


_OF_VALUES = ("scale", "mean", "std", "color")


def unusable_words(source: str, names: Sequence[str], problem: str) -> str:
    """Return why settings of an input were left out: a code of `UnusableSettings`."""
    return _UNUSABLE[problem].format(source_words(source, names))


def pixels_words(stated: str) -> str:
    """Return what pixels become, of what states it, such as "pixels / 255" or "pixels as they are, BGR"."""
    scaling, _, color = stated.partition(", color=")
    return _PIXELS.get(scaling, f"pixels with {scaling}") + (f", {color}" if color else "")


_PIXELS = {
    "scale=1": "pixels as they are",
    "scale=1.0": "pixels as they are",
    "scale=1/1": "pixels as they are",
    "scale=1/255": "pixels / 255",
    "mean=127.5, std=127.5": "pixels / 127.5 - 1",
}


def files_of_other_kinds(suffixes: Counter[str]) -> str:
    """Return "3 files", or for some kinds "3 files (2 .heic, 1 .mp4)"."""
    ranked = sorted(suffixes.items(), key=lambda kind: (-kind[1], kind[0]))
    kinds = [f"{count} {suffix}" for suffix, count in ranked if suffix]
    more = ", ..." if len(kinds) > _KINDS_NAMED else ""
    named = f" ({', '.join(kinds[:_KINDS_NAMED])}{more})" if kinds else ""
    return counted(suffixes.total(), "file") + named


def audio_notices(
    counts: Mapping[str, Any], *, rate: int, window: str, cut: str | None, limit: int | None
) -> Iterator[str]:
    """Yield a sentence for each count that is not 0.

    `counts`: of recordings and clips, by the names of the fields of
    `edgeflare.seeds.audio_source.ClipCounts`. The model takes audio at `rate` Hz; `window`: how long
    pieces are; `limit`: how many clips are taken at most.
    """
    clips = {name: counted(counts[name], "clip") for name in _OF_CLIPS}
    recordings = {name: counted(counts[name], "recording") for name in _OF_RECORDINGS}
    if counts["windows"] and counts["clips"] == limit:
        yield (
            f"The limit counts clips, and windows are clips: {clips['clips']} of "
            f"{recordings['recordings']} taken, one of each recording before a second "
            "one of any."
        )
    if counts["mixed"]:
        yield f"{recordings['mixed']} had several channels; their mean was taken."
    for other, count in sorted(counts["resampled"].items()):
        rest = f"; there is nothing in it above {other / 2:g} Hz" if other < rate else ""
        yield f"{counted(count, 'recording')} of {other} Hz resampled to {rate} Hz{rest}."
    if counts["cut"] and cut == "first":
        yield f"{recordings['cut']} longer than {window}; the first {window} of each was taken."
    elif counts["cut"]:
        dropped = counts["dropped"]
        short = f"; the rest of {dropped}, less than half a window, was dropped" if dropped else ""
        pieces = f"{counts['windows']} windows of {window}{short}"
        yield f"{recordings['cut']} longer than {window}, cut into {pieces}."
    if counts["shorter"]:
        yield (
            f"{clips['shorter']} shorter than the {window} "
            "that the model takes; its preprocessing adds silence at the end."
        )
    if counts["clipped"]:
        yield (
            f"{recordings['clipped']} clipped: several samples in a row are at "
            "full scale; all were kept."
        )
    if counts["beyond"]:
        yield f"{clips['beyond']} went beyond [-1, 1], and end there now."
    if counts["silent"]:
        yield f"{clips['silent']} silent, all samples 0; all were kept."
    if counts["repeated"]:
        yield f"{clips['repeated']} had the same samples as another one; all were kept."


def taken_before(windows: int) -> str:
    """Return what is added to why a recording is left out, of the windows before its damage."""
    return f"; what is before that was taken, {counted(windows, 'window')}" if windows else ""


_OF_CLIPS = ("clips", "shorter", "beyond", "silent", "repeated")
_OF_RECORDINGS = ("recordings", "mixed", "cut", "clipped")


CHANNELS = ("red", "green", "blue")
ORIGINAL_ANSWERS = "the original's answer is"
BRIGHTNESS_RANGE = "range from the darkest to the brightest pixel"
MEAN_STEP = "edges (mean step between neighbours)"
FINE_DETAIL = "fine detail (share of the variance)"
COLOURFULNESS = "colourfulness (spread of the channels)"
ROOT_MEAN_SQUARE = "level (root mean square)"
FULL_SCALE = "share of samples at full scale"
OF_FULL_SCALE = " % of full scale"


def levels_from(level: int) -> str:
    """Return the name of the share of an image's levels from this one on."""
    return f"share of pixels at {level} or more"


def levels_up_to(level: int) -> str:
    """Return the name of the share of an image's levels up to this one."""
    return f"share of pixels at {level} or less"


def ninth(row: str, column: str) -> str:
    """Return the name of the mean of a field of a 3 x 3 grid."""
    return f"mean of the {'centre' if row == column == 'middle' else f'{row} {column}'} ninth"


def corner(row: str, column: str, side: int) -> str:
    """Return what a corner is called in the names of its features."""
    return f"the {row} {column} corner ({side} x {side})"


def border(side: str, line: str, width: int) -> str:
    """Return the name of the mean of several rows or columns at one side."""
    return f"mean of the {width} {side} {line}s"


def extremes(part: str) -> tuple[str, str, str]:
    """Return the names of mean, smallest and largest value of a part of an image."""
    return f"mean of {part}", f"darkest pixel of {part}", f"brightest pixel of {part}"


def energy_above(frequency: float) -> str:
    """Return the name of the share of energy above a frequency in Hz."""
    return f"share of energy above about {frequency:.4g} Hz"


def level_of_part(part: int, parts: int) -> str:
    """Return the name of the level of one of several parts in time, counted from 0."""
    return f"level of part {part + 1} of {parts} in time"


def family_words(family: str, params: Mapping[str, Any]) -> str:
    """Return how an input of a built-in family was made, such as "offset -31, gain 0.42".

    Raises KeyError, TypeError or ValueError for parameters that are none of the family.
    """
    return _FAMILIES[family](params)


def _gain(params: Mapping[str, Any]) -> str:
    return f"offset {params['offset']:+.0f}, gain {params['gain']:.2f}"


def _noise(params: Mapping[str, Any]) -> str:
    if "sigma" in params:
        return f"noise of {params['sigma']:.3g} levels"
    return f"white noise at {_decibels(params)}"


def _decibels(params: Mapping[str, Any]) -> str:
    return f"{-20 * math.log10(max(params['level'], 1e-9)):.0f} dB SNR"


def _patch(params: Mapping[str, Any]) -> str:
    return (
        f"a {_shade(params)} square of {params['side']:.0%} of the side, "
        f"{params['x']:.0%} right and {params['y']:.0%} down"
    )


def _shade(params: Mapping[str, Any]) -> str:
    return "white" if params["level"] else "black"


def _mixed(params: Mapping[str, Any]) -> str:
    return f"mixed with {params['share']:.0%} of input {params['partner'] + 1}"


def _channel(params: Mapping[str, Any]) -> str:
    name = "grey levels" if params["is_grey"] else f"channel {CHANNELS[params['channel']]}"
    return f"{name} {params['share']:.0%} towards {params['level']}"


def _swap(params: Mapping[str, Any]) -> str:
    first, second = (name for at, name in enumerate(CHANNELS) if at != params["stays"])
    return f"{first} and {second} exchanged by {params['share']:.0%}"


def _volume(params: Mapping[str, Any]) -> str:
    return f"volume {20 * math.log10(params['factor']):+.0f} dB"


def _moved(params: Mapping[str, Any]) -> str:
    way = "later" if params["share"] >= 0 else "earlier"
    return f"moved {way} by {abs(params['share']):.0%} of its length"


def _silent(params: Mapping[str, Any]) -> str:
    start = params["place"] * (1 - params["share"])
    return f"silent for {params['share']:.0%} of its length, after {start:.0%}"


_FAMILIES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "gain": _gain,
    "noise": _noise,
    "gain-noise": lambda params: f"{_noise(params)}, {_gain(params)}",
    "patch": _patch,
    "edge": lambda params: (
        f"a {_shade(params)} band of {params['width']:.0%} at the {params['side']}"
    ),
    "frame": lambda params: f"a frame of level {params['level']}, {params['width']:.0%} wide",
    "mix": _mixed,
    "clipping": lambda params: (
        f"levels up to {params['black']:.0f} black, from {params['white']:.0f} white"
    ),
    "channel": _channel,
    "swap": _swap,
    "quiet": _volume,
    "loud": _volume,
    "offset": lambda params: f"offset {params['offset']:+.2f} of full scale",
    "rumble": lambda params: f"rumble at {_decibels(params)}",
    "clicks": lambda params: f"clicks at {params['share']:.2%} of the samples",
    "bits": lambda params: f"rounded to {17 - int(params['step']).bit_length()} bit",
    "hold": lambda params: f"one of {params['length']} samples only",
    "shift": _moved,
    "speed": lambda params: f"played at {params['speed']:.0%} of its speed",
    "silence": _silent,
    "echo": lambda params: (
        f"an echo of {params['level']:.0%} after {params['later'] / params['rate']:.2f} s"
    ),
    "overlap": _mixed,
    "splice": lambda params: (
        f"{params['share']:.0%} at the {params['end']} from input {params['partner'] + 1}"
    ),
}


def sample_form(shape: Sequence[int], rate: int | None) -> str:
    """Return what samples of an array's shape are: of a size, or audio at a `rate` in Hz."""
    return shape_text(shape) if rate is None else f"audio at {rate} Hz"


class Units(NamedTuple):
    """The units of distances: of L2, of Linf, and the largest possible Linf.

    `farther` is a strategy for such inputs that goes away from the seeds, "" where there is none.
    """

    l2: str
    levels: str
    most_levels: int
    farther: str = ""


_IMAGES = Units("pixels from 0 to 1", "levels", 255, "dflare")
_AUDIO = Units("samples from -1 to 1", "levels of 16 bits", 65_534)


def units_of(sample_rate: int | None) -> Units:
    """Return the units of distances; `sample_rate` is that of audio in Hz, None for images."""
    return _IMAGES if sample_rate is None else _AUDIO

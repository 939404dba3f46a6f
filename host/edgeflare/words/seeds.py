"""What is said of seeds that were read, left out or changed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from edgeflare._internal.text import counted

AUDIO_IS_STATED = (
    " (of a model of audio state the front end, for example --input front_end=mlperf-tiny-kws)"
)
"""Ends an error where a model is taken for one of images and there is audio alone."""
MAPPING_UNUSED = "The label mapping is for class folders; it was not used."
NO_MAPPING = "The {} folders are not used as labels: no label mapping was given."
UNLABELLED = "{} had no label: they are in no folder that the label mapping names."
TRANSPARENT = "{} had transparent pixels; they were laid over black."
SAME_PIXELS = "{} had the same pixels as another one; all were kept."
NAME_NOT_TEXT = "its name is not valid UTF-8"
FOLDER_UNREADABLE = "the folder can't be read: {}"
_KINDS_NAMED = 5


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

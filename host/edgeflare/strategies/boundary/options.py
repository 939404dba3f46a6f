"""The boundary search's options, its bounds on triggers, and the choice of open options."""

from typing import Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, Field

from edgeflare._internal import exact
from edgeflare._internal.exact import Floats
from edgeflare.errors import UsageError
from edgeflare.metrics import l2, linf, ssim
from edgeflare.strategies.boundary.directions import LARGE_SIDE
from edgeflare.strategies.boundary.points import space_of
from edgeflare.types import Sample

_MAX_RADIUS = 4.0
_TYPICAL_CHANGE = 0.1
"""Change of every value of an image, from 0 to 1, that makes it look like another image."""
_TYPICAL_AUDIO_SHARE = 0.3
_MIN_AMPLITUDE = 1e-3
_FAR = 3.3
_FAR_ENOUGH = 1.5


class BoundaryOptions(BaseModel, extra="forbid", frozen=True):
    """Searches along the original's decision boundary and asks the device beside it.

    What is not stated of `crossing`, `effort`, `candidates` and `tied_classes` follows from the kind
    and size of the samples. With `--tune` it is chosen by what a device query costs against a query
    of the original, measured once, when the campaign is created. For models that return text only
    `candidates` (above 1: both sides of a change at once), `max_l2` and `max_linf` have a meaning;
    the crossing is natural. Detectors are searched one object at a time. Where answers are compared
    by a tolerance, inputs are searched on which they are farthest apart, one at a time: `candidates`
    above 1 are refused. For these and for detectors crossing mutants, `gradients` and 3
    `tied_classes` are refused, too.
    """

    crossing: Literal["auto", "least-l2", "line", "mutants", "natural"] = Field(
        default="auto",
        description="How the original's boundary is reached: nearest to the seed, towards another "
        "seed input, by DFLARE's operators, or by natural corruptions.",
    )
    effort: int | None = Field(
        default=None,
        ge=4,
        le=1024,
        description="How many directions (least-l2) or inputs (mutants, natural) the original is "
        "asked about at once.",
    )
    device_budget: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="The largest number of device queries for each seed; those that are left after "
        "the first trigger go into a more severe one; by a tolerance into one whose answers are farther "
        "apart. Not stated: the search ends with the first.",
    )
    candidates: int | None = Field(
        default=None,
        ge=1,
        le=64,
        description="Inputs sent to the device at once; above 1 for devices where a round trip "
        "costs more than a query.",
    )
    tied_classes: Literal[2, 3] | None = Field(
        default=None,
        description="How many classes are brought to a tie for the original where the device is "
        "asked. 3 need fewer device queries and more host queries than 2, a little farther from "
        "the seed. It is 3 for images below 64 pixels a side, else 2; it is 2 where several candidates "
        "are sent at once, with natural crossings, with an effort below 64, with a bound on the "
        "distance, or with a margin floor above 0.02.",
    )
    max_l2: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        description="The largest L2 distance of a trigger from its seed, of pixels from 0 to 1 or "
        "amplitudes from -1 to 1.",
    )
    max_linf: int | None = Field(
        default=None,
        ge=1,
        le=65_534,
        description="The largest change of one value, in levels (of audio those of 16 bits).",
    )
    min_ssim: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="The smallest SSIM of a trigger to its seed; images only. Needs scikit-image.",
    )
    gradients: bool = Field(
        default=False,
        description="Whether slopes of the original's answers are computed by backward passes in "
        "place of many forward ones: fewer host queries. Images only, and a float ONNX original. "
        "Needs PyTorch (the extra torch); results depend on the processor then.",
    )

    def bounds_text(self) -> str:
        """Return the stated bounds, as "max_l2 3 and min_ssim 0.9"; "" for none."""
        stated = {name: getattr(self, name) for name in ("max_l2", "max_linf", "min_ssim")}
        return " and ".join(
            f"{name} {value:g}" for name, value in stated.items() if value is not None
        )

    @property
    def probe(self) -> str:
        """The probe of the original that the search asks; "": none."""
        return "gradient" if self.gradients else ""


def refuse_class_options(options: BoundaryOptions, by: str) -> None:
    """Raise UsageError for options that only class scores have a meaning for, in a search `by` others."""
    stated = {
        "tied_classes 3": options.tied_classes == 3,
        "crossing mutants": options.crossing == "mutants",
        "gradients": options.gradients,
    }
    for name, given in stated.items():
        if given:
            raise UsageError(
                f"strategy boundary: {name} is for a boundary between classes, which a search by {by} "
                "does not have; leave it out"
            )


class Bounds:
    """Checks inputs against the user's bounds.

    `radius`: the largest L2 at which inputs near the boundary are searched; `farthest`: that of
    inputs far from the seed, `is_wide` whether it is far enough for the models to behave otherwise
    there.
    """

    def __init__(self, options: BoundaryOptions, seed: Sample) -> None:
        self._options = options
        self._seed = seed
        typical = _typical_change(seed)
        bound = np.inf if options.max_l2 is None else options.max_l2
        self.radius = typical if options.max_l2 is None else min(bound, _MAX_RADIUS * typical)
        every_value = np.inf if options.max_linf is None else options.max_linf / space_of(seed).unit
        self.farthest = min(bound, _FAR * typical, every_value * float(np.sqrt(seed.size)))
        self.is_wide = self.farthest >= _FAR_ENOUGH * typical

    def clip_linf(self, change: Floats) -> Floats:
        """Return a change of values, in levels, clipped to the bound on Linf."""
        most = self._options.max_linf
        return change if most is None else np.clip(change, -most, most)

    def contain(self, sample: Sample) -> bool:
        """Whether an input lies within the bounds.

        Raises UsageError where SSIM is wanted and scikit-image is missing or the images are too
        small.
        """
        options = self._options
        if options.max_l2 is not None and l2(self._seed, sample) > options.max_l2:
            return False
        if options.max_linf is not None and linf(self._seed, sample) > options.max_linf:
            return False
        if options.min_ssim is None:
            return True
        similarity = ssim(self._seed, sample)
        if similarity is None:
            height, width = self._seed.shape[:2]
            raise UsageError(
                f"min_ssim: SSIM is not defined for images of {height} x {width} pixels (3 are "
                "needed either way); state max_l2 or max_linf instead"
            )
        return similarity >= options.min_ssim


def _typical_change(seed: Sample) -> float:
    """Return the L2 of a large change.

    A tenth of every value of an image, three tenths of a recording's amplitude.
    """
    if seed.ndim > 1:
        return _TYPICAL_CHANGE * float(np.sqrt(seed.size))
    amplitude = exact.norm(seed.astype(np.float64))
    return _TYPICAL_AUDIO_SHARE * max(amplitude, _MIN_AMPLITUDE * float(np.sqrt(seed.size)))


_LEVELS = (16, 32, 64, 96, 128)
"""Efforts to choose from for least-l2 and line."""
_HOST_SHARE = 30
"""Host queries may take this many times as long as a device query and a host query together."""
_FEW = 45
_FEW_FOR_LARGE = 300
_OTHER_QUERIES = 30
_TIE_QUERIES = 110
_TIE_EFFORT = 64
"""Three classes are brought to a tie from this effort on, which gives enough directions to find
one. Not within bounds, since ties are farther from the seed, and not for large images, where it
needs more device queries (docs/research/tried.md)."""
_SMALL_EFFORT = 96
"""Effort for images whose longer side is below `_LARGER_SIDE`."""
_SCREENED = 32
_FEW_SCREENED = 8
_LARGER_SIDE = 32
"""The longer side below which images gain nothing by more directions, as MNIST's."""
_AT_ONCE = 4
_AUDIO_DIRECTIONS = 256
DETECTION_EFFORT = 48
"""Directions around an object of a detector."""
TOLERANCE_EFFORT = 24
"""For a tolerance: a quarter of it is the number of lines to other seeds. There are twice as many
natural corruptions, about as many paths of noise, and four of contrast. The original is asked about
one input of each path (of class scores up to 11), and of each changed path later."""
Answered: TypeAlias = Literal["image", "audio", "transcript", "detections", "values"]
"""What a search is of: class scores of images or of audio, transcripts, detections, or answers that
are compared by a tolerance."""


def has_open_choice(options: BoundaryOptions) -> bool:
    """Whether crossing or effort are left open, so that `resolve_options` chooses them."""
    return options.crossing == "auto" or options.effort is None


def resolve_options(
    options: BoundaryOptions,
    side: int,
    one_trip: bool,
    of: Answered = "image",
    ratio: float | None = None,
) -> BoundaryOptions:
    """Return the options with nothing left open; what the user states stays.

    `side`: the longer side of an image in pixels. `one_trip`: the device is asked for many seeds at
    once. `of`: what is searched; of transcripts only natural corruptions have a meaning, and of
    detections and values neither `tied_classes` nor `ratio`. `ratio`: the measured time of a device
    query, in times of a
    query of the original on the host, to which the host's work is to be in proportion; None: the
    choice follows from the samples alone, for triggers near their seeds. Recordings, whose answers
    cost the host a few milliseconds, always get enough directions to keep the changes faint.
    """
    if of in ("detections", "values"):
        return options.model_copy(
            update={
                "crossing": "least-l2" if options.crossing == "auto" else options.crossing,
                "effort": options.effort
                or (DETECTION_EFFORT if of == "detections" else TOLERANCE_EFFORT),
                "candidates": options.candidates or 1,
                "tied_classes": options.tied_classes or 2,
            }
        )
    if of != "image":
        return _untuned(options, one_trip, words=of == "transcript")
    candidates = options.candidates or (_AT_ONCE if one_trip else 1)
    bounded = options.max_l2 or options.max_linf or options.min_ssim is not None
    tied = options.tied_classes
    if tied is None and (bounded or candidates > 1 or side >= LARGE_SIDE):
        tied = 2
    if ratio is None:
        crossing, effort, three = _nearest(options, side)
    else:
        crossing, effort, three = _tuned(options, ratio, tied, side)
    return options.model_copy(
        update={
            "crossing": crossing,
            "effort": effort,
            "candidates": candidates,
            "tied_classes": tied or (3 if three else 2),
        }
    )


def _nearest(options: BoundaryOptions, side: int) -> tuple[str, int, bool]:
    """Return crossing, effort, and whether three classes tie, for triggers near their seeds."""
    crossing = "least-l2" if options.crossing == "auto" else options.crossing
    usual = _SMALL_EFFORT if side < _LARGER_SIDE else _LEVELS[-1]
    effort = options.effort or (_SCREENED if crossing in ("mutants", "natural") else usual)
    three = effort >= _TIE_EFFORT and crossing != "natural"
    return crossing, effort, three


def _tuned(
    options: BoundaryOptions, ratio: float, tied: int | None, side: int
) -> tuple[str, int, bool]:
    """Return crossing, effort, and whether three classes tie, by what a device query costs."""
    affordable = _HOST_SHARE * (max(ratio, 0.0) + 1)
    crossing, effort = options.crossing, options.effort
    if crossing == "auto":
        few = _FEW if side < LARGE_SIDE else _FEW_FOR_LARGE
        crossing = "mutants" if affordable < few else "least-l2"
        if effort is None and crossing == "mutants":
            effort = _FEW_SCREENED
    if effort is None and crossing in ("mutants", "natural"):
        effort = _FEW_SCREENED if affordable < _FEW else _SCREENED
    if effort is None:
        effort, three = _level(affordable, tied, side)
        return crossing, effort, three
    return crossing, effort, effort >= _TIE_EFFORT and crossing != "natural"


def _untuned(options: BoundaryOptions, one_trip: bool, *, words: bool) -> BoundaryOptions:
    crossing = options.crossing
    if crossing == "auto":
        crossing = "natural" if words else "least-l2"
    return options.model_copy(
        update={
            "crossing": crossing,
            "effort": options.effort
            or (_AUDIO_DIRECTIONS if crossing == "least-l2" else _SCREENED),
            "candidates": options.candidates or (_AT_ONCE if one_trip else 1),
            "tied_classes": options.tied_classes or 2,
        }
    )


def _level(affordable: float, tied: int | None, side: int) -> tuple[int, bool]:
    """Return the largest effort for this number of host queries, and whether three classes tie.

    Where the user did not state it, three tie from the effort on from which that needs fewer device
    queries.
    """
    for three in (True, False):
        levels = [
            one
            for one in _LEVELS
            if (side >= _LARGER_SIDE or one <= _TIE_EFFORT)
            and 2 * one + _OTHER_QUERIES + three * _TIE_QUERIES <= affordable
            and (not three or tied == 3 or one >= _TIE_EFFORT)
        ]
        if levels and (tied is None or three == (tied == 3)):
            return max(levels), three
    return _LEVELS[0], False

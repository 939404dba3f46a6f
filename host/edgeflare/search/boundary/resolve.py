"""What the user leaves open of the boundary search, chosen by what a device query costs."""

from typing import Literal

from edgeflare.search.boundary.basis import LARGE
from edgeflare.search.boundary.options import BoundaryOptions

LEVELS = (16, 32, 64, 96, 128)
"""Efforts to choose from for crossings that take one direction after the other."""
_WORTH = 30
"""So many host queries are worth what a device query and a host query together cost."""
_FEW = 45
_FEW_FOR_LARGE = 300
_BESIDE_DIRECTIONS = 30
_FOR_A_TIE = 110
_FROM_EFFORT = 64
"""Three classes are brought to a tie from this effort on: so many directions show where. Not within bounds, since ties
are farther from the seed, and not of large images: on EfficientNet-Lite0 1.5 queries with three, 1.4 with two."""
_SCREENED = 32
_SCREENED_CHEAPLY = 8
_MORE_FROM = 32
"""Images of a shorter longer side gain nothing by more directions: crossings of MNIST's are even farther off."""
_AT_ONCE = 4
_DIRECTIONS_OF_SOUND = 256


def is_open(options: BoundaryOptions) -> bool:
    """Whether `resolved` has something to choose by the cost of a device query."""
    return options.crossing == "auto" or options.effort is None


def resolved(
    options: BoundaryOptions,
    ratio: float,
    side: int,
    one_trip: bool,
    of: Literal["image", "audio", "transcript"] = "image",
) -> BoundaryOptions:
    """Return the options with nothing left open; what the user states stays.

    `ratio`: what one device query costs against one query of the original on the host, in time. `side`: the
    longer side of an image in pixels. `one_trip`: the device is asked for many seeds at once. What a search
    finds depends on this choice, which rests on measured times: it is made once, when a campaign is
    created, and kept with it. `of`: what the samples are; "transcript" where recognisers answer, for
    which only natural corruptions will do. Of recordings, whose answers cost the host a few milliseconds, so many directions
    are taken that the changes are faint, whatever a device query costs.
    """
    if of != "image":
        return _of_audio(options, one_trip, words=of == "transcript")
    affordable = _WORTH * (max(ratio, 0.0) + 1)
    candidates = options.candidates or (_AT_ONCE if one_trip else 1)
    crossing, effort = options.crossing, options.effort
    bounded = options.max_l2 or options.max_linf or options.min_ssim is not None
    tied = options.tied_classes
    if tied is None and (bounded or candidates > 1 or side >= LARGE):
        tied = 2
    if crossing == "auto":
        few = _FEW if side < LARGE else _FEW_FOR_LARGE
        crossing = "mutants" if affordable < few else "least-l2"
        if effort is None and crossing == "mutants":
            effort = _SCREENED_CHEAPLY
    if effort is None and crossing in ("mutants", "natural"):
        effort = _SCREENED_CHEAPLY if affordable < _FEW else _SCREENED
    if effort is None:
        effort, three = _level(affordable, tied, side)
    else:
        three = effort >= _FROM_EFFORT and crossing != "natural"
    tied = tied or (3 if three else 2)
    return options.model_copy(
        update={
            "crossing": crossing,
            "effort": effort,
            "candidates": candidates,
            "tied_classes": tied,
        }
    )


def _of_audio(options: BoundaryOptions, one_trip: bool, *, words: bool) -> BoundaryOptions:
    crossing = options.crossing
    if crossing == "auto":
        crossing = "natural" if words else "least-l2"
    return options.model_copy(
        update={
            "crossing": crossing,
            "effort": options.effort
            or (_DIRECTIONS_OF_SOUND if crossing == "least-l2" else _SCREENED),
            "candidates": options.candidates or (_AT_ONCE if one_trip else 1),
            "tied_classes": options.tied_classes or 2,
        }
    )


def _level(affordable: float, tied: int | None, side: int) -> tuple[int, bool]:
    """Return the largest effort that so many host queries pay for, and whether for three classes that tie.

    Where nobody stated how many tie, three do from the effort on from which they are worth it.
    """
    for three in (True, False):
        levels = [
            one
            for one in LEVELS
            if (side >= _MORE_FROM or one <= _FROM_EFFORT)
            and 2 * one + _BESIDE_DIRECTIONS + three * _FOR_A_TIE <= affordable
            and (not three or tied == 3 or one >= _FROM_EFFORT)
        ]
        if levels and (tied is None or three == (tied == 3)):
            return max(levels), three
    return LEVELS[0], False

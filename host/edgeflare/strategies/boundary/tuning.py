"""Options of the boundary search that the user left open, chosen by the cost of a device query."""

from typing import Literal

from edgeflare.strategies.boundary.directions import LARGE_SIDE
from edgeflare.strategies.boundary.options import BoundaryOptions

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
one. Not within bounds, since ties are farther from the seed, and not for large images: on
EfficientNet-Lite0 1.5 queries with three, 1.4 with two."""
_SCREENED = 32
_FEW_SCREENED = 8
_LARGER_SIDE = 32
"""Images whose longer side is shorter gain nothing by more directions: crossings of MNIST's are even farther away."""
_AT_ONCE = 4
_AUDIO_DIRECTIONS = 256


def depends_on_cost(options: BoundaryOptions) -> bool:
    """Whether `resolve_options` chooses one of the options by the cost of a device query."""
    return options.crossing == "auto" or options.effort is None


def resolve_options(
    options: BoundaryOptions,
    ratio: float,
    side: int,
    one_trip: bool,
    of: Literal["image", "audio", "transcript"] = "image",
) -> BoundaryOptions:
    """Return the options with nothing left open; what the user states stays.

    `ratio`: the time of a device query in times of a query of the original on the host. `side`: the
    longer side of an image in pixels. `one_trip`: the device is asked for many seeds at once. `of`:
    what the samples are; "transcript" where speech recognisers answer, for which only natural
    corruptions have a meaning. The result depends on measured times and decides what a search
    finds: it is computed once, when a campaign is created, and stored with it. For recordings,
    whose answers cost the host a few milliseconds, there are always so many directions that the
    changes are faint.
    """
    if of != "image":
        return _of_audio(options, one_trip, words=of == "transcript")
    affordable = _HOST_SHARE * (max(ratio, 0.0) + 1)
    candidates = options.candidates or (_AT_ONCE if one_trip else 1)
    crossing, effort = options.crossing, options.effort
    bounded = options.max_l2 or options.max_linf or options.min_ssim is not None
    tied = options.tied_classes
    if tied is None and (bounded or candidates > 1 or side >= LARGE_SIDE):
        tied = 2
    if crossing == "auto":
        few = _FEW if side < LARGE_SIDE else _FEW_FOR_LARGE
        crossing = "mutants" if affordable < few else "least-l2"
        if effort is None and crossing == "mutants":
            effort = _FEW_SCREENED
    if effort is None and crossing in ("mutants", "natural"):
        effort = _FEW_SCREENED if affordable < _FEW else _SCREENED
    if effort is None:
        effort, three = _level(affordable, tied, side)
    else:
        three = effort >= _TIE_EFFORT and crossing != "natural"
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
            or (_AUDIO_DIRECTIONS if crossing == "least-l2" else _SCREENED),
            "candidates": options.candidates or (_AT_ONCE if one_trip else 1),
            "tied_classes": options.tied_classes or 2,
        }
    )


def _level(affordable: float, tied: int | None, side: int) -> tuple[int, bool]:
    """Return the largest effort that this number of host queries allows, and whether three classes tie.

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

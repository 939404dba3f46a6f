"""Why a search of one seed found nothing, in words that reports can group; what of a campaign is damaged."""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from edgeflare._internal.text import counted

NO_TRIGGER = "there is no triggering input of this seed input"
ANOTHER_HERE = "what made the triggering input makes another one here"

NOT_REPEATABLE = "not repeatable: the deployed model answered otherwise to the same input"
"""Why a deviation that is one each time is not confirmed."""
DID_NOT_REPEAT = "the deviation did not repeat"
FOUND_BEFORE = "a triggering input had been found before (digest {}, not confirmed)"
TIME_IS_UP = "the time budget ended the search for a more severe one"
BELOW_FLOOR = (
    "{:,} of {:,} inputs were below the margin floor of {:g}, so that the device was not asked "
    "about them; a lower --margin-floor lets them count"
)

# Of stored campaigns that are damaged
OUTCOMES_NAME_GONE = (
    "{} outcomes name {} that are gone from the database: what is said of those isn't known; "
    "restore it from a copy"
)
OUTCOMES_MISSING = (
    "{} outcomes are missing, though the campaign was finished: restore the database from a copy, "
    "or search those seeds again with `edgeflare resume`"
)
UNKNOWN_FIGURES = (
    "figures of {!r} are stored as NaN or infinity and count as not known: run the command that "
    "made them again"
)


def unreadable(damaged: Mapping[str, str]) -> str:
    """Return how many samples can't be read, and why the first can't; by their digests."""
    return f"{counted(len(damaged), 'sample')} can't be read: {next(iter(damaged.values()))}"


Where: TypeAlias = Literal["boundary", "objects", "text"]
_NOWHERE: Mapping[Where, tuple[str, str]] = {
    "boundary": (
        "beside the original's decision boundary",
        "another crossing, or strategy dflare, may find one",
    ),
    "objects": (
        "where the original's objects come and go",
        "another crossing, or strategy dflare, may find one",
    ),
    "text": ("where the original returns other words", "strategy dflare may find one"),
}
_NOTHING_ASKED = "nothing was asked of the device"


def search_failed(digest: str | None, error: Exception) -> str:
    """Return that the search for a more severe input failed, and on which input, where it is known."""
    where = f" on an input (digest {digest})" if digest else ""
    return f"the search for a more severe one failed{where}: {error}"


def not_repeated(severity: str, digests: Sequence[str]) -> str:
    """Return which inputs of a severity ("more", say) did not repeat; "" without any."""
    if not digests:
        return ""
    if len(digests) == 1:
        return f"a {severity} severe input did not repeat (digest {digests[0]})"
    return f"{len(digests)} {severity} severe inputs did not repeat (digests {', '.join(digests)})"


def budget_spent(queries: int | None) -> str:
    """Return that a device budget was used up."""
    return f"the device budget of {queries} queries was spent without a triggering input"


def nothing_found(where: Where, bounds: str, *, is_asked: bool) -> str:
    """Return that no triggering input was found `where` one was looked for, or within `bounds`.

    `is_asked`: whether the device was asked about anything.
    """
    place, advice = _NOWHERE[where]
    if bounds:
        place, advice = f"within {bounds}", "wider bounds may have one"
    asked = "" if is_asked else f": {_NOTHING_ASKED}"
    return f"no triggering input was found {place}{asked}; {advice}"


def within_tolerance(largest: float | None, bounds: str) -> str:
    """Return that no answers were further apart than `largest`; None: the device was not asked."""
    within = f" within {bounds}" if bounds else ""
    most = _NOTHING_ASKED if largest is None else f"at most {largest:.3g}"
    return (
        f"no two answers further apart than the tolerance were found{within}: {most}; strategy "
        "dflare, or the survey, may find some"
    )


def hopeless(inputs: int, largest: float, floor: float) -> str:
    """Return what was seen where a search ended because nowhere was enough drift.

    `largest`: the severest of all `inputs` beside the original's boundary; `floor`: the margin floor.
    """
    where = f"at all {inputs} inputs asked about {_NOWHERE['boundary'][0]}"
    if largest == 0:
        return f"both models answered alike {where}: there they can't be told apart"
    if floor == 0:
        return f"both models answered almost alike {where}: the rest is rounding"
    step = floor / 5  # in steps, so that reports can group the reasons of many seeds
    return (
        f"both models answered so alike {where} that they can't be sure of different answers by "
        f"more than {math.ceil(largest / step) * step:.2g}, where the margin floor is {floor:g}; a lower --margin-floor, or "
        "strategy dflare, may find a deviation"
    )

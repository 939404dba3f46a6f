"""Options that say what a finding is, how far it may be, and what the search may cost."""

from pathlib import Path
from typing import Annotated

import typer

from edgeflare.cli.options import DEVICES

SEARCH = "Search"


def _above_0(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not above 0.")
    return value


def _share_below_1(value: float | None) -> float | None:
    if value is not None and not 0 <= value < 1:
        raise typer.BadParameter(f"{value:g} is not at least 0 and below 1.")
    return value


def _share_within(value: float | None) -> float | None:
    if value is not None and not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is not above 0 and below 1.")
    return value


Crossing = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="For boundary, how the original's decision boundary is reached: auto (the default: by what "
        "a device query costs), least-l2, line, mutants or natural. Short for --option crossing=NAME.",
        rich_help_panel=SEARCH,
    ),
]
DeviceBudget = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="For boundary, at most N search queries for each seed (confirmations come on top); what is left after the first trigger "
        "goes to a more severe one. Short for --option device_budget=N.",
        rich_help_panel=SEARCH,
    ),
]
MaxL2 = Annotated[
    float | None,
    typer.Option(
        callback=_above_0,
        metavar="F",
        help="For boundary, the largest L2 distance from the seed, of pixels from 0 to 1 or samples from -1 to 1; "
        "above 0. Short for --option max_l2=F.",
        rich_help_panel=SEARCH,
    ),
]
MaxLinf = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=65_534,
        metavar="N",
        help="For boundary, the largest change of one value, in levels (of audio those of 16 bits). Short for "
        "--option max_linf=N.",
        rich_help_panel=SEARCH,
    ),
]
MinSsim = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        metavar="F",
        help="For boundary, the smallest SSIM to the seed (needs scikit-image). Short for "
        "--option min_ssim=F.",
        rich_help_panel=SEARCH,
    ),
]
MarginFloor = Annotated[
    float | None,
    typer.Option(
        callback=_share_below_1,
        metavar="F",
        help="A deviation counts only where both models' top-1 probability is so far above their "
        "second (for transcripts: at each word that differs); default 1e-3. An input on which the original's isn't is not sent to the device. 0 <= F < 1; "
        "0: none.",
        rich_help_panel=SEARCH,
    ),
]
Oracle = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What a deviation is: label (another top-1 class), transcript (another word), tolerance (scores further "
        "apart than --tolerance, whatever the class) or auto (the default: transcript for speech recognisers, "
        "else label).",
        rich_help_panel=SEARCH,
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        callback=_share_within,
        metavar="F",
        help="For --oracle tolerance, the largest total variation distance of both models' scores that is no "
        "deviation; 0 < F < 1.",
        rich_help_panel=SEARCH,
    ),
]
MaxQueries = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Search queries for each seed; 0: no limit.",
        rich_help_panel=SEARCH,
    ),
]
OriginalTimeout = Annotated[
    float | None,
    typer.Option(
        min=1,
        max=86400,
        metavar="SECONDS",
        help="Seconds that loading the original here, or one inference of it, may take; default 60.",
        rich_help_panel=SEARCH,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="Seconds for each seed; 0: no limit.",
        rich_help_panel=SEARCH,
    ),
]
RandomSeed = Annotated[
    int | None, typer.Option(metavar="N", help="Fixes all randomness.", rich_help_panel=SEARCH)
]
AllowDisagreement = Annotated[
    bool | None,
    typer.Option(
        "--allow-disagreement",
        help="Go on though the pair looks wrong.",
        rich_help_panel=SEARCH,
    ),
]
MaxHostQueries = Annotated[
    int | None,
    typer.Option(
        min=0,
        metavar="N",
        help="Inputs given to the original alone, for each seed; default 1000000. 0: no limit.",
        rich_help_panel=SEARCH,
    ),
]
Control = Annotated[
    bool | None,
    typer.Option(
        "--control",
        help="Then search from the same seeds with the original against itself: each trigger there is a "
        "false alarm; the report gives their rate. Every search that finds nothing goes to its limit (see "
        "--max-queries).",
        rich_help_panel=SEARCH,
    ),
]
ControlModel = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="--control against this float copy of the original, perhaps of another runtime.",
        rich_help_panel=SEARCH,
    ),
]
OneTrip = Annotated[
    bool | None,
    typer.Option(
        "--one-trip",
        help="For devices far away or that take batches: gather what all searches ask into few large "
        "requests. That alone doesn't change what is found; for boundary it also sends 4 candidates at "
        "once (option candidates), which does.",
        rich_help_panel=DEVICES,
    ),
]

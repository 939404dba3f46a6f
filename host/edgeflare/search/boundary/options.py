"""What can be chosen of the boundary search."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class BoundaryOptions(BaseModel):
    """The options; None leaves the choice to `resolved`.

    `crossing`: how the original's boundary is reached ("auto": by what a device query costs). `effort`: how many
    directions (least-l2) or inputs (mutants, natural) the original is asked about at once. `device_budget`: at most so many
    device queries for each seed, those left after the first triggering input going to a more severe one; None: the
    search ends with the first one. `candidates`:
    inputs sent to the device at once; above 1 the search is for devices where a trip costs more than a query.
    `tied_classes`: how many classes are brought to a tie for the original where the device is asked: with 3 fewer
    device queries and more host queries are needed than with 2, a little farther from the seed. Where several
    `candidates` are sent at once, natural ones are looked for, or the margin floor is above .02, 2 do.
    A triggering input lies within `max_l2` (L2 of pixels from 0 to 1), `max_linf` (levels) and has at least
    `min_ssim`, which needs scikit-image.

    Of recordings `max_l2` is in amplitudes from -1 to 1, `max_linf` in levels of 16 bits, and there is no `min_ssim`.
    Where recognisers answer, only `candidates` (above 1: both sides of a change at once) and these bounds
    have a meaning; the crossing is natural.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    crossing: Literal["auto", "least-l2", "line", "mutants", "natural"] = "auto"
    effort: int | None = Field(default=None, ge=4, le=1024)
    device_budget: int | None = Field(default=None, ge=1, le=100_000)
    candidates: int | None = Field(default=None, ge=1, le=64)
    tied_classes: Literal[2, 3] | None = None
    max_l2: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_linf: int | None = Field(default=None, ge=1, le=65_534)
    min_ssim: float | None = Field(default=None, ge=0, le=1)

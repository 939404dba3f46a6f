"""What can be chosen of the boundary search, and the bounds on a triggering input."""

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from edgeflare.errors import UsageError
from edgeflare.metrics import l2, linf, ssim
from edgeflare.strategies.boundary.points import Floats, space_of
from edgeflare.types import Sample

_MAX_RADIUS = 4.0
_TYPICAL_CHANGE = 0.1
"""Of every value of an image, on a scale from 0 to 1: about what makes it look like another image."""
_TYPICAL_AUDIO_SHARE = 0.3
_MIN_AMPLITUDE = 1e-3
_FAR = 3.3
_FAR_ENOUGH = 1.5


class BoundaryOptions(BaseModel):
    """The options; None leaves the choice to `resolve_options`.

    `crossing`: how the original's boundary is reached ("auto": by the cost of a device query). `effort`: how many
    directions (least-l2) or inputs (mutants, natural) the original is asked about at once. `device_budget`: the largest
    number of device queries for each seed; those that are left after the first triggering input go into a more severe
    one. None: the search ends with the first one. `candidates`: inputs sent to the device at once; above 1 the search is
    for devices where a round trip costs more than a query. `tied_classes`: how many classes are brought to a tie for the
    original where the device is asked: 3 need fewer device queries and more host queries than 2, a little farther from
    the seed. Where several `candidates` are sent at once, with natural crossings, or with a margin floor above .02, it is
    2. A triggering input lies within `max_l2` (L2 of pixels from 0 to 1) and `max_linf` (levels) of its seed and has an
    SSIM of `min_ssim` or more, which needs scikit-image.

    For recordings `max_l2` is in amplitudes from -1 to 1, `max_linf` in levels of 16 bits, and
    there is no `min_ssim`. For speech recognisers only `candidates` (above 1: both sides of a
    change at once), `max_l2` and `max_linf` have a meaning; the crossing is natural.
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

    def bounds_text(self) -> str:
        """Return the stated bounds, as "max_l2 3 and min_ssim 0.9"; "" for none."""
        stated = {name: getattr(self, name) for name in ("max_l2", "max_linf", "min_ssim")}
        return " and ".join(
            f"{name} {value:g}" for name, value in stated.items() if value is not None
        )


class Bounds:
    """Checks inputs against the user's bounds.

    `radius`: the largest L2 at which inputs near the boundary are looked for; `farthest`: that of
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
                f"min_ssim: SSIM is not defined for images of {height} x {width} pixels (3 are needed "
                "either way); state max_l2 or max_linf instead"
            )
        return similarity >= options.min_ssim


def _typical_change(seed: Sample) -> float:
    """Return the L2 of a large change: a tenth of every value of an image, three tenths of a recording's amplitude."""
    if seed.ndim > 1:
        return _TYPICAL_CHANGE * float(np.sqrt(seed.size))
    amplitude = float(np.linalg.norm(seed.astype(np.float64)))
    return _TYPICAL_AUDIO_SHARE * max(amplitude, _MIN_AMPLITUDE * float(np.sqrt(seed.size)))

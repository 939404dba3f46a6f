"""How far from its seed a triggering input may be."""

import numpy as np

from edgeflare.distances import l2, linf, ssim
from edgeflare.errors import UsageError
from edgeflare.search.boundary.options import BoundaryOptions
from edgeflare.search.boundary.points import Floats
from edgeflare.search.boundary.space import space_of
from edgeflare.types import Sample

_MOST = 4.0
_USUAL_SHARE = 0.3
_QUIETEST = 1e-3
_FAR = 3.3
_ROOM = 1.5
_USUAL_CHANGE = 0.1
"""Of every value, on a scale from 0 to 1: about what turns an image into another one to look at."""


class Limits:
    """Holds inputs to the user's bounds.

    `radius`: the L2 that the search beside the boundary goes to at most; `farthest`: the one at which it
    looks far off, `leaves_room` whether that is far enough for the models to be unlike themselves there.
    """

    def __init__(self, options: BoundaryOptions, seed: Sample) -> None:
        self._options = options
        self._seed = seed
        usual = _usual(seed)
        bound = np.inf if options.max_l2 is None else options.max_l2
        self.radius = usual if options.max_l2 is None else min(bound, _MOST * usual)
        every_value = np.inf if options.max_linf is None else options.max_linf / space_of(seed).unit
        self.farthest = min(bound, _FAR * usual, every_value * float(np.sqrt(seed.size)))
        self.leaves_room = self.farthest >= _ROOM * usual

    def within_linf(self, change: Floats) -> Floats:
        """Return a change of values, in levels, with each value's brought into the bound on Linf."""
        most = self._options.max_linf
        return change if most is None else np.clip(change, -most, most)

    def hold(self, sample: Sample) -> bool:
        """Whether an input lies within the bounds.

        Raises UsageError where SSIM is wanted and scikit-image is missing or the images are too small.
        """
        options = self._options
        if options.max_l2 is not None and l2(self._seed, sample) > options.max_l2:
            return False
        if options.max_linf is not None and linf(self._seed, sample) > options.max_linf:
            return False
        if options.min_ssim is None:
            return True
        alike = ssim(self._seed, sample)
        if alike is None:
            height, width = self._seed.shape[:2]
            raise UsageError(
                f"min_ssim: SSIM is not defined for images of {height} x {width} pixels (3 are needed "
                "either way); state max_l2 or max_linf instead"
            )
        return alike >= options.min_ssim


def _usual(seed: Sample) -> float:
    """Return the L2 of a large change: a tenth of every value of an image, three tenths of a recording's amplitude."""
    if seed.ndim > 1:
        return _USUAL_CHANGE * float(np.sqrt(seed.size))
    amplitude = float(np.linalg.norm(seed.astype(np.float64)))
    return _USUAL_SHARE * max(amplitude, _QUIETEST * float(np.sqrt(seed.size)))

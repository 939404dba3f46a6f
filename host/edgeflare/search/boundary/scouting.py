"""Looks far from the seed, where a quantised model may go wrong altogether.

Beside the original's boundary the deployed model is off by its usual drift, which bounds how sure both can be.
Some models have places where they are off by far more: keyword spotting's int8 model on inputs unlike any
speech. Nothing that the device told near the seed points there, but a few inputs do: the seed under as much
noise as the bounds allow, where the original is still sure.

Measured with noise of half this distance to all of it, of sixty seeds' inputs those on which both models are surer
of different answers than beside the boundary: keyword spotting .52, ResNet-8 .007, the LeNets and ResNet-20 none,
EfficientNet-Lite0 .13. So a few queries tell whether it pays. Salt and pepper, and noise that multiplies, do as
well there, smooth noise, rectangles, higher contrast and the way to another seed half as well.
"""

from collections.abc import Generator

import numpy as np

from edgeflare.search.boundary.asking import Told
from edgeflare.search.boundary.ground import Ground
from edgeflare.search.boundary.paths import Straight
from edgeflare.search.boundary.points import Point, levels
from edgeflare.types import Answer, Ask, Sample

_FEW = 2
_FEW_LEFT = 6
_MOST_SHARE = 0.5
_SEVERE = 0.25
_UNLIKE = 0.03
_PATIENCE = 3
_SCREENED = 8
_SURE = 0.5
_FITTINGS = 4
_MOST_GROWTH = 4.0
_SHORT = 0.99
_NOTHING = 1e-6


class Scouts:
    """Asks about noisy inputs far from the seed, first a few, then more as long as they are worth it."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def search(self) -> Generator[Ask, Answer, None]:
        """Spend a query or two; more while every third one finds something severe, or the models are unlike there."""
        device = self._ground.device
        few = _FEW if device.left >= _FEW_LEFT else 1
        most = _MOST_SHARE * device.left
        sent = severe = 0
        unlike = False
        while device.left > 0 and not device.content:
            if not (sent < few or _PATIENCE * severe >= sent or (unlike and sent < most)):
                return
            point = yield from self._far()
            if point is None:
                return
            told = yield from device.ask((point,), aside=True)
            sent += 1
            severe += bool(told) and told[0].margin >= _SEVERE
            unlike = bool(told) and self._variation(told[0]) >= _UNLIKE

    def _variation(self, told: Told) -> float:
        """Return the total variation distance of both models' answers; 0 where the device tells labels only."""
        if self._ground.view.seed.labels_only:
            return 0.0
        return float(np.abs(np.exp(told.point.logs) - told.deployed).sum()) / 2.0

    def _far(self) -> Generator[Ask, Answer, Point | None]:
        """Return the input that the original is surest of, of some far ones; None where there is none within the bounds."""
        ground, limits = self._ground, self._ground.limits
        ends = [self._noisy() for _ in range(_SCREENED)] if limits.leaves_room else []
        fitting = [end for end in ends if limits.hold(end)]
        scores = yield from ground.view.scores(fitting)
        found = []
        for end, one in zip(fitting, scores, strict=True):
            path = Straight(ground.view.pixels, ground.view.space.values(end), farthest=1.0)
            found.append(ground.view.point(path, 1.0, end, one))
        sure = [point for point in found if point.margin >= _SURE]
        return max(sure, key=lambda point: point.margin, default=None)

    def _noisy(self) -> Sample:
        """Return the seed under normal noise of the largest L2 that is allowed, or nearly so: values are clipped."""
        pixels, limits = self._ground.view.pixels, self._ground.limits
        space = self._ground.view.space
        noise = self._ground.rng.standard_normal(pixels.shape)
        noise *= space.unit * limits.farthest / np.linalg.norm(noise)
        changed = pixels
        for _ in range(_FITTINGS):
            changed = space.within(pixels + limits.within_linf(noise))
            there = float(np.linalg.norm(changed - pixels)) / space.unit
            noise *= min(_MOST_GROWTH, _SHORT * limits.farthest / max(there, _NOTHING))
        return levels(changed)

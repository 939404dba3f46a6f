"""The first triggering input: where the original can't decide, the device decides otherwise on one side or the other."""

from collections.abc import Generator

import numpy as np

from edgeflare.search.boundary.asking import Device, Told, least_aim
from edgeflare.search.boundary.limits import Limits
from edgeflare.search.boundary.nudging import beside
from edgeflare.search.boundary.placing import Aim, Bracket, place
from edgeflare.search.boundary.points import Point, View
from edgeflare.types import Answer, Ask

_QUERIES_A_CROSSING = 3
_SMALLEST_DRIFT = 4.0


class First:
    """Goes from crossing to crossing; at each one asks about the side that the drift points to, then by what was told."""

    def __init__(
        self, view: View, device: Device, limits: Limits, rng: np.random.Generator, floor: float
    ) -> None:
        self._view = view
        self._device = device
        self._limits = limits
        self._rng = rng
        self.floor = floor

    def at(self, bracket: Bracket) -> Generator[Ask, Answer, bool]:
        """Ask the device about a crossing; return whether it triggers there."""
        drift = self._expected(bracket.outside.rival)
        keeps_label = bool(self._rng.integers(2)) if drift is None else drift < 0
        point = yield from self.placed(bracket, least_aim(self.floor, keeps_label))
        for query in range(_QUERIES_A_CROSSING):
            if point is None or not self._device.is_new(point):
                return False
            told = yield from self._device.ask((point,))
            if not told or told[0].margin > 0:
                return bool(told)
            if told[0].drift is None:
                if query:
                    return False
                keeps_label = not keeps_label
            elif abs(told[0].drift) < _SMALLEST_DRIFT * self.floor:
                return False  # both models all but agree here: another place is better
            else:
                keeps_label = told[0].drift < 0
            aim = least_aim(self.floor, keeps_label)
            point = yield from beside(self._view, point, aim, self._rng)
            if point is not None and not self._limits.hold(point.sample):
                return False
        return False

    def placed(self, bracket: Bracket, aim: Aim) -> Generator[Ask, Answer, Point | None]:
        """Return a point at the aim that the limits allow."""
        point = yield from place(self._view, bracket, aim, self._rng)
        return point if point is not None and self._limits.hold(point.sample) else None

    def _expected(self, rival: int) -> float | None:
        """Return the drift at the last point with this rival, else at the seed; None where labels are all there is."""
        known: list[Told] = [told for told in self._device.told if told.point.rival == rival]
        return known[-1].drift if known else self._device.drift_at_seed(rival)
